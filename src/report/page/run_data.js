/* run_data.js - run summaries (src/report/summary/run_summary.h): merging updates, grouping
 * repeated runs, and deriving curves and histograms.
 *
 * The first response is complete. Later ones contain only what has changed since a serial number;
 * merge() combines them with the data so far:
 *
 *   steps, tests, usage[].trend, network.trends[].trend, network.present   keep `from` points, append the rest
 *   timeline                      keep `from` columns, append the rest
 *   workers                       replace by `first`
 *   log                           replace by `id`
 *   everything else               replace
 */
"use strict";

(function (A) {
    const AXES = ["t", "step"];
    const PARTS = ["mean", "min", "max"];
    const ACTIVITIES = ["compute", "sleep", "send", "gone"];
    const DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_";
    const LOG_LINES = 500;

    /* ---- merging ---- */

    const channelsOf = (series) =>
        Object.keys(series).filter(
            (key) => series[key] && typeof series[key] === "object" && !AXES.includes(key),
        );

    function spliceNumbers(old, from, update) {
        const kept = (old || []).slice(0, from);
        while (kept.length < from) kept.push(null);
        return kept.concat(update || []);
    }

    function mergeSeries(old, update) {
        if (!update) return old;
        if (!old || update.from === 0) return update;
        const merged = { from: 0, every: update.every };
        for (const axis of AXES) merged[axis] = spliceNumbers(old[axis], update.from, update[axis]);
        for (const channel of new Set([...channelsOf(old), ...channelsOf(update)])) {
            merged[channel] = {};
            for (const part of PARTS) {
                const before = (old[channel] || {})[part];
                const after = (update[channel] || {})[part];
                if (before || after)
                    merged[channel][part] = spliceNumbers(before, update.from, after);
            }
        }
        return merged;
    }

    function mergeText(old, from, update, columns, digits) {
        if (!old && !update) return undefined;
        const head = (old || "").slice(0, from * digits).padEnd(from * digits, "0");
        return (head + (update || "")).padEnd(columns * digits, "0");
    }

    function mergeTimeline(old, update) {
        if (!update) return old;
        if (!old || update.from === 0 || old.width !== update.width) return update;
        const rows = update.rows.map((row, i) => {
            const merged = { first: row.first, last: row.last };
            for (const name of [...ACTIVITIES, "batch"]) {
                const digits = name === "batch" ? 2 : 1;
                merged[name] = mergeText(
                    (old.rows[i] || {})[name],
                    update.from,
                    row[name],
                    update.columns,
                    digits,
                );
            }
            return merged;
        });
        return { ...update, from: 0, rows };
    }

    function mergeBy(key, old, update) {
        if (!update) return old;
        const all = new Map((old || []).map((item) => [item[key], item]));
        for (const item of update) all.set(item[key], item);
        return [...all.values()].sort((a, b) => a[key] - b[key]);
    }

    function mergeUsage(old, update) {
        if (!update) return old;
        return update.map((process) => {
            const before = (old || []).find((other) => other.node === process.node);
            return { ...process, trend: mergeSeries(before && before.trend, process.trend) };
        });
    }

    /** The summary with an update merged in; neither argument is modified. */
    A.merge = function (old, update) {
        if (!old || !update.since) return update;
        return {
            ...old,
            ...update,
            steps: mergeSeries(old.steps, update.steps),
            tests: mergeSeries(old.tests, update.tests),
            usage: mergeUsage(old.usage, update.usage),
            timeline: mergeTimeline(old.timeline, update.timeline),
            workers: mergeBy("first", old.workers, update.workers),
            network: A.mergeNetwork(old.network, update.network, mergeSeries),
            log: (mergeBy("id", old.log, update.log) || []).slice(-LOG_LINES),
        };
    };

    /** A run as the page uses it; the JSON key of its summary is `story`. */
    A.runFromJson = ({ story, ...run }) => ({ ...run, summary: story });

    /** The current state of a run, as far as it is known. */
    A.stateOf = (run) => (run.summary ? run.summary.state : {});

    /* ---- curves ---- */

    /** A curve: { x: [..], y: [[low, middle, high], ..], step: [..] }; null without points. */
    function curve(series, axis, channel) {
        if (!series || !series[channel]) return null;
        const { mean, min, max } = series[channel];
        const x = [],
            y = [],
            step = [];
        mean.forEach((value, i) => {
            if (!A.known(value)) return;
            x.push(series[axis][i]);
            y.push([min ? min[i] : value, value, max ? max[i] : value]);
            step.push(series.step[i]);
        });
        return x.length ? { x, y, step } : null;
    }

    /** The exponential moving average of a curve, with a half-life in steps; 0: the curve itself.
     *  Like the average of the program (src/record/tally.c), its weights have the sum 1. */
    A.smooth = function (line, halfLife) {
        if (!line || !line.step || !(halfLife > 0)) return line;
        let sum = 0,
            weight = 0;
        const y = line.y.map(([, value], i) => {
            const steps = i ? line.step[i] - line.step[i - 1] : 1;
            const decay = 2 ** (-Math.max(1, steps) / halfLife);
            sum = decay * sum + (1 - decay) * value;
            weight = decay * weight + (1 - decay);
            return [sum / weight, sum / weight, sum / weight];
        });
        return { ...line, y };
    };

    const RATE_POINTS = 100; // single steps of an asynchronous run would be too noisy

    /** Samples per second, over intervals of about equal length. */
    function rateCurve(series) {
        const all = curve(series, "t", "samples");
        if (!all || all.x.length < 2) return null;
        const least = (all.x[all.x.length - 1] - all.x[0]) / RATE_POINTS;
        const x = [],
            y = [],
            step = [];
        for (let i = 1, from = 0; i < all.x.length; i++) {
            const time = all.x[i] - all.x[from];
            if (time <= 0 || time < least) continue;
            const rate = (all.y[i][2] - all.y[from][2]) / time;
            x.push(all.x[i]);
            y.push([rate, rate, rate]);
            step.push(all.step[i]);
            from = i;
        }
        return x.length ? { x, y, step } : null;
    }

    /** The time at which each step closed. */
    function clockCurve(series) {
        if (!series || !series.t.length) return null;
        return { x: series.step, y: series.t.map((t) => [t, t, t]) };
    }

    A.curve = curve;
    A.rateCurve = rateCurve;
    A.clockCurve = clockCurve;

    /* ---- repeated runs ---- */

    // Student's t for 95 % intervals, by degrees of freedom; beyond the table nearly normal.
    const T95 = [
        12.71, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.16,
        2.145, 2.131, 2.12, 2.11, 2.101, 2.093, 2.086,
    ];
    const BAND_POINTS = 300;

    /** Interpolates linearly; constant after the last point, when the model has its final value. */
    function valueAt(line, x, from) {
        let i = from;
        while (i < line.x.length && line.x[i] < x) i++;
        if (i === 0) return [line.y[0][1], 0];
        if (i === line.x.length) return [line.y[i - 1][1], i];
        const share = (x - line.x[i - 1]) / (line.x[i] - line.x[i - 1]);
        return [line.y[i - 1][1] + share * (line.y[i][1] - line.y[i - 1][1]), i];
    }

    /** Mean with its 95 % confidence interval; for two values their range. */
    function interval(values) {
        const n = values.length;
        const mean = values.reduce((sum, value) => sum + value, 0) / n;
        if (n < 3) return [Math.min(...values), mean, Math.max(...values)];
        const variance = values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (n - 1);
        const half = (T95[n - 2] || 1.96) * Math.sqrt(variance / n);
        return [mean - half, mean, mean + half];
    }

    A.interval = interval;

    /** One curve for repeated runs: their mean with its interval. */
    A.band = function (lines) {
        const known = lines.filter(Boolean);
        if (known.length <= 1) return known[0] || null;
        const low = Math.max(...known.map((line) => line.x[0]));
        const high = Math.max(...known.map((line) => line.x[line.x.length - 1]));
        const positions = known.map(() => 0);
        const x = [],
            y = [];
        for (let i = 0; i < BAND_POINTS; i++) {
            const at = low + ((high - low) * i) / (BAND_POINTS - 1);
            x.push(at);
            y.push(
                interval(
                    known.map((line, k) => {
                        const [value, position] = valueAt(line, at, Math.max(0, positions[k] - 1));
                        positions[k] = position;
                        return value;
                    }),
                ),
            );
        }
        return { x, y };
    };

    const IGNORED_OPTIONS = new Set([
        "seed",
        "run",
        "resume",
        "out",
        "quiet",
        "json",
        "config",
        "watch",
        "plots",
    ]);

    function groupKey(run) {
        const info = run.summary ? run.summary.info : {};
        const options = (run.result || {}).options;
        const settings = options
            ? Object.entries(options).filter(([name]) => !IGNORED_OPTIONS.has(name))
            : [info.rules, info.batch];
        const what = run.result || info;
        return JSON.stringify([
            what.model,
            what.data,
            what.strategy,
            what.workers,
            what.world,
            settings,
        ]);
    }

    /** The common prefix of several labels, without a trailing separator. */
    function commonLabel(labels) {
        let length = 0;
        while (
            labels.every((label) => length < label.length && label[length] === labels[0][length])
        )
            length++;
        return labels[0].slice(0, length).replace(/[-_./ ]+(seed)?[-_./ ]*$/, "") || labels[0];
    }

    /** Groups runs whose settings differ only in the seed: [{label, runs, index}, ..]. */
    A.group = function (runs) {
        const groups = new Map();
        for (const run of runs) {
            const key = groupKey(run);
            if (!groups.has(key)) groups.set(key, []);
            groups.get(key).push(run);
        }
        return [...groups.values()].map((members, index) => ({
            index,
            runs: members,
            label:
                members.length > 1
                    ? commonLabel(members.map((run) => run.label))
                    : members[0].label,
        }));
    };

    /* ---- histograms ---- */

    const BINS = 32;

    /** Round bin edges that suit all samples; integers are in the middle of their bins. */
    function edges(samples) {
        const low = Math.min(...samples.map((s) => s.quantiles[0]));
        const high = Math.max(...samples.map((s) => s.quantiles[s.quantiles.length - 1]));
        const whole = samples.every((s) => s.whole);
        const rough = (high - low) / BINS || Math.abs(high) / BINS || 1;
        const power = 10 ** Math.floor(Math.log10(rough));
        let width = power * [1, 2, 5, 10].find((digit) => digit * power >= rough);
        if (whole) width = Math.max(1, Math.round(width));
        const first = whole ? low - 0.5 : Math.floor(low / width) * width;
        const count = Math.min(4 * BINS, Math.max(1, Math.ceil((high - first) / width + 1e-9)));
        return { first, width, count };
    }

    /** Percentages per bin, with the same bins for all samples: { x, y: one array per sample }. */
    A.histogram = function (samples) {
        const known = samples.filter(Boolean);
        if (!known.length) return null;
        const { first, width, count } = edges(known);
        // One empty bin at each end.
        const x = Array.from({ length: count + 3 }, (_, i) => first + (i - 1) * width);
        const y = samples.map((sample) => {
            if (!sample) return null;
            const shares = new Array(count + 3).fill(0);
            for (const value of sample.quantiles) {
                const bin = Math.min(
                    count - 1,
                    Math.max(0, Math.floor((value - first) / width + 1e-9)),
                );
                shares[bin + 1] += 100 / sample.quantiles.length;
            }
            return shares;
        });
        return { x, y };
    };

    /** The samples of repeated runs combined. */
    A.pool = function (samples) {
        const known = samples.filter(Boolean);
        if (!known.length) return null;
        const total = known.reduce((sum, s) => sum + s.count, 0);
        return {
            count: total,
            mean: known.reduce((sum, s) => sum + s.mean * s.count, 0) / total,
            whole: known.every((s) => s.whole),
            quantiles: known.flatMap((s) => s.quantiles).sort((a, b) => a - b),
        };
    };

    /* ---- timeline ---- */

    /** The timeline without places that no worker ever had; undefined without a timeline. */
    A.timelineOf = function ({ timeline, workers }) {
        if (!timeline || !workers) return timeline;
        const known = new Set(workers.map((worker) => worker.first));
        return { ...timeline, rows: timeline.rows.filter((row) => known.has(row.first)) };
    };

    const VALUE = new Uint8Array(128);
    [...DIGITS].forEach((digit, i) => (VALUE[digit.charCodeAt(0)] = i));

    /** Share of an activity in a cell, 0 to 1. */
    A.share = (row, activity, column) =>
        row[activity] ? VALUE[row[activity].charCodeAt(column)] / 63 : 0;

    /** Mean batch size of the rounds that ended in a cell; 0: none did. */
    A.batchAt = function (timeline, row, column) {
        if (!row.batch) return 0;
        const high = VALUE[row.batch.charCodeAt(2 * column)];
        return ((64 * high + VALUE[row.batch.charCodeAt(2 * column + 1)]) / 4095) * timeline.top;
    };

    A.ACTIVITIES = ACTIVITIES;
})(Anytime);
