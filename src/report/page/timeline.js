/* timeline.js - worker activity over time, on a canvas.
 *
 * The cells of the timeline become an image with one pixel per cell, which is scaled to the
 * available space, so that a thousand workers are drawn as fast as four. A cell with several
 * activities has a mixture of their colors.
 *
 * Shift+wheel or up and down zoom, drag or left and right pan, 0 or Escape resets. */
"use strict";

(function (A) {
    const AXIS = 22,
        ROW_MAX = 26,
        HEIGHT_MAX = 440,
        HEIGHT_MIN = 60;
    const PAN = 0.2,
        ZOOM = 1.4;
    const WORDS = { compute: "computing", sleep: "sleeping", send: "sending", gone: "absent" };

    A.Timeline = class {
        constructor() {
            this.view = [0, 1]; // visible part of the run
            this.colorBy = "state";
            this.canvas = A.el("canvas", {
                tabindex: "0",
                role: "img",
                "aria-label":
                    "Worker timeline. Arrow keys pan and zoom, 0 resets. " +
                    "The table below has the totals.",
                on: {
                    keydown: (event) => this.onKey(event),
                    wheel: (event) => this.onWheel(event),
                    pointerdown: (event) => this.onDown(event),
                    pointermove: (event) => this.onMove(event),
                    pointerup: () => (this.grip = null),
                    pointerleave: () => this.clearReadout(),
                    dblclick: () => this.show(0, 1),
                },
            });
            this.readout = A.el("p", { class: "readout" });
            this.draw = A.lazily(() => this.drawNow());
            this.element = A.el(
                "figure",
                { class: "card wide timeline" },
                A.el(
                    "figcaption",
                    {},
                    A.el("h3", { text: "Worker timeline" }),
                    this.makeChoice(),
                ),
                this.readout,
                this.canvas,
                this.makeLegend(),
                this.batchLegend,
            );
            this.clearReadout();
            A.onScheme(() => this.repaint());
        }

        makeChoice() {
            const select = A.el(
                "select",
                { "aria-label": "coloring of the timeline", on: { change: () => this.choose(select.value) } },
                A.el("option", { value: "state", text: "color by activity" }),
                A.el("option", { value: "batch", text: "color by batch size" }),
            );
            return select;
        }

        choose(what) {
            this.colorBy = what;
            this.legend.hidden = what !== "state";
            this.batchLegend.hidden = what !== "batch";
            this.repaint();
        }

        makeLegend() {
            this.legend = A.legend([
                ["compute", "computing"],
                ["sleep", "sleeping (induced)"],
                ["send", "sending"],
                ["idle", "waiting"],
                ["gone", "absent"],
            ]);
            this.batchLegend = A.el("div", { hidden: true });
            return this.legend;
        }

        /** Shows the timeline of a summary; hidden when no rounds were recorded. */
        update(summary) {
            this.timeline = A.timelineOf(summary);
            this.end = summary.state.at;
            const { columns, rows } = this.timeline || { columns: 0 };
            this.element.hidden = columns === 0 || rows.length === 0;
            this.repaint();
        }

        repaint() {
            if (this.element.hidden || !this.timeline) return;
            this.image = paint(this.timeline, this.colorBy);
            const top = A.format.count(this.timeline.top);
            A.fill(
                this.batchLegend,
                A.legend([
                    ["idle", "0 samples per round"],
                    ["compute", `${top} samples per round`],
                    ["gone", "absent"],
                ]),
            );
            this.draw();
        }

        resize() {
            this.draw();
        }

        /* ---- drawing ---- */

        measure() {
            const rows = this.timeline.rows.length,
                last = this.timeline.rows[rows - 1];
            const width = this.canvas.clientWidth || 600;
            const height = Math.max(HEIGHT_MIN, Math.min(HEIGHT_MAX, rows * ROW_MAX));
            const left = 14 + 7 * rowName(last).length; // space for the longest label
            return { rows, width, height, left, plot: width - left };
        }

        drawNow() {
            if (!this.image || this.element.hidden) return;
            const size = this.measure(),
                scale = window.devicePixelRatio || 1;
            this.canvas.style.setProperty("height", size.height + AXIS + "px");
            this.canvas.width = Math.round(size.width * scale);
            this.canvas.height = Math.round((size.height + AXIS) * scale);
            const context = this.canvas.getContext("2d");
            context.scale(scale, scale);
            this.drawCells(context, size);
            this.drawLabels(context, size);
            this.drawTimes(context, size);
        }

        /** Columns of the image that the run has reached. */
        reached() {
            return Math.min(this.timeline.columns, Math.max(1, this.end / this.timeline.width));
        }

        drawCells(context, size) {
            const columns = this.reached(),
                [low, high] = this.view;
            context.imageSmoothingEnabled = false;
            const gap = size.height / size.rows >= 8 ? 2 : 0;
            for (let r = 0; r < (gap ? size.rows : 1); r++) {
                const tall = gap ? size.height / size.rows : size.height;
                context.drawImage(
                    this.image,
                    low * columns,
                    r,
                    (high - low) * columns,
                    gap ? 1 : size.rows,
                    size.left,
                    r * tall + gap / 2,
                    size.plot,
                    tall - gap,
                );
            }
        }

        drawLabels(context, size) {
            const tall = size.height / size.rows,
                every = Math.ceil(14 / tall);
            context.fillStyle = A.cssColor("soft");
            context.font = "11px system-ui, sans-serif";
            context.textAlign = "right";
            context.textBaseline = "middle";
            for (let r = 0; r < size.rows; r += every) {
                context.fillText(rowName(this.timeline.rows[r]), size.left - 6, (r + 0.5) * tall);
            }
        }

        drawTimes(context, size) {
            const [from, until] = this.times(),
                step = tick((until - from) / Math.max(2, size.plot / 110));
            context.textAlign = "center";
            context.textBaseline = "top";
            context.strokeStyle = A.cssColor("axis");
            for (let t = Math.ceil(from / step) * step; t <= until + step / 1e6; t += step) {
                const x = size.left + ((t - from) / (until - from)) * size.plot;
                if (x > size.left + size.plot - 16) break;
                context.beginPath();
                context.moveTo(x, size.height);
                context.lineTo(x, size.height + 4);
                context.stroke();
                context.fillText(
                    A.format.seconds(Math.abs(t) < step / 1e6 ? 0 : t),
                    x,
                    size.height + 7,
                );
            }
        }

        /** Start and end of the visible part, in seconds. */
        times() {
            const whole = this.reached() * this.timeline.width;
            return [this.view[0] * whole, this.view[1] * whole];
        }

        /* ---- pan and zoom ---- */

        show(low, high) {
            const width = Math.min(1, Math.max(high - low, 2 / this.timeline.columns));
            const from = Math.min(Math.max(0, low), 1 - width);
            this.view = [from, from + width];
            this.draw();
        }

        zoom(factor, center) {
            const [low, high] = this.view;
            const at = low + center * (high - low);
            this.show(at - (at - low) * factor, at + (high - at) * factor);
        }

        onKey(event) {
            const [low, high] = this.view,
                step = PAN * (high - low);
            const moves = {
                ArrowLeft: () => this.show(low - step, high - step),
                ArrowRight: () => this.show(low + step, high + step),
                ArrowUp: () => this.zoom(1 / ZOOM, 0.5),
                ArrowDown: () => this.zoom(ZOOM, 0.5),
                "+": () => this.zoom(1 / ZOOM, 0.5),
                "-": () => this.zoom(ZOOM, 0.5),
                0: () => this.show(0, 1),
                Escape: () => this.show(0, 1),
            };
            if (!(event.key in moves)) return;
            moves[event.key]();
            event.preventDefault();
        }

        onWheel(event) {
            if (!event.ctrlKey && !event.shiftKey) return; // a plain wheel scrolls the page
            this.zoom(event.deltaY < 0 ? 1 / ZOOM : ZOOM, this.position(event).x);
            event.preventDefault();
        }

        onDown(event) {
            this.grip = { x: event.clientX, view: this.view };
            this.canvas.setPointerCapture(event.pointerId);
        }

        onMove(event) {
            if (!this.timeline || this.element.hidden) return;
            if (this.grip) this.drag(event);
            else this.read(event);
        }

        drag(event) {
            const { plot } = this.measure(),
                [low, high] = this.grip.view;
            const by = ((this.grip.x - event.clientX) / plot) * (high - low);
            this.show(low + by, high + by);
        }

        /* ---- readout ---- */

        /** The pointer position: fraction of the visible part, and row. */
        position(event) {
            const size = this.measure(),
                box = this.canvas.getBoundingClientRect();
            const x = (event.clientX - box.left - size.left) / size.plot;
            const row = Math.floor(((event.clientY - box.top) / size.height) * size.rows);
            return { x: Math.min(1, Math.max(0, x)), row };
        }

        read(event) {
            const { x, row } = this.position(event),
                [low, high] = this.view;
            const column = Math.min(
                this.timeline.columns - 1,
                Math.floor((low + x * (high - low)) * this.reached()),
            );
            const cells = this.timeline.rows[row];
            if (!cells) return this.clearReadout();
            const shares = A.ACTIVITIES.map((activity) => [
                WORDS[activity],
                A.share(cells, activity, column),
            ]);
            const idle = 1 - shares.reduce((sum, [, share]) => sum + share, 0);
            const parts = [...shares, ["waiting", idle]]
                .filter(([, share]) => share > 0.02)
                .map(([word, share]) =>
                    share > 0.98 ? word : `${word} ${Math.round(100 * share)} %`,
                );
            const batch = A.batchAt(this.timeline, cells, column);
            const name =
                cells.first === cells.last
                    ? `worker ${cells.first}`
                    : `workers ${cells.first} to ${cells.last}`;
            const at = A.format.seconds(column * this.timeline.width);
            this.readout.textContent =
                `${name} at ${at}: ${parts.join(", ")}` +
                (batch ? `; batch size ${A.format.number(batch)}` : "");
        }

        clearReadout() {
            this.readout.textContent =
                "Drag to pan, Shift+wheel to zoom, double-click to reset; keyboard: arrows and 0";
        }
    };

    const rowName = ({ first, last }) => (first === last ? String(first) : `${first}–${last}`);

    /* ---- the image ---- */

    /** Red, green and blue of a color of page.css. */
    function rgb(name) {
        const probe = A.el("canvas", { width: "1", height: "1" }).getContext("2d");
        probe.fillStyle = A.cssColor(name);
        probe.fillRect(0, 0, 1, 1);
        return probe.getImageData(0, 0, 1, 1).data;
    }

    function paint(timeline, colorBy) {
        const canvas = A.el("canvas", { width: timeline.columns, height: timeline.rows.length });
        const context = canvas.getContext("2d");
        const image = context.createImageData(timeline.columns, timeline.rows.length);
        const fill = colorBy === "batch" ? paintBatches : paintStates;
        const colors = [...A.ACTIVITIES, "idle"].map(rgb);
        timeline.rows.forEach((row, r) =>
            fill(timeline, row, image.data, 4 * r * timeline.columns, colors),
        );
        context.putImageData(image, 0, 0);
        return canvas;
    }

    /** Mixes the colors of the activities in each cell. */
    function paintStates(timeline, row, pixels, start, colors) {
        const idle = colors[A.ACTIVITIES.length];
        for (let c = 0, p = start; c < timeline.columns; c++, p += 4) {
            for (let k = 0; k < 3; k++) pixels[p + k] = idle[k];
            pixels[p + 3] = 255;
            A.ACTIVITIES.forEach((activity, i) => {
                const share = A.share(row, activity, c);
                for (let k = 0; k < 3 && share > 0; k++)
                    pixels[p + k] += share * (colors[i][k] - idle[k]);
            });
        }
    }

    /** Color intensity by mean batch size; a cell in which no round ended looks like the next. */
    function paintBatches(timeline, row, pixels, start, colors) {
        const full = colors[0],
            gone = colors[A.ACTIVITIES.indexOf("gone")],
            none = colors[A.ACTIVITIES.length];
        let batch = 0;
        for (let c = timeline.columns - 1; c >= 0; c--) {
            batch = A.batchAt(timeline, row, c) || batch;
            const share = batch / timeline.top,
                p = start + 4 * c;
            const absent = A.share(row, "gone", c) > 0.5;
            for (let k = 0; k < 3; k++)
                pixels[p + k] = absent ? gone[k] : none[k] + share * (full[k] - none[k]);
            pixels[p + 3] = 255;
        }
    }

    /** Rounds up to 1, 2 or 5 times a power of ten. */
    function tick(rough) {
        const power = 10 ** Math.floor(Math.log10(rough || 1));
        return power * [1, 2, 5, 10].find((digit) => digit * power >= rough * 0.999);
    }
})(Anytime);
