/* dom.js - helpers shared by all parts of the page: elements, number formats, colors, tables.
 *
 * Everything shown comes from untrusted files, so text only becomes text nodes and attributes;
 * no file of the page writes HTML. */
"use strict";

const Anytime = {};

(function (A) {
    /** Creates an element. `options`: class, text, style (an object), on (event listeners by name)
     *  and attributes. Children are elements, texts or null. */
    A.el = function (tag, options, ...children) {
        const element = document.createElement(tag);
        for (const [name, value] of Object.entries(options || {})) {
            if (value === null || value === undefined || value === false) continue;
            if (name === "class") element.className = value;
            else if (name === "text") element.textContent = value;
            else if (name === "style") setStyle(element, value);
            else if (name === "on") addListeners(element, value);
            else element.setAttribute(name, value === true ? "" : value);
        }
        element.append(...children.flat().filter((child) => child !== null && child !== undefined));
        return element;
    };

    function setStyle(element, style) {
        for (const [name, value] of Object.entries(style)) element.style.setProperty(name, value);
    }

    function addListeners(element, on) {
        for (const [name, listener] of Object.entries(on)) element.addEventListener(name, listener);
    }

    /** Replaces the children of an element. What has the focus keeps it, if it stays. */
    A.fill = function (element, ...children) {
        const active = document.activeElement;
        element.replaceChildren(...children.flat().filter((child) => child));
        if (active !== document.activeElement && element.contains(active))
            active.focus({ preventScroll: true });
    };

    /** A section of the page: a landmark with the name of its heading. */
    A.section = function (id, title, ...children) {
        const heading = A.el("h2", { id: id + "-heading", text: title });
        const about = { id, "aria-labelledby": heading.id, tabindex: "-1" };
        return A.el("section", about, heading, ...children);
    };

    /* ---- numbers ---- */

    const known = (value) => typeof value === "number" && isFinite(value);

    /** About three significant digits: 0.00123, 12.3, 12,345, 1.23e-9. */
    function number(value, digits = 3) {
        if (!known(value)) return "–";
        const size = Math.abs(value);
        if (value === 0) return "0";
        if (size < 1e-4 || size >= 1e9) return value.toExponential(digits - 1);
        if (size >= 1000) return Math.round(value).toLocaleString("en");
        return String(Number(value.toPrecision(digits)));
    }

    function seconds(value, digits = 3) {
        if (!known(value)) return "–";
        const size = Math.abs(value);
        if (size === 0) return "0 s";
        if (size < 1e-3) return number(value * 1e6, digits) + " µs";
        if (size < 1) return number(value * 1e3, digits) + " ms";
        if (size < 600) return number(value, digits) + " s";
        if (size < 36000) return number(value / 60, digits) + " min";
        return number(value / 3600, digits) + " h";
    }

    function bytes(value) {
        if (!known(value)) return "–";
        const units = ["B", "kB", "MB", "GB", "TB"];
        let unit = 0;
        while (Math.abs(value) >= 1000 && unit < units.length - 1) {
            value /= 1000;
            unit++;
        }
        return number(value) + " " + units[unit];
    }

    const percent = (value, digits = 3) =>
        known(value) ? number(100 * value, digits) + " %" : "–";
    const count = (value) => (known(value) ? value.toLocaleString("en") : "–");

    A.format = { number, seconds, bytes, percent, count };
    A.known = known;

    /* ---- colors ---- */

    const PALETTE = 8;

    /** A color of page.css in the current color scheme. */
    A.cssColor = function (name) {
        return getComputedStyle(document.documentElement)
            .getPropertyValue("--" + name)
            .trim();
    };

    /** The color of a series; the palette repeats. */
    A.color = (index) => A.cssColor("series-" + ((index % PALETTE) + 1));

    /** Calls back when the color scheme changes between light and dark. */
    A.onScheme = function (callback) {
        matchMedia("(prefers-color-scheme: dark)").addEventListener("change", callback);
    };

    /** Wraps a callback so that it runs at most once per frame. */
    A.lazily = function (callback) {
        let requested = false;
        return function () {
            if (requested) return;
            requested = true;
            requestAnimationFrame(() => {
                requested = false;
                callback();
            });
        };
    };

    /** The dashes of a series, which tell colors that repeat apart: [on, off], or null. */
    A.dashes = (index) => [null, [7, 3], [2, 3]][Math.floor(index / PALETTE) % 3];

    A.chip = (index) =>
        A.el("span", {
            class: A.dashes(index) ? "chip dashed" : "chip",
            style: { "--color": `var(--series-${(index % PALETTE) + 1})` },
        });

    /** The chip of a series, which may have a color of its own. */
    A.mark = function (one) {
        const chip = A.chip(one.index);
        if (one.color) chip.style.setProperty("--color", `var(--${one.color})`);
        return chip;
    };

    /** The name of times: page.js sets it to "virtual time" for simulated runs. */
    A.clock = "time";

    /* ---- tables, bars and legends ---- */

    /* Tables that are wider than the page can be scrolled with the keyboard, and say so. */
    const widths = new ResizeObserver((entries) => {
        for (const { target } of entries) markOverflow(target.closest(".scroll"));
    });

    function markOverflow(region) {
        if (!region) return;
        const hidden = region.scrollWidth > region.clientWidth + 1;
        region.previousSibling.hidden = !hidden;
        if (hidden) region.setAttribute("tabindex", "0");
        else region.removeAttribute("tabindex");
    }

    /** A table with a name, whose contents are set again and again. It keeps its position when it
     *  scrolls horizontally. */
    A.Table = class {
        constructor(label, options) {
            this.head = A.el("tr");
            this.body = A.el("tbody");
            this.foot = A.el("p", { class: "note", hidden: true });
            const table = A.el("table", options || {}, A.el("thead", {}, this.head), this.body);
            const hint = A.el("p", { class: "note hint", hidden: true, text: "more columns →" });
            const region = { class: "scroll", role: "region", "aria-label": label };
            const scroll = A.el("div", region, table);
            this.element = A.el("div", {}, hint, scroll, this.foot);
            widths.observe(table);
            widths.observe(scroll);
        }

        /** Sets headings, rows and a note below the table. */
        set(heads, rows, note = "") {
            const key = JSON.stringify(heads);
            if (key !== this.key)
                A.fill(
                    this.head,
                    heads.map((text, i) =>
                        A.el("th", { scope: "col", class: i ? "" : "first", text }),
                    ),
                );
            this.key = key;
            A.fill(this.body, rows);
            this.foot.textContent = note;
            this.foot.hidden = !note;
            return this.element;
        }
    };

    /** A table that is made once. */
    A.table = (label, heads, rows, options) => new A.Table(label, options).set(heads, rows);

    /** A table cell with a text or an element. */
    A.cell = (content, name) =>
        content instanceof Node
            ? A.el("td", { class: name }, content)
            : A.el("td", { class: name, text: content });

    /** A stacked bar; each part has a share of the length and a color of page.css. */
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
                            "background-color": `var(--${part.color})`,
                        },
                    }),
                ),
        );
    };

    /** A legend; entries are [color of page.css, text]. */
    A.legend = (entries) =>
        A.el(
            "p",
            { class: "legend" },
            entries.map(([color, text]) =>
                A.el(
                    "span",
                    {},
                    A.el("span", { class: "chip", style: { "--color": `var(--${color})` } }),
                    text,
                ),
            ),
        );
})(Anytime);
