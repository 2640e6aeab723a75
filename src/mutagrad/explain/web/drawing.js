// The timeline: lanes with their blocks, links of what is selected, memory and adjoint norms below.

const canvas = document.getElementById("canvas"), stage = document.getElementById("stage");
const pen = canvas.getContext("2d");
const LABELS = 190, RULER = 26, STRIP = 54;
const view = {x0: 0, x1: width, y: 0, selected: null, hover: null, lane: null, found: null};
let size = {w: 0, h: 0}, colours = {}, drawn = 0;

const rowHeight = () => rows.length <= 8 ? 36 : rows.length <= 16 ? 28 : 21;
const lanesHeight = () => Math.max(size.h - RULER - 2 * STRIP, 40);
const scale = () => (size.w - LABELS) / (view.x1 - view.x0);
const toX = u => LABELS + (u - view.x0) * scale();
const toU = x => view.x0 + (x - LABELS) / scale();
const rowTop = r => RULER + r * rowHeight() - view.y;

function readColours() {
  const style = getComputedStyle(document.documentElement);
  for (const name of ["paper", "panel", "ink", "soft", "line", "stripe", "accent", "wrong", "careful", "back", "read",
                      "saved", "hit", "pair", "use"]) colours[name] = style.getPropertyValue(`--${name}`).trim();
  colours.dark = document.documentElement.dataset.theme === "dark";
  colours.lines = [...lineKeys.keys()].map((_, k) => lineColour(k));
}

const lineColour = k => `hsl(${(k * 137.508 + 205) % 360} ${colours.dark ? 55 : 60}% ${colours.dark ? 62 : 50}%)`;
const colourOf = i => {
  const place = placeOf(i);
  return place ? colours.lines[lineKeys.get(place.key)] : colours.soft;
};

function resize() {
  const box = stage.getBoundingClientRect(), dots = window.devicePixelRatio || 1;
  size = {w: box.width, h: box.height};
  canvas.width = Math.round(box.width * dots);
  canvas.height = Math.round(box.height * dots);
  pen.setTransform(dots, 0, 0, dots, 0, 0);
  draw();
}

let waiting = false;
function redraw() {  // once for all that changes in one frame
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => { waiting = false; draw(); });
}

function draw() {
  const began = performance.now();
  pen.fillStyle = colours.paper;
  pen.fillRect(0, 0, size.w, size.h);
  pen.save();
  pen.beginPath();
  pen.rect(LABELS, 0, size.w - LABELS, size.h);
  pen.clip();
  drawSweeps();
  pen.save();
  pen.beginPath();
  pen.rect(LABELS, RULER, size.w - LABELS, lanesHeight());
  pen.clip();
  drawRows();
  drawGaps();
  drawLinks();
  pen.restore();
  drawRuler();
  drawMemory(RULER + lanesHeight());
  drawNorms(RULER + lanesHeight() + STRIP);
  drawCursor();
  pen.restore();
  drawLabels();
  drawn = performance.now() - began;
}

// -------------------------------------------------------------------------------------------------------- background

function drawSweeps() {
  pen.fillStyle = colours.back;
  for (const sweep of sweeps) {
    const left = toX(at[sweep.from]), right = toX(at[sweep.to] + 1);
    if (right >= LABELS && left <= size.w) pen.fillRect(left, RULER, Math.max(right - left, 1), size.h - RULER);
  }
}

function drawGaps() {
  for (const gap of gaps) {
    const left = toX(gap.from), right = toX(gap.to);
    if (right < LABELS || left > size.w) continue;
    pen.strokeStyle = colours.line;
    pen.save();
    pen.beginPath();
    pen.rect(left, RULER, right - left, lanesHeight());
    pen.clip();
    pen.fillStyle = colours.stripe;
    pen.fillRect(left, RULER, right - left, lanesHeight());
    pen.beginPath();
    for (let x = left - lanesHeight(); x < right; x += 7) {
      pen.moveTo(x, RULER + lanesHeight());
      pen.lineTo(x + lanesHeight(), RULER);
    }
    pen.stroke();
    pen.restore();
    label(`${counted(gap.count)} more`, (left + right) / 2, RULER + 16, colours.soft, "center");
    label("by line", (left + right) / 2, RULER + 30, colours.soft, "center");
  }
}

function drawRuler() {
  pen.fillStyle = colours.panel;
  pen.fillRect(LABELS, 0, size.w - LABELS, RULER);
  const wanted = (view.x1 - view.x0) / Math.max((size.w - LABELS) / 90, 1);
  const power = 10 ** Math.floor(Math.log10(Math.max(wanted, 1)));
  const step = Math.max(1, [1, 2, 5, 10].map(f => f * power).find(s => s >= wanted) || 1);
  for (let u = Math.ceil(Math.max(view.x0, 0) / step) * step; u <= view.x1 && u < width; u += step) {
    const i = firstAt(u);
    if (i >= events.length || at[i] !== u) continue;
    label(counted(events[i].number), toX(u + 0.5), 17, colours.soft, "center");
  }
  for (const sweep of sweeps) {
    const left = Math.max(toX(at[sweep.from]), LABELS), right = Math.min(toX(at[sweep.to] + 1), size.w);
    if (right - left < 1) continue;
    pen.fillStyle = colours.pair;
    pen.fillRect(left, RULER - 3, right - left, 3);
    if (right - left > 74) {
      pen.fillStyle = colours.panel;
      pen.fillRect(left, 2, 72, RULER - 6);
      label("backward", left + 4, 17, colours.pair, "left", "600 11px system-ui, sans-serif");
    }
  }
  rule(RULER);
}

function label(text, x, y, colour, align = "left", font = "11px system-ui, sans-serif") {
  pen.font = font;
  pen.textAlign = align;
  pen.fillStyle = colour;
  pen.fillText(text, x, y);
}

function rule(y) {
  pen.fillStyle = colours.line;
  pen.fillRect(0, Math.round(y), size.w, 1);
}

// -------------------------------------------------------------------------------------------------------------- lanes

function visibleRows() {
  const height = rowHeight();
  return [Math.max(Math.floor(view.y / height), 0), Math.min(Math.ceil((view.y + lanesHeight()) / height), rows.length)];
}

function drawRows() {
  const [from, to] = visibleRows(), height = rowHeight();
  for (let r = from; r < to; r++) {
    const top = rowTop(r);
    if (r % 2) {
      pen.globalAlpha = 0.5;
      pen.fillStyle = colours.stripe;
      pen.fillRect(LABELS, top, size.w - LABELS, height);
      pen.globalAlpha = 1;
    }
    drawLives(rows[r], top, height);
    drawBlocks(rows[r], top, height);
  }
}

// A line from when a storage is made to when it is gone.
function drawLives(row, top, height) {
  pen.fillStyle = colours.line;
  let last = -1;
  for (const lane of row.lanes) {
    const left = lane.born == null ? LABELS : toX(at[stepOf(lane.born)]);
    const right = lane.died == null ? size.w : toX(at[stepOf(lane.died)] + 1);
    if (right < LABELS || left > size.w || right <= last) continue;
    pen.fillRect(Math.max(left, last), top + height / 2 - 1, Math.max(right - Math.max(left, last), 1), 2);
    last = right;
  }
}

function firstBlock(blocks, u) {
  let low = 0, high = blocks.step.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (at[blocks.step[middle]] < u) low = middle + 1; else high = middle;
  }
  return low;
}

// Where blocks are narrower than a dot, one is drawn for all of its kind that fall on it.
function drawBlocks(row, top, height) {
  const {step, low, high, kind} = row.blocks, dot = scale(), wide = Math.max(dot - (dot > 4 ? 1.5 : 0), 1.2);
  const inner = height - 6, seen = [-1, -1, -1];
  for (let b = firstBlock(row.blocks, view.x0 - 1); b < step.length; b++) {
    const i = step[b], x = toX(at[i]);
    if (x > size.w) break;
    const k = kind[b], pixel = Math.floor(x), dim = view.found && !view.found.set.has(i);
    if (dot < 1 && seen[k] === pixel && !notable(i)) continue;
    seen[k] = pixel;
    pen.globalAlpha = dim ? 0.12 : 1;
    if (k === 0) drawWrite(i, x, top + 3, wide, inner, low[b], high[b]);
    else if (k === 1) drawAdjoint(i, x, top + 3, wide, inner);
    else drawRead(x, top + height - 4, wide);
  }
  pen.globalAlpha = 1;
}

const notable = i => (data.details[events[i].number] || {}).overwrites !== undefined;

function drawWrite(i, x, top, wide, height, low, high) {
  const y = top + low * height, tall = Math.max((high - low) * height, 3);
  pen.fillStyle = colourOf(i);
  pen.fillRect(x, Math.min(y, top + height - tall), wide, tall);
  const detail = detailOf(i);
  if (detail.overwrites || detail.buries != null) outline(x, top, wide, height, colours.hit);
  if (detail.error || detail.wrong) outline(x, top, wide, height, colours.wrong);
}

function outline(x, top, wide, height, colour) {
  pen.strokeStyle = colour;
  pen.lineWidth = 2;
  pen.strokeRect(x, top, Math.max(wide, 3), height);
  pen.lineWidth = 1;
}

// Hollow, and filled as high as its norm is on the scale of all norms; crossed where it is zero.
function drawAdjoint(i, x, top, wide, height) {
  const norm = events[i].norm, share = normShare(norm);
  pen.fillStyle = norm === null ? colours.line : typeof norm === "string" ? colours.wrong : colourOf(i);
  pen.globalAlpha *= 0.22;
  pen.fillRect(x, top, wide, height);
  pen.globalAlpha /= 0.22;
  if (share !== null) pen.fillRect(x, top + height * (1 - share), wide, Math.max(height * share, norm === 0 ? 0 : 1.5));
  if (norm === 0 && wide > 3) {
    pen.strokeStyle = colours.careful;
    pen.lineWidth = 1.5;
    pen.beginPath();
    pen.moveTo(x + wide * 0.2, top + height * 0.3);
    pen.lineTo(x + wide * 0.8, top + height * 0.7);
    pen.moveTo(x + wide * 0.8, top + height * 0.3);
    pen.lineTo(x + wide * 0.2, top + height * 0.7);
    pen.stroke();
    pen.lineWidth = 1;
  }
}

function drawRead(x, y, wide) {
  pen.fillStyle = colours.read;
  pen.globalAlpha *= 0.75;
  pen.fillRect(x, y, wide, 3);
  pen.globalAlpha /= 0.75;
}

// -------------------------------------------------------------------------------------------- memory, norms, cursor

const peak = Math.max(1, data.peak);

function drawMemory(top) {
  stripHead(top, `memory, at most ${sized(data.peak)}`);
  const from = Math.max(firstAt(view.x0) - 1, 0), base = top + STRIP - 4, tall = STRIP - 20;
  pen.fillStyle = colours.accent;
  pen.globalAlpha = 0.5;
  const wide = Math.max(scale(), 1);
  for (let i = from; i < events.length && at[i] <= view.x1;) {  // of all steps on one dot, the most
    const x = toX(at[i]);
    let most = 0;
    for (const dot = Math.floor(x); i < events.length && Math.floor(toX(at[i])) === dot; i++) most = Math.max(most, events[i].live);
    const high = tall * most / peak;
    pen.fillRect(wide > 1 ? x : Math.floor(x), base - high, wide, high);
  }
  pen.globalAlpha = 1;
}

const norms = events.filter(event => typeof event.norm === "number" && event.norm > 0).map(event => event.norm);
const logs = norms.length ? [Math.log10(norms.reduce((a, b) => Math.min(a, b))), Math.log10(norms.reduce((a, b) => Math.max(a, b)))] : [0, 1];
if (logs[1] - logs[0] < 2) { const middle = (logs[0] + logs[1]) / 2; logs[0] = middle - 1; logs[1] = middle + 1; }

function normShare(norm) {  // of the height: the smallest that there is still shows
  if (norm === null) return null;
  if (typeof norm === "string") return 1;
  return norm === 0 ? 0 : 0.08 + 0.92 * (Math.log10(norm) - logs[0]) / (logs[1] - logs[0]);
}

function drawNorms(top) {
  stripHead(top, norms.length ? `adjoint norms, 1e${logs[0].toFixed(0)} to 1e${logs[1].toFixed(0)}` : "adjoint norms");
  const base = top + STRIP - 4, tall = STRIP - 20, wide = Math.max(scale() * 0.8, 1);
  for (let i = Math.max(firstAt(view.x0) - 1, 0); i < events.length && at[i] <= view.x1; i++) {
    const norm = events[i].norm;
    if (norm === null) continue;
    pen.fillStyle = typeof norm === "string" ? colours.wrong : norm === 0 ? colours.careful : colours.pair;
    const high = Math.max(tall * normShare(norm), 2);
    pen.fillRect(toX(at[i]), base - high, wide, high);
  }
}

function stripHead(top, text) {
  rule(top);
  label(text, LABELS + 6, top + 13, colours.soft);
}

function drawCursor() {
  if (view.selected === null) return;
  const x = toX(at[view.selected] + 0.5);
  pen.strokeStyle = colours.accent;
  pen.globalAlpha = 0.55;
  pen.beginPath();
  pen.moveTo(x, RULER);
  pen.lineTo(x, size.h);
  pen.stroke();
  pen.globalAlpha = 1;
}

// -------------------------------------------------------------------------------------------------------------- links

// Where a step is drawn: the middle of its block.
function spot(i) {
  const detail = detailOf(i);
  const lane = detail.lane != null ? detail.lane : detail.writes ? detail.writes[0][0] : (detail.reads || [])[0];
  const r = lane == null ? null : rowOfLane.get(lane);
  return r == null ? null : [toX(at[i]) + Math.min(scale() / 2, 8), rowTop(r) + rowHeight() / 2];
}

function drawLinks() {
  const i = view.hover !== null ? view.hover : view.selected;
  for (const step of new Set([view.selected, view.hover])) if (step !== null) drawChosen(step);
  if (i === null) return;
  const from = spot(i);
  if (!from) return;
  for (const [kind, step] of relations(i).slice(0, 60)) {
    const to = step === null || step === i ? null : spot(step);
    if (to) drawLink(from, to, colours[kind], kind === "saved");
  }
}

function drawLink([x, y], [u, v], colour, dashed) {
  const bend = Math.max(18, Math.min(Math.abs(u - x) * 0.3, 90)) * (Math.abs(v - y) < 2 ? 1 : 0.5);
  pen.strokeStyle = colour;
  pen.lineWidth = 1.8;
  pen.setLineDash(dashed ? [5, 4] : []);
  pen.beginPath();
  pen.moveTo(x, y);
  pen.bezierCurveTo(x + (u - x) * 0.25, y - bend, u - (u - x) * 0.25, v - bend, u, v);
  pen.stroke();
  pen.setLineDash([]);
  pen.beginPath();
  pen.arc(u, v, 3.2, 0, 7);
  pen.fillStyle = colour;
  pen.fill();
  pen.lineWidth = 1;
}

function drawChosen(i) {
  const detail = detailOf(i), height = rowHeight();
  const touched = [...(detail.writes || []).map(w => w[0]), ...(detail.lane != null ? [detail.lane] : []),
                   ...(detail.writes ? [] : detail.reads || [])];
  for (const lane of touched) {
    const r = rowOfLane.get(lane);
    pen.strokeStyle = colours.ink;
    pen.lineWidth = 2;
    pen.strokeRect(toX(at[i]) - 1, rowTop(r) + 2, Math.max(scale(), 3) + 1, height - 4);
    pen.lineWidth = 1;
  }
}

// -------------------------------------------------------------------------------------------------------------- names

function drawLabels() {
  pen.fillStyle = colours.panel;
  pen.fillRect(0, 0, LABELS, size.h);
  pen.fillStyle = colours.line;
  pen.fillRect(LABELS - 1, 0, 1, size.h);
  label("storage", 12, 17, colours.soft, "left", "600 11px system-ui, sans-serif");
  pen.save();
  pen.beginPath();
  pen.rect(0, RULER, LABELS - 1, lanesHeight());
  pen.clip();
  const [from, to] = visibleRows(), height = rowHeight();
  for (let r = from; r < to; r++) drawLabel(rows[r], rowTop(r), height, r);
  pen.restore();
  rule(RULER);
  rule(RULER + lanesHeight());
}

function drawLabel(row, top, height, r) {
  const lane = row.lanes[0], chosen = view.lane !== null && row.lanes.some(one => one.number === view.lane);
  if (chosen || r === view.hoverRow) {
    pen.fillStyle = colours.stripe;
    pen.fillRect(0, top, LABELS - 1, height);
  }
  const folded = row.lanes.length > 1, mono = "12px ui-monospace, Menlo, Consolas, monospace";
  const side = height > 26 ? "" : shaped(lane.shape);
  const room = LABELS - 24 - (side ? Math.min(side.length * 6.2 + 8, 80) : 0);
  label(clipped((folded ? "▸ " : "") + row.label, room, mono), 12, top + (height > 26 ? height / 2 - 1 : height / 2 + 4),
        lane.leaf ? colours.accent : colours.ink, "left", mono);
  const small = "10px system-ui, sans-serif";
  if (height > 26) label(`${shaped(lane.shape)} ${lane.dtype}, ${sized(lane.bytes)}${lane.leaf ? ", leaf" : ""}`, 12, top + height / 2 + 11, colours.soft, "left", small);
  else label(clipped(side, 78, small), LABELS - 10, top + height / 2 + 4, colours.soft, "right", small);
}

function clipped(text, room, font) {
  pen.font = font;
  if (pen.measureText(text).width <= room) return text;
  while (text.length > 1 && pen.measureText(text + "…").width > room) text = text.slice(0, -1);
  return text + "…";
}

// ------------------------------------------------------------------------------------------------------- what is where

function rowAt(y) {
  if (y < RULER || y > RULER + lanesHeight()) return null;
  const r = Math.floor((y - RULER + view.y) / rowHeight());
  return r < rows.length ? r : null;
}

// The step whose block is under the pointer, or the nearest within a few dots.
function stepAt(x, y) {
  if (x < LABELS) return null;
  if (y > RULER + lanesHeight() || y < RULER) {
    const i = Math.min(firstAt(Math.floor(toU(x))), events.length - 1);
    return i >= 0 && Math.abs(toX(at[i] + 0.5) - x) < Math.max(scale(), 6) ? i : null;
  }
  const r = rowAt(y);
  if (r === null) return null;
  const {step, kind} = rows[r].blocks, near = Math.max(scale() / 2, 5);
  let best = null, distance = Infinity;
  for (let b = firstBlock(rows[r].blocks, toU(x - near) - 1); b < step.length; b++) {
    const middle = toX(at[step[b]] + 0.5);
    if (middle > x + near) break;
    const off = Math.abs(middle - x) + (kind[b] === 2 ? 0.5 : 0);
    if (off < distance && off <= near + 0.5) { best = step[b]; distance = off; }
  }
  return best;
}

function zoom(factor, around = (view.x0 + view.x1) / 2) {
  const span = Math.min(Math.max((view.x1 - view.x0) * factor, Math.min(6, width)), width * 1.02);
  const left = around - (around - view.x0) * span / (view.x1 - view.x0);
  place(left, left + span);
}

function place(x0, x1) {  // keeps something of the trace in sight
  const span = x1 - x0, margin = span * 0.02;
  view.x0 = Math.min(Math.max(x0, -margin), Math.max(width + margin - span, -margin));
  view.x1 = view.x0 + span;
  redraw();
}

function scroll(to) {
  view.y = Math.max(0, Math.min(to, rows.length * rowHeight() - lanesHeight()));
  redraw();
}

function fit() {
  view.y = 0;
  place(-width * 0.01, width * 1.01);
}

// Brings a step into sight, and its lane.
function reveal(i) {
  const u = at[i], span = view.x1 - view.x0;
  if (u < view.x0 + span * 0.05 || u > view.x1 - span * 0.05) place(u - span / 2, u + span / 2);
  if (scale() < 2 && events.length > 400) {
    const near = Math.min(240, width);
    place(u - near / 2, u + near / 2);
  }
  const spotted = spot(i);
  if (spotted && (spotted[1] < RULER + 8 || spotted[1] > RULER + lanesHeight() - 8)) {
    scroll(view.y + spotted[1] - RULER - lanesHeight() / 2);
  }
  redraw();
}
