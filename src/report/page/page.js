/* page.js - the page of one or more runs. Reports and the live view are the same page:
 *
 *     const page = new Anytime.Page(document.getElementById("page"));
 *     page.update([{label, folder, story, result}, ..]);   // as often as there is news
 *
 * `story` is what merge() of story.js gives, or null; `result` is result.json, or null. */
"use strict";

(function (A) {
    const { number, seconds, count } = A.format;
    const { CURVES, HISTOGRAMS, RESOURCES } = A;

    A.Page = class {
        constructor(root) {
            this.summary = new A.Summary();
            this.curves = CURVES.map((options) => new A.Chart(options));
            this.histograms = HISTOGRAMS.map(
                (options) =>
                    new A.Chart({ ...options, y: "share in %", formatY: number, bars: true }),
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
                title: "Batch size of each worker",
                x: "time",
                y: "samples of a round",
                formatX: seconds,
                formatY: number,
                zero: true,
                named: true,
            });
            this.timeline = new A.Timeline();
            this.workers = new A.Workers();
            this.ledger = new A.Ledger();
            this.settings = new A.Settings();
            this.log = new A.Log();
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
            this.tools = A.el("div", { class: "tools" }); // the live view puts its buttons here
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
                "Curves",
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
                "Resources",
                A.el(
                    "div",
                    { class: "grid" },
                    this.resources.map((c) => c.element),
                ),
            );
            this.sections = [
                this.summary.element,
                this.curveSection,
                this.workerSection,
                this.histogramSection,
                this.ledger.element,
                this.resourceSection,
                this.log.element,
                this.settings.element,
            ];
            this.nav = A.el("nav", { "aria-label": "sections" });
            root.replaceChildren(
                A.el("header", {}, A.el("div", {}, this.heading, this.subheading), this.tools),
                this.nav,
                ...this.sections,
            );
        }

        /** Shows these runs; what was zoomed stays zoomed. */
        update(runs) {
            this.runs = runs;
            const groups = A.group(runs);
            const told = groups.map((group) => ({
                ...group,
                stories: group.runs.map((run) => run.story).filter(Boolean),
            }));
            this.updateHeading(runs);
            this.updateChooser(runs);
            this.summary.update(runs, groups);
            this.updateLegend(groups);
            // A chart that is made where nothing is shown cannot know its size.
            this.curveSection.hidden = this.histogramSection.hidden = false;
            this.curves.forEach((chart, i) =>
                chart.update(
                    told.map((group) => ({
                        label: group.label,
                        index: group.index,
                        curve: A.band(group.stories.map(CURVES[i].get)),
                    })),
                ),
            );
            this.updateHistograms(told);
            this.ledger.update(runs, groups);
            this.settings.update(runs);
            this.updateChosen();
            this.curveSection.hidden = this.curves.every((chart) => chart.element.hidden);
            this.updateNav();
        }

        updateHeading(runs) {
            const what = runs.map((run) => run.result || (run.story || {}).info || {});
            const same = (key) => what.every((one) => one[key] === what[0][key]);
            const title = runs.length === 1 ? runs[0].label : `${runs.length} runs`;
            const parts = [
                same("model") && same("data") ? `${what[0].model} on ${what[0].data}` : "",
                same("strategy") ? what[0].strategy : "",
                same("workers")
                    ? `${count(what[0].workers)} ${what[0].workers === 1 ? "worker" : "workers"}`
                    : "",
                same("world") ? `${what[0].world} world` : "",
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
                    A.pool(
                        group.stories.map((story) => (story.histograms || {})[HISTOGRAMS[i].of]),
                    ),
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

        /* ---- what is shown of one run only ---- */

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
            const story = (this.runs[this.chosen] || {}).story;
            this.workerSection.hidden = !story || !story.workers;
            this.resourceSection.hidden = !story || !story.usage;
            this.log.element.hidden = !story;
            if (!story) return;
            this.timeline.update(story);
            this.workers.update(story);
            this.workerBatch.update(A.batchCurves(story));
            this.log.update(story);
            this.resources.forEach((chart, i) =>
                chart.update(
                    A.processes(story).map((process, index) => ({
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
            ])
                chart.resize();
            this.timeline.resize();
        }
    };

    function bandText({ label, runs }) {
        const ends = runs.length > 2 ? "95 % interval" : "both ends";
        return `${label}: mean of ${runs.length}, ${ends}`;
    }

    function section(id, title, ...children) {
        return A.el("section", { id }, A.el("h2", { text: title }), ...children);
    }
})(Anytime);
