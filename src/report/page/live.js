/* live.js - the live dashboard: fetches updates from the server and shows them.
 *
 *   /api/stream signals new data ─► /api/runs lists their revisions ─► /api/summary has the update
 *
 * Updates are merged into the data so far. There is at most one per second, and none while the page
 * is paused or hidden; the next one then includes everything since. */
"use strict";

(function (A) {
    const EVERY_MS = 1000;
    const QUIET_S = 5; // a running run without new data for longer gets a notice
    const WINDOWS = [
        ["whole run", 0],
        ["last 10 minutes", 600],
        ["last minute", 60],
        ["last 10 seconds", 10],
    ];
    const DOTS = {
        live: "●",
        paused: "❚❚",
        connecting: "○",
        lost: "○",
        finished: "■",
        ended: "■",
    };
    const STATUS = {
        connecting: "connecting",
        live: "live",
        finished: "finished",
        paused: "paused",
        lost: "the server does not respond; retrying",
        refused: "the token is no longer valid; open the address that anytime printed",
        ended: "the dashboard has stopped; this page keeps its data",
    };

    async function get(path) {
        const response = await fetch(path, { cache: "no-store" });
        if (response.ok) return response.json();
        throw Object.assign(new Error(`${path}: ${response.status}`), { status: response.status });
    }

    A.Live = class {
        constructor(root) {
            this.page = new A.Page(root);
            this.runs = [];
            this.paused = false;
            this.window = 0;
            this.outdated = true; // the server may have newer data
            this.busy = false;
            this.shownAt = -Infinity;
            this.state = "";
            this.build();
            this.setStatus("connecting");
        }

        build() {
            this.status = A.el("span", { class: "status", role: "status" });
            this.button = A.el("button", {
                type: "button",
                text: "Pause",
                "aria-pressed": "false",
                title: "key: p",
                on: { click: () => this.pause(!this.paused) },
            });
            this.select = A.el(
                "select",
                {
                    id: "window",
                    title: "key: w",
                    on: { change: () => this.choose(Number(this.select.value)) },
                },
                WINDOWS.map(([text], value) => A.el("option", { value: String(value), text })),
            );
            this.notices = A.el("ul", { class: "notices", "aria-label": "run status" });
            this.page.tools.append(
                this.status,
                this.button,
                A.el("label", { for: "window", class: "unseen", text: "time range" }),
                this.select,
            );
            this.page.nav.before(this.notices);
            addEventListener("keydown", (event) => this.onKey(event));
        }

        start() {
            const bare = location.pathname + location.hash;
            if (location.search) history.replaceState(null, "", bare); // hides the token
            document.addEventListener("visibilitychange", () => this.schedule());
            setInterval(() => this.updateNotices(), EVERY_MS);
            this.connect();
            this.schedule();
        }

        /* ---- updates ---- */

        connect() {
            this.stream = new EventSource("api/stream");
            this.stream.onopen = () => this.onNewData();
            this.stream.onmessage = () => this.onNewData();
            this.stream.onerror = () => this.setStatus("lost");
            this.stream.addEventListener("bye", () => this.finish());
        }

        onNewData() {
            this.outdated = true;
            this.setStatus(this.activity());
            this.schedule();
        }

        /** "live" only while a run can have news. */
        activity() {
            if (this.paused) return "paused";
            const over = ({ state, result }) =>
                state === "ended" || state === "broken" || (state === "unrecorded" && result);
            return this.runs.length && this.runs.every(over) ? "finished" : "live";
        }

        /** The server is about to stop: this is the last chance for an update. */
        async finish() {
            this.stream.close();
            if (!this.paused) await this.fetchUpdates().catch(() => {});
            this.setStatus("ended");
            this.button.disabled = true;
        }

        /** Starts an update as soon as it is allowed. */
        schedule() {
            if (this.timer || this.busy || this.paused || document.hidden || !this.outdated) return;
            const wait = Math.max(0, this.shownAt + EVERY_MS - performance.now());
            this.timer = setTimeout(() => {
                this.timer = null;
                this.refresh();
            }, wait);
        }

        async refresh() {
            this.busy = true;
            this.outdated = false;
            try {
                await this.fetchUpdates();
                this.setStatus(this.activity());
            } catch (error) {
                this.setStatus(error.status === 401 ? "refused" : "lost");
                this.outdated = true;
            }
            this.shownAt = performance.now();
            this.busy = false;
            if (this.state !== "refused") this.schedule();
        }

        async fetchUpdates() {
            const { runs } = await get("api/runs");
            await Promise.all(runs.map((run, index) => this.fetchRun(run, index)));
            this.fetchedAt = performance.now();
            this.show();
        }

        async fetchRun(run, index) {
            const old = this.runs[index] || {};
            if (old.number === run.number) {
                this.runs[index] = { ...old, ...run };
                return;
            }
            const since = old.summary ? `&edition=${old.edition}&since=${old.summary.serial}` : "";
            const update = A.runFromJson(await get(`api/summary?run=${index}${since}`));
            const known = old.edition === update.edition ? old.summary : null;
            const summary = update.summary && A.merge(known, update.summary);
            this.runs[index] = { ...update, summary };
        }

        /* ---- showing ---- */

        show() {
            const known = this.runs.filter((run) => run.summary || run.result);
            if (known.length) this.page.update(known);
            this.follow();
            this.updateNotices();
            this.updateTitle();
        }

        /** Scrolls everything drawn against time to the newest part. */
        follow() {
            const summaries = this.runs.map((run) => run.summary).filter(Boolean);
            const width = WINDOWS[this.window][1];
            const end = Math.max(0, ...summaries.map((summary) => summary.state.at));
            if (!width || !summaries.length) return;
            const timeline = this.page.timeline;
            for (const chart of this.charts())
                if (chart.options.x === "time" && chart.graph)
                    chart.graph.updateOptions({ dateWindow: [Math.max(0, end - width), end] });
            if (timeline.timeline && timeline.end > 0)
                timeline.show(1 - Math.min(1, width / timeline.end), 1);
        }

        charts() {
            return [
                ...this.page.curves,
                ...this.page.resources,
                ...this.page.network.charts,
                this.page.workerBatch,
            ];
        }

        choose(index) {
            this.window = index;
            this.select.value = String(index);
            if (WINDOWS[index][1]) return this.follow();
            for (const chart of this.charts()) if (chart.graph) chart.graph.resetZoom();
            if (this.page.timeline.timeline) this.page.timeline.show(0, 1);
        }

        pause(paused) {
            this.paused = paused;
            this.button.setAttribute("aria-pressed", String(paused));
            this.button.textContent = paused ? "Resume" : "Pause";
            if (this.state !== "ended") this.setStatus(this.activity());
            this.schedule();
        }

        setStatus(state) {
            if (state === this.state || this.state === "ended") return;
            this.state = state;
            this.status.className = "status " + state;
            this.status.textContent = `${DOTS[state] || "!"} ${STATUS[state]}`;
        }

        /** A line for each run whose state needs attention. */
        updateNotices() {
            if (this.state === "ended") return; // there will be no more updates
            const ago = (performance.now() - this.fetchedAt) / 1000;
            const each = this.runs.map((run) => notice(run, ago));
            const lines = [...each, endedNotice(this.runs)].filter(Boolean);
            const key = JSON.stringify(lines);
            if (key === this.noticesKey) return;
            this.noticesKey = key;
            this.notices.hidden = lines.length === 0;
            A.fill(this.notices, lines.map(([kind, text]) => A.el("li", { class: kind, text })));
        }

        updateTitle() {
            const run = this.runs.find((one) => one.state === "running") || this.runs[0];
            if (!run) return;
            const steps = A.stateOf(run).steps;
            const progress = A.known(steps) ? `step ${A.format.count(steps)}` : run.state;
            document.title = `${run.label}: ${progress} · anytime`;
        }

        onKey(event) {
            if (event.ctrlKey || event.altKey || event.metaKey) return;
            if (/^(SELECT|INPUT|TEXTAREA)$/.test(event.target.tagName)) return;
            if (event.key === "p") this.pause(!this.paused);
            else if (event.key === "w") this.choose((this.window + 1) % WINDOWS.length);
            else return;
            event.preventDefault();
        }
    };

    /** The notice about a run: [class, sentence], or null. */
    function notice(run, ago) {
        const silence = run.silence === null ? 0 : run.silence + ago;
        if (run.state === "running" && silence > QUIET_S) {
            const time = A.format.seconds(Math.round(silence));
            return ["silent", `${run.label}: no new data for ${time}; it is waiting or was killed`];
        }
        if (run.state === "running" || run.state === "ended") return null;
        return [run.state, `${run.label}: ${run.word}`];
    }

    /** One line for all runs that have ended. */
    function endedNotice(runs) {
        const labels = runs.filter((run) => run.state === "ended").map((run) => run.label);
        if (labels.length === 0) return null;
        if (labels.length === 1) return ["ended", `${labels[0]} has ended`];
        const last = labels.pop();
        return ["ended", `${labels.join(", ")} and ${last} have ended`];
    }

    A.live = new A.Live(document.getElementById("page"));
    A.live.start();
})(Anytime);
