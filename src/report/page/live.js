/* live.js - the page of runs that go on: asks the server for news and shows them.
 *
 *   /api/stream says that there is news ─► /api/runs says of whom ─► /api/story gives it
 *
 * News are merged into what is there. At most one update a second, none while the page is paused or
 * nobody sees it; what was missed then comes with the next one. */
"use strict";

(function (A) {
    const EVERY_MS = 1000;
    const QUIET_S = 5; // a run that writes nothing for so long is worth a word
    const WINDOWS = [
        ["whole run", 0],
        ["last 10 minutes", 600],
        ["last minute", 60],
        ["last 10 seconds", 10],
    ];
    const DOTS = { live: "●", paused: "❚❚", connecting: "○", lost: "○", ended: "■" };
    const WORDS = {
        connecting: "connecting",
        live: "live",
        paused: "paused",
        lost: "the server does not answer; trying again",
        refused: "the token is not known here any more; open the address that anytime printed",
        ended: "the dashboard has ended; what is shown stays",
    };

    async function get(path) {
        const answer = await fetch(path, { cache: "no-store" });
        if (answer.ok) return answer.json();
        throw Object.assign(new Error(`${path}: ${answer.status}`), { status: answer.status });
    }

    A.Live = class {
        constructor(root) {
            this.page = new A.Page(root);
            this.runs = [];
            this.paused = false;
            this.window = 0;
            this.news = true; // something may be there that is not shown
            this.busy = false;
            this.shownAt = -Infinity;
            this.state = "";
            this.build();
            this.tell("connecting");
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
            this.notices = A.el("ul", { class: "notices", "aria-label": "how the runs stand" });
            this.page.tools.append(
                this.status,
                this.button,
                A.el("label", { for: "window", class: "unseen", text: "show" }),
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

        /* ---- hearing ---- */

        connect() {
            this.stream = new EventSource("api/stream");
            this.stream.onopen = () => this.hear();
            this.stream.onmessage = () => this.hear();
            this.stream.onerror = () => this.tell("lost");
            this.stream.addEventListener("bye", () => this.finish());
        }

        hear() {
            this.news = true;
            this.tell(this.paused ? "paused" : "live");
            this.schedule();
        }

        /** The server is about to end: the last news now, or never. */
        async finish() {
            this.stream.close();
            if (!this.paused) await this.fetchNews().catch(() => {});
            this.tell("ended");
        }

        /** Sees to it that news are shown as soon as they may be. */
        schedule() {
            if (this.timer || this.busy || this.paused || document.hidden || !this.news) return;
            const wait = Math.max(0, this.shownAt + EVERY_MS - performance.now());
            this.timer = setTimeout(() => {
                this.timer = null;
                this.refresh();
            }, wait);
        }

        async refresh() {
            this.busy = true;
            this.news = false;
            try {
                await this.fetchNews();
                this.tell(this.paused ? "paused" : "live");
            } catch (error) {
                this.tell(error.status === 401 ? "refused" : "lost");
                this.news = true;
            }
            this.shownAt = performance.now();
            this.busy = false;
            if (this.state !== "refused") this.schedule();
        }

        async fetchNews() {
            const { runs } = await get("api/runs");
            await Promise.all(runs.map((run, index) => this.fetchRun(run, index)));
            this.heardAt = performance.now();
            this.show();
        }

        async fetchRun(run, index) {
            const old = this.runs[index] || {};
            if (old.number === run.number) {
                this.runs[index] = { ...old, ...run };
                return;
            }
            const since = old.story ? `&edition=${old.edition}&since=${old.story.serial}` : "";
            const { story, ...rest } = await get(`api/story?run=${index}${since}`);
            const known = old.edition === rest.edition ? old.story : null;
            this.runs[index] = { ...rest, story: story && A.merge(known, story) };
        }

        /* ---- showing ---- */

        show() {
            const told = this.runs.filter((run) => run.story || run.result);
            if (told.length) this.page.update(told);
            this.follow();
            this.updateNotices();
            this.updateTitle();
        }

        /** Moves what is drawn against time to the newest stretch of it. */
        follow() {
            const stories = this.runs.map((run) => run.story).filter(Boolean);
            const width = WINDOWS[this.window][1];
            const end = Math.max(0, ...stories.map((story) => story.state.at));
            if (!width || !stories.length) return;
            const timeline = this.page.timeline;
            for (const chart of this.charts())
                if (chart.options.x === "time" && chart.graph)
                    chart.graph.updateOptions({ dateWindow: [Math.max(0, end - width), end] });
            if (timeline.timeline && timeline.end > 0)
                timeline.show(1 - Math.min(1, width / timeline.end), 1);
        }

        charts() {
            return [...this.page.curves, ...this.page.resources, this.page.workerBatch];
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
            this.button.textContent = paused ? "Go on" : "Pause";
            if (this.state !== "ended") this.tell(paused ? "paused" : "live");
            this.schedule();
        }

        tell(state) {
            if (state === this.state || this.state === "ended") return;
            this.state = state;
            this.status.className = "status " + state;
            this.status.textContent = `${DOTS[state] || "!"} ${WORDS[state]}`;
        }

        /** A line for each run that people should know something about. */
        updateNotices() {
            if (this.state === "ended") return; // nothing can be heard any more
            const ago = (performance.now() - this.heardAt) / 1000;
            const each = this.runs.map((run) => notice(run, ago));
            const lines = [...each, ended(this.runs)].filter(Boolean);
            const key = JSON.stringify(lines);
            if (key === this.noticesKey) return;
            this.noticesKey = key;
            this.notices.hidden = lines.length === 0;
            A.fill(this.notices, lines.map(([kind, text]) => A.el("li", { class: kind, text })));
        }

        updateTitle() {
            const run = this.runs.find((one) => one.state === "running") || this.runs[0];
            if (!run) return;
            const steps = run.story ? `step ${A.format.count(run.story.state.steps)}` : run.state;
            document.title = `${run.label}: ${steps} · anytime`;
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

    /** What there is to say of a run beside its charts: [class, sentence], or null. */
    function notice(run, ago) {
        const silence = run.silence === null ? 0 : run.silence + ago;
        if (run.state === "running" && silence > QUIET_S) {
            const long = A.format.seconds(Math.round(silence));
            return ["silent", `${run.label}: no news for ${long}; it waits, or was killed`];
        }
        if (run.state === "running" || run.state === "ended") return null;
        return [run.state, `${run.label}: ${run.word}`];
    }

    /** One line for all runs that are over. */
    function ended(runs) {
        const over = runs.filter((run) => run.state === "ended").map((run) => run.label);
        if (over.length === 0) return null;
        if (over.length === 1) return ["ended", `${over[0]} has ended`];
        return ["ended", `${over.slice(0, -1).join(", ")} and ${over[over.length - 1]} have ended`];
    }

    A.live = new A.Live(document.getElementById("page"));
    A.live.start();
})(Anytime);
