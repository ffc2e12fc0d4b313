/* panels.js - what there is to see of a run, one row a chart. */
"use strict";

(function (A) {
    const { number, seconds, bytes, count } = A.format;
    const steps = (channel, axis) => (run) => A.curve(run.steps, axis, channel);
    const tests = (channel) => (run) => A.curve(run.tests, "t", channel);

    /* The published panels, and what else changes over a run. */
    A.CURVES = [
        {
            title: "Training loss by time",
            x: "time",
            y: "training loss",
            formatX: seconds,
            formatY: number,
            log: true,
            get: steps("loss", "t"),
        },
        {
            title: "Test accuracy by time",
            x: "time",
            y: "test accuracy",
            formatX: seconds,
            formatY: (v) => number(v, 4),
            get: tests("accuracy"),
        },
        {
            title: "Test loss by time",
            x: "time",
            y: "test loss",
            formatX: seconds,
            formatY: number,
            log: true,
            get: tests("loss"),
        },
        {
            title: "Area under the curve by time",
            x: "time",
            y: "AUC",
            formatX: seconds,
            formatY: (v) => number(v, 4),
            get: tests("auc"),
        },
        {
            title: "Top-5 accuracy by time",
            x: "time",
            y: "top-5 accuracy",
            formatX: seconds,
            formatY: (v) => number(v, 4),
            get: tests("top5"),
        },
        {
            title: "Samples per second",
            x: "time",
            y: "samples/s",
            formatX: seconds,
            formatY: number,
            zero: true,
            get: (run) => A.rateCurve(run.steps),
        },
        {
            title: "Training loss by step",
            x: "step",
            y: "training loss",
            formatX: count,
            formatY: number,
            log: true,
            get: steps("loss", "step"),
        },
        {
            title: "Step time",
            x: "step",
            y: "time",
            formatX: count,
            formatY: seconds,
            zero: true,
            get: steps("seconds", "step"),
        },
        {
            title: "Batch size",
            x: "step",
            y: "samples of a step",
            formatX: count,
            formatY: number,
            zero: true,
            get: steps("batch", "step"),
        },
        {
            title: "Wall clock",
            x: "step",
            y: "time",
            formatX: count,
            formatY: seconds,
            get: (run) => A.clockCurve(run.steps),
        },
        {
            title: "Samples used",
            x: "step",
            y: "samples so far",
            formatX: count,
            formatY: number,
            get: steps("samples", "step"),
        },
        {
            title: "Learning rate",
            x: "step",
            y: "learning rate",
            formatX: count,
            formatY: number,
            zero: true,
            get: steps("lr", "step"),
        },
        {
            title: "Staleness by step",
            x: "step",
            y: "mean staleness",
            formatX: count,
            formatY: number,
            zero: true,
            get: steps("staleness", "step"),
        },
        {
            title: "Gradients in a step",
            x: "step",
            y: "gradients",
            formatX: count,
            formatY: number,
            zero: true,
            get: steps("messages", "step"),
        },
    ];

    A.HISTOGRAMS = [
        { title: "Induced delay", x: "delay of a round", formatX: seconds, of: "delay" },
        {
            title: "Compute time",
            x: "time of a round, delay included",
            formatX: seconds,
            of: "compute",
        },
        { title: "Worker batch size", x: "samples of a round", formatX: number, of: "samples" },
        { title: "Staleness", x: "steps a gradient is behind", formatX: number, of: "staleness" },
        { title: "Messages in a step", x: "gradients of a step", formatX: number, of: "messages" },
        { title: "Master wait time", x: "from step to step", formatX: seconds, of: "wait" },
        { title: "Master batch size", x: "samples of a step", formatX: number, of: "batch" },
    ];

    const perSecond = (value) => bytes(value) + "/s";

    A.RESOURCES = [
        { title: "Processors used", y: "processors", formatY: number, of: "cpu" },
        { title: "Memory", y: "memory", formatY: bytes, of: "rss" },
        { title: "Disk, read", y: "bytes/s", formatY: perSecond, of: "read" },
        { title: "Disk, written", y: "bytes/s", formatY: perSecond, of: "write" },
        { title: "Network in (whole machine)", y: "bytes/s", formatY: perSecond, of: "net_in" },
        { title: "Network out (whole machine)", y: "bytes/s", formatY: perSecond, of: "net_out" },
    ];

    /** A delay or a staleness that nobody had is not worth a picture. */
    A.isInteresting = function (of, samples) {
        if (of !== "delay" && of !== "staleness") return true;
        return samples.some(
            (sample) => sample && sample.quantiles[sample.quantiles.length - 1] > 0,
        );
    };

    const LINES_MAX = 12,
        BATCH_POINTS = 80;

    /** Batches of single workers as lines, where they can still be told apart. */
    A.batchCurves = function (story) {
        const timeline = story.timeline;
        if (
            !timeline ||
            timeline.rows.length > LINES_MAX ||
            timeline.rows.length !== story.workers.length
        )
            return [];
        const every = Math.max(1, Math.ceil(timeline.columns / BATCH_POINTS));
        const curves = timeline.rows.map((row, index) => ({
            label: "worker " + row.first,
            index,
            curve: batchCurve(timeline, row, every),
        }));
        const values = curves.flatMap((one) => (one.curve ? one.curve.y.flat() : []));
        const differ = values.some((value) => value !== values[0]);
        return differ ? curves : []; // all the same: nothing to see
    };

    function batchCurve(timeline, row, every) {
        const x = [],
            y = [];
        for (let c = 0; c < timeline.columns; c += every) {
            const values = [];
            for (let k = c; k < Math.min(c + every, timeline.columns); k++)
                values.push(A.batchAt(timeline, row, k));
            const there = values.filter((value) => value > 0);
            if (!there.length) continue;
            const mean = there.reduce((sum, value) => sum + value, 0) / there.length;
            x.push((c + every / 2) * timeline.width);
            y.push([Math.min(...there), mean, Math.max(...there)]);
        }
        return x.length ? { x, y } : null;
    }

    /** Processes with names, the hub first. */
    A.processes = function (story) {
        const name = (node) =>
            node === 0 ? "hub" : node === "evaluator" ? "evaluator" : "worker " + node;
        return (story.usage || [])
            .slice(0, LINES_MAX)
            .map((process) => ({ ...process, label: name(process.node) }));
    };
})(Anytime);
