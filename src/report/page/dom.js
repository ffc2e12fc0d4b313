/* dom.js - what all parts of the page share: elements, numbers for people, colours.
 *
 * Everything shown comes from files that may hold anything, so text only ever becomes text nodes
 * and attributes; nothing here, or in any other file of the page, writes HTML. */
"use strict";

const Anytime = {};

(function (A) {
    /** An element. `options`: class, text, style (an object), on (event to function), attributes.
     *  Children are elements, texts or null. */
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

    /** Replaces what is in an element. */
    A.fill = function (element, ...children) {
        element.replaceChildren(...children.flat().filter((child) => child));
    };

    /* ---- numbers ---- */

    const known = (value) => typeof value === "number" && isFinite(value);

    /** Three or so significant digits: 0.00123, 12.3, 12,345, 1.23e-9. */
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

    /* ---- colours ---- */

    const PALETTE = 8;

    /** A colour of page.css, as it is now: light or dark. */
    A.cssColour = function (name) {
        return getComputedStyle(document.documentElement)
            .getPropertyValue("--" + name)
            .trim();
    };

    /** The colour of series i; past the palette they come again. */
    A.colour = (index) => A.cssColour("series-" + ((index % PALETTE) + 1));

    /** Calls back when the page turns light or dark. */
    A.onScheme = function (callback) {
        matchMedia("(prefers-color-scheme: dark)").addEventListener("change", callback);
    };

    /** Calls back at most once a frame, however often it is asked to. */
    A.lazily = function (callback) {
        let asked = false;
        return function () {
            if (asked) return;
            asked = true;
            requestAnimationFrame(() => {
                asked = false;
                callback();
            });
        };
    };

    A.chip = (index) =>
        A.el("span", {
            class: "chip",
            style: { "background-color": `var(--series-${(index % PALETTE) + 1})` },
        });
})(Anytime);
