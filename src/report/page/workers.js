/* workers.js - time breakdown per worker, and how much waiting each worker caused (defined in
 * docs/guide/report.md). */
"use strict";

(function (A) {
    const { seconds, percent, count } = A.format;
    const { cell, bar } = A;

    const ROWS_FIRST = 32;

    const TIME_PARTS = [
        ["useful", "compute", "computing (used)"],
        ["discarded", "wasted", "computing (dropped)"],
        ["sleep", "sleep", "sleeping (induced)"],
        ["send", "send", "sending"],
        ["idle", "idle", "waiting"],
    ];

    function timesOf(worker) {
        return { ...worker, discarded: Math.max(0, worker.compute - worker.useful) };
    }

    A.Workers = class {
        constructor() {
            this.all = false;
            this.order = "first";
            this.table = new A.Table("Time and waiting caused per worker");
            this.more = A.el("div");
            this.finding = A.el("p", { class: "finding" });
            this.select = A.el(
                "select",
                { "aria-label": "sort order of the workers", on: { change: () => this.sort(this.select.value) } },
                [
                    ["first", "sort by worker"],
                    ["waited", "sort by waiting caused"],
                    ["idle", "sort by waiting time"],
                    ["used", "sort by samples used"],
                ].map(([value, text]) => A.el("option", { value, text })),
            );
            this.element = A.el(
                "div",
                { class: "card wide" },
                A.el(
                    "div",
                    { class: "heading" },
                    A.el("h3", { text: "Time and waiting caused per worker" }),
                    this.select,
                ),
                this.finding,
                A.legend(TIME_PARTS.map(([, color, text]) => [color, text])),
                this.table.element,
                this.more,
            );
        }

        sort(order) {
            this.order = order;
            this.draw();
        }

        update(summary) {
            this.summary = summary;
            this.element.hidden = !summary.workers || summary.workers.length === 0;
            if (!this.element.hidden) this.draw();
        }

        draw() {
            const rows = [...this.summary.workers].sort((a, b) =>
                this.order === "first" ? a.first - b.first : b[this.order] - a[this.order],
            );
            const shown = this.all ? rows : rows.slice(0, ROWS_FIRST);
            const most = Math.max(
                ...rows.map((w) => w.waited + w.wasted / (w.last - w.first + 1)),
                1e-12,
            );
            const longest = Math.max(
                ...rows.map(
                    (w) =>
                        TIME_PARTS.reduce((sum, [key]) => sum + timesOf(w)[key], 0) /
                        (w.last - w.first + 1),
                ),
                1e-12,
            );
            this.finding.textContent = describe(this.summary);
            this.table.set(
                [
                    "worker",
                    "time",
                    "waiting caused",
                    "wasted work",
                    "rounds",
                    "samples used",
                    "samples dropped",
                    "state",
                ],
                shown.map((worker) => workerRow(worker, longest, most)),
            );
            this.offerMore(rows.length, shown.length);
        }

        /** A button for the rows that are not shown; it stays the same while they do. */
        offerMore(total, shown) {
            const text = total > shown ? `show all ${total} rows` : "";
            if (this.more.textContent === text) return;
            const on = { click: () => this.showAll() };
            A.fill(this.more, text ? A.el("button", { type: "button", text, on }) : null);
        }

        showAll() {
            this.all = true;
            this.draw();
        }
    };

    function workerRow(worker, longest, most) {
        const members = worker.last - worker.first + 1,
            times = timesOf(worker);
        const name = members > 1 ? `${worker.first}–${worker.last}` : String(worker.first);
        const label = TIME_PARTS.map(
            ([key, , text]) => `${text} ${seconds(times[key] / members)}`,
        ).join(", ");
        return A.el(
            "tr",
            {},
            A.el("th", { scope: "row", text: name }),
            A.el(
                "td",
                { class: "bars" },
                bar(
                    TIME_PARTS.map(([key, color]) => ({
                        share: times[key] / members / longest,
                        color,
                    })),
                    label,
                ),
            ),
            A.el(
                "td",
                { class: "bars blame" },
                bar(
                    [{ share: worker.waited / most, color: "blame" }],
                    `caused ${seconds(worker.waited)} of waiting`,
                ),
                A.el("span", { class: "number", text: seconds(worker.waited) }),
            ),
            cell(seconds(worker.wasted), "number"),
            cell(count(worker.rounds), "number"),
            cell(count(worker.used), "number"),
            cell(count(worker.dropped), "number"),
            cell(worker.state || "–"),
        );
    }

    /** Summarizes in a sentence how much time was lost, and to which worker. */
    function describe(summary) {
        const all =
            summary.worst && summary.worst.length
                ? summary.worst.map((w) => ({ name: w.id, waited: w.waited }))
                : summary.workers.map((w) => ({ name: w.first, waited: w.waited }));
        const total = summary.workers.reduce((sum, w) => sum + w.waited, 0),
            duration = summary.state.seconds;
        const waste = summary.workers.reduce((sum, w) => sum + w.wasted, 0);
        const worst = all.reduce((a, b) => (b.waited > a.waited ? b : a), { waited: 0 });
        const sentences = [];
        if (duration > 0 && total / duration >= 0.005)
            sentences.push(
                `Waiting for slow workers cost ${seconds(total)}, ` +
                    `${percent(total / duration)} of the run; ${share(worst, total, all.length)}.`,
            );
        else sentences.push("Waiting for slow workers cost almost no time.");
        if (waste > 0) sentences.push(`Work of ${seconds(waste)} was discarded.`);
        return sentences.join(" ");
    }

    /** Names the worst worker when it stands out: twice its share of many, most of two or three. */
    function share(worst, total, count) {
        const least = Math.max(0.05, Math.min(2 / count, (1 + 1 / count) / 2));
        if (worst.waited < least * total) return "no single worker dominates";
        return `worker ${worst.name} caused ${percent(worst.waited / total)} of that`;
    }
})(Anytime);
