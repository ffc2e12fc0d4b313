/* charts.js - line charts and histograms of several series, drawn with dygraphs.
 *
 * A chart is a figure with a heading, a readout of the values under the pointer, and the plot. Drag
 * to zoom, Shift+drag to pan, double-click to reset; keyboard: left and right arrows pan, up and
 * down zoom, 0 or Escape resets. */
"use strict";

(function (A) {
    const PAN = 0.2,
        ZOOM = 1.4;

    const POINTS_MARKED = 40; // a curve of at most so many evaluations has a mark at each of them
    const NAMES_MAX = 8; // series in a readout; it says how many are left out

    /** One chart. `options`: title, x and y (labels), formatX and formatY, log (offer a logarithmic
     *  scale), bars (a histogram), zero (the scale begins at 0), marked (few points, each with a
     *  mark), named (the series are not those of the page: the chart has its own legend). */
    A.Chart = class {
        constructor(options) {
            this.options = options;
            this.series = [];
            this.log = false;
            this.readout = A.el("p", { class: "readout", "aria-live": "off" });
            this.plot = A.el("div", { class: "plot" });
            this.legend = options.named ? new A.CurveLegend((label) => this.toggle(label)) : null;
            this.off = new Set(); // labels of the curves that are hidden by the chart's own legend
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
                this.legend ? this.legend.element : null,
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
                "aria-label": `log scale of ${this.options.title}`,
                title: "logarithmic scale",
                on: { click: () => this.toggleLog() },
            });
        }

        toggleLog() {
            this.log = !this.log;
            this.button.setAttribute("aria-pressed", String(this.log));
            if (this.graph) this.graph.updateOptions({ logscale: this.log });
        }

        /** Hides or shows one curve of a chart with a legend of its own. */
        toggle(label) {
            if (!this.off.delete(label)) this.off.add(label);
            this.applyVisibility();
            this.clearReadout();
        }

        applyVisibility() {
            const shown = this.series.map((one) => !this.off.has(one.label));
            if (this.graph) this.graph.setVisibility(shown);
        }

        /** Shows these series: [{label, index (of its color), curve: {x, y}, mean}, ..]. `note`
         *  says what the chart leaves out. The axis begins at `from` if the data begin later. */
        update(series, note = "", from = Infinity) {
            this.note = note;
            this.series = series.filter((one) => one.curve && !isEmpty(one.curve));
            this.element.hidden = this.series.length === 0;
            if (this.element.hidden) return;
            const rows = tabulate(this.series, from);
            const key = this.createKey();
            if (!this.graph || this.key !== key) this.create(rows);
            else this.graph.updateOptions({ file: rows, ...this.rangeOptions(rows) });
            this.key = key;
            if (this.legend) this.legend.update(this.series, this.off, note);
            if (this.off.size) this.applyVisibility();
            this.clearReadout();
        }

        /** A graph is created anew when its series or what is fixed about them change. */
        createKey() {
            const each = this.series.map((one) => [one.label, one.index, this.isMarked(one)]);
            return JSON.stringify([each, this.xName()]);
        }

        create(rows) {
            if (this.graph) this.graph.destroy();
            this.graph = new Dygraph(this.plot, rows, {
                ...this.fixedOptions(),
                ...this.colorOptions(),
                ...this.rangeOptions(rows),
            });
        }

        /** A single point is in the middle; more of them have the range of the data. */
        rangeOptions(rows) {
            const single = rows.length === 1;
            const changed = single !== Boolean(this.single);
            this.single = single;
            const x = rows[0][0];
            if (single) return { dateWindow: x > 0 ? [0, 2 * x] : [-1, 1] };
            return changed ? { dateWindow: null } : {};
        }

        xName() {
            return this.options.x === "time" ? A.clock : this.options.x;
        }

        isMarked(one) {
            return Boolean(this.options.marked) && one.curve.x.length <= POINTS_MARKED;
        }

        fixedOptions() {
            const { formatX, formatY, bars } = this.options;
            return {
                // Names of series are shown only as text, by us.
                labels: ["x", ...this.series.map((_, i) => "s" + i)],
                series: Object.fromEntries(this.series.map((one, i) => ["s" + i, this.look(one)])),
                legend: "never",
                customBars: true,
                connectSeparatedPoints: !bars,
                stepPlot: Boolean(bars),
                fillGraph: false,
                strokeWidth: 1.6,
                fillAlpha: 0.18,
                pointSize: 3,
                highlightCircleSize: 4,
                logscale: this.log,
                includeZero: Boolean(bars || this.options.zero),
                xRangePad: 4,
                yRangePad: bars ? 0 : 6,
                xlabel: this.xName(),
                xLabelHeight: 16,
                axes: {
                    x: {
                        axisLabelFormatter: (v) => axisLabel(v, formatX),
                        drawGrid: false,
                        axisLabelWidth: 60,
                        pixelsPerLabel: 48,
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

        /** Marks at the points of short curves; dashes where the colors repeat. */
        look(one) {
            return { drawPoints: this.isMarked(one), strokePattern: A.dashes(one.index) };
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
            const { formatX, formatY } = this.options;
            const head = A.el("span", { class: "at", text: `${this.xName()} ${formatX(at)}` });
            const value = (point) => this.series[Number(point.name.slice(1))];
            if (this.legend) {
                A.fill(this.readout, head);
                this.legend.show(points.map((p) => [value(p).label, formatY(p.yval)]));
                return;
            }
            const shown = points.slice(0, NAMES_MAX).map((point) => {
                const name = this.series.length > 1 ? value(point).label + " " : "";
                return A.el("span", {}, A.mark(value(point)), name + formatY(point.yval));
            });
            A.fill(this.readout, head, ...shown, leftOut(points.length));
        }

        /** Without a pointer: shows the last values or means, and what the title does not say. */
        clearReadout() {
            const { title, y, bars, formatY } = this.options;
            const repeats = title.toLowerCase().includes(y.toLowerCase());
            const head = repeats ? null : A.el("span", { class: "at", text: y });
            const last = (one) => formatY(one.curve.y[one.curve.y.length - 1][1]);
            if (this.legend) {
                const text = this.series.length > 1 ? "last values below" : "last value below";
                A.fill(this.readout, head, A.el("span", { text }));
                this.legend.show(this.series.map((one) => [one.label, last(one)]));
                return;
            }
            const text = (one) => (bars ? this.meanText(one) : `last ${last(one)}`);
            A.fill(
                this.readout,
                head,
                ...this.series
                    .slice(0, NAMES_MAX)
                    .map((one) => A.el("span", {}, A.mark(one), text(one))),
                leftOut(this.series.length),
            );
        }

        meanText(one) {
            return A.known(one.mean) ? `mean ${this.options.formatX(one.mean)}` : "";
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

    /** "and 3 more", when a readout has no room for all of so many series. */
    function leftOut(count) {
        return count > NAMES_MAX ? A.el("span", { text: `and ${count - NAMES_MAX} more` }) : null;
    }

    function zoomed(low, high, factor) {
        const middle = (low + high) / 2,
            half = ((high - low) / 2) * factor;
        return [middle - half, middle + half];
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
                  .replace(/(\d),([1-9])00,000\b/, "$1.$2M")
                  .replace(/(\d),000\b/, "$1k")
                  .replace(/(\d),([1-9])00\b(?!,)/, "$1.$2k");
    }

    /** One row for every x of any series: [x, [low, middle, high] or null, ..]; an empty one at
     *  `from` if that is before all of them. */
    function tabulate(series, from) {
        const rows = new Map();
        series.forEach((one, k) => {
            one.curve.x.forEach((x, i) => {
                if (!rows.has(x)) rows.set(x, [x, ...series.map(() => null)]);
                rows.get(x)[k + 1] = one.curve.y[i];
            });
        });
        const sorted = [...rows.values()].sort((a, b) => a[0] - b[0]);
        return from < sorted[0][0] ? [[from, ...series.map(() => null)], ...sorted] : sorted;
    }
})(Anytime);
