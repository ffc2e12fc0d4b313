/* charts.js - line charts and histograms of several series, drawn with dygraphs.
 *
 * A chart is a figure with a heading, a readout of the values under the pointer, and the plot. Drag
 * to zoom, Shift+drag to pan, double-click to reset; keyboard: left and right arrows pan, up and
 * down zoom, 0 or Escape resets. */
"use strict";

(function (A) {
    const PAN = 0.2,
        ZOOM = 1.4;

    /** One chart. `options`: title, x and y (labels), formatX and formatY, log (offer a logarithmic
     *  scale), bars (a histogram), zero (the scale begins at 0), named (the readout names the
     *  series, which are not those of the page's legend). */
    A.Chart = class {
        constructor(options) {
            this.options = options;
            this.series = [];
            this.log = false;
            this.readout = A.el("p", { class: "readout", "aria-live": "off" });
            this.plot = A.el("div", { class: "plot" });
            this.button = options.log ? this.makeLogButton() : null;
            this.element = A.el(
                "figure",
                {
                    class: "card chart",
                    tabindex: "0",
                    role: "group",
                    "aria-label": `Chart: ${options.title}. Arrow keys pan and zoom, 0 resets.`,
                    on: { keydown: (event) => this.onKey(event) },
                },
                A.el("figcaption", {}, A.el("h3", { text: options.title }), this.button),
                this.readout,
                this.plot,
            );
            this.clearReadout();
            A.onScheme(() => this.redraw());
        }

        makeLogButton() {
            return A.el("button", {
                type: "button",
                class: "small",
                text: "log",
                "aria-pressed": "false",
                title: "logarithmic scale",
                on: { click: () => this.toggleLog() },
            });
        }

        toggleLog() {
            this.log = !this.log;
            this.button.setAttribute("aria-pressed", String(this.log));
            if (this.graph) this.graph.updateOptions({ logscale: this.log });
        }

        /** Shows these series: [{label, index (of its color), curve: {x, y}, mean}, ..]. */
        update(series) {
            this.series = series.filter((one) => one.curve && !isEmpty(one.curve));
            this.element.hidden = this.series.length === 0;
            if (this.element.hidden) return;
            const rows = tabulate(this.series);
            if (!this.graph || this.drawn !== this.series.length) this.create(rows);
            else this.graph.updateOptions({ file: rows });
            this.clearReadout();
        }

        create(rows) {
            if (this.graph) this.graph.destroy();
            this.drawn = this.series.length;
            this.graph = new Dygraph(this.plot, rows, {
                ...this.fixedOptions(),
                ...this.colorOptions(),
            });
        }

        fixedOptions() {
            const { formatX, formatY, bars } = this.options;
            return {
                // Names of series are shown only in our readout, as text.
                labels: ["x", ...this.series.map((_, i) => "s" + i)],
                legend: "never",
                customBars: true,
                connectSeparatedPoints: !bars,
                stepPlot: Boolean(bars),
                fillGraph: false,
                strokeWidth: 1.6,
                fillAlpha: 0.18,
                highlightCircleSize: 3,
                logscale: this.log,
                includeZero: Boolean(bars || this.options.zero),
                xRangePad: 4,
                yRangePad: bars ? 0 : 6,
                axes: {
                    x: {
                        axisLabelFormatter: (v) => axisLabel(v, formatX),
                        drawGrid: false,
                        axisLabelWidth: 60,
                        pixelsPerLabel: 56,
                    },
                    y: { axisLabelFormatter: (v) => axisLabel(v, formatY), axisLabelWidth: 54 },
                },
                highlightCallback: (event, at, points) => this.read(at, points),
                unhighlightCallback: () => this.clearReadout(),
                rightGap: 12,
                axisLabelFontSize: 11,
                xAxisHeight: 18,
                ...(bars ? { plotter: drawBars } : {}),
            };
        }

        colorOptions() {
            return {
                colors: this.series.map((one) =>
                    one.color ? A.cssColor(one.color) : A.color(one.index),
                ),
                gridLineColor: A.cssColor("grid"),
                axisLineColor: A.cssColor("axis"),
            };
        }

        redraw() {
            if (this.graph) this.graph.updateOptions(this.colorOptions());
        }

        resize() {
            if (this.graph && !this.element.hidden) this.graph.resize();
        }

        /** Shows the values at this x. */
        read(at, points) {
            const { formatX, formatY, x } = this.options;
            const shown = points.slice(0, 8).map((point) => {
                const one = this.series[Number(point.name.slice(1))];
                return A.el(
                    "span",
                    {},
                    mark(one),
                    `${this.series.length > 1 ? one.label + " " : ""}${formatY(point.yval)}`,
                );
            });
            A.fill(
                this.readout,
                A.el("span", { class: "at", text: `${x} ${formatX(at)}` }),
                ...shown,
            );
        }

        /** Without a pointer: shows the axes and the last values or means. */
        clearReadout() {
            const { x, y, bars } = this.options;
            A.fill(
                this.readout,
                A.el("span", { class: "at", text: bars ? `${x} (${y})` : `${y} vs. ${x}` }),
                ...this.series
                    .slice(0, 6)
                    .map((one) =>
                        A.el("span", {}, mark(one), bars ? this.meanText(one) : this.lastText(one)),
                    ),
            );
        }

        meanText(one) {
            return A.known(one.mean) ? `mean ${this.options.formatX(one.mean)}` : "";
        }

        lastText(one) {
            const { y } = one.curve;
            const last = this.options.formatY(y[y.length - 1][1]);
            return `${this.options.named ? one.label : "last"} ${last}`;
        }

        onKey(event) {
            if (!this.graph || event.target !== this.element) return;
            const [low, high] = this.graph.xAxisRange();
            const width = high - low;
            const ranges = {
                ArrowLeft: [low - PAN * width, high - PAN * width],
                ArrowRight: [low + PAN * width, high + PAN * width],
                ArrowUp: zoomed(low, high, 1 / ZOOM),
                ArrowDown: zoomed(low, high, ZOOM),
                "+": zoomed(low, high, 1 / ZOOM),
                "-": zoomed(low, high, ZOOM),
            };
            if (event.key in ranges) this.show(ranges[event.key]);
            else if (event.key === "0" || event.key === "Escape") this.graph.resetZoom();
            else return;
            event.preventDefault();
        }

        /** Zooms to a range, limited to that of the data. */
        show([low, high]) {
            const [first, last] = this.graph.xAxisExtremes();
            const width = Math.min(high - low, last - first);
            const from = Math.min(Math.max(low, first), last - width);
            this.graph.updateOptions({ dateWindow: [from, from + width] });
        }
    };

    function zoomed(low, high, factor) {
        const middle = (low + high) / 2,
            half = ((high - low) / 2) * factor;
        return [middle - half, middle + half];
    }

    function mark(one) {
        const chip = A.chip(one.index);
        if (one.color) chip.style.setProperty("background-color", `var(--${one.color})`);
        return chip;
    }

    /** A curve that is always 0 is not shown. */
    const isEmpty = (curve) => curve.y.every((point) => point[0] === 0 && point[2] === 0);

    /** Plotter for histograms: filled bars from each x to the next, with an outline. */
    function drawBars({ drawingContext: context, points, color, dygraph }) {
        const bottom = dygraph.toDomYCoord(0);
        const outline = new Path2D();
        outline.moveTo(points[0].canvasx, bottom);
        for (let i = 0; i + 1 < points.length; i++) {
            outline.lineTo(points[i].canvasx, points[i].canvasy);
            outline.lineTo(points[i + 1].canvasx, points[i].canvasy);
        }
        outline.lineTo(points[points.length - 1].canvasx, bottom);
        context.fillStyle = color;
        context.strokeStyle = color;
        context.lineWidth = 1.4;
        context.globalAlpha = 0.25;
        context.fill(outline);
        context.globalAlpha = 1;
        context.stroke(outline);
    }

    /** Short number formats for the axes. */
    function axisLabel(value, format) {
        return value === 0
            ? "0"
            : format(value)
                  .replace(/(\d),000,000,000\b/, "$1G")
                  .replace(/(\d),000,000\b/, "$1M")
                  .replace(/(\d),000\b/, "$1k");
    }

    /** One row for every x of any series: [x, [low, middle, high] or null, ..]. */
    function tabulate(series) {
        const rows = new Map();
        series.forEach((one, k) => {
            one.curve.x.forEach((x, i) => {
                if (!rows.has(x)) rows.set(x, [x, ...series.map(() => null)]);
                rows.get(x)[k + 1] = one.curve.y[i];
            });
        });
        return [...rows.values()].sort((a, b) => a[0] - b[0]);
    }
})(Anytime);
