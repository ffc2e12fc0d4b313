/* network.js - workers on other machines: how many are there over time, from which hosts, and how
 * good their connections are. A section like the others: an element and update(). */
"use strict";

(function (A) {
    const { number, seconds, bytes, count } = A.format;
    const LINES_MAX = 12;

    const perSecond = (value) => bytes(value) + "/s";

    const CHARTS = [
        { title: "Round-trip time", y: "round-trip time", formatY: seconds, of: "round_trip" },
        { title: "Sent to workers", y: "bytes per second", formatY: perSecond, of: "sent" },
        { title: "Received from workers", y: "bytes per second", formatY: perSecond, of: "received" },
    ];

    const HEADS = [
        "worker",
        "host",
        "address",
        "state",
        "joins",
        "losses",
        "round trip",
        "shortest",
        "sent",
        "received",
        "packets resent",
    ];

    A.Network = class {
        constructor() {
            this.presence = new A.Chart({
                title: "Workers present",
                x: "time",
                y: "workers",
                formatX: seconds,
                formatY: number,
                zero: true,
                named: true,
            });
            this.links = CHARTS.map(
                (options) =>
                    new A.Chart({
                        ...options,
                        x: "time",
                        formatX: seconds,
                        zero: true,
                        named: true,
                    }),
            );
            this.charts = [this.presence, ...this.links];
            this.table = new A.Table("Connections");
            this.element = A.section(
                "network",
                "Network",
                A.el(
                    "div",
                    { class: "grid" },
                    this.charts.map((chart) => chart.element),
                ),
                A.el(
                    "div",
                    { class: "card wide" },
                    A.el("h3", { text: "Connections" }),
                    this.table.element,
                ),
            );
        }

        update(summary) {
            const network = summary && summary.network;
            this.element.hidden = !network;
            if (!network) return;
            this.presence.update([
                {
                    label: "workers",
                    index: 0,
                    curve: A.curve(untilNow(network.present, summary), "t", "workers"),
                },
            ]);
            const shown = network.trends.slice(0, LINES_MAX);
            this.links.forEach((chart, i) =>
                chart.update(
                    shown.map(({ id, trend }, index) => ({
                        label: "worker " + id,
                        index,
                        curve: A.curve(trend, "t", CHARTS[i].of),
                    })),
                ),
            );
            this.table.set(HEADS, network.links.map(linkRow));
        }
    };

    /** The number of workers stays what it was after the last change. */
    function untilNow(series, { state }) {
        if (!series.t.length) return series;
        const { mean } = series.workers;
        const last = mean[mean.length - 1];
        const longer = { t: [...series.t, state.at], step: [...series.step, state.step] };
        const workers = { mean: [...mean, last] };
        for (const part of ["min", "max"])
            if (series.workers[part]) workers[part] = [...series.workers[part], last];
        return { ...series, ...longer, workers };
    }

    function linkRow(link) {
        const numbers = [
            count(link.joins),
            count(link.losses),
            seconds(link.round_trip),
            seconds(link.round_trip_min),
            bytes(link.sent),
            bytes(link.received),
            count(link.resent),
        ];
        return A.el(
            "tr",
            {},
            A.el("th", { scope: "row", text: String(link.id) }),
            A.cell(link.host || "–"),
            A.cell(link.address),
            A.cell(link.state),
            numbers.map((text) => A.cell(text, "number")),
        );
    }

    /** Merges an update, for A.merge. */
    A.mergeNetwork = function (old, update, mergeSeries) {
        if (!old || !update) return update || old;
        const trends = update.trends.map(({ id, trend }) => {
            const before = old.trends.find((other) => other.id === id);
            return { id, trend: mergeSeries(before && before.trend, trend) };
        });
        return { ...update, trends, present: mergeSeries(old.present, update.present) };
    };
})(Anytime);
