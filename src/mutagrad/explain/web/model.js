// What the page knows: events as columns, lanes, rows of lanes, and how events refer to each other.

const data = JSON.parse(document.getElementById("data").textContent);
const events = data.events.map(([number, kind, name, place, thread, began, time, live, norm]) =>
  ({number, kind: data.kinds[kind], name: data.names[name], place, thread, began, time, live, norm}));
const indexOf = new Map(events.map((event, i) => [event.number, i]));
const detailOf = i => data.details[events[i].number] || {};
const lanes = new Map(data.lanes.map(lane => [lane.number, lane]));
const lineKeys = new Map();
for (const place of data.places) {
  place.key = `${place.file}:${place.line}`;
  if (!lineKeys.has(place.key)) lineKeys.set(place.key, lineKeys.size);
}
const placeOf = i => events[i].place < 0 ? null : data.places[events[i].place];

// A step's place from left to right; where events were added up by line there is a gap.
const at = new Float64Array(events.length);
const gaps = [];
let width = 0;
{
  const gap = Math.max(4, Math.round(events.length * 0.04));
  let before = 0;
  events.forEach((event, i) => {
    const missing = event.number - before - 1;
    if (missing > 0) {
      gaps.push({from: width, to: width + gap, count: missing});
      width += gap;
    }
    before = event.number;
    at[i] = width++;
  });
}
width = Math.max(width, 1);

// The first step whose place is not before x.
function firstAt(x) {
  let low = 0, high = at.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (at[middle] < x) low = middle + 1; else high = middle;
  }
  return low;
}

const stepOf = number => {  // of an event that was added up by line: the nearest that is there
  if (number == null) return null;
  if (indexOf.has(number)) return indexOf.get(number);
  let low = 0, high = events.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (events[middle].number < number) low = middle + 1; else high = middle;
  }
  return Math.min(low, events.length - 1);
};

// Who writes, reads and sweeps each lane, in order.
const history = new Map(data.lanes.map(lane => [lane.number, {writes: [], reads: [], backward: []}]));
const backwardOf = new Map();      // of a forward event, the steps that reversed it
const overwrittenBy = new Map();   // of an event that saved a value, the steps that have overwritten it
const unreadBy = new Map();        // of an event, the step that has overwritten it before anything read it
const note = (map, key, i) => map.has(key) ? map.get(key).push(i) : map.set(key, [i]);
events.forEach((event, i) => {
  const detail = detailOf(i);
  for (const [lane, low, high] of detail.writes || []) history.get(lane).writes.push({i, low, high});
  for (const lane of detail.reads || []) history.get(lane).reads.push(i);
  if (detail.lane != null) history.get(detail.lane).backward.push(i);
  if (event.kind === "backward" && detail.forward != null) note(backwardOf, detail.forward, i);
  for (const saver of detail.overwrites || []) note(overwrittenBy, saver, i);
  if (detail.buries != null) note(unreadBy, detail.buries, i);
});

// Backward passes, as the stretches that they take.
const sweeps = [];
events.forEach((event, i) => {
  if (event.kind !== "backward") return;
  const number = detailOf(i).sweep, last = sweeps[sweeps.length - 1];
  if (last && last.number === number) { last.to = i; last.steps.push(i); }
  else sweeps.push({number, from: i, to: i, steps: [i]});
});

// ------------------------------------------------------------------------------------------------------------- rows

const unfolded = new Set();
const FEW = 40;   // rows up to which every storage has its own
let rows = [], rowOfLane = new Map();

function site(lane) {  // storages that the same line makes again and again are one row
  return lane.site ? lane.site.join(" ") : `lane ${lane.number}`;
}

function layRows() {
  const sites = new Map();
  for (const lane of data.lanes) note(sites, site(lane), lane);
  const folds = data.lanes.length > FEW;
  rows = [];
  rowOfLane = new Map();
  const add = (key, members, label) => {
    for (const lane of members) rowOfLane.set(lane.number, rows.length);
    rows.push({key, lanes: members, label, blocks: null});
  };
  for (const [key, members] of sites) {
    if (folds && members.length > 2 && !unfolded.has(key)) add(key, members, `${laneName(members[0])} × ${members.length}`);
    else for (const lane of members) add(key, [lane], laneName(lane));
  }
  rows.sort((a, b) => firstStep(a.lanes[0]) - firstStep(b.lanes[0]) || a.lanes[0].number - b.lanes[0].number);
  rows.forEach((row, r) => row.lanes.forEach(lane => rowOfLane.set(lane.number, r)));
  for (const row of rows) row.blocks = blocksOf(row);
}

const firstStep = lane => lane.born == null ? -1 : stepOf(lane.born);
const laneName = lane => lane.name || (lane.leaf ? "parameter" : `storage ${lane.number}`);

// What a row shows, in order: steps, which part of the storage (0 to 1), and 0 for a write, 1 backward, 2 a read.
function blocksOf(row) {
  const found = [];
  for (const lane of row.lanes) {
    const {writes, reads, backward} = history.get(lane.number), size = Math.max(lane.bytes, 1);
    for (const {i, low, high} of writes) found.push([i, low / size, high / size, 0, lane.number]);
    for (const i of backward) found.push([i, 0, 1, 1, lane.number]);
    for (const i of reads) found.push([i, 0, 1, 2, lane.number]);
  }
  found.sort((a, b) => a[0] - b[0] || b[3] - a[3]);
  return {
    step: Int32Array.from(found, b => b[0]), low: Float32Array.from(found, b => b[1]),
    high: Float32Array.from(found, b => b[2]), kind: Uint8Array.from(found, b => b[3]),
    lane: Int32Array.from(found, b => b[4]),
  };
}

// ------------------------------------------------------------------------------------------------------- relations

// The write that a read of a lane at step i finds: the newest before it.
function writerBefore(lane, i) {
  const {writes} = history.get(lane);
  let low = 0, high = writes.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (writes[middle].i < i) low = middle + 1; else high = middle;
  }
  return low ? writes[low - 1].i : null;
}

// The steps that read a lane after step i and before it is written again in the same place.
function readersAfter(lane, i, low, high, most = 30) {
  const {writes, reads} = history.get(lane);
  const next = writes.find(w => w.i > i && w.low <= low && w.high >= high);
  const end = next ? next.i : Infinity;
  const found = [];
  for (const r of reads) if (r > i && r <= end && found.length < most) found.push(r);
  return {found, next: next ? next.i : null};
}

// All that a step has to do with: [kind, step, what to say].
function relations(i) {
  const detail = detailOf(i), found = [], event = events[i];
  for (const lane of detail.reads || []) {
    const writer = writerBefore(lane, i);
    if (writer != null && writer !== i) found.push(["read", writer, `reads ${laneName(lanes.get(lane))}, written by`]);
  }
  for (const [lane, name] of detail.saves || []) {
    if (lane == null) continue;
    const writer = writerBefore(lane, i + 1);
    found.push(["saved", writer == null || writer === i ? i : writer, `saves ${laneName(lanes.get(lane))} (${name}) for backward`]);
  }
  for (const number of detail.overwrites || []) found.push(["hit", stepOf(number), "overwrites a value saved by"]);
  for (const step of overwrittenBy.get(event.number) || []) found.push(["hit", step, "what it saved is overwritten by"]);
  if (detail.buries != null) found.push(["hit", stepOf(detail.buries), "overwrites, before anything read it, what was written by"]);
  for (const step of unreadBy.get(event.number) || []) found.push(["hit", step, "overwritten, before anything read it, by"]);
  for (const [lane, low, high] of detail.writes || []) {
    const {found: readers, next} = readersAfter(lane, i, low, high);
    for (const step of readers) if (step !== i) found.push(["use", step, `${laneName(lanes.get(lane))} is read by`]);
    if (next != null) found.push(["use", next, `${laneName(lanes.get(lane))} is next written by`]);
  }
  if (detail.forward != null && indexOf.has(detail.forward)) found.push(["pair", indexOf.get(detail.forward), "reverses"]);
  for (const step of backwardOf.get(event.number) || []) found.push(["pair", step, "is reversed by"]);
  return found;
}

// ---------------------------------------------------------------------------------------------------------- search

const words = events.map((event, i) => {
  const place = placeOf(i);
  return (event.name + " " + event.kind + (place ? ` ${place.key} ${place.text} ${place.in}` : "")).toLowerCase();
});

function searched(text) {  // the steps that have every word of it; null where nothing is asked
  const wanted = text.toLowerCase().split(/\s+/).filter(Boolean);
  if (!wanted.length) return null;
  const named = new Set();
  for (const lane of data.lanes) {
    if (wanted.every(word => laneName(lane).toLowerCase().includes(word))) {
      for (const {i} of history.get(lane.number).writes) named.add(i);
    }
  }
  const found = [];
  for (let i = 0; i < events.length; i++) {
    if (named.has(i) || wanted.every(word => words[i].includes(word))) found.push(i);
  }
  return found;
}

// ----------------------------------------------------------------------------------------------------- how it is said

const sized = bytes => bytes < 1024 ? `${bytes} B` : bytes < 1 << 20 ? `${(bytes / 1024).toFixed(1)} KiB`
  : bytes < 1 << 30 ? `${(bytes / (1 << 20)).toFixed(1)} MiB` : `${(bytes / (1 << 30)).toFixed(2)} GiB`;
const timed = us => us < 1000 ? `${us.toFixed(us < 10 ? 1 : 0)} µs` : us < 1e6 ? `${(us / 1000).toFixed(us < 1e4 ? 2 : 1)} ms`
  : `${(us / 1e6).toFixed(2)} s`;
const counted = n => Number(n).toLocaleString("en-US");
const shown = x => typeof x !== "number" ? String(x) : x === 0 ? "0" : Math.abs(x) >= 1e5 || Math.abs(x) < 1e-3
  ? x.toExponential(2) : String(Number(x.toPrecision(4)));
const shaped = shape => shape ? `(${shape.join(", ")}${shape.length === 1 ? "," : ""})` : "";
const headline = i => (events[i].kind === "backward" ? "∂ " : "") + (detailOf(i).index ? `x[${detailOf(i).index}] =` : events[i].name);
layRows();
