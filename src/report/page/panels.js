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
            noisy: true,
            get: steps("loss", "t"),
        },
        {
            title: "Test accuracy vs. time",
            x: "time",
            y: "test accuracy",
            formatX: seconds,
            formatY: (v) => number(v, 4),
            marked: true,
            get: tests("accuracy"),
        },
        {
            title: "Test loss vs. time",
            x: "time",
            y: "test loss",
            formatX: seconds,
            formatY: number,
            log: true,
            marked: true,
            get: tests("loss"),
        },
        {
            title: "Test AUC vs. time",
            x: "time",
            y: "test AUC",
            formatX: seconds,
            formatY: (v) => number(v, 4),
            marked: true,
            get: tests("auc"),
        },
        {
            title: "Top-5 test accuracy vs. time",
            x: "time",
            y: "top-5 test accuracy",
            formatX: seconds,
            formatY: (v) => number(v, 4),
            marked: true,
            get: tests("top5"),
        },
        {
            title: "Test R2 vs. time",
            x: "time",
            y: "test R2",
            formatX: seconds,
            formatY: (v) => number(v, 4),
            marked: true,
            get: tests("r2"),
        },
        {
            title: "Disagreement of the workers vs. time",
            x: "time",
            y: "distance from the mean",
            formatX: seconds,
            formatY: number,
            log: true,
            marked: true,
            get: tests("disagreement"),
        },
        {
            title: "Test loss of the worst worker vs. time",
            x: "time",
            y: "test loss",
            formatX: seconds,
            formatY: number,
            log: true,
            marked: true,
            get: tests("worst_loss"),
        },
        {
            title: "Training loss of all workers on the same samples",
            x: "time",
            y: "mean training loss",
            formatX: seconds,
            formatY: number,
            log: true,
            marked: true,
            get: tests("train_loss"),
        },
        {
            title: "Training loss of the worst worker on the same samples",
            x: "time",
            y: "largest training loss",
            formatX: seconds,
            formatY: number,
            log: true,
            marked: true,
            get: tests("train_loss_max"),
        },
        {
            title: "Throughput vs. time",
            x: "time",
            y: "samples per second",
            formatX: seconds,
            formatY: number,
            zero: true,
            noisy: true,
            get: (run) => A.rateCurve(run.steps),
        },
        {
            title: "Training loss vs. step",
            x: "step",
            y: "training loss",
            formatX: count,
            formatY: number,
            log: true,
            noisy: true,
            get: steps("loss", "step"),
        },
        {
            title: "Time per step",
            x: "step",
            y: "time per step",
            formatX: count,
            formatY: seconds,
            zero: true,
            noisy: true,
            get: steps("seconds", "step"),
        },
        {
            title: "Batch size per step",
            x: "step",
            y: "samples per step",
            formatX: count,
            formatY: number,
            zero: true,
            noisy: true,
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
            noisy: true,
            get: steps("staleness", "step"),
        },
        {
            title: "Gradients per step",
            x: "step",
            y: "gradients per step",
            formatX: count,
            formatY: number,
            zero: true,
            noisy: true,
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
            title: "Network received (whole machine)",
            y: "bytes received per second",
            formatY: perSecond,
            of: "net_in",
        },
        {
            title: "Network sent (whole machine)",
            y: "bytes sent per second",
            formatY: perSecond,
            of: "net_out",
        },
    ];

    /** What has the same value in all runs, always, needs no histogram. */
    A.isInteresting = function (samples) {
        const known = samples.filter(Boolean);
        const low = Math.min(...known.map((one) => one.quantiles[0]));
        const high = Math.max(...known.map((one) => one.quantiles[one.quantiles.length - 1]));
        return high > low;
    };

    const LINES_MAX = 12,
        BATCH_LINES_MAX = 6,
        BATCH_POINTS = 60;

    /** Mean batch sizes over time: a line per worker while there are few enough to distinguish,
     *  otherwise the mean and range of all workers, and two lines: those of the workers with the
     *  smallest and the largest batches. [] when all are equal. */
    A.batchCurves = function (summary) {
        const timeline = A.timelineOf(summary);
        if (!timeline || !timeline.rows.length) return [];
        const every = Math.max(1, Math.ceil(timeline.columns / BATCH_POINTS));
        const lines = timeline.rows.map((row) => batchMeans(timeline, row, every));
        const values = lines.flat().filter(A.known);
        if (!values.some((value) => value !== values[0])) return [];
        const single = timeline.rows.length === summary.workers.length;
        const x = lines[0].map((_, i) => (i * every + every / 2) * timeline.width);
        const lineOf = (row, index, what = "") => ({
            label: `worker ${timeline.rows[row].first}${what}`,
            index,
            curve: pointsOf(x, (i) => [lines[row][i], lines[row][i], lines[row][i]]),
        });
        if (single && lines.length <= BATCH_LINES_MAX)
            return lines.map((_, row) => lineOf(row, row));
        const count = summary.workers.reduce((sum, w) => sum + w.last - w.first + 1, 0);
        const curve = pointsOf(x, (i) => rangeOf(lines.map((line) => line[i]).filter(A.known)));
        const all = { label: `mean and range of ${count} workers`, index: 0, curve };
        if (!single) return [all]; // a row has several workers
        const [small, large] = extremes(lines.map((line) => meanOf(line.filter(A.known))));
        return [all, lineOf(small, 1, " (smallest)"), lineOf(large, 2, " (largest)")];
    };

    /** Where the smallest and the largest known value are. */
    function extremes(values) {
        const order = values.map((_, i) => i).filter((i) => A.known(values[i]));
        order.sort((a, b) => values[a] - values[b]);
        return [order[0], order[order.length - 1]];
    }

    /** Means over `every` columns; undefined where no round ended. */
    function batchMeans(timeline, row, every) {
        const means = [];
        for (let c = 0; c < timeline.columns; c += every) {
            const known = [];
            for (let k = c; k < Math.min(c + every, timeline.columns); k++) {
                const batch = A.batchAt(timeline, row, k);
                if (batch > 0) known.push(batch);
            }
            means.push(known.length ? meanOf(known) : undefined);
        }
        return means;
    }

    const meanOf = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;

    const rangeOf = (values) => [Math.min(...values), meanOf(values), Math.max(...values)];

    /** The curve of the known points; null without any. */
    function pointsOf(all, valueAt) {
        const x = [],
            y = [];
        all.forEach((at, i) => {
            const value = valueAt(i);
            if (!A.known(value[1])) return;
            x.push(at);
            y.push(value);
        });
        return x.length ? { x, y } : null;
    }

    /** Processes with names, the hub first, and how many of them have no curve. */
    A.processes = function (summary) {
        const name = (node) =>
            node === 0 ? "hub" : node === "evaluator" ? "evaluator" : "worker " + node;
        const all = summary.usage || [];
        return {
            shown: all
                .slice(0, LINES_MAX)
                .map((process) => ({ ...process, label: name(process.node) })),
            rest: Math.max(0, all.length - LINES_MAX),
        };
    };
})(Anytime);
