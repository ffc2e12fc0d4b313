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

    A.Page = class {
        constructor(root) {
            this.summaryTable = new A.SummaryTable();
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
            this.legend = A.el("p", { class: "legend" });
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
            this.curveSection = section(
                "curves",
                "Training curves",
                this.legend,
                A.el(
                    "div",
                    { class: "grid" },
                    this.curves.map((c) => c.element),
                ),
            );
            this.workerSection = section(
                "workers",
                "Workers",
                this.choice,
                this.timeline.element,
                this.workers.element,
                this.workerBatch.element,
            );
            this.histogramSection = section(
                "histograms",
                "Histograms",
                A.el(
                    "div",
                    { class: "grid" },
                    this.histograms.map((c) => c.element),
                ),
            );
            this.resourceSection = section(
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

        /** Shows these runs; zoomed charts stay zoomed. */
        update(runs) {
            this.runs = runs;
            const groups = A.group(runs);
            const series = groups.map((group) => ({
                ...group,
                summaries: group.runs.map((run) => run.summary).filter(Boolean),
            }));
            this.updateHeading(runs);
            this.updateChooser(runs);
            this.summaryTable.update(runs, groups);
            this.updateLegend(groups);
            // A chart that is created in a hidden element cannot determine its size.
            this.curveSection.hidden = this.histogramSection.hidden = false;
            this.curves.forEach((chart, i) =>
                chart.update(
                    series.map((group) => ({
                        label: group.label,
                        index: group.index,
                        curve: A.band(group.summaries.map(CURVES[i].get)),
                    })),
                ),
            );
            this.updateHistograms(series);
            this.ledger.update(runs, groups);
            this.settings.update(runs);
            this.hasResources = this.resourceTable.update(groups);
            this.updateChosen();
            this.curveSection.hidden = this.curves.every((chart) => chart.element.hidden);
            this.updateNav();
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
                same("world") ? `${infos[0].world} world` : "",
            ];
            this.heading.textContent = title;
            this.subheading.textContent = parts.filter(Boolean).join(" · ");
        }

        updateLegend(groups) {
            this.legend.hidden = groups.length < 2 && groups[0].runs.length < 2;
            A.fill(
                this.legend,
                groups.map((group) =>
                    A.el(
                        "span",
                        {},
                        A.chip(group.index),
                        group.runs.length > 1 ? bandText(group) : group.label,
                    ),
                ),
            );
        }

        updateHistograms(groups) {
            this.histograms.forEach((chart, i) => {
                const samples = groups.map((group) =>
                    A.pool(group.summaries.map((one) => (one.histograms || {})[HISTOGRAMS[i].of])),
                );
                const bins = A.isInteresting(HISTOGRAMS[i].of, samples)
                    ? A.histogram(samples)
                    : null;
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
            this.resources.forEach((chart, i) =>
                chart.update(
                    A.processes(summary).map((process, index) => ({
                        label: process.label,
                        index,
                        curve: A.curve(process.trend, "t", RESOURCES[i].of),
                    })),
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

    function bandText({ label, runs }) {
        const band = runs.length > 2 ? "95 % confidence interval" : "range";
        return `${label}: mean of ${runs.length} runs and ${band}`;
    }

    function section(id, title, ...children) {
        return A.el("section", { id }, A.el("h2", { text: title }), ...children);
    }
})(Anytime);
