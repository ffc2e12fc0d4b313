/* panels.js - the list of charts, one entry per chart. */
"use strict";

(function (A) {
    const { number, seconds, bytes, count } = A.format;
    const steps = (channel, axis) => (run) => A.curve(run.steps, axis, channel);
    const tests = (channel) => (run) => A.curve(run.tests, "t", channel);

    /* Quantities over time or step. */
    A.CURVES = [
        {
            title: "Training loss vs. time",
            x: "time",
            y: "training loss",
            formatX: seconds,
            formatY: number,
            log: true,
            get: steps("loss", "t"),
        },
        {
            title: "Test accuracy vs. time",
            x: "time",
            y: "test accuracy",
            formatX: seconds,
            formatY: (v) => number(v, 4),
            get: tests("accuracy"),
        },
        {
            title: "Test loss vs. time",
            x: "time",
            y: "test loss",
            formatX: seconds,
            formatY: number,
            log: true,
            get: tests("loss"),
        },
        {
            title: "Test AUC vs. time",
            x: "time",
            y: "test AUC",
            formatX: seconds,
            formatY: (v) => number(v, 4),
            get: tests("auc"),
        },
        {
            title: "Top-5 test accuracy vs. time",
            x: "time",
            y: "top-5 test accuracy",
            formatX: seconds,
            formatY: (v) => number(v, 4),
            get: tests("top5"),
        },
        {
            title: "Test R2 vs. time",
            x: "time",
            y: "test R2",
            formatX: seconds,
            formatY: (v) => number(v, 4),
            get: tests("r2"),
        },
        {
            title: "Disagreement of the workers vs. time",
            x: "time",
            y: "distance from the mean",
            formatX: seconds,
            formatY: number,
            log: true,
            get: tests("disagreement"),
        },
        {
            title: "Test loss of the worst worker vs. time",
            x: "time",
            y: "test loss",
            formatX: seconds,
            formatY: number,
            log: true,
            get: tests("worst_loss"),
        },
        {
            title: "Training loss of all workers on the same samples",
            x: "time",
            y: "mean training loss",
            formatX: seconds,
            formatY: number,
            log: true,
            get: tests("train_loss"),
        },
        {
            title: "Training loss of the worst worker on the same samples",
            x: "time",
            y: "largest training loss",
            formatX: seconds,
            formatY: number,
            log: true,
            get: tests("train_loss_max"),
        },
        {
            title: "Throughput vs. time",
            x: "time",
            y: "samples per second",
            formatX: seconds,
            formatY: number,
            zero: true,
            get: (run) => A.rateCurve(run.steps),
        },
        {
            title: "Training loss vs. step",
            x: "step",
            y: "training loss",
            formatX: count,
            formatY: number,
            log: true,
            get: steps("loss", "step"),
        },
        {
            title: "Time per step",
            x: "step",
            y: "time per step",
            formatX: count,
            formatY: seconds,
            zero: true,
            get: steps("seconds", "step"),
        },
        {
            title: "Batch size per step",
            x: "step",
            y: "samples per step",
            formatX: count,
            formatY: number,
            zero: true,
            get: steps("batch", "step"),
        },
        {
            title: "Elapsed time vs. step",
            x: "step",
            y: "elapsed time",
            formatX: count,
            formatY: seconds,
            get: (run) => A.clockCurve(run.steps),
        },
        {
            title: "Samples used vs. step",
            x: "step",
            y: "samples used",
            formatX: count,
            formatY: number,
            get: steps("samples", "step"),
        },
        {
            title: "Learning rate vs. step",
            x: "step",
            y: "learning rate",
            formatX: count,
            formatY: number,
            zero: true,
            get: steps("lr", "step"),
        },
        {
            title: "Mean staleness vs. step",
            x: "step",
            y: "mean staleness",
            formatX: count,
            formatY: number,
            zero: true,
            get: steps("staleness", "step"),
        },
        {
            title: "Gradients per step",
            x: "step",
            y: "gradients per step",
            formatX: count,
            formatY: number,
            zero: true,
            get: steps("messages", "step"),
        },
    ];

    A.HISTOGRAMS = [
        {
            title: "Induced delay",
            x: "induced delay per round",
            unit: "rounds",
            formatX: seconds,
            of: "delay",
        },
        {
            title: "Compute time per round",
            x: "compute time per round, including delay",
            unit: "rounds",
            formatX: seconds,
            of: "compute",
        },
        {
            title: "Batch size per round",
            x: "samples per round",
            unit: "rounds",
            formatX: number,
            of: "samples",
        },
        {
            title: "Gradient staleness",
            x: "staleness in steps",
            unit: "gradients",
            formatX: number,
            of: "staleness",
        },
        {
            title: "Gradients per step",
            x: "gradients per step",
            unit: "steps",
            formatX: number,
            of: "messages",
        },
        {
            title: "Time between steps",
            x: "time between steps",
            unit: "steps",
            formatX: seconds,
            of: "wait",
        },
        {
            title: "Batch size per step",
            x: "samples per step",
            unit: "steps",
            formatX: number,
            of: "batch",
        },
    ];

    const perSecond = (value) => bytes(value) + "/s";

    A.RESOURCES = [
        { title: "CPU usage", y: "cores used", formatY: number, of: "cpu" },
        { title: "Memory usage", y: "resident memory", formatY: bytes, of: "rss" },
        { title: "Disk reads", y: "bytes read per second", formatY: perSecond, of: "read" },
        { title: "Disk writes", y: "bytes written per second", formatY: perSecond, of: "write" },
        {
            title: "Network, received (whole machine)",
            y: "bytes received per second",
            formatY: perSecond,
            of: "net_in",
        },
        {
            title: "Network, sent (whole machine)",
            y: "bytes sent per second",
            formatY: perSecond,
            of: "net_out",
        },
    ];

    /** Delay and staleness that are always 0 need no chart. */
    A.isInteresting = function (of, samples) {
        if (of !== "delay" && of !== "staleness") return true;
        return samples.some(
            (sample) => sample && sample.quantiles[sample.quantiles.length - 1] > 0,
        );
    };

    const LINES_MAX = 12,
        BATCH_POINTS = 80;

    /** Batch sizes of single workers as lines, while there are few enough to distinguish. */
    A.batchCurves = function (summary) {
        const timeline = summary.timeline;
        if (
            !timeline ||
            timeline.rows.length > LINES_MAX ||
            timeline.rows.length !== summary.workers.length
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
        return differ ? curves : []; // all equal: no chart needed
    };

    function batchCurve(timeline, row, every) {
        const x = [],
            y = [];
        for (let c = 0; c < timeline.columns; c += every) {
            const values = [];
            for (let k = c; k < Math.min(c + every, timeline.columns); k++)
                values.push(A.batchAt(timeline, row, k));
            const known = values.filter((value) => value > 0);
            if (!known.length) continue;
            const mean = known.reduce((sum, value) => sum + value, 0) / known.length;
            x.push((c + every / 2) * timeline.width);
            y.push([Math.min(...known), mean, Math.max(...known)]);
        }
        return x.length ? { x, y } : null;
    }

    /** Processes with names, the hub first. */
    A.processes = function (summary) {
        const name = (node) =>
            node === 0 ? "hub" : node === "evaluator" ? "evaluator" : "worker " + node;
        return (summary.usage || [])
            .slice(0, LINES_MAX)
            .map((process) => ({ ...process, label: name(process.node) }));
    };
})(Anytime);
