// ---------------------------------------------------------------- small models of verse, as recorded
// What the widgets that run them share. RECORDS, in front of this text, has a record a system: its shape, its weights,
// what it lost (tools/future_models.py).
// A matrix is a list of rows; its record is whole numbers of eight bits, a scale a row.
function matrix({ shape: [rows, columns], scale, bytes, values }) {
  if (values) return Array.from({ length: rows }, (_, i) => (columns ? values.slice(i * columns, (i + 1) * columns) : values[i]));
  const text = atob(bytes), whole = Int8Array.from(text, (c) => c.charCodeAt(0));
  return scale.map((s, i) => Float64Array.from(whole.subarray(i * columns, (i + 1) * columns), (v) => v * s));
}

const sigmoid = (v) => 1 / (1 + Math.exp(-v));
const GRID = 1024; // samples on which the library weighs a filter, so that its gain does not depend on the line

// The kernel of a band at the lags -(n - 1) .. n - 1: a bell around its centre, with gain 1. On a ring of n letters, the
// "window", it wraps round, which is what a DFT of the whole window does. Cut off, for the "past", it has no negative lag.
const TAPS = 128; // that a cut kernel has, by which its gain is weighed
const TURN = Float64Array.from({ length: GRID }, (_, i) => Math.cos((2 * Math.PI * i) / GRID));
function kernel({ centre, width }, n, of) {
  const size = of === "window" ? n : GRID, step = GRID / size, lags = Array.from({ length: 2 * n - 1 }, (_, i) => i - n + 1);
  const pass = (on) => Float64Array.from({ length: Math.floor(on / 2) + 1 }, (_, k) => Math.exp(-0.5 * ((k / on - centre) / width) ** 2));
  const sum = (on, of) => { // over all bins, each beside its mirror image
    let total = 0;
    for (let k = 0; 2 * k <= on; k++) total += (k === 0 || 2 * k === on ? 1 : 2) * of(k);
    return total / on;
  };
  const band = pass(size), echo = (lag) => sum(size, (k) => band[k] * TURN[((((k * lag) % size) + size) % size) * step]);
  if (of === "past") {
    const h = Float64Array.from({ length: Math.max(n, TAPS) }, (_, lag) => (lag < TAPS ? echo(lag) : 0));
    const gain = h.reduce((total, v) => total + v * v, 0) ** -0.5;
    return Float64Array.from(lags, (lag) => (lag < 0 ? 0 : gain * h[lag]));
  }
  const fine = pass(GRID), gain = sum(GRID, (k) => fine[k] ** 2) ** -0.5;
  return Float64Array.from(lags, (lag) => gain * echo(lag));
}

function load(record) {
  const w = Object.fromEntries(Object.entries(record.weights).map(([key, packed]) => [key, matrix(packed)]));
  const { n_layer: layers, n_head: heads, block_size: n } = record.model, filter = record.filter;
  const blocks = Array.from({ length: layers }, (_, i) => {
    const of = (name) => w[`blocks.${i}.${name}`];
    const logits = Object.entries(w).find(([key]) => key.startsWith(`blocks.${i}.mixer.filter`));
    return {
      norm1: [of("norm1.weight"), of("norm1.bias")], norm2: [of("norm2.weight"), of("norm2.bias")],
      qkv: of("mixer.qkv.weight"), proj: of("mixer.proj.weight"), up: of("mlp.up.weight"), down: of("mlp.down.weight"),
      bands: filter && logits[1].map(([logit]) => ({ centre: sigmoid(logit) / 2, width: filter.width })),
    };
  });
  for (const block of blocks) block.kernels = block.bands && block.bands.map((band) => kernel(band, n, filter.of));
  return { heads, blocks, of: filter && filter.of, tokens: w["tokens.weight"], positions: w["positions.weight"], norm: [w["norm.weight"], w["norm.bias"]] };
}

// ---------------------------------------------------------------- what such a model computes, letter by letter
const dot = (a, b) => { let sum = 0; for (let i = 0; i < a.length; i++) sum += a[i] * b[i]; return sum; };
const linear = (x, rows) => x.map((v) => Float64Array.from(rows, (row) => dot(row, v)));
const add = (x, y) => x.map((v, t) => v.map((u, i) => u + y[t][i]));

function normalised(x, [weight, bias]) {
  return x.map((v) => {
    const mean = v.reduce((a, b) => a + b) / v.length, spread = v.reduce((a, b) => a + (b - mean) ** 2, 0) / v.length;
    return v.map((u, i) => ((u - mean) / Math.sqrt(spread + 1e-5)) * weight[i] + bias[i]);
  });
}

function erf(x) { // Abramowitz and Stegun 7.1.26: within 2e-7
  const t = 1 / (1 + 0.3275911 * Math.abs(x));
  const tail = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429)))) * Math.exp(-x * x);
  return Math.sign(x) * (1 - tail);
}

const gelu = (v) => (v * (1 + erf(v / Math.SQRT2))) / 2;

// A signal filtered: letter t hears letter m by the kernel's lag t - m; `past` leaves out what comes after t.
function filtered(x, h, past = false) {
  const n = x.length, lag0 = (h.length - 1) / 2;
  return x.map((v, t) => v.map((_, i) => {
    let sum = 0;
    for (let m = 0; m < (past ? t + 1 : n); m++) sum += h[lag0 + t - m] * x[m][i];
    return sum;
  }));
}

// Scores of letter t with letters 0 .. t, of one head. A filter of the window is heard by queries and keys, its future
// too; one of prefixes is run for every t on what stands up to t alone.
function scores(q, k, of, h) {
  const masked = (a, b) => a.map((v, t) => Float64Array.from({ length: t + 1 }, (_, j) => dot(v, b[j])));
  if (of === null) return masked(q, k);
  if (of === "window") return masked(filtered(q, h), filtered(k, h));
  const lag0 = (h.length - 1) / 2;
  return masked(filtered(q, h, true), k).map((row) => row.map((_, j) => {
    let sum = 0;
    for (let m = 0; m < row.length; m++) sum += row[m] * h[lag0 + j - m];
    return sum;
  }));
}

function softmax(row) {
  const top = Math.max(...row), e = row.map((v) => Math.exp(v - top)), sum = e.reduce((a, b) => a + b);
  return e.map((v) => v / sum);
}

// Queries, keys and values of each head, of what enters a block.
function heads(x, { norm1, qkv }, count) {
  const all = linear(normalised(x, norm1), qkv), width = x[0].length, d = width / count;
  const part = (i, head) => all.map((row) => row.subarray(i * width + head * d, i * width + (head + 1) * d));
  return Array.from({ length: count }, (_, head) => ({ q: part(0, head), k: part(1, head), v: part(2, head) }));
}

function attend(x, block, { heads: count, of }) {
  const out = x.map((v) => new Float64Array(v.length));
  heads(x, block, count).forEach(({ q, k, v }, head) => {
    const d = v[0].length;
    scores(q, k, of, block.kernels && block.kernels[head]).forEach((row, t) => {
      softmax(row.map((s) => s / Math.sqrt(d))).forEach((weight, j) => {
        for (let i = 0; i < d; i++) out[t][head * d + i] += weight * v[j][i];
      });
    });
  });
  return linear(out, block.proj);
}

// ids -> what enters each block, and what leaves the last
function streams(model, ids) {
  const all = [ids.map((id, t) => model.tokens[id].map((v, i) => v + model.positions[t][i]))];
  for (const block of model.blocks) {
    const x = add(all[all.length - 1], attend(all[all.length - 1], block, model));
    all.push(add(x, linear(linear(normalised(x, block.norm2), block.up).map((v) => v.map(gelu)), block.down)));
  }
  return all;
}

// ids -> the logits of what comes after each of them
function logits(model, ids) {
  const all = streams(model, ids);
  return linear(normalised(all[all.length - 1], model.norm), model.tokens);
}

// ---------------------------------------------------------------- the models on a page, and a line for them to read
const SYSTEMS = Object.keys(RECORDS), ALPHABET = Array.from(RECORDS[SYSTEMS[0]].vocab), LENGTH = RECORDS[SYSTEMS[0]].model.block_size;
const models = Object.fromEntries(SYSTEMS.map((name) => [name, load(RECORDS[name])]));
const ids = (text) => Array.from(text, (c) => ALPHABET.indexOf(c));

const foreign = (field, wrong) => refuse(field, `${[...new Set(wrong)].join(" ")} is not among the ${ALPHABET.length} letters of verse: ${ALPHABET.join("").trim()}, space and line end.`);

// The reader's own line: what is typed stands in front, the rest of the line behind it stays.
function line(get, put) {
  const own = element("input", { className: "fqk-own", type: "text", maxLength: LENGTH, spellcheck: false, autocomplete: "off", autocapitalize: "off", ...KEYS });
  const node = element("label", { className: "fqk-control" }, element("span", {}, "Your own line"), own);
  own.addEventListener("focus", () => own.select());
  own.addEventListener("input", () => {
    forgive(node);
    const typed = Array.from(own.value.replaceAll("↵", "\n")), right = typed.filter((c) => ALPHABET.includes(c)).slice(0, LENGTH).join("");
    const wrong = typed.filter((c) => !ALPHABET.includes(c));
    if (right.length < typed.length) own.value = right.replaceAll("\n", "↵");
    put(right + get().slice(right.length));
    if (wrong.length) foreign(own, wrong);
  });
  return { node, show: (text) => { if (own.getRootNode().activeElement !== own) own.value = text.replaceAll("\n", "↵"); } };
}
