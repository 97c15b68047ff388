// The script of the page. It draws runs under way, and asks for a view again when that has changed.
// Everything that comes from a server becomes text, never markup.
"use strict";

(() => {
  const address = document.body.dataset.events;
  if (!address) return;
  const { view, path } = document.body.dataset;
  // The answer to a form has the address of the form.
  if (location.pathname !== path) history.replaceState(null, "", path);
  const title = document.title;
  const SVG = "http://www.w3.org/2000/svg";
  // Longer than any run, in milliseconds: the edge of the picture, which is now, cuts bars of calls under way.
  const ENDLESS = 1e9;
  const MOST_ROWS = 1000;
  const COMPACT_HEIGHT = 240;
  const STATES = ["open", "good", "bad", "quiet"];
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  const runs = new Map();
  let mark = null;
  let refreshing = false;
  let isLost = false;

  const one = (selector, from = document) => from.querySelector(selector);
  const make = (name, className, text = "") => {
    const element = document.createElement(name);
    element.className = className;
    element.textContent = text;
    return element;
  };
  const draw = (name, className) => {
    const element = document.createElementNS(SVG, name);
    element.setAttribute("class", className);
    return element;
  };
  const say = (text) => {
    const state = one("#state");
    if (state.textContent !== text) state.textContent = text;
  };
  const time = (ms) =>
    ms < 1 ? `${Math.round(ms * 1000)} µs` : ms < 10 ? `${ms.toFixed(2)} ms`
    : ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(2)} s`;

  // The calls of one run: a bar for each, in the order in which they began. The picture measures in milliseconds, so
  // that it grows with one attribute, however many calls there are.
  class Chart {
    constructor(place, isWhole) {
      this.rows = new Map();
      this.isWhole = isWhole;
      this.left = 0;
      this.names = make("ol", "names");
      this.times = make("ol", "times");
      this.bars = draw("svg", "bars");
      this.bars.setAttribute("preserveAspectRatio", "none");
      this.bars.setAttribute("role", "img");
      this.bars.setAttribute("aria-label", "When each call ran");
      this.end = make("span", "end");
      this.note = make("p", "quiet");
      const axis = make("p", "axis quiet", "0");
      axis.append(this.end);
      place.replaceChildren();
      if (isWhole) place.append(this.names, this.bars, this.times, axis, this.note);
      else place.append(this.bars, axis);
    }

    add([number, state, name, begun, took]) {
      let row = this.rows.get(number);
      if (state === 3) {
        if (row) row.bar.setAttribute("class", STATES[3]);
        return;
      }
      if (!row) {
        if (this.rows.size >= MOST_ROWS) {
          this.left += 1;
          this.note.textContent = `${this.left} more calls are not drawn`;
          return;
        }
        row = { bar: draw("rect", "open"), y: this.rows.size };
        row.bar.setAttribute("x", begun / 1000);
        row.bar.setAttribute("y", row.y + 0.15);
        row.bar.setAttribute("height", 0.7);
        this.bars.append(row.bar);
        if (this.isWhole) {
          row.time = make("li", "quiet");
          this.names.append(make("li", "", `${row.y + 1} ${name}`));
          this.times.append(row.time);
        }
        this.rows.set(number, row);
      }
      row.bar.setAttribute("class", STATES[state]);
      row.bar.setAttribute("width", state === 0 ? ENDLESS : took / 1000);
      if (row.time) row.time.textContent = state === 0 ? "…" : time(took / 1000);
    }

    grow(now) {
      const count = Math.max(this.rows.size, 1);
      this.bars.setAttribute("viewBox", `0 0 ${Math.max(now, 0.001)} ${count}`);
      if (this.count !== count) {
        this.count = count;
        this.bars.style.height = this.isWhole ? `${count * 20}px` : `${Math.min(count * 6, COMPACT_HEIGHT)}px`;
      }
      this.end.textContent = time(now);
    }
  }

  // The lines of the program that make calls.
  class Lines {
    constructor() {
      this.calls = new Map();
      this.lines = new Map();
    }

    add([number, state, , , , line]) {
      const known = this.calls.get(number);
      const at = known ? known.line : line;
      if (!at) return;
      const made = this.lines.get(at) ?? { calls: 0, open: 0, failed: 0 };
      this.lines.set(at, made);
      if (!known) made.calls += 1;
      if (known?.state === 0) made.open -= 1;
      if (state === 0) made.open += 1;
      if (state === 2) made.failed += 1;
      this.calls.set(number, { line: at, state });
      const item = one(`.program li[data-line="${at}"]`);
      if (!item) return;
      item.className = `lit${made.open ? " open" : made.failed ? " bad" : ""}`;
      one(".made", item).textContent = `${made.calls}×${made.open ? `, ${made.open} in flight` : ""}`
        + (made.failed ? `, ${made.failed} failed` : "");
    }
  }

  const place = (event) => {
    const known = one(`[data-run="${event.n}"]`);
    const list = one("#live");
    if (known || !list) return known;
    const section = make("section", "run");
    section.dataset.run = event.n;
    const heading = document.createElement("h3");
    const link = make("a", "", `${event.tool} #${event.n}`);
    link.href = `/ui/runs/${event.n}`;
    heading.append(link, " ", make("span", "time quiet"), " ", make("span", "doing quiet"));
    const excerpt = make("p", "excerpt");
    excerpt.append(make("code", "", event.what));
    section.append(heading, excerpt, make("div", "chart compact"));
    // The newest is the first.
    list.prepend(section);
    return section;
  };

  const update = (event) => {
    let run = runs.get(event.n);
    if (!run || event.tool !== undefined) {
      const section = place(event);
      if (!section) return;
      const isWhole = section.classList.contains("whole");
      run = {
        section, chart: new Chart(one(".chart", section), isWhole), lines: new Lines(),
        age: one(".time", section), doing: one(".doing", section), is_known: true,
      };
      runs.set(event.n, run);
    }
    for (const call of event.calls ?? []) {
      run.chart.add(call);
      if (run.section.classList.contains("whole")) run.lines.add(call);
    }
    run.came = performance.now();
    run.since = event.age / 1000;
    run.ran = event.run === undefined ? null : event.run / 1000;
    if (event.doing !== undefined) run.doing.textContent = event.doing;
    grow(run, run.came);
  };

  const grow = (run, now) => {
    const passed = now - run.came;
    run.age.textContent = time(run.since + passed);
    if (run.ran !== null) run.chart.grow(run.ran + passed);
  };

  const frame = (now) => {
    if (!still.matches) runs.forEach((run) => grow(run, now));
    requestAnimationFrame(frame);
  };

  // Takes over what a view shows now. A question that is gone stays in its place without its buttons, so that no other
  // question comes under the pointer of a person who is about to decide.
  const merge = (part, fresh) => {
    const isOpen = new Set([...part.querySelectorAll("details[open]")].map((details) => details.dataset.key));
    if (part.dataset.part !== "questions") {
      part.replaceChildren(...fresh.childNodes);
      part.querySelectorAll("details").forEach((details) => {
        details.open = isOpen.has(details.dataset.key);
      });
      return;
    }
    const now = new Set([...fresh.querySelectorAll("article")].map((article) => article.id));
    for (const article of part.querySelectorAll("article:not(.gone)")) {
      if (now.has(article.id)) continue;
      article.classList.add("gone");
      one("form", article)?.replaceWith(make("p", "quiet", "It no longer waits."));
    }
    for (const article of fresh.querySelectorAll("article")) {
      if (!document.getElementById(article.id)) part.append(article);
    }
  };

  const refresh = async (now) => {
    if (refreshing) return;
    refreshing = true;
    try {
      const answer = await fetch(path, { credentials: "same-origin" });
      if (!answer.ok) throw new Error(String(answer.status));
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
      if (view === "run") one("#main").replaceChildren(...one("#main", fresh).childNodes);
      for (const part of document.querySelectorAll("[data-part]")) {
        const its = one(`[data-part="${part.dataset.part}"]`, fresh);
        if (its) merge(part, its);
      }
      mark = now;
    } catch {
      say("The view could not be brought up to date.");
    } finally {
      refreshing = false;
    }
  };

  const take = (event) => {
    for (const [number, run] of runs) {
      if (event.runs.some((one) => one.n === number)) continue;
      runs.delete(number);
      if (!run.section.classList.contains("whole")) run.section.remove();
    }
    if (view === "runs") {
      for (const section of document.querySelectorAll("#live > section")) {
        if (!event.runs.some((one) => String(one.n) === section.dataset.run)) section.remove();
      }
    }
    // The oldest first, so that the newest comes to the top.
    [...event.runs].reverse().forEach(update);
    const none = one("#none");
    if (none) none.hidden = event.runs.length > 0;
    const more = one("#more");
    if (more) {
      more.hidden = event.more === 0;
      one("span", more).textContent = event.more;
    }
    const waiting = one("#waiting");
    waiting.hidden = event.waiting === 0;
    waiting.textContent = event.waiting;
    document.title = event.waiting ? `(${event.waiting}) ${title}` : title;
    mark ??= one("#main").dataset.mark;
    if (mark !== event.mark) refresh(event.mark);
  };

  const events = new EventSource(address);
  events.onmessage = (message) => take(JSON.parse(message.data));
  events.onopen = () => {
    // What was just done stays said.
    if (isLost) say("");
    isLost = false;
  };
  events.onerror = () => {
    isLost = true;
    say(events.readyState === EventSource.CLOSED
      ? "The connection has ended. Load the page again to go on."
      : "The connection is lost; trying again.");
  };
  requestAnimationFrame(frame);
})();
