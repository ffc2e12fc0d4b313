/* page.js - the page of one or more runs. Reports and the live view are the same page:
 *
 *     const page = new Anytime.Page(document.getElementById("page"));
 *     page.update([{label, folder, story, result}, ..]);   // as often as there is news
 *
 * `story` is what merge() of story.js gives, or null; `result` is result.json, or null. */
"use strict";

(function (A) {
  const { number, seconds, bytes, count } = A.format;
  const steps = (channel, axis) => (run) => A.curve(run.steps, axis, channel);
  const tests = (channel) => (run) => A.curve(run.tests, "t", channel);

  /* The published panels, and what else changes over a run. */
  const CURVES = [
    { title: "Training loss by time", x: "time", y: "training loss", formatX: seconds, formatY: number, log: true, get: steps("loss", "t") },
    { title: "Test accuracy by time", x: "time", y: "test accuracy", formatX: seconds, formatY: (v) => number(v, 4), get: tests("accuracy") },
    { title: "Test loss by time", x: "time", y: "test loss", formatX: seconds, formatY: number, log: true, get: tests("loss") },
    { title: "Area under the curve by time", x: "time", y: "AUC", formatX: seconds, formatY: (v) => number(v, 4), get: tests("auc") },
    { title: "Top-5 accuracy by time", x: "time", y: "top-5 accuracy", formatX: seconds, formatY: (v) => number(v, 4), get: tests("top5") },
    { title: "Samples per second", x: "time", y: "samples/s", formatX: seconds, formatY: number, zero: true, get: (run) => A.rateCurve(run.steps) },
    { title: "Training loss by step", x: "step", y: "training loss", formatX: count, formatY: number, log: true, get: steps("loss", "step") },
    { title: "Step time", x: "step", y: "time", formatX: count, formatY: seconds, zero: true, get: steps("seconds", "step") },
    { title: "Batch size", x: "step", y: "samples of a step", formatX: count, formatY: number, zero: true, get: steps("batch", "step") },
    { title: "Wall clock", x: "step", y: "time", formatX: count, formatY: seconds, get: (run) => A.clockCurve(run.steps) },
    { title: "Samples used", x: "step", y: "samples so far", formatX: count, formatY: number, get: steps("samples", "step") },
    { title: "Learning rate", x: "step", y: "learning rate", formatX: count, formatY: number, zero: true, get: steps("lr", "step") },
    { title: "Staleness by step", x: "step", y: "mean staleness", formatX: count, formatY: number, zero: true, get: steps("staleness", "step") },
    { title: "Gradients in a step", x: "step", y: "gradients", formatX: count, formatY: number, zero: true, get: steps("messages", "step") },
  ];

  const HISTOGRAMS = [
    { title: "Induced delay", x: "delay of a round", formatX: seconds, of: "delay" },
    { title: "Compute time", x: "time of a round, delay included", formatX: seconds, of: "compute" },
    { title: "Worker batch size", x: "samples of a round", formatX: number, of: "samples" },
    { title: "Staleness", x: "steps a gradient is behind", formatX: number, of: "staleness" },
    { title: "Messages in a step", x: "gradients of a step", formatX: number, of: "messages" },
    { title: "Master wait time", x: "from step to step", formatX: seconds, of: "wait" },
    { title: "Master batch size", x: "samples of a step", formatX: number, of: "batch" },
  ];

  const perSecond = (value) => bytes(value) + "/s";

  const RESOURCES = [
    { title: "Processors used", y: "processors", formatY: number, of: "cpu" },
    { title: "Memory", y: "memory", formatY: bytes, of: "rss" },
    { title: "Disk, read", y: "bytes/s", formatY: perSecond, of: "read" },
    { title: "Disk, written", y: "bytes/s", formatY: perSecond, of: "write" },
    { title: "Network in (whole machine)", y: "bytes/s", formatY: perSecond, of: "net_in" },
    { title: "Network out (whole machine)", y: "bytes/s", formatY: perSecond, of: "net_out" },
  ];

  A.Page = class {
    constructor(root) {
      this.summary = new A.Summary();
      this.curves = CURVES.map((options) => new A.Chart(options));
      this.histograms = HISTOGRAMS.map((options) => new A.Chart({ ...options, y: "share in %", formatY: number, bars: true }));
      this.resources = RESOURCES.map((options) => new A.Chart({ ...options, x: "time", formatX: seconds, zero: true, named: true }));
      this.workerBatch = new A.Chart({ title: "Batch size of each worker", x: "time", y: "samples of a round", formatX: seconds, formatY: number, zero: true, named: true });
      this.timeline = new A.Timeline();
      this.workers = new A.Workers();
      this.ledger = new A.Ledger();
      this.settings = new A.Settings();
      this.log = new A.Log();
      this.build(root);
      addEventListener("resize", A.lazily(() => this.resize()));
    }

    build(root) {
      this.heading = A.el("h1");
      this.subheading = A.el("p", { class: "subheading" });
      this.legend = A.el("p", { class: "legend" });
      this.tools = A.el("div", { class: "tools" }); // the live view puts its buttons here
      this.chooser = A.el("select", { id: "which", on: { change: () => this.choose(this.chooser.value) } });
      this.choice = A.el("p", { class: "choice" }, A.el("label", { for: "which", text: "run" }), this.chooser);
      this.curveSection = section("curves", "Curves", this.legend, A.el("div", { class: "grid" }, this.curves.map((c) => c.element)));
      this.workerSection = section("workers", "Workers", this.choice, this.timeline.element, this.workers.element, this.workerBatch.element);
      this.histogramSection = section("histograms", "Histograms", A.el("div", { class: "grid" }, this.histograms.map((c) => c.element)));
      this.resourceSection = section("resources", "Resources", A.el("div", { class: "grid" }, this.resources.map((c) => c.element)));
      this.sections = [this.summary.element, this.curveSection, this.workerSection, this.histogramSection,
        this.ledger.element, this.resourceSection, this.log.element, this.settings.element];
      this.nav = A.el("nav", { "aria-label": "sections" });
      root.replaceChildren(A.el("header", {}, A.el("div", {}, this.heading, this.subheading), this.tools), this.nav, ...this.sections);
    }

    /** Shows these runs; what was zoomed stays zoomed. */
    update(runs) {
      this.runs = runs;
      const groups = A.group(runs);
      const told = groups.map((group) => ({ ...group, stories: group.runs.map((run) => run.story).filter(Boolean) }));
      this.updateHeading(runs);
      this.updateChooser(runs);
      this.summary.update(runs, groups);
      this.updateLegend(groups);
      this.curves.forEach((chart, i) => chart.update(told.map((group) => ({
        label: group.label, index: group.index, curve: A.band(group.stories.map(CURVES[i].get)),
      }))));
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
      const parts = [same("model") && same("data") ? `${what[0].model} on ${what[0].data}` : "", same("strategy") ? what[0].strategy : "",
        same("workers") ? `${count(what[0].workers)} ${what[0].workers === 1 ? "worker" : "workers"}` : "", same("world") ? `${what[0].world} world` : ""];
      this.heading.textContent = title;
      this.subheading.textContent = parts.filter(Boolean).join(" · ");
    }

    updateLegend(groups) {
      this.legend.hidden = groups.length < 2 && groups[0].runs.length < 2;
      A.fill(this.legend, groups.map((group) => A.el("span", {}, A.chip(group.index),
        group.runs.length > 1 ? `${group.label}: mean of ${group.runs.length}, ${group.runs.length > 2 ? "95 % interval" : "both ends"}` : group.label)));
    }

    updateHistograms(groups) {
      this.histograms.forEach((chart, i) => {
        const samples = groups.map((group) => A.pool(group.stories.map((story) => (story.histograms || {})[HISTOGRAMS[i].of])));
        const bins = interesting(HISTOGRAMS[i].of, samples) ? A.histogram(samples) : null;
        chart.update(groups.map((group, k) => ({
          label: group.label, index: group.index, mean: (samples[k] || {}).mean,
          curve: bins && bins.y[k] ? { x: bins.x, y: bins.y[k].map((v) => [v, v, v]) } : null,
        })));
      });
      this.histogramSection.hidden = this.histograms.every((chart) => chart.element.hidden);
    }

    /* ---- what is shown of one run only ---- */

    updateChooser(runs) {
      const labels = runs.map((run) => run.label);
      this.choice.hidden = runs.length < 2;
      if (JSON.stringify(labels) === this.chooserKey) return;
      this.chooserKey = JSON.stringify(labels);
      A.fill(this.chooser, labels.map((text, value) => A.el("option", { value: String(value), text })));
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
      this.workerBatch.update(batchCurves(story));
      this.log.update(story);
      this.resources.forEach((chart, i) => chart.update(processes(story).map((process, index) => ({
        label: process.label, index, curve: A.curve(process.trend, "t", RESOURCES[i].of),
      }))));
    }

    updateNav() {
      const shown = this.sections.filter((one) => !one.hidden);
      const key = shown.map((one) => one.id).join();
      if (key === this.navKey) return;
      this.navKey = key;
      A.fill(this.nav, shown.map((one) => A.el("a", { href: "#" + one.id, text: one.querySelector("h2").textContent })));
    }

    resize() {
      for (const chart of [...this.curves, ...this.histograms, ...this.resources, this.workerBatch]) chart.resize();
      this.timeline.resize();
    }
  };

  function section(id, title, ...children) {
    return A.el("section", { id }, A.el("h2", { text: title }), ...children);
  }

  /** A delay or a staleness that nobody had is not worth a picture. */
  function interesting(of, samples) {
    if (of !== "delay" && of !== "staleness") return true;
    return samples.some((sample) => sample && sample.quantiles[sample.quantiles.length - 1] > 0);
  }

  const LINES_MAX = 12, BATCH_POINTS = 80;

  /** Batches of single workers as lines, where they can still be told apart. */
  function batchCurves(story) {
    const timeline = story.timeline;
    if (!timeline || timeline.rows.length > LINES_MAX || timeline.rows.length !== story.workers.length) return [];
    const every = Math.max(1, Math.ceil(timeline.columns / BATCH_POINTS));
    const curves = timeline.rows.map((row, index) => ({ label: "worker " + row.first, index, curve: batchCurve(timeline, row, every) }));
    const values = curves.flatMap((one) => (one.curve ? one.curve.y.flat() : []));
    return values.some((value) => value !== values[0]) ? curves : []; // all the same: nothing to see
  }

  function batchCurve(timeline, row, every) {
    const x = [], y = [];
    for (let c = 0; c < timeline.columns; c += every) {
      const values = [];
      for (let k = c; k < Math.min(c + every, timeline.columns); k++) values.push(A.batchAt(timeline, row, k));
      const there = values.filter((value) => value > 0);
      if (!there.length) continue;
      const mean = there.reduce((sum, value) => sum + value, 0) / there.length;
      x.push((c + every / 2) * timeline.width);
      y.push([Math.min(...there), mean, Math.max(...there)]);
    }
    return x.length ? { x, y } : null;
  }

  /** Processes with names, the hub first. */
  function processes(story) {
    const name = (node) => (node === 0 ? "hub" : node === "evaluator" ? "evaluator" : "worker " + node);
    return (story.usage || []).slice(0, LINES_MAX).map((process) => ({ ...process, label: name(process.node) }));
  }
})(Anytime);
