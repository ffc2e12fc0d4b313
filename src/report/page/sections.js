/* sections.js - the parts of the page that are tables and bars: summary, workers, ledger, settings,
 * log. Each is a class with an element and update(). */
"use strict";

(function (A) {
  const { number, seconds, percent, count } = A.format;

  function table(heads, rows, options) {
    const head = A.el("tr", {}, heads.map((text, i) => A.el("th", { scope: "col", class: i ? "" : "first", text })));
    return A.el("div", { class: "scroll" },
      A.el("table", options || {}, A.el("thead", {}, head), A.el("tbody", {}, rows)));
  }

  const cell = (content, name) =>
    content instanceof Node ? A.el("td", { class: name }, content) : A.el("td", { class: name, text: content });

  /** How long a bar is, from 0 to 1. */
  function bar(parts, label) {
    return A.el("div", { class: "bar", role: "img", "aria-label": label, title: label },
      parts.filter((part) => part.share > 0).map((part) =>
        A.el("span", { style: { width: 100 * part.share + "%", "background-color": `var(--${part.colour})` } })));
  }

  /* ---- summary ---- */

  const accuracyOf = (run) => {
    const test = run.story ? run.story.state.test : (run.result || {}).test || {};
    return test.accuracy;
  };
  const stateOf = (run) => (run.story ? run.story.state : {});
  const resultOf = (run, key) => (run.result ? run.result[key] : undefined);

  /** Seconds that the run waited for stragglers. */
  const waited = (run) => ((run.story || {}).workers || []).reduce((sum, worker) => sum + worker.waited, 0);
  const wasted = (run) => ((run.story || {}).workers || []).reduce((sum, worker) => sum + worker.wasted, 0);

  function targetText(run) {
    const targets = resultOf(run, "targets") || [];
    return targets.map((t) => `${t.metric} ${number(t.value)}: ${A.known(t.seconds) ? seconds(t.seconds) : "missed"}`).join(", ");
  }

  const first = (...values) => values.find((value) => A.known(value));

  /* What is told of each run: heading, number, how to write it. */
  const MEASURES = [
    ["steps", (run) => first(resultOf(run, "steps"), stateOf(run).steps), count],
    ["time", (run) => first(resultOf(run, "seconds"), stateOf(run).seconds), seconds],
    ["step", (run) => first((stateOf(run).step_seconds || {}).mean, (resultOf(run, "step_seconds") || {}).mean), seconds],
    ["samples/s", (run) => first(resultOf(run, "samples_per_second"), stateOf(run).rate), number],
    ["useful time", (run) => first(resultOf(run, "useful_fraction"), stateOf(run).useful), percent],
    ["lost to stragglers", (run) => ((run.story || {}).workers ? waited(run) : undefined), seconds],
    ["staleness", (run) => first(stateOf(run).staleness, (resultOf(run, "staleness") || {}).mean), number],
    ["training loss", (run) => first(stateOf(run).loss, (resultOf(run, "train") || {}).loss), (v) => number(v, 4)],
    ["accuracy", accuracyOf, (v) => number(v, 4)],
  ];

  A.Summary = class {
    constructor() {
      this.body = A.el("div");
      this.element = A.el("section", { id: "summary" }, A.el("h2", { text: "Summary" }), this.body);
    }

    update(runs, groups) {
      const shown = MEASURES.filter(([, get]) => runs.some((run) => A.known(get(run))));
      const targets = runs.some((run) => targetText(run));
      const heads = ["run", "strategy", "workers", ...shown.map(([head]) => head), "state", ...(targets ? ["targets"] : [])];
      const rows = groups.flatMap((group) => [...group.runs.map((run) => summaryRow(run, group, shown, targets)),
        group.runs.length > 1 ? meanRow(group, shown, targets) : null]);
      A.fill(this.body, runs.length === 1 ? tiles(runs[0]) : null, A.el("div", { class: "card wide" }, table(heads, rows)));
    }
  };

  function summaryRow(run, group, shown, targets) {
    const what = run.result || (run.story || {}).info || {};
    const label = A.el("span", {}, A.chip(group.index), run.label);
    return A.el("tr", {}, A.el("th", { scope: "row" }, label), cell(what.strategy || "–"), cell(count(what.workers)),
      shown.map(([, get, format]) => cell(format(get(run)), "number")), cell(ending(run)),
      targets ? cell(targetText(run)) : null);
  }

  /** The mean of repeats, with the half of its 95 % interval where there are enough for one. */
  function meanRow(group, shown, targets) {
    const cells = shown.map(([, get, format]) => {
      const values = group.runs.map(get).filter(A.known);
      if (!values.length) return cell("–", "number");
      const [low, mean, high] = A.interval(values);
      return cell(format(mean) + (values.length > 2 ? ` ± ${format((high - low) / 2)}` : ""), "number");
    });
    return A.el("tr", { class: "mean" }, A.el("th", { scope: "row" }, A.el("span", {}, A.chip(group.index), `${group.label}, mean of ${group.runs.length}`)),
      cell(""), cell(""), cells, cell(""), targets ? cell("") : null);
  }

  function ending(run) {
    const end = stateOf(run).end || resultOf(run, "stopped") || "–";
    return end === "running" ? "running" : "ended: " + end;
  }

  /** The few numbers of a single run that people ask for first. */
  function tiles(run) {
    const state = stateOf(run);
    const whole = state.seconds;
    const list = MEASURES.filter(([head, get]) => head !== "step" && A.known(get(run)))
      .map(([head, get, format]) => [head, format(get(run)), head === "lost to stragglers" && whole > 0
        ? `${percent(waited(run) / whole)} of the run` : ""]);
    return A.el("dl", { class: "tiles" }, list.map(([head, value, more]) =>
      A.el("div", { class: "card tile" }, A.el("dt", { text: head }), A.el("dd", { text: value }),
        more ? A.el("dd", { class: "more", text: more }) : null)));
  }

  /* ---- workers ---- */

  const ROWS_FIRST = 32;

  const TIME_PARTS = [
    ["useful", "compute", "computing, used"],
    ["void", "wasted", "computing, dropped"],
    ["sleep", "sleep", "sleeping (induced)"],
    ["send", "send", "sending"],
    ["idle", "idle", "waiting"],
  ];

  function timesOf(worker) {
    return { ...worker, void: Math.max(0, worker.compute - worker.useful) };
  }

  A.Workers = class {
    constructor() {
      this.all = false;
      this.order = "first";
      this.body = A.el("div");
      this.sentence = A.el("p", { class: "finding" });
      this.select = A.el("select", { "aria-label": "sort by", on: { change: () => this.sort(this.select.value) } },
        [["first", "by number"], ["waited", "by seconds blamed"], ["idle", "by waiting"], ["used", "by samples used"]]
          .map(([value, text]) => A.el("option", { value, text })));
      this.element = A.el("div", { class: "card wide" },
        A.el("div", { class: "heading" }, A.el("h3", { text: "Where the time went, and who is to blame" }), this.select),
        this.sentence, legend(), this.body);
    }

    sort(order) {
      this.order = order;
      this.draw();
    }

    update(story) {
      this.story = story;
      this.element.hidden = !story.workers || story.workers.length === 0;
      if (!this.element.hidden) this.draw();
    }

    draw() {
      const rows = [...this.story.workers].sort((a, b) => this.order === "first" ? a.first - b.first : b[this.order] - a[this.order]);
      const shown = this.all ? rows : rows.slice(0, ROWS_FIRST);
      const most = Math.max(...rows.map((w) => w.waited + w.wasted / (w.last - w.first + 1)), 1e-12);
      const longest = Math.max(...rows.map((w) => TIME_PARTS.reduce((sum, [key]) => sum + timesOf(w)[key], 0) / (w.last - w.first + 1)), 1e-12);
      this.sentence.textContent = finding(this.story);
      A.fill(this.body, table(["worker", "its time", "blamed for waiting", "wasted", "rounds", "used", "dropped", "state"],
        shown.map((worker) => workerRow(worker, longest, most))), rows.length > shown.length ? this.moreButton(rows.length) : null);
    }

    moreButton(total) {
      return A.el("button", { type: "button", text: `show all ${total} rows`, on: { click: () => this.showAll() } });
    }

    showAll() {
      this.all = true;
      this.draw();
    }
  };

  function legend() {
    return A.el("p", { class: "legend" }, TIME_PARTS.map(([, colour, text]) =>
      A.el("span", {}, A.el("span", { class: "chip", style: { "background-color": `var(--${colour})` } }), text)));
  }

  function workerRow(worker, longest, most) {
    const heads = worker.last - worker.first + 1, times = timesOf(worker);
    const name = heads > 1 ? `${worker.first}–${worker.last}` : String(worker.first);
    const told = TIME_PARTS.map(([key, , text]) => `${text} ${seconds(times[key] / heads)}`).join(", ");
    return A.el("tr", {}, A.el("th", { scope: "row", text: name }),
      A.el("td", { class: "bars" }, bar(TIME_PARTS.map(([key, colour]) => ({ share: times[key] / heads / longest, colour })), told)),
      A.el("td", { class: "bars blame" }, bar([{ share: worker.waited / most, colour: "blame" }], `blamed for ${seconds(worker.waited)}`),
        A.el("span", { class: "number", text: seconds(worker.waited) })),
      cell(seconds(worker.wasted), "number"), cell(count(worker.rounds), "number"), cell(count(worker.used), "number"),
      cell(count(worker.dropped), "number"), cell(worker.state || "–"));
  }

  /** The one sentence that people want to read. */
  function finding(story) {
    const all = story.worst && story.worst.length
      ? story.worst.map((w) => ({ name: w.id, waited: w.waited })) : story.workers.map((w) => ({ name: w.first, waited: w.waited }));
    const total = story.workers.reduce((sum, w) => sum + w.waited, 0), whole = story.state.seconds;
    const waste = story.workers.reduce((sum, w) => sum + w.wasted, 0);
    const worst = all.reduce((a, b) => (b.waited > a.waited ? b : a), { waited: 0 });
    const said = [];
    if (whole > 0 && total / whole >= 0.005)
      said.push(`Waiting for slow workers cost ${seconds(total)}, ${percent(total / whole)} of the run; ${share(worst, total, all.length)}.`);
    else said.push("Nobody waited for slow workers to speak of.");
    if (waste > 0) said.push(`Work of ${seconds(waste)} was thrown away.`);
    return said.join(" ");
  }

  /** One is named when it stands out. */
  function share(worst, total, count) {
    if (worst.waited < (2 / count) * total) return "many workers have a part in it, none a large one";
    return `worker ${worst.name} is to blame for ${percent(worst.waited / total)} of that`;
  }

  /* ---- ledger ---- */

  const REASONS = { stale: "too old when it came", abandoned: "a newer version was there", lost: "lost with its worker", stopped: "the run ended" };

  A.Ledger = class {
    constructor() {
      this.body = A.el("div");
      this.element = A.el("section", { id: "ledger" }, A.el("h2", { text: "Ledger of samples" }), A.el("div", { class: "card wide" }, this.body));
    }

    update(runs, groups) {
      const told = groups.flatMap((group) => group.runs.filter((run) => stateOf(run).samples).map((run) => ({ run, group })));
      this.element.hidden = told.length === 0;
      A.fill(this.body, table(["run", "drawn and decided", "used", "dropped", "why"], told.map(({ run, group }) => ledgerRow(run, group))));
    }
  };

  function ledgerRow(run, group) {
    const { used, dropped, why } = stateOf(run).samples, all = used + dropped;
    const reasons = Object.entries(why).map(([name, n]) => `${count(n)} ${REASONS[name] || name}`).join(", ");
    const parts = [{ share: all ? used / all : 0, colour: "compute" }, { share: all ? dropped / all : 0, colour: "wasted" }];
    return A.el("tr", {}, A.el("th", { scope: "row" }, A.el("span", {}, A.chip(group.index), run.label)),
      A.el("td", { class: "bars" }, bar(parts, `${percent(all ? used / all : 0)} used`)),
      cell(count(used), "number"), cell(count(dropped), "number"), cell(reasons || "–"));
  }

  /* ---- settings ---- */

  A.Settings = class {
    constructor() {
      this.body = A.el("div");
      this.element = A.el("section", { id: "settings" }, A.el("h2", { text: "Settings" }), A.el("div", { class: "card wide" }, this.body));
    }

    /** They do not change, so they are made once a set of runs. */
    update(runs) {
      const key = JSON.stringify(runs.map((run) => [run.label, Boolean(run.result)]));
      if (key === this.key) return;
      this.key = key;
      const columns = runs.slice(0, 12).map(settingsOf);
      const names = [...new Set(columns.flatMap((column) => Object.keys(column)))];
      const differs = (name) => columns.some((column) => column[name] !== columns[0][name]);
      const row = (name) => A.el("tr", { class: differs(name) ? "differs" : "" },
        A.el("th", { scope: "row", text: name }), columns.map((column) => cell(column[name] || "–")));
      const heads = ["setting", ...runs.slice(0, 12).map((run) => run.label)];
      const apart = names.filter(differs), alike = names.filter((name) => !differs(name));
      A.fill(this.body,
        table(heads, (apart.length ? apart : alike.filter((name) => !name.startsWith("--"))).map(row)),
        A.el("details", {}, A.el("summary", { text: apart.length ? `${alike.length} settings that are the same` : "all options" }),
          table(heads, (apart.length ? alike : alike.filter((name) => name.startsWith("--"))).map(row))));
    }
  };

  const flat = (value) => (value !== null && typeof value === "object" ? JSON.stringify(value) : String(value));

  /** Name to text, of result.json or, where there is none yet, of the head of the log. */
  function settingsOf(run) {
    const { result, story } = run, info = (story || {}).info || {};
    const what = result || info;
    const list = [["command", what.command], ["model", what.model], ["data", what.data], ["world", what.world], ["parameters", what.parameters],
      ...Object.entries((result || info).rules || {}).map(([name, rule]) => ["rule: " + name, rule]),
      ...Object.entries((result || {}).options || {}).map(([name, value]) => ["--" + name, value]),
      ...Object.entries((result || {}).machine || {}).map(([name, value]) => ["machine: " + name, value])];
    return Object.fromEntries(list.filter(([, value]) => value !== undefined && value !== null && value !== "").map(([name, value]) => [name, flat(value)]));
  }

  /* ---- log ---- */

  A.Log = class {
    constructor() {
      this.list = A.el("ol", { class: "log", tabindex: "0", "aria-label": "what happened, newest first" });
      this.element = A.el("section", { id: "log" }, A.el("h2", { text: "Log" }), A.el("div", { class: "card wide" }, this.list));
    }

    update(story) {
      const lines = [...(story.log || [])].reverse();
      this.element.hidden = lines.length === 0;
      A.fill(this.list, lines.map((line) => A.el("li", { class: line.kind }, A.el("time", { text: seconds(line.t) }), A.el("span", { text: line.text }))));
    }
  };
})(Anytime);
