/* tables.js - tables, bars and legends. */
"use strict";

(function (A) {
    /** A table that scrolls sideways where it must. */
    A.table = function (heads, rows, options) {
        const head = A.el(
            "tr",
            {},
            heads.map((text, i) => A.el("th", { scope: "col", class: i ? "" : "first", text })),
        );
        return A.el(
            "div",
            { class: "scroll" },
            A.el("table", options || {}, A.el("thead", {}, head), A.el("tbody", {}, rows)),
        );
    };

    /** A cell of text or of an element. */
    A.cell = (content, name) =>
        content instanceof Node
            ? A.el("td", { class: name }, content)
            : A.el("td", { class: name, text: content });

    /** A bar of parts, each with a share of the whole length and a colour of page.css. */
    A.bar = function (parts, label) {
        return A.el(
            "div",
            { class: "bar", role: "img", "aria-label": label, title: label },
            parts
                .filter((part) => part.share > 0)
                .map((part) =>
                    A.el("span", {
                        style: {
                            width: 100 * part.share + "%",
                            "background-color": `var(--${part.colour})`,
                        },
                    }),
                ),
        );
    };

    /** A legend of names of colours and texts. */
    A.legend = (entries) =>
        A.el(
            "p",
            { class: "legend" },
            entries.map(([colour, text]) =>
                A.el(
                    "span",
                    {},
                    A.el("span", {
                        class: "chip",
                        style: { "background-color": `var(--${colour})` },
                    }),
                    text,
                ),
            ),
        );
})(Anytime);
