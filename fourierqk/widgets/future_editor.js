// ---------------------------------------------------------------- three small models, as recorded
// RECORDS, in front of this text, has a record a system: its shape, its weights, what it lost (tools/future_models.py).
// A matrix is a list of rows; its record is whole numbers of eight bits, a scale a row.
function matrix({ shape: [rows, columns], scale, bytes, values }) {
  if (values) return Array.from({ length: rows }, (_, i) => (columns ? values.slice(i * columns, (i + 1) * columns) : values[i]));
  const text = atob(bytes), whole = Int8Array.from(text, (c) => c.charCodeAt(0));
  return scale.map((s, i) => Float64Array.from(whole.subarray(i * columns, (i + 1) * columns), (v) => v * s));
}

const sigmoid = (v) => 1 / (1 + Math.exp(-v));
const GRID = 1024; // samples on which the library weighs a filter, so that its gain does not depend on the line

// The kernel of a head's band at the lags -(n - 1) .. n - 1: a bell around its frequency, with gain 1. On a `ring` of n
// letters it wraps round, which is what a DFT of the whole window does.
function kernel(logit, width, n, ring) {
  const centre = sigmoid(logit) / 2, pass = (f) => Math.exp(-0.5 * ((f - centre) / width) ** 2);
  const sum = (size, of) => { // over all bins of `size`, each beside its mirror image
    let total = 0;
    for (let k = 0; 2 * k <= size; k++) total += (k === 0 || 2 * k === size ? 1 : 2) * of(k);
    return total / size;
  };
  const gain = sum(GRID, (k) => pass(k / GRID) ** 2) ** -0.5, size = ring ? n : GRID;
  return Float64Array.from({ length: 2 * n - 1 }, (_, i) =>
    gain * sum(size, (k) => pass(k / size) * Math.cos((2 * Math.PI * ((k * (i - n + 1)) % size)) / size)));
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
      bands: filter && logits[1].map(([logit]) => kernel(logit, filter.width, n, filter.of === "window")),
    };
  });
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

function attend(x, { qkv, proj, bands }, { heads, of }) {
  const all = linear(x, qkv), width = x[0].length, d = width / heads, out = x.map(() => new Float64Array(width));
  for (let head = 0; head < heads; head++) {
    const [q, k, v] = [0, 1, 2].map((part) => all.map((row) => row.subarray(part * width + head * d, part * width + (head + 1) * d)));
    scores(q, k, of, bands && bands[head]).forEach((row, t) => {
      softmax(row.map((s) => s / Math.sqrt(d))).forEach((weight, j) => {
        for (let i = 0; i < d; i++) out[t][head * d + i] += weight * v[j][i];
      });
    });
  }
  return linear(out, proj);
}

// ids -> the logits of what comes after each of them
function logits(model, ids) {
  let x = ids.map((id, t) => model.tokens[id].map((v, i) => v + model.positions[t][i]));
  for (const block of model.blocks) {
    x = add(x, attend(normalised(x, block.norm1), block, model));
    x = add(x, linear(linear(normalised(x, block.norm2), block.up).map((v) => v.map(gelu)), block.down));
  }
  return linear(normalised(x, model.norm), model.tokens);
}

// ---------------------------------------------------------------- predictions, before and after an edit
const SYSTEMS = Object.keys(RECORDS), ALPHABET = Array.from(RECORDS[SYSTEMS[0]].vocab), LENGTH = RECORDS[SYSTEMS[0]].model.block_size;
const models = Object.fromEntries(SYSTEMS.map((name) => [name, load(RECORDS[name])]));
const ids = (text) => Array.from(text, (c) => ALPHABET.indexOf(c));
const known = new Map(); // text -> its predictions, of the last few lines: several figures on a page share them

function predict(text) {
  if (!known.has(text)) {
    if (known.size > 8) known.delete(known.keys().next().value);
    known.set(text, SYSTEMS.map((name) => logits(models[name], ids(text)).map((row) => {
      const p = softmax(row), best = p.reduce((b, v, i) => (v > p[b] ? i : b), 0);
      return { letter: ALPHABET[best], p: p[best] };
    })));
  }
  return known.get(text);
}

// Where two lines first differ (-1: nowhere), and of each system the places before it where another letter is predicted.
function compare(before, text) {
  const now = predict(text), then = predict(before), edit = Array.from(text).findIndex((c, t) => c !== before[t]);
  const moved = now.map((row, s) => row.flatMap(({ letter }, t) => (letter !== then[s][t].letter ? [t] : [])));
  return { now, then, edit, moved, flips: moved.map((places) => places.filter((t) => t < edit)) };
}

const NAMED = { " ": "space", "\n": "line end" }, name = (c) => NAMED[c] || c;

function sentence(before, text, d) {
  if (d.edit < 0) return "Nothing is changed yet: choose a letter and change it.";
  const count = (s) => (d.flips[s].length ? `${d.flips[s].length} earlier prediction${d.flips[s].length > 1 ? "s" : ""}` : "none");
  const said = SYSTEMS.map((system, s) => `in ${system} ${count(s)}`);
  return `Letter ${d.edit + 1} was ${name(before[d.edit])} and is ${name(text[d.edit])}. Predictions that stand before it and changed: ${said.join(", ")}.`;
}

// ---------------------------------------------------------------- drawing
const LOOKS = ["#7a7a7a", "#e06000", "#1199dd"];
const percent = (share) => `${Math.round(100 * share)} %`;

function column(t, { text, token, d, theme, choose }) {
  const late = t >= d.edit && d.edit >= 0;
  const cells = SYSTEMS.map((system, s) => {
    const { letter, p } = d.now[s][t], old = d.then[s][t].letter, moved = letter !== old, flip = moved && t < d.edit;
    const cell = element("div", { className: `fqk-cell${flip ? " fqk-flip" : moved && late ? " fqk-moved" : ""}`, title: `${system}: ${name(letter)}, ${percent(p)}${moved ? `; before the edit ${name(old)}` : ""}` }, glyph(letter));
    cell.style.setProperty("--fqk-fill", `color-mix(in srgb, ${flip ? theme.future : LOOKS[s]} ${Math.round(45 * p)}%, transparent)`);
    cell.style.setProperty("--fqk-mark", flip ? theme.future : theme.past);
    return cell;
  });
  const edited = t === d.edit ? " fqk-edited" : "";
  const node = element("div", { className: `fqk-column${t === token ? " fqk-chosen" : ""}` }, element("div", { className: `fqk-cell fqk-letter${edited}` }, glyph(text[t])), ...cells);
  node.addEventListener("click", () => choose(t));
  return node;
}

function rows(view, wide) {
  const per = wide ? LENGTH : LENGTH / 2, lines = [];
  for (let from = 0; from < LENGTH; from += per) {
    const tags = element("div", { className: "fqk-tags" }, ...["text", ...SYSTEMS].map((tag, s) => element("div", { className: "fqk-cell" }, wide || !s ? tag : String(s))));
    lines.push(element("div", { className: "fqk-line" }, tags, ...Array.from({ length: per }, (_, i) => column(from + i, view))));
  }
  return lines;
}

// Bars of what a system claims and of what is left of it without a future, and the floor across them.
function dial(s) {
  const { losses, floor } = RECORDS[SYSTEMS[s]], most = 1.1 * Math.max(...SYSTEMS.map((x) => Math.max(RECORDS[x].losses.ordered.mean, RECORDS[x].losses.honest.mean)));
  const bar = (label, v) => {
    const fill = element("div", { className: "fqk-fill" }), mark = element("div", { className: "fqk-floor" });
    fill.style.width = `${(100 * v) / most}%`;
    fill.style.background = LOOKS[s];
    mark.style.left = `${(100 * floor) / most}%`;
    return element("div", { className: "fqk-bar" }, element("span", {}, label), element("div", { className: "fqk-track" }, fill, mark),
      element("span", {}, `${v.toFixed(2)}${v < floor ? " ▼" : ""}`));
  };
  return element("div", {}, element("strong", {}, `${s + 1} ${SYSTEMS[s]}`), bar("claimed", losses.ordered.mean), bar("honest", losses.honest.mean));
}

// ---------------------------------------------------------------- the widget
function editor(model, change) {
  const foreign = (field, wrong) => refuse(field, `${[...new Set(wrong)].join(" ")} is not among the ${ALPHABET.length} letters of verse: ${ALPHABET.join("").trim()}, space and line end.`);
  const put = (text) => {
    if (text === model.get("text")) return;
    change("before", model.get("text"));
    change("text", text);
  };
  const write = (c) => {
    const text = model.get("text"), t = model.get("token");
    if (ALPHABET.includes(c)) put(text.slice(0, t) + c + text.slice(t + 1));
    else foreign(place, [c]);
  };
  const place = element("input", { type: "range", min: 0, max: LENGTH - 1, step: 1, ...KEYS });
  place.addEventListener("input", () => change("token", +place.value));
  place.addEventListener("keydown", (e) => {
    const key = e.key === "Enter" ? "\n" : e.key;
    if (key.length > 1 || e.ctrlKey || e.metaKey || e.altKey) return;
    e.preventDefault();
    write(key);
  });
  const choose = (t) => { change("token", t); place.focus({ preventScroll: true }); };
  const own = element("input", { className: "fqk-own", type: "text", maxLength: LENGTH, spellcheck: false, autocomplete: "off", autocapitalize: "off", ...KEYS });
  own.addEventListener("focus", () => own.select());
  own.addEventListener("input", () => { // what is typed stands in front, the rest of the line behind it stays
    forgive(own.parentNode);
    const typed = Array.from(own.value.replaceAll("↵", "\n")), right = typed.filter((c) => ALPHABET.includes(c)).slice(0, LENGTH).join("");
    const wrong = typed.filter((c) => !ALPHABET.includes(c));
    if (right.length < typed.length) own.value = right.replaceAll("\n", "↵");
    put(right + model.get("text").slice(right.length));
    if (wrong.length) foreign(own, wrong);
  });
  const next = button("Next letter", () => write(ALPHABET[(ALPHABET.indexOf(model.get("text")[model.get("token")]) + 1) % ALPHABET.length]));
  const lines = element("div", { role: "img" });
  const floor = RECORDS[SYSTEMS[0]].floor.toFixed(2);
  return {
    traits: ["before", "text", "token"],
    nodes: [
      element("p", { className: "fqk-note" }, "Under each letter: the letter that each model expects next, the stronger its colour the surer. ▲ in red: changed by an edit that comes later."),
      lines,
      element("div", { className: "fqk-controls" },
        element("label", { className: "fqk-control" }, element("span", {}, "Letter to change: arrows choose, a key writes"), place),
        element("div", { className: "fqk-buttons" }, next),
        element("label", { className: "fqk-control" }, element("span", {}, "Your own line"), own)),
      element("div", { className: "fqk-dials" }, ...SYSTEMS.map((_, s) => dial(s))),
      element("p", { className: "fqk-note" }, `Loss in nats per letter. Claimed: over the whole window. Honest: after its last letter, where there is no future. The line across is the floor, ${floor}: without the future nobody is below it on average; ▼ is.`),
    ],
    update(theme) {
      const text = model.get("text"), before = model.get("before"), token = model.get("token"), d = compare(before, text);
      const wide = lines.clientWidth >= 620, said = sentence(before, text, d);
      lines.replaceChildren(...rows({ text, token, d, theme, choose }, wide));
      lines.setAttribute("aria-label", `The line: ${text}. ${SYSTEMS.map((system, s) => `${system} predicts ${d.now[s].map((x) => x.letter).join("")}`).join(". ")}.`);
      place.value = token;
      place.setAttribute("aria-valuetext", `letter ${token + 1}: ${name(text[token])}`);
      if (own.getRootNode().activeElement !== own) own.value = text.replaceAll("\n", "↵");
      return said;
    },
  };
}

export default {
  render: (view) => mount(view, "Future editor", editor),
  pure: { compare, logits: (system, text) => logits(models[system], ids(text)).map((row) => [...row]), predict, sentence },
};
