/* summary_table.js - the section "Summary": one row per run; tiles for a single run. */
"use strict";

(function (A) {
    const { number, seconds, percent, count } = A.format;
    const { cell } = A;

    const testOf = (metric) => (run) => {
        const test = run.summary ? run.summary.state.test : (run.result || {}).test || {};
        return test[metric];
    };
    const stateOf = A.stateOf;
    const infoOf = (run) => run.result || (run.summary || {}).info || {};
    const resultOf = (run, key) => (run.result ? run.result[key] : undefined);

    /** Seconds lost waiting for stragglers. */
    const waited = (run) =>
        ((run.summary || {}).workers || []).reduce((sum, worker) => sum + worker.waited, 0);

    function targetText(run) {
        const targets = resultOf(run, "targets") || [];
        return targets
            .map(
                (t) =>
                    `${t.metric} ${number(t.value)}: ` +
                    (A.known(t.seconds) ? seconds(t.seconds) : "missed"),
            )
            .join(", ");
    }

    /** A count, or the mean of some. */
    const whole = (v, digits = 4) => (Number.isInteger(v) ? count(v) : number(v, digits));

    const first = (...values) => values.find((value) => A.known(value));

    /* Columns: heading, value, format. */
    const MEASURES = [
        ["steps", (run) => first(resultOf(run, "steps"), stateOf(run).steps), whole],
        ["duration", (run) => first(resultOf(run, "seconds"), stateOf(run).seconds), seconds],
        [
            "time per step",
            (run) =>
                first(
                    (stateOf(run).step_seconds || {}).mean,
                    (resultOf(run, "step_seconds") || {}).mean,
                ),
            seconds,
        ],
        [
            "samples/s",
            (run) => first(resultOf(run, "samples_per_second"), stateOf(run).rate),
            number,
        ],
        [
            "useful time",
            (run) => first(resultOf(run, "useful_fraction"), stateOf(run).useful),
            percent,
        ],
        [
            "lost to stragglers",
            (run) => ((run.summary || {}).workers ? waited(run) : undefined),
            seconds,
        ],
        [
            "staleness",
            (run) => first(stateOf(run).staleness, (resultOf(run, "staleness") || {}).mean),
            number,
        ],
        [
            "training loss",
            (run) => first(stateOf(run).loss, (resultOf(run, "train") || {}).loss),
            (v, digits = 4) => number(v, digits),
        ],
        ["test accuracy", testOf("accuracy"), (v, digits = 4) => number(v, digits)],
        ["test R2", testOf("r2"), (v, digits = 4) => number(v, digits)],
    ];

    A.SummaryTable = class {
        /** `onToggle` is called with a run that is to be hidden or shown. */
        constructor(onToggle) {
            this.onToggle = onToggle;
            this.boxes = new Map(); // of the runs, by label: they keep the focus
            this.tiles = A.el("div");
            this.table = new A.Table("Summary of the runs", { class: "close" });
            this.element = A.section(
                "summary",
                "Summary",
                this.tiles,
                A.el("div", { class: "card wide" }, this.table.element),
            );
        }

        /** `isShown` says which runs are drawn in the charts. */
        update(runs, groups, isShown) {
            const shown = MEASURES.filter(([, get]) => runs.some((run) => get(run)));
            const targets = runs.some((run) => targetText(run));
            // The same number of workers in several runs is said above, by the subheading.
            const sizes = new Set(runs.map((run) => infoOf(run).workers));
            const workers = runs.length === 1 || sizes.size > 1;
            const heads = [
                "run",
                "strategy",
                ...(workers ? ["workers"] : []),
                ...shown.map(([head]) => head),
                "state",
                ...(targets ? ["targets"] : []),
            ];
            const rows = groups.flatMap((group) => [
                ...group.runs.map((run) => {
                    const box = runs.length > 1 ? this.boxOf(run, isShown(run)) : null;
                    return summaryRow(run, box, group, shown, { workers, targets });
                }),
                meanRow({ ...group, runs: group.runs.filter(isShown) }, shown, {
                    workers,
                    targets,
                }),
            ]);
            A.fill(this.tiles, runs.length === 1 ? tiles(runs[0]) : null);
            const hasLoss = shown.some(([head]) => head === "training loss");
            this.table.set(heads, rows, TIME_NOTE + (hasLoss ? " " + LOSS_NOTE : ""));
        }

        /** The checkbox of a run: whether the charts show it. */
        boxOf(run, checked) {
            const key = run.folder || run.label;
            if (!this.boxes.has(key)) this.boxes.set(key, A.el("input", { type: "checkbox" }));
            const box = this.boxes.get(key);
            box.onchange = () => this.onToggle(run);
            box.checked = checked;
            return box;
        }
    };

    const TIME_NOTE =
        "Duration: from the first order to the last update; the time in charts begins earlier, " +
        "when the run was started.";
    const LOSS_NOTE =
        "Training loss: moving average with a half-life of 50 steps. The charts show every step; " +
        "with the smoothing of 50 steps they end at this value.";

    function summaryRow(run, box, group, shown, { workers, targets }) {
        const what = infoOf(run);
        const label = A.el(box ? "label" : "span", {}, box, A.chip(group.index), run.label);
        return A.el(
            "tr",
            {},
            A.el("th", { scope: "row" }, label),
            cell(what.strategy || "–"),
            workers ? cell(count(what.workers)) : null,
            shown.map(([, get, format]) => cell(format(get(run)), "number")),
            cell(stateText(run)),
            targets ? cell(targetText(run)) : null,
        );
    }

    /** The mean of repeated runs, with half the width of its 95 % interval from three runs on. */
    function meanRow(group, shown, { workers, targets }) {
        if (group.runs.length < 2) return null;
        const cells = shown.map(([, get, format]) => {
            const values = group.runs.map(get).filter(A.known);
            if (!values.length) return cell("–", "number");
            const [low, mean, high] = A.interval(values);
            const half = (high - low) / 2;
            const text = values.length > 2 && half > 0 ? ` ± ${format(half, 2)}` : "";
            return cell(
                A.el("span", {}, format(mean), A.el("span", { class: "half", text })),
                "number",
            );
        });
        return A.el(
            "tr",
            { class: "mean" },
            A.el(
                "th",
                { scope: "row" },
                A.el("span", {}, A.chip(group.index), `${group.label} (mean)`),
            ),
            cell(""),
            workers ? cell("") : null,
            cells,
            cell(""),
            targets ? cell("") : null,
        );
    }

    const REASONS = {
        steps: "step limit",
        samples: "sample limit",
        epochs: "epoch limit",
        seconds: "time limit",
        target: "target reached",
        signal: "interrupted",
        "no workers": "no workers left",
    };

    function stateText(run) {
        const end = stateOf(run).end || resultOf(run, "stopped");
        if (!end) return "–";
        return end === "running" ? "running" : `ended: ${REASONS[end] || end}`;
    }

    /** The key numbers of a single run. */
    function tiles(run) {
        const state = stateOf(run);
        const duration = state.seconds;
        const list = MEASURES.filter(([head, get]) => head !== "time per step" && get(run)).map(
            ([head, get, format]) => [
                head,
                format(get(run)),
                head === "lost to stragglers" && duration > 0
                    ? `${percent(waited(run) / duration)} of the run`
                    : head === "training loss"
                      ? "moving average"
                      : "",
            ],
        );
        return A.el(
            "dl",
            { class: "tiles" },
            list.map(([head, value, more]) =>
                A.el(
                    "div",
                    { class: "card tile" },
                    A.el("dt", { text: head }),
                    A.el("dd", { text: value }),
                    more ? A.el("dd", { class: "more", text: more }) : null,
                ),
            ),
        );
    }
})(Anytime);
