// What stands around the timeline: findings, details, tables, search, pointer and keys.

const byId = id => document.getElementById(id);
const make = (tag, attributes = {}, ...inside) => {  // text stays text, whatever is in it
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "onclick") made.addEventListener("click", value);
    else if (name === "class") made.className = value;
    else made.setAttribute(name, value);
  }
  made.append(...inside.filter(part => part !== null && part !== undefined));
  return made;
};

// ------------------------------------------------------------------------------------------------------ head, findings

function showHead() {
  const title = data.title ? `trace of ${data.title}` : "trace";
  document.title = `mutagrad ${title}`;
  byId("title").textContent = byId("title").title = title;
  const chip = (value, text) => make("span", {}, make("b", {}, value), ` ${text}`);
  byId("summary").append(chip(counted(data.count), "events"), chip(counted(data.storages), "storages"),
    chip(counted(data.sweeps), "backward"), chip(sized(data.peak), "at most"), chip(timed(data.seconds * 1e6), ""));
  if (data.error) byId("notices").append(make("div", {class: "error"}, `The program ended with ${data.error}`));
  if (data.folded) {
    byId("notices").append(make("div", {}, `${counted(data.folded)} of ${counted(data.count)} events, in the middle, are ` +
      `only counted by line: the first and the last ${counted(Math.floor(data.limit / 2))} are shown one by one.`));
  }
  if (data.unrecorded) {
    byId("notices").append(make("div", {}, `${counted(data.unrecorded)} calls could not be recorded: ${data.failure}`));
  }
  if (!events.length) byId("notices").append(make("div", {}, "Nothing was recorded: the program called no function of mutagrad."));
}

function showFindings() {
  byId("findings").append(...data.findings.map((finding, k) => make("button",
    {class: `finding ${finding.level}`, title: finding.text, onclick: () => chooseFinding(k)},
    make("b", {}, finding.title), make("span", {}, ...marked(finding.text)))));
}

// What stands between backquotes is source.
const marked = text => text.split("`").map((part, k) => k % 2 ? make("code", {}, part) : part);

let finding = -1;
function chooseFinding(k) {
  if (!data.findings.length) return;
  finding = (k + data.findings.length) % data.findings.length;
  [...byId("findings").children].forEach((card, n) => card.classList.toggle("chosen", n === finding));
  byId("findings").children[finding].scrollIntoView({block: "nearest", inline: "nearest"});
  select(stepOf(data.findings[finding].event));
}

// -------------------------------------------------------------------------------------------------------------- details

function select(i) {
  view.selected = i;
  view.lane = null;
  if (i === null) showNothing(); else { showEvent(i); reveal(i); }
  redraw();
}

function showNothing() {
  byId("detail").replaceChildren(make("h2", {}, "What you see"),
    make("p", {}, "A lane is a storage, a block a write to it: as high as the part that was written, coloured by the line that " +
      "wrote it. Ticks are reads. On tinted ground the program runs backwards: blocks are adjoints, filled as high as their norm."),
    make("p", {}, "Click a block for its source, shapes, values, and what it has to do with others; a name for the history of a storage."));
  if (sweeps.length) byId("detail").append(make("h3", {}, "Where gradients arrived"), arrivals());
}

// The leaves of the last sweep, with what they got.
function arrivals() {
  const leaves = sweeps[sweeps.length - 1].steps.filter(i => events[i].name === "leaf").slice(0, 40);
  return make("ul", {class: "links"}, ...leaves.map(i => link("pair", i, `${nameOfStep(i)}: norm ${normText(events[i].norm)}`)));
}

const nameOfStep = i => {
  const detail = detailOf(i), lane = detail.lane != null ? detail.lane : detail.writes ? detail.writes[0][0] : null;
  return lane == null ? events[i].name : laneName(lanes.get(lane));
};
const normText = norm => norm === null ? "not known" : shown(norm);

function showEvent(i) {
  const event = events[i], detail = detailOf(i), place = placeOf(i), panel = byId("detail");
  const dot = make("i", {class: "dot"});
  dot.style.background = colourOf(i);
  panel.replaceChildren(make("h2", {}, dot, headline(i)),
    make("div", {class: "where"}, `step ${counted(event.number)}${place ? `, ${place.key}${place.in ? ` in ${place.in}` : ""}` : ""}`));
  if (place) panel.append(source(place));
  if (detail.error) panel.append(make("p", {class: "bad"}, detail.error));
  panel.append(facts(i, event, detail));
  if (detail.values !== undefined) panel.append(make("h3", {}, "Values"), values(detail.values));
  const related = distinctLinks(relations(i));
  if (related.length) {
    panel.append(make("h3", {}, "What it has to do with"),
      make("ul", {class: "links"}, ...related.slice(0, 60).map(([kind, step, text]) => link(kind, step, text))));
  }
  panel.scrollTop = 0;
}

const distinctLinks = related => [...new Map(related.map(one => [`${one[0]} ${one[1]} ${one[2]}`, one])).values()];

function link(kind, step, text) {
  const place = placeOf(step);
  return make("li", {}, make("button", {class: kind, onclick: () => select(step)}, `${text} `,
    make("b", {}, headline(step)), make("small", {}, ` step ${counted(events[step].number)}${place ? `, ${place.key}: ${place.text}` : ""}`)));
}

function source(place) {
  const lines = data.files[place.file] || {}, pre = make("pre", {class: "source"});
  const numbers = Object.keys(lines).map(Number).filter(n => Math.abs(n - place.line) <= 4).sort((a, b) => a - b);
  const shared = Math.min(...numbers.map(n => lines[n]).filter(text => text.trim()).map(text => text.search(/\S/)));
  for (const n of numbers) {
    const text = lines[n], row = make("span", {class: n === place.line ? "here" : ""}, make("i", {}, String(n)));
    const bytes = place.at && new TextEncoder().encode(text), cut = (from, to) => new TextDecoder().decode(bytes.slice(from, to));
    if (n === place.line && place.at) row.append(cut(0, place.at[0]).slice(shared), make("mark", {}, cut(...place.at)), cut(place.at[1]));
    else row.append(text.slice(shared));
    pre.append(row);
  }
  return numbers.length ? pre : make("p", {class: "where"}, "The source is not known.");
}

function facts(i, event, detail) {
  const found = [];
  const add = (name, value, bad) => found.push(make("dt", {}, name), make("dd", {class: bad ? "bad" : ""}, value));
  if (detail.adjoint) {
    const [norm, size, zeros, nans, infinite] = detail.adjoint;
    add("adjoint norm", shown(norm), typeof norm === "string" || norm === 0);
    add("elements", `${counted(size)}, of them ${counted(zeros)} zero`);
    if (nans || infinite) add("not finite", `${counted(nans)} nan, ${counted(infinite)} inf`, true);
  } else if (event.kind === "backward") add("adjoint", "nothing that was computed needs it");
  if (detail.shape) add("shape", `${shaped(detail.shape)} ${detail.dtype || ""}`);
  for (const [number, low, high, before, after] of detail.writes || []) {
    const lane = lanes.get(number), all = low === 0 && high >= lane.bytes;
    add("writes", make("span", {}, laneButton(lane), all ? `, all of it, ${sized(lane.bytes)}` : `, ${part(lane, low, high)}`,
      before === after ? "" : `; version ${before} → ${after}`));
  }
  if (detail.lane != null && !detail.writes) add("storage", laneButton(lanes.get(detail.lane)));
  if (detail.wrong) add("not finite", `${counted(detail.wrong)} elements`, true);
  if (detail.copied) add("copied", `${sized(detail.copied)} to protect saved values`);
  for (const [lane, name, bytes, copied] of detail.saves || []) {
    add("saves", `${lane == null ? "a temporary" : laneName(lanes.get(lane))} (${name}), ${sized(bytes)}${copied ? ", as a copy" : ", by reference"}`);
  }
  if (detail.nodes) add("graph", `${counted(detail.nodes)} ${detail.nodes === 1 ? "node" : "nodes"}`);
  add("time", timed(event.time));
  add("memory", `${sized(event.live)} after it`);
  if (data.threads.length > 1) add("thread", `${event.thread + 1} of ${data.threads.length}`);
  return make("dl", {class: "facts"}, ...found);
}

function part(lane, low, high) {
  const count = lane.shape.reduce((a, b) => a * b, 1), item = lane.bytes / Math.max(count, 1), first = low / item, last = high / item - 1;
  return `${first === last ? `element ${counted(first)}` : `elements ${counted(first)} to ${counted(last)}`} of ${counted(count)}`;
}

const laneButton = lane => make("button", {class: "lane", onclick: () => selectLane(lane.number)}, laneName(lane));

function values(value) {
  const cell = one => make("td", {class: typeof one === "string" ? "bad mono" : "mono"}, shown(one));
  if (!Array.isArray(value)) return make("table", {class: "values"}, make("tr", {}, cell(value)));
  if (!Array.isArray(value[0])) return make("table", {class: "values"}, make("tr", {}, ...value.map(cell)));
  if (!Array.isArray(value[0][0])) return make("table", {class: "values"}, ...value.map(row => make("tr", {}, ...row.map(cell))));
  return make("div", {}, ...value.map(values));
}

function selectLane(number) {
  const lane = lanes.get(number), {writes, reads, backward} = history.get(number), panel = byId("detail");
  view.selected = null;
  view.lane = number;
  const found = [];
  const add = (name, value) => found.push(make("dt", {}, name), make("dd", {}, value));
  add("shape", `${shaped(lane.shape)} ${lane.dtype}`);
  add("bytes", sized(lane.bytes));
  add("made", lane.born == null ? "before the trace began" : `at step ${counted(lane.born)}`);
  add("gone", lane.died == null ? "it was still there at the end" : `after step ${counted(lane.died)}`);
  add("used", `${counted(writes.length)} writes, ${counted(reads.length)} reads, ${counted(backward.length)} times backward`);
  panel.replaceChildren(make("h2", {}, laneName(lane)), make("div", {class: "where"}, `storage ${number}${lane.leaf ? ", a leaf" : ""}`),
    make("dl", {class: "facts"}, ...found), make("h3", {}, "Who wrote it"),
    make("ul", {class: "links"}, ...writes.slice(-200).reverse().map(({i}) => link(detailOf(i).overwrites ? "hit" : "use", i, ""))));
  if (backward.length) {
    panel.append(make("h3", {}, "Its adjoints"), make("ul", {class: "links"},
      ...backward.slice(-100).map(i => link("pair", i, `norm ${normText(events[i].norm)}`))));
  }
  if (rows[rowOfLane.get(number)].lanes.length === 1) scrollToRow(rowOfLane.get(number));
  redraw();
}

function scrollToRow(r) {
  const top = rowTop(r);
  if (top < RULER || top > RULER + lanesHeight() - rowHeight()) scroll(r * rowHeight() - lanesHeight() / 2);
}

function chooseRow(r) {
  const row = rows[r];
  if (row.lanes.length > 1 && row.lanes.length <= 400) {
    unfolded.add(row.key);
    layRows();
    redraw();
  } else selectLane(row.lanes[0].number);
}

// --------------------------------------------------------------------------------------------------------------- tables

const tables = {lines: linesTable, sweeps: sweepsTable, storages: storagesTable};
let tab = "lines", sorting = {lines: null, sweeps: null, storages: null};

function showTab(name) {
  tab = name;
  document.querySelectorAll("[data-tab]").forEach(b => b.setAttribute("aria-selected", String(b.dataset.tab === name)));
  byId("bottom").classList.remove("folded");
  byId("table").replaceChildren(tables[name]());
}

// Columns: [head, value to sort by, cell, is it text]. At most so many rows: nobody reads more.
const MOST_ROWS = 1000;
function table(name, items, columns, onclick, chosen) {
  const by = sorting[name], column = by && columns[by.column];
  if (by) {
    const of = column[1];
    items = [...items].sort((a, b) => (of(a) < of(b) ? -1 : of(a) > of(b) ? 1 : 0) * by.direction);
  }
  const heads = columns.map(([head, , , text], k) => make("th", {class: text ? "text" : "", onclick: () => {
    sorting[name] = {column: k, direction: by && by.column === k ? -by.direction : text ? 1 : -1};
    showTab(name);
  }}, head + (by && by.column === k ? by.direction > 0 ? " ▲" : " ▼" : "")));
  const body = items.slice(0, MOST_ROWS).map(item => make("tr", {class: chosen && chosen(item) ? "chosen" : "", onclick: () => onclick(item)},
    ...columns.map(([, , cell, text]) => make("td", {class: text ? "text" : ""}, cell(item)))));
  const made = make("table", {}, make("thead", {}, make("tr", {}, ...heads)), make("tbody", {}, ...body));
  if (items.length <= MOST_ROWS) return made;
  return make("div", {}, made, make("div", {class: "empty"}, `and ${counted(items.length - MOST_ROWS)} more`));
}

function linesTable() {
  if (!data.totals.length) return make("div", {class: "empty"}, "No line has called an operation.");
  const most = Math.max(...data.totals.map(t => t.forward + t.backward), 1e-9);
  const bars = t => {
    const cell = make("span", {});
    for (const [kind, value] of [["", t.forward], ["backward", t.backward]]) {
      const bar = make("span", {class: `bar ${kind}`});
      bar.style.width = `${110 * value / most}px`;
      cell.append(bar);
    }
    return cell;
  };
  const code = t => {
    const dot = make("i", {class: "dot"}), key = `${t.file}:${t.line}`;
    dot.style.background = lineKeys.has(key) ? colours.lines[lineKeys.get(key)] : colours.soft;
    return make("span", {}, dot, `${key} `, make("code", {}, ((data.files[t.file] || {})[t.line] || "").trim()));
  };
  return table("lines", data.totals, [
    ["line", t => `${t.file}:${String(t.line).padStart(7)}`, code, true], ["calls", t => t.calls, t => counted(t.calls)],
    ["", t => t.forward + t.backward, bars, true], ["total", t => t.forward + t.backward, t => timed(t.forward + t.backward)],
    ["forward", t => t.forward, t => timed(t.forward)], ["backward", t => t.backward, t => timed(t.backward)],
    ["allocated", t => t.bytes, t => sized(t.bytes)], ["copied", t => t.copied, t => sized(t.copied)],
    ["nodes", t => t.nodes, t => counted(t.nodes)], ["not shown", t => t.folded, t => t.folded ? counted(t.folded) : ""],
  ], t => search(`${t.file}:${t.line}`));
}

function sweepsTable() {
  const visits = sweeps.flatMap(sweep => sweep.steps);
  if (!visits.length) return make("div", {class: "empty"}, "There was no backward pass.");
  const bar = i => {
    const made = make("span", {class: "bar backward"});
    made.style.width = `${90 * (normShare(events[i].norm) || 0)}px`;
    return made;
  };
  const line = i => placeOf(i) ? `${placeOf(i).key}: ${placeOf(i).text}` : "";
  const zeros = i => detailOf(i).adjoint ? detailOf(i).adjoint[2] / Math.max(detailOf(i).adjoint[1], 1) : 0;
  return table("sweeps", visits, [
    ["step", i => events[i].number, i => counted(events[i].number)], ["sweep", i => detailOf(i).sweep, i => detailOf(i).sweep],
    ["operation", i => events[i].name, i => events[i].name, true], ["storage", nameOfStep, nameOfStep, true],
    ["line", line, line, true], ["norm", i => Number(events[i].norm), bar, true],
    ["", i => Number(events[i].norm), i => make("span", {class: typeof events[i].norm === "string" || events[i].norm === 0 ? "bad" : ""}, normText(events[i].norm))],
    ["zeros", zeros, i => `${(100 * zeros(i)).toFixed(0)} %`], ["time", i => events[i].time, i => timed(events[i].time)],
  ], select, i => i === view.selected);
}

function storagesTable() {
  const used = lane => history.get(lane.number);
  return table("storages", data.lanes, [
    ["storage", laneName, lane => make("code", {}, laneName(lane)), true], ["shape", lane => shaped(lane.shape), lane => shaped(lane.shape)],
    ["type", lane => lane.dtype, lane => lane.dtype], ["bytes", lane => lane.bytes, lane => sized(lane.bytes)],
    ["made", lane => lane.born || 0, lane => lane.born == null ? "before" : counted(lane.born)],
    ["gone", lane => lane.died || Infinity, lane => lane.died == null ? "" : counted(lane.died)],
    ["writes", lane => used(lane).writes.length, lane => counted(used(lane).writes.length)],
    ["reads", lane => used(lane).reads.length, lane => counted(used(lane).reads.length)],
  ], lane => selectLane(lane.number), lane => lane.number === view.lane);
}

// --------------------------------------------------------------------------------------------------------------- search

function search(text) {
  byId("search").value = text;
  const found = searched(text);
  view.found = found && {steps: found, set: new Set(found), now: -1};
  byId("matches").textContent = found ? `${counted(found.length)} found` : "";
  redraw();
}

function nextMatch(direction) {
  if (!view.found || !view.found.steps.length) return;
  const {steps} = view.found;
  view.found.now = (view.found.now + direction + steps.length) % steps.length;
  byId("matches").textContent = `${counted(view.found.now + 1)} of ${counted(steps.length)}`;
  select(steps[view.found.now]);
}

// ------------------------------------------------------------------------------------------------------ pointer and keys

const pointer = {down: null, moved: false};

function local(event) {
  const box = canvas.getBoundingClientRect();
  return [event.clientX - box.left, event.clientY - box.top];
}

canvas.addEventListener("pointerdown", event => {
  const [x, y] = local(event);
  pointer.down = {x, y, x0: view.x0, x1: view.x1, top: view.y};
  pointer.moved = false;
  canvas.setPointerCapture(event.pointerId);
});

canvas.addEventListener("pointermove", event => {
  const [x, y] = local(event);
  if (!pointer.down) return hover(x, y);
  const {x: from, y: fromY, x0, x1, top} = pointer.down;
  if (Math.abs(x - from) + Math.abs(y - fromY) > 4) pointer.moved = true;
  if (!pointer.moved) return;
  canvas.classList.add("dragging");
  byId("tip").hidden = true;
  const shift = (from - x) / scale();
  place(x0 + shift, x1 + shift);
  scroll(top + fromY - y);
});

canvas.addEventListener("pointerup", event => {
  const [x, y] = local(event);
  if (pointer.down && !pointer.moved) click(x, y);
  pointer.down = null;
  canvas.classList.remove("dragging");
});

canvas.addEventListener("pointerleave", () => hover(-1, -1));

function click(x, y) {
  canvas.focus({preventScroll: true});
  const r = rowAt(y);
  if (x < LABELS && r !== null) chooseRow(r);
  else select(stepAt(x, y));
}

function hover(x, y) {
  const i = stepAt(x, y), tip = byId("tip"), r = x >= 0 && x < LABELS ? rowAt(y) : null;
  canvas.classList.toggle("over", i !== null || r !== null);
  if (i !== view.hover || r !== view.hoverRow) {
    view.hover = i;
    view.hoverRow = r;
    redraw();
  }
  tip.hidden = i === null;
  if (i !== null) showTip(i, x, y, tip);
}

function showTip(i, x, y, tip) {
  const place = placeOf(i), detail = detailOf(i);
  const adjoint = events[i].kind === "backward" ? `, norm ${normText(events[i].norm)}` : "";
  tip.replaceChildren(make("b", {}, headline(i)), ` ${shaped(detail.shape)}${adjoint}`,
    place ? make("small", {class: "mono"}, `${place.key}: ${place.text}`) : null,
    detail.overwrites ? make("small", {class: "bad"}, "overwrites a value saved for backward") : null,
    make("small", {}, `step ${counted(events[i].number)}, ${timed(events[i].time)}`));
  tip.style.left = `${Math.min(x + 14, size.w - tip.offsetWidth - 8)}px`;
  tip.style.top = `${y + 18 + tip.offsetHeight > size.h ? y - tip.offsetHeight - 10 : y + 18}px`;
}

canvas.addEventListener("wheel", event => {
  event.preventDefault();
  const [x] = local(event);
  const step = event.deltaMode === 1 ? 16 : 1;
  if (x < LABELS) scroll(view.y + event.deltaY * step);
  else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
    const shift = (event.deltaX || event.deltaY) * step / scale();
    place(view.x0 + shift, view.x1 + shift);
  } else zoom(Math.exp(Math.max(-1, Math.min(1, event.deltaY * step / 400))), toU(x));
}, {passive: false});

function step(direction, same) {
  if (!events.length) return;
  if (view.selected === null) return select(direction > 0 ? 0 : events.length - 1);
  let next = view.selected + direction;
  if (same) {
    const detail = detailOf(view.selected), lane = detail.lane != null ? detail.lane : detail.writes ? detail.writes[0][0] : (detail.reads || [])[0];
    const steps = lane == null ? [] : rows[rowOfLane.get(lane)].blocks.step;
    const found = direction > 0 ? steps.find(i => i > view.selected) : [...steps].reverse().find(i => i < view.selected);
    next = found === undefined ? view.selected : found;
  }
  select(Math.max(0, Math.min(next, events.length - 1)));
}

function pairOf(i) {
  const pair = i === null ? null : relations(i).find(([kind]) => kind === "pair");
  if (pair) select(pair[1]);
}

const move = part => { const shift = (view.x1 - view.x0) * part; place(view.x0 + shift, view.x1 + shift); };
const keys = {
  ArrowRight: event => step(1, event.shiftKey), ArrowLeft: event => step(-1, event.shiftKey),
  ArrowDown: () => scroll(view.y + rowHeight() * 3), ArrowUp: () => scroll(view.y - rowHeight() * 3),
  "+": () => zoom(0.6), "=": () => zoom(0.6), "-": () => zoom(1 / 0.6), 0: fit, a: () => move(-0.25), d: () => move(0.25),
  f: () => chooseFinding(finding + 1), b: () => pairOf(view.selected), n: () => nextMatch(1), p: () => nextMatch(-1),
  "/": () => byId("search").focus(), t: () => setTheme(colours.dark ? "light" : "dark"),
  "?": () => byId("help").showModal(), Escape: () => { search(""); select(null); },
};

document.addEventListener("keydown", event => {
  if (event.ctrlKey || event.metaKey || event.altKey || byId("help").open) return;
  if (event.target === byId("search")) {
    if (event.key === "Enter") nextMatch(event.shiftKey ? -1 : 1);
    if (event.key === "Escape") { search(""); canvas.focus(); }
    return;
  }
  if (byId("table").contains(event.target) && event.key.startsWith("Arrow")) return;
  const found = keys[event.key];
  if (found) { event.preventDefault(); found(event); }
});

// ---------------------------------------------------------------------------------------------------------------- theme

function setTheme(name) {
  document.documentElement.dataset.theme = name;
  readColours();
  showTab(tab);
  if (view.selected !== null) showEvent(view.selected);
  redraw();
}

const system = window.matchMedia("(prefers-color-scheme: dark)");
system.addEventListener("change", () => setTheme(system.matches ? "dark" : "light"));
byId("theme").addEventListener("click", () => setTheme(colours.dark ? "light" : "dark"));
byId("fit").addEventListener("click", fit);
byId("help-button").addEventListener("click", () => byId("help").showModal());
byId("search").addEventListener("input", () => search(byId("search").value));
byId("fold").addEventListener("click", () => byId("bottom").classList.toggle("folded"));
document.querySelectorAll("[data-tab]").forEach(b => b.addEventListener("click", () => showTab(b.dataset.tab)));
new ResizeObserver(resize).observe(stage);

showHead();
showFindings();
setTheme(system.matches ? "dark" : "light");
showNothing();
fit();
resize();
// For tests and the curious: what is shown, and how long it took to draw it.
window.mutagradTrace = {view, events, rows: () => rows, spot, draw: () => { draw(); return drawn; }, select, search};
