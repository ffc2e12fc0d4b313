/* sections.js - the sections with sample counts, settings and events. Like all parts of the page,
 * each is a class with an element and update(). */
"use strict";

(function (A) {
    const { seconds, percent, count } = A.format;
    const { table, cell, bar } = A;

    /* ---- samples used and dropped ---- */

    const REASONS = {
        stale: "too stale",
        abandoned: "abandoned for a newer version",
        lost: "lost with their worker",
        stopped: "unfinished at the end of the run",
    };

    A.Ledger = class {
        constructor() {
            this.table = new A.Table("Samples used and dropped", { class: "close" });
            this.element = A.section(
                "ledger",
                "Samples used and dropped",
                A.el("div", { class: "card wide" }, this.table.element),
            );
        }

        update(runs, groups) {
            const shown = groups.flatMap((group) =>
                group.runs.filter((run) => A.stateOf(run).samples).map((run) => ({ run, group })),
            );
            this.element.hidden = shown.length === 0;
            this.table.set(
                ["run", "share used", "used", "dropped", "reason"],
                shown.map(({ run, group }) => ledgerRow(run, group)),
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
            { share: all ? used / all : 0, color: "compute" },
            { share: all ? dropped / all : 0, color: "wasted" },
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

    const COLUMNS_MAX = 12; // runs beside each other

    A.Settings = class {
        constructor() {
            this.body = A.el("div");
            this.element = A.section(
                "settings",
                "Settings",
                A.el("div", { class: "card wide" }, this.body),
            );
        }

        /** Settings do not change, so they are rebuilt only for another set of runs. */
        update(runs) {
            const key = JSON.stringify(runs.map((run) => [run.label, Boolean(run.result)]));
            if (key === this.key) return;
            this.key = key;
            const columns = runs.slice(0, COLUMNS_MAX).map(settingsOf);
            const names = [...new Set(columns.flatMap((column) => Object.keys(column)))];
            const differs = (name) => columns.some((column) => column[name] !== columns[0][name]);
            const row = (name) =>
                A.el(
                    "tr",
                    { class: differs(name) ? "differs" : "" },
                    A.el("th", { scope: "row", text: name }),
                    columns.map((column) => cell(isCommand(name) ? words(column[name]) : column[name] || "–")),
                );
            const heads = ["setting", ...runs.slice(0, COLUMNS_MAX).map((run) => run.label)];
            const more = runs.length - COLUMNS_MAX;
            const different = names.filter(differs),
                equal = names.filter((name) => !differs(name));
            A.fill(
                this.body,
                more > 0 ? A.el("p", { class: "note", text: `${more} more runs not shown` }) : null,
                table(
                    "Settings that differ",
                    heads,
                    (different.length ? different : equal.filter(isNoOption)).map(row),
                ),
                A.el(
                    "details",
                    {},
                    A.el("summary", {
                        text: different.length
                            ? `${equal.length} identical settings`
                            : "all options",
                    }),
                    table(
                        "Identical settings",
                        heads,
                        (different.length ? equal : equal.filter(isOption)).map(row),
                    ),
                ),
            );
        }
    };

    const isCommand = (name) => name === "command" || name === "resumed by";

    /** A command whose lines break between words only, not in "--option". */
    function words(text = "–") {
        const parts = text.split(" ").flatMap((word) => [A.el("span", { class: "word", text: word }), " "]);
        return A.el("span", {}, parts.slice(0, -1));
    }

    const isOption = (name) => name.startsWith("--");
    const isNoOption = (name) => !isOption(name);

    const flat = (value) =>
        value !== null && typeof value === "object" ? JSON.stringify(value) : String(value);

    /** Texts by name, from result.json or, before it exists, from the header of the event log. */
    function settingsOf(run) {
        const { result, summary } = run,
            info = (summary || {}).info || {};
        const what = result || info;
        const commands = [...((result || {}).earlier_commands || []), what.command];
        const list = [
            ["command", commands[0]],
            ["resumed by", commands.slice(1).join("; ")],
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

    /* ---- events ---- */

    A.Events = class {
        constructor() {
            this.list = A.el("ol", {
                class: "log",
                tabindex: "0",
                "aria-label": "events, newest first",
            });
            this.element = A.section(
                "log",
                "Events",
                A.el("div", { class: "card wide" }, this.list),
            );
        }

        update(summary) {
            const lines = [...(summary.log || [])].reverse();
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
