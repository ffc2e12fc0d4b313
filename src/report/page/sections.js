/* sections.js - ledger of samples, settings and log. Like all parts of the page, each is a class
 * with an element and update(). */
"use strict";

(function (A) {
    const { seconds, percent, count } = A.format;
    const { table, cell, bar } = A;

    /* ---- ledger ---- */

    const REASONS = {
        stale: "too old when it came",
        abandoned: "a newer version was there",
        lost: "lost with its worker",
        stopped: "the run ended",
    };

    A.Ledger = class {
        constructor() {
            this.body = A.el("div");
            this.element = A.el(
                "section",
                { id: "ledger" },
                A.el("h2", { text: "Ledger of samples" }),
                A.el("div", { class: "card wide" }, this.body),
            );
        }

        update(runs, groups) {
            const told = groups.flatMap((group) =>
                group.runs.filter((run) => A.stateOf(run).samples).map((run) => ({ run, group })),
            );
            this.element.hidden = told.length === 0;
            A.fill(
                this.body,
                table(
                    ["run", "drawn and decided", "used", "dropped", "why"],
                    told.map(({ run, group }) => ledgerRow(run, group)),
                ),
            );
        }
    };

    function ledgerRow(run, group) {
        const { used, dropped, why } = A.stateOf(run).samples,
            all = used + dropped;
        const reasons = Object.entries(why)
            .map(([name, n]) => `${count(n)} ${REASONS[name] || name}`)
            .join(", ");
        const parts = [
            { share: all ? used / all : 0, colour: "compute" },
            { share: all ? dropped / all : 0, colour: "wasted" },
        ];
        return A.el(
            "tr",
            {},
            A.el("th", { scope: "row" }, A.el("span", {}, A.chip(group.index), run.label)),
            A.el("td", { class: "bars" }, bar(parts, `${percent(all ? used / all : 0)} used`)),
            cell(count(used), "number"),
            cell(count(dropped), "number"),
            cell(reasons || "–"),
        );
    }

    /* ---- settings ---- */

    A.Settings = class {
        constructor() {
            this.body = A.el("div");
            this.element = A.el(
                "section",
                { id: "settings" },
                A.el("h2", { text: "Settings" }),
                A.el("div", { class: "card wide" }, this.body),
            );
        }

        /** They do not change, so they are made once a set of runs. */
        update(runs) {
            const key = JSON.stringify(runs.map((run) => [run.label, Boolean(run.result)]));
            if (key === this.key) return;
            this.key = key;
            const columns = runs.slice(0, 12).map(settingsOf);
            const names = [...new Set(columns.flatMap((column) => Object.keys(column)))];
            const differs = (name) => columns.some((column) => column[name] !== columns[0][name]);
            const row = (name) =>
                A.el(
                    "tr",
                    { class: differs(name) ? "differs" : "" },
                    A.el("th", { scope: "row", text: name }),
                    columns.map((column) => cell(column[name] || "–")),
                );
            const heads = ["setting", ...runs.slice(0, 12).map((run) => run.label)];
            const apart = names.filter(differs),
                alike = names.filter((name) => !differs(name));
            A.fill(
                this.body,
                table(
                    heads,
                    (apart.length ? apart : alike.filter((name) => !name.startsWith("--"))).map(
                        row,
                    ),
                ),
                A.el(
                    "details",
                    {},
                    A.el("summary", {
                        text: apart.length
                            ? `${alike.length} settings that are the same`
                            : "all options",
                    }),
                    table(
                        heads,
                        (apart.length ? alike : alike.filter((name) => name.startsWith("--"))).map(
                            row,
                        ),
                    ),
                ),
            );
        }
    };

    const flat = (value) =>
        value !== null && typeof value === "object" ? JSON.stringify(value) : String(value);

    /** Name to text, of result.json or, where there is none yet, of the head of the log. */
    function settingsOf(run) {
        const { result, story } = run,
            info = (story || {}).info || {};
        const what = result || info;
        const list = [
            ["command", what.command],
            ["model", what.model],
            ["data", what.data],
            ["world", what.world],
            ["parameters", what.parameters],
            ...Object.entries((result || info).rules || {}).map(([name, rule]) => [
                "rule: " + name,
                rule,
            ]),
            ...Object.entries((result || {}).options || {}).map(([name, value]) => [
                "--" + name,
                value,
            ]),
            ...Object.entries((result || {}).machine || {}).map(([name, value]) => [
                "machine: " + name,
                value,
            ]),
        ];
        return Object.fromEntries(
            list
                .filter(([, value]) => value !== undefined && value !== null && value !== "")
                .map(([name, value]) => [name, flat(value)]),
        );
    }

    /* ---- log ---- */

    A.Log = class {
        constructor() {
            this.list = A.el("ol", {
                class: "log",
                tabindex: "0",
                "aria-label": "what happened, newest first",
            });
            this.element = A.el(
                "section",
                { id: "log" },
                A.el("h2", { text: "Log" }),
                A.el("div", { class: "card wide" }, this.list),
            );
        }

        update(story) {
            const lines = [...(story.log || [])].reverse();
            this.element.hidden = lines.length === 0;
            A.fill(
                this.list,
                lines.map((line) =>
                    A.el(
                        "li",
                        { class: line.kind },
                        A.el("time", { text: seconds(line.t) }),
                        A.el("span", { text: line.text }),
                    ),
                ),
            );
        }
    };
})(Anytime);
