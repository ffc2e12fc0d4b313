/* workers.js - where the time of each worker went, and who is to blame for waiting (docs/guide/report.md
 * has the definitions). */
"use strict";

(function (A) {
    const { seconds, percent, count } = A.format;
    const { table, cell, bar } = A;

    const ROWS_FIRST = 32;

    const TIME_PARTS = [
        ["useful", "compute", "computing, used"],
        ["void", "wasted", "computing, dropped"],
        ["sleep", "sleep", "sleeping (induced)"],
        ["send", "send", "sending"],
        ["idle", "idle", "waiting"],
    ];

    function timesOf(worker) {
        return { ...worker, void: Math.max(0, worker.compute - worker.useful) };
    }

    A.Workers = class {
        constructor() {
            this.all = false;
            this.order = "first";
            this.body = A.el("div");
            this.sentence = A.el("p", { class: "finding" });
            this.select = A.el(
                "select",
                { "aria-label": "sort by", on: { change: () => this.sort(this.select.value) } },
                [
                    ["first", "by number"],
                    ["waited", "by seconds blamed"],
                    ["idle", "by waiting"],
                    ["used", "by samples used"],
                ].map(([value, text]) => A.el("option", { value, text })),
            );
            this.element = A.el(
                "div",
                { class: "card wide" },
                A.el(
                    "div",
                    { class: "heading" },
                    A.el("h3", { text: "Where the time went, and who is to blame" }),
                    this.select,
                ),
                this.sentence,
                A.legend(TIME_PARTS.map(([, colour, text]) => [colour, text])),
                this.body,
            );
        }

        sort(order) {
            this.order = order;
            this.draw();
        }

        update(story) {
            this.story = story;
            this.element.hidden = !story.workers || story.workers.length === 0;
            if (!this.element.hidden) this.draw();
        }

        draw() {
            const rows = [...this.story.workers].sort((a, b) =>
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
            this.sentence.textContent = finding(this.story);
            A.fill(
                this.body,
                table(
                    [
                        "worker",
                        "its time",
                        "blamed for waiting",
                        "wasted",
                        "rounds",
                        "used",
                        "dropped",
                        "state",
                    ],
                    shown.map((worker) => workerRow(worker, longest, most)),
                ),
                rows.length > shown.length ? this.moreButton(rows.length) : null,
            );
        }

        moreButton(total) {
            return A.el("button", {
                type: "button",
                text: `show all ${total} rows`,
                on: { click: () => this.showAll() },
            });
        }

        showAll() {
            this.all = true;
            this.draw();
        }
    };

    function workerRow(worker, longest, most) {
        const heads = worker.last - worker.first + 1,
            times = timesOf(worker);
        const name = heads > 1 ? `${worker.first}–${worker.last}` : String(worker.first);
        const told = TIME_PARTS.map(
            ([key, , text]) => `${text} ${seconds(times[key] / heads)}`,
        ).join(", ");
        return A.el(
            "tr",
            {},
            A.el("th", { scope: "row", text: name }),
            A.el(
                "td",
                { class: "bars" },
                bar(
                    TIME_PARTS.map(([key, colour]) => ({
                        share: times[key] / heads / longest,
                        colour,
                    })),
                    told,
                ),
            ),
            A.el(
                "td",
                { class: "bars blame" },
                bar(
                    [{ share: worker.waited / most, colour: "blame" }],
                    `blamed for ${seconds(worker.waited)}`,
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

    /** The one sentence that people want to read. */
    function finding(story) {
        const all =
            story.worst && story.worst.length
                ? story.worst.map((w) => ({ name: w.id, waited: w.waited }))
                : story.workers.map((w) => ({ name: w.first, waited: w.waited }));
        const total = story.workers.reduce((sum, w) => sum + w.waited, 0),
            whole = story.state.seconds;
        const waste = story.workers.reduce((sum, w) => sum + w.wasted, 0);
        const worst = all.reduce((a, b) => (b.waited > a.waited ? b : a), { waited: 0 });
        const said = [];
        if (whole > 0 && total / whole >= 0.005)
            said.push(
                `Waiting for slow workers cost ${seconds(total)}, ` +
                    `${percent(total / whole)} of the run; ${share(worst, total, all.length)}.`,
            );
        else said.push("Nobody waited for slow workers to speak of.");
        if (waste > 0) said.push(`Work of ${seconds(waste)} was thrown away.`);
        return said.join(" ");
    }

    /** One is named when it stands out. */
    function share(worst, total, count) {
        if (worst.waited < (2 / count) * total)
            return "many workers have a part in it, none a large one";
        return `worker ${worst.name} is to blame for ${percent(worst.waited / total)} of that`;
    }
})(Anytime);
