/* legend.js - legends whose entries are buttons: each shows or hides its curve. */
"use strict";

(function (A) {
    /** A legend of curves. `onToggle` is called with the label of a pressed entry. */
    A.CurveLegend = class {
        constructor(onToggle) {
            this.onToggle = onToggle;
            this.entries = new Map(); // by label: button, and elements of its text and value
            this.note = A.el("span", { class: "note" });
            this.list = A.el("div", { class: "legend", role: "group", "aria-label": "curves" });
            this.element = A.el("div", {}, this.list, this.note);
        }

        /** Shows entries for these series: [{label, index, color, text}, ..]; `text` is a longer
         *  form of the label. The labels in `off` are those of hidden curves. */
        update(series, off, note = "") {
            const key = JSON.stringify(series.map((one) => [one.label, one.index]));
            if (key !== this.key) this.build(series); // otherwise a button keeps the focus
            this.key = key;
            for (const one of series) {
                const { button, text } = this.entries.get(one.label);
                button.setAttribute("aria-pressed", String(!off.has(one.label)));
                text.textContent = one.text || one.label;
            }
            this.note.textContent = note;
            this.note.hidden = !note;
        }

        build(series) {
            this.entries.clear();
            A.fill(
                this.list,
                series.map((one) => this.makeButton(one)),
            );
        }

        makeButton(one) {
            const text = A.el("span");
            const value = A.el("span", { class: "value" });
            const button = A.el(
                "button",
                {
                    type: "button",
                    class: "entry",
                    title: "show or hide",
                    on: { click: () => this.onToggle(one.label) },
                },
                A.mark(one),
                text,
                value,
            );
            this.entries.set(one.label, { button, text, value });
            return button;
        }

        /** Values beside the labels: [[label, text], ..]; the others become empty. */
        show(pairs) {
            const texts = new Map(pairs);
            for (const [label, { value }] of this.entries)
                value.textContent = texts.get(label) || "";
        }
    };
})(Anytime);
