/* page.js - the page of one or more runs, used by reports and the live dashboard:
 *
 *     const page = new Anytime.Page(document.getElementById("page"));
 *     page.update([{label, folder, summary, result}, ..]);   // whenever there are new data
 *
 * `summary` is the result of merge() in run_data.js, or null; `result` is result.json, or null. */
"use strict";

(function (A) {
    const { number, seconds, count } = A.format;
    const { CURVES, HISTOGRAMS, RESOURCES } = A;

    /* Half-lives in steps. */
    const SMOOTHINGS = [
        [0, "none"],
        [5, "half-life of 5 steps"],
        [20, "half-life of 20 steps"],
        [50, "half-life of 50 steps, as in the summary"],
        [200, "half-life of 200 steps"],
    ];

    const keyOf = (run) => run.folder || run.label;

    /** What times are called: those of simulated runs are virtual. */
    function clockOf(runs) {
        const worlds = runs.map((run) => (run.result || (run.summary || {}).info || {}).world);
        if (!worlds.includes("sim")) return "time";
        return worlds.every((world) => world === "sim") ? "virtual time" : "time (real or virtual)";
    }

    A.Page = class {
        constructor(root) {
            this.hidden = new Set(); // keys of the runs that the user has hidden
            this.halfLife = 0; // of the smoothing, in steps
            this.summaryTable = new A.SummaryTable((run) => this.toggle([run]));
            this.curves = CURVES.map((options) => new A.Chart(options));
            this.histograms = HISTOGRAMS.map(
                (options) =>
                    new A.Chart({
                        ...options,
                        y: `% of ${options.unit}`,
                        formatY: number,
                        bars: true,
                    }),
            );
            this.resources = RESOURCES.map(
                (options) =>
                    new A.Chart({
                        ...options,
                        x: "time",
                        formatX: seconds,
                        zero: true,
                        named: true,
                    }),
            );
            this.workerBatch = new A.Chart({
                title: "Batch size per worker",
                x: "time",
                y: "samples per round",
                formatX: seconds,
                formatY: number,
                zero: true,
                named: true,
            });
            this.timeline = new A.Timeline();
            this.workers = new A.Workers();
            this.network = new A.Network();
            this.ledger = new A.Ledger();
            this.resourceTable = new A.ResourceTable();
            this.settings = new A.Settings();
            this.events = new A.Events();
            this.build(root);
            addEventListener(
                "resize",
                A.lazily(() => this.resize()),
            );
        }

        build(root) {
            this.heading = A.el("h1");
            this.subheading = A.el("p", { class: "subheading" });
            this.legend = new A.CurveLegend((label) => this.toggleGroup(label));
            this.smoothing = this.makeSmoothing();
            this.tools = A.el("div", { class: "tools" }); // filled by the live dashboard
            this.chooser = A.el("select", {
                id: "which",
                on: { change: () => this.choose(this.chooser.value) },
            });
            this.choice = A.el(
                "p",
                { class: "choice" },
                A.el("label", { for: "which", text: "run" }),
                this.chooser,
            );
            this.curveSection = A.section(
                "curves",
                "Training curves",
                this.smoothing,
                this.legend.element,
                A.el(
                    "div",
                    { class: "grid" },
                    this.curves.map((c) => c.element),
                ),
            );
            this.workerSection = A.section(
                "workers",
                "Workers",
                this.choice,
                this.timeline.element,
                this.workers.element,
                this.workerBatch.element,
            );
            this.histogramSection = A.section(
                "histograms",
                "Histograms",
                A.el(
                    "div",
                    { class: "grid" },
                    this.histograms.map((c) => c.element),
                ),
            );
            this.resourceSection = A.section(
                "resources",
                "Resource usage",
                this.resourceTable.element,
                A.el(
                    "div",
                    { class: "grid" },
                    this.resources.map((c) => c.element),
                ),
            );
            this.sections = [
                this.summaryTable.element,
                this.curveSection,
                this.workerSection,
                this.network.element,
                this.histogramSection,
                this.ledger.element,
                this.resourceSection,
                this.events.element,
                this.settings.element,
            ];
            this.nav = A.el("nav", { "aria-label": "sections" });
            root.replaceChildren(
                A.el("header", {}, A.el("div", {}, this.heading, this.subheading), this.tools),
                this.nav,
                ...this.sections,
            );
        }

        /** Which average of the noisy curves is shown. */
        makeSmoothing() {
            const select = A.el(
                "select",
                { id: "smoothing", on: { change: () => this.smooth(Number(select.value)) } },
                SMOOTHINGS.map(([value, text]) => A.el("option", { value: String(value), text })),
            );
            const label = A.el("label", { for: "smoothing", text: "smoothing" });
            return A.el("p", { class: "choice" }, label, select);
        }

        smooth(halfLife) {
            this.halfLife = halfLife;
            this.updateCharts();
        }

        /** Shows these runs; zoomed charts stay zoomed. */
        update(runs) {
            this.runs = runs;
            this.groups = A.group(runs);
            A.clock = clockOf(runs);
            this.updateHeading(runs);
            this.updateChooser(runs);
            this.ledger.update(runs, this.groups);
            this.settings.update(runs);
            this.hasResources = this.resourceTable.update(this.groups);
            this.updateChosen();
            this.updateCharts();
        }

        /** Everything that depends on which runs are picked. */
        updateCharts() {
            const groups = this.groups.map((group) => ({
                ...group,
                runs: group.runs.filter((run) => !this.hidden.has(keyOf(run))),
            }));
            const series = groups
                .filter((group) => group.runs.length)
                .map((group) => ({
                    ...group,
                    summaries: group.runs.map((run) => run.summary).filter(Boolean),
                }));
            this.summaryTable.update(this.runs, this.groups, (run) => !this.hidden.has(keyOf(run)));
            this.updateLegend(groups);
            // A chart that is created in a hidden element cannot determine its size.
            this.curveSection.hidden = this.histogramSection.hidden = false;
            this.curves.forEach((chart, i) =>
                chart.update(
                    series.map((group) => this.curveOf(group, CURVES[i])),
                    "",
                    CURVES[i].x === "time" ? startOf(series) : Infinity,
                ),
            );
            this.updateHistograms(series);
            // With all runs hidden, the legend stays to show them again.
            const none = this.curves.every((chart) => chart.element.hidden);
            this.curveSection.hidden = none && this.hidden.size === 0;
            this.updateNav();
        }

        curveOf({ label, index, summaries }, { get, noisy }) {
            const halfLife = noisy ? this.halfLife : 0;
            const curves = summaries.map((summary) => A.smooth(get(summary), halfLife));
            return { label, index, curve: A.band(curves) };
        }

        /** Hides these runs, or shows them if one of them is hidden. */
        toggle(runs) {
            const keys = runs.map(keyOf);
            const show = keys.some((key) => this.hidden.has(key));
            for (const key of keys) {
                if (show) this.hidden.delete(key);
                else this.hidden.add(key);
            }
            this.updateCharts();
        }

        toggleGroup(label) {
            this.toggle(this.groups.find((group) => group.label === label).runs);
        }

        updateHeading(runs) {
            const infos = runs.map((run) => run.result || (run.summary || {}).info || {});
            const same = (key) => infos.every((one) => one[key] === infos[0][key]);
            const title = runs.length === 1 ? runs[0].label : `${runs.length} runs`;
            const parts = [
                same("model") && same("data") ? `${infos[0].model} on ${infos[0].data}` : "",
                same("strategy") ? infos[0].strategy : "",
                same("workers")
                    ? `${count(infos[0].workers)} ${infos[0].workers === 1 ? "worker" : "workers"}`
                    : "",
                same("world") ? worldText(infos[0].world) : "",
            ];
            this.heading.textContent = title;
            this.subheading.textContent = parts.filter(Boolean).join(" · ");
        }

        updateLegend(groups) {
            this.legend.element.hidden = this.runs.length < 2;
            const off = groups.filter((group) => group.runs.length === 0);
            this.legend.update(
                groups.map((group) => ({
                    label: group.label,
                    index: group.index,
                    text: group.runs.length > 1 ? bandText(group) : group.label,
                })),
                new Set(off.map((group) => group.label)),
            );
        }

        updateHistograms(groups) {
            this.histograms.forEach((chart, i) => {
                const samples = groups.map((group) =>
                    A.pool(group.summaries.map((one) => (one.histograms || {})[HISTOGRAMS[i].of])),
                );
                const bins = A.isInteresting(samples) ? A.histogram(samples) : null;
                chart.update(
                    groups.map((group, k) => ({
                        label: group.label,
                        index: group.index,
                        mean: (samples[k] || {}).mean,
                        curve:
                            bins && bins.y[k]
                                ? { x: bins.x, y: bins.y[k].map((v) => [v, v, v]) }
                                : null,
                    })),
                );
            });
            this.histogramSection.hidden = this.histograms.every((chart) => chart.element.hidden);
        }

        /* ---- sections that show one run only ---- */

        updateChooser(runs) {
            const labels = runs.map((run) => run.label);
            this.choice.hidden = runs.length < 2;
            if (JSON.stringify(labels) === this.chooserKey) return;
            this.chooserKey = JSON.stringify(labels);
            A.fill(
                this.chooser,
                labels.map((text, value) => A.el("option", { value: String(value), text })),
            );
            this.chosen = Math.min(this.chosen || 0, runs.length - 1);
            this.chooser.value = String(this.chosen);
        }

        choose(index) {
            this.chosen = Number(index);
            this.updateChosen();
            this.updateNav();
        }

        updateChosen() {
            const summary = (this.runs[this.chosen] || {}).summary;
            this.workerSection.hidden = !summary || !summary.workers;
            this.resourceSection.hidden = !this.hasResources && !(summary || {}).usage;
            this.events.element.hidden = !summary;
            this.network.update(summary);
            if (!summary) return;
            this.timeline.update(summary);
            this.workers.update(summary);
            this.workerBatch.update(A.batchCurves(summary));
            this.events.update(summary);
            const { shown, rest } = A.processes(summary);
            this.resources.forEach((chart, i) =>
                chart.update(
                    shown.map((process, index) => ({
                        label: process.label,
                        index,
                        curve: A.curve(process.trend, "t", RESOURCES[i].of),
                    })),
                    rest ? `${rest} more processes are in resource_stats.csv` : "",
                    0,
                ),
            );
        }

        updateNav() {
            const shown = this.sections.filter((one) => !one.hidden);
            const key = shown.map((one) => one.id).join();
            if (key === this.navKey) return;
            this.navKey = key;
            A.fill(
                this.nav,
                shown.map((one) =>
                    A.el("a", { href: "#" + one.id, text: one.querySelector("h2").textContent }),
                ),
            );
        }

        resize() {
            for (const chart of [
                ...this.curves,
                ...this.histograms,
                ...this.resources,
                this.workerBatch,
                ...this.network.charts,
            ])
                chart.resize();
            this.timeline.resize();
        }
    };

    /** When the first step of these series was made, so that evaluations do not begin earlier or
     *  later than the other curves. */
    function startOf(series) {
        const times = series.flatMap(({ summaries }) =>
            summaries.map((summary) => ((summary.steps || {}).t || [])[0]).filter(A.known),
        );
        return Math.min(Infinity, ...times);
    }

    const worldText = (world) => (world === "sim" ? "simulated" : `${world} world`);

    function bandText({ label, runs }) {
        const band = runs.length > 2 ? "95 % confidence interval" : "range";
        return `${label}: mean of ${runs.length} runs and ${band}`;
    }

})(Anytime);
