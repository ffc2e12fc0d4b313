/* story.js - the story of a run as the program tells it (src/report/summary/run_summary.h), and what can be
 * drawn of it.
 *
 * The first answer is whole. Later ones hold only what has changed since a serial number; merge()
 * puts them into what is there:
 *
 *   steps, tests, usage[].trend   keep `from` points, append the rest
 *   timeline                      keep `from` columns, append the rest
 *   workers                       replace by `first`
 *   log                           replace by `id`
 *   everything else               replace
 */
"use strict";

(function (A) {
    const AXES = ["t", "step"];
    const PARTS = ["mean", "min", "max"];
    const DOINGS = ["compute", "sleep", "send", "gone"];
    const DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_";
    const LOG_LINES = 500;

    /* ---- merging ---- */

    const channelsOf = (trend) =>
        Object.keys(trend).filter(
            (key) => trend[key] && typeof trend[key] === "object" && !AXES.includes(key),
        );

    function spliceNumbers(old, from, news) {
        const kept = (old || []).slice(0, from);
        while (kept.length < from) kept.push(null);
        return kept.concat(news || []);
    }

    function mergeTrend(old, news) {
        if (!news) return old;
        if (!old || news.from === 0) return news;
        const merged = { from: 0, every: news.every };
        for (const axis of AXES) merged[axis] = spliceNumbers(old[axis], news.from, news[axis]);
        for (const channel of new Set([...channelsOf(old), ...channelsOf(news)])) {
            merged[channel] = {};
            for (const part of PARTS) {
                const before = (old[channel] || {})[part];
                const after = (news[channel] || {})[part];
                if (before || after)
                    merged[channel][part] = spliceNumbers(before, news.from, after);
            }
        }
        return merged;
    }

    function mergeText(old, from, news, columns, digits) {
        if (!old && !news) return undefined;
        const head = (old || "").slice(0, from * digits).padEnd(from * digits, "0");
        return (head + (news || "")).padEnd(columns * digits, "0");
    }

    function mergeTimeline(old, news) {
        if (!news) return old;
        if (!old || news.from === 0 || old.width !== news.width) return news;
        const rows = news.rows.map((row, i) => {
            const merged = { first: row.first, last: row.last };
            for (const name of [...DOINGS, "batch"]) {
                const digits = name === "batch" ? 2 : 1;
                merged[name] = mergeText(
                    (old.rows[i] || {})[name],
                    news.from,
                    row[name],
                    news.columns,
                    digits,
                );
            }
            return merged;
        });
        return { ...news, from: 0, rows };
    }

    function mergeBy(key, old, news, order) {
        if (!news) return old;
        const all = new Map((old || []).map((item) => [item[key], item]));
        for (const item of news) all.set(item[key], item);
        return [...all.values()].sort((a, b) => order * (a[key] - b[key]));
    }

    function mergeUsage(old, news) {
        if (!news) return old;
        return news.map((process) => {
            const before = (old || []).find((other) => other.node === process.node);
            return { ...process, trend: mergeTrend(before && before.trend, process.trend) };
        });
    }

    /** The story with news in it; neither argument is changed. */
    A.merge = function (old, news) {
        if (!old || !news.since) return news;
        return {
            ...old,
            ...news,
            steps: mergeTrend(old.steps, news.steps),
            tests: mergeTrend(old.tests, news.tests),
            usage: mergeUsage(old.usage, news.usage),
            timeline: mergeTimeline(old.timeline, news.timeline),
            workers: mergeBy("first", old.workers, news.workers, 1),
            log: (mergeBy("id", old.log, news.log, 1) || []).slice(-LOG_LINES),
        };
    };

    /** How a run stands, as far as it is known. */
    A.stateOf = (run) => (run.story ? run.story.state : {});

    /* ---- curves ---- */

    /** A curve: { x: [..], y: [[low, middle, high], ..] }; null when there is nothing. */
    function curve(trend, axis, channel) {
        if (!trend || !trend[channel]) return null;
        const { mean, min, max } = trend[channel];
        const x = [],
            y = [];
        mean.forEach((value, i) => {
            if (!A.known(value)) return;
            x.push(trend[axis][i]);
            y.push([min ? min[i] : value, value, max ? max[i] : value]);
        });
        return x.length ? { x, y } : null;
    }

    const RATE_POINTS = 100; // single steps of an asynchronous run would be noise

    /** Samples a second, in stretches of about the same length. */
    function rateCurve(trend) {
        const all = curve(trend, "t", "samples");
        if (!all || all.x.length < 2) return null;
        const least = (all.x[all.x.length - 1] - all.x[0]) / RATE_POINTS;
        const x = [],
            y = [];
        for (let i = 1, from = 0; i < all.x.length; i++) {
            const time = all.x[i] - all.x[from];
            if (time <= 0 || time < least) continue;
            const rate = (all.y[i][2] - all.y[from][2]) / time;
            x.push(all.x[i]);
            y.push([rate, rate, rate]);
            from = i;
        }
        return x.length ? { x, y } : null;
    }

    /** The time at which each step was closed. */
    function clockCurve(trend) {
        if (!trend || !trend.t.length) return null;
        return { x: trend.step, y: trend.t.map((t) => [t, t, t]) };
    }

    A.curve = curve;
    A.rateCurve = rateCurve;
    A.clockCurve = clockCurve;

    /* ---- repeats ---- */

    // Student's t for 95 % intervals, by degrees of freedom; beyond the table it is nearly normal.
    const T95 = [
        12.71, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.16,
        2.145, 2.131, 2.12, 2.11, 2.101, 2.093, 2.086,
    ];
    const BAND_POINTS = 300;

    /** Linear between points; past the last one its value: that is what the model is worth then. */
    function valueAt(line, x, from) {
        let i = from;
        while (i < line.x.length && line.x[i] < x) i++;
        if (i === 0) return [line.y[0][1], 0];
        if (i === line.x.length) return [line.y[i - 1][1], i];
        const share = (x - line.x[i - 1]) / (line.x[i] - line.x[i - 1]);
        return [line.y[i - 1][1] + share * (line.y[i][1] - line.y[i - 1][1]), i];
    }

    /** Mean with its 95 % interval; of two values the interval is from one to the other. */
    function interval(values) {
        const n = values.length;
        const mean = values.reduce((sum, value) => sum + value, 0) / n;
        if (n < 3) return [Math.min(...values), mean, Math.max(...values)];
        const variance = values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (n - 1);
        const half = (T95[n - 2] || 1.96) * Math.sqrt(variance / n);
        return [mean - half, mean, mean + half];
    }

    A.interval = interval;

    /** One curve for several repeats of a run: their mean and its interval. */
    A.band = function (lines) {
        const there = lines.filter(Boolean);
        if (there.length <= 1) return there[0] || null;
        const low = Math.max(...there.map((line) => line.x[0]));
        const high = Math.max(...there.map((line) => line.x[line.x.length - 1]));
        const places = there.map(() => 0);
        const x = [],
            y = [];
        for (let i = 0; i < BAND_POINTS; i++) {
            const at = low + ((high - low) * i) / (BAND_POINTS - 1);
            x.push(at);
            y.push(
                interval(
                    there.map((line, k) => {
                        const [value, place] = valueAt(line, at, Math.max(0, places[k] - 1));
                        places[k] = place;
                        return value;
                    }),
                ),
            );
        }
        return { x, y };
    };

    const OWN = new Set([
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
        const info = run.story ? run.story.info : {};
        const options = (run.result || {}).options;
        const settings = options
            ? Object.entries(options).filter(([name]) => !OWN.has(name))
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

    /** What several labels have in common at their start, without a dangling separator. */
    function commonLabel(labels) {
        let length = 0;
        while (
            labels.every((label) => length < label.length && label[length] === labels[0][length])
        )
            length++;
        return labels[0].slice(0, length).replace(/[-_./ ]+(seed)?[-_./ ]*$/, "") || labels[0];
    }

    /** Runs of the same settings but for the seed are repeats: [{label, runs, index}, ..]. */
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

    /** Round bin edges that suit all samples; whole numbers get whole bins around them. */
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

    /** Shares of samples in common bins, in percent: { x, y: one array a sample }. */
    A.histogram = function (samples) {
        const there = samples.filter(Boolean);
        if (!there.length) return null;
        const { first, width, count } = edges(there);
        // An empty bin at each end.
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

    /** The samples of several repeats as one. */
    A.pool = function (samples) {
        const there = samples.filter(Boolean);
        if (!there.length) return null;
        const total = there.reduce((sum, s) => sum + s.count, 0);
        return {
            count: total,
            mean: there.reduce((sum, s) => sum + s.mean * s.count, 0) / total,
            whole: there.every((s) => s.whole),
            quantiles: there.flatMap((s) => s.quantiles).sort((a, b) => a - b),
        };
    };

    /* ---- timeline ---- */

    const VALUE = new Uint8Array(128);
    [...DIGITS].forEach((digit, i) => (VALUE[digit.charCodeAt(0)] = i));

    /** Share of a cell, 0 to 1. */
    A.share = (row, doing, column) => (row[doing] ? VALUE[row[doing].charCodeAt(column)] / 63 : 0);

    /** Mean batch of the rounds that ended in a cell; 0: none did. */
    A.batchAt = function (timeline, row, column) {
        if (!row.batch) return 0;
        const high = VALUE[row.batch.charCodeAt(2 * column)];
        return ((64 * high + VALUE[row.batch.charCodeAt(2 * column + 1)]) / 4095) * timeline.top;
    };

    A.DOINGS = DOINGS;
})(Anytime);
