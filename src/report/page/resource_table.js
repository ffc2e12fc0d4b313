/* resource_table.js - the table of the section "Resource usage": what the processes of each run
 * used. `resources` of a run: {hub, worker, evaluator}, each with the keys below; see
 * src/cli/resource_table.h. */
"use strict";

(function (A) {
    const { seconds, percent, bytes } = A.format;

    /* Columns: heading, key, format. */
    const COLUMNS = [
        ["CPU", "cpu_seconds", seconds],
        ["of a core", "cpu_share", percent],
        ["memory", "peak_bytes", bytes],
        ["sent", "sent_bytes", bytes],
        ["received", "received_bytes", bytes],
        ["disk read", "read_bytes", bytes],
        ["disk write", "write_bytes", bytes],
    ];
    const PROCESSES = [
        ["hub", "hub"],
        ["worker", "worker (mean)"],
        ["evaluator", "evaluator"],
    ];

    const isKnown = (process) => process && COLUMNS.some(([, key]) => A.known(process[key]));

    A.ResourceTable = class {
        constructor() {
            this.table = new A.Table("Resource usage of processes", { class: "close" });
            this.element = A.el("div", { class: "card wide" }, this.table.element);
        }

        /** True if there is anything to show. */
        update(groups) {
            const columns = COLUMNS.filter(([, key]) => groups.some(knows(key)));
            const rows = groups.flatMap((group) =>
                group.runs.flatMap((run) => rowsOf(run, group.index, columns)),
            );
            const heads = ["run", "process", ...columns.map(([head]) => head)];
            this.table.set(heads, rows);
            this.element.hidden = !rows.length;
            return rows.length > 0;
        }
    };

    /** Whether a process of a group has this number; columns that nobody fills are left out. */
    const knows = (key) => (group) =>
        group.runs.some(({ resources }) =>
            PROCESSES.some(([name]) => A.known(((resources || {})[name] || {})[key])),
        );

    function rowsOf(run, index, columns) {
        const resources = run.resources || {};
        return PROCESSES.filter(([key]) => isKnown(resources[key])).map(([key, name]) =>
            A.el(
                "tr",
                {},
                A.el("th", { scope: "row" }, A.el("span", {}, A.chip(index), run.label)),
                A.cell(name),
                columns.map(([, field, format]) => {
                    const value = resources[key][field];
                    return A.cell(A.known(value) ? format(value) : "–", "number");
                }),
            ),
        );
    }
})(Anytime);
