// ---------------------------------------------------------------- one head, through a filter
// Settings s = {system, head, filter, frequency, width, text, token}, as attention_lens.py has them.
const LOWEST = 0.005, HIGHEST = 0.495, NARROWEST = 0.005, WIDEST = 0.25;
const FILTERS = { none: "nothing", window: "a band of the whole window", past: "a band, its future cut off" };

const LAYERS = RECORDS[SYSTEMS[0]].model.n_layer, EACH = RECORDS[SYSTEMS[0]].model.n_head;
const HEADS = Object.fromEntries(Array.from({ length: LAYERS * EACH }, (_, i) => [i, `${(i % EACH) + 1} of layer ${Math.floor(i / EACH) + 1}`]));
const learned = ({ system, head }) => { const { bands } = models[system].blocks[Math.floor(head / EACH)]; return bands && bands[head % EACH]; };

const known = new Map(); // system, text -> what enters each block, of the last few lines
function features({ system, text, head }) {
  const key = `${system} ${text}`;
  if (!known.has(key)) {
    if (known.size > 8) known.delete(known.keys().next().value);
    known.set(key, streams(models[system], ids(text)));
  }
  const layer = Math.floor(head / EACH);
  return heads(known.get(key)[layer], models[system].blocks[layer], EACH)[head % EACH];
}

// The weights of the filter's lags, -(n - 1) .. n - 1.
function lags({ filter, frequency, width }) {
  if (filter !== "none") return kernel({ centre: frequency, width }, LENGTH, filter);
  return Float64Array.from({ length: 2 * LENGTH - 1 }, (_, i) => (i === LENGTH - 1 ? 1 : 0));
}

// {weights, influence}, a row a token: where it looks, and how much of that moves if letter m falls silent. Filters are
// linear: without m, a query and a key lose what the kernel brought them of it, so no filter is run again.
function describe(s) {
  const { q, k } = features(s), h = lags(s), n = LENGTH, lag = (l) => h[n - 1 + l], root = Math.sqrt(q[0].length);
  const Q = filtered(q, h), K = filtered(k, h), products = (a, b) => a.map((v) => Float64Array.from(b, (u) => dot(v, u) / root));
  const both = products(Q, K), keys = products(Q, k), queries = products(q, K), alone = q.map((v, m) => dot(v, k[m]) / root);
  const weights = both.map((row, t) => softmax(row.subarray(0, t + 1)));
  const influence = weights.map((row, t) => Float64Array.from(both, (_, m) => {
    if (!t) return 0; // the first token has itself alone to look at
    const silent = row.map((_, j) => both[t][j] - lag(j - m) * keys[t][m] - lag(t - m) * queries[m][j] + lag(t - m) * lag(j - m) * alone[m]);
    return softmax(silent).reduce((sum, w, j) => sum + Math.abs(w - row[j]), 0) / 2;
  }));
  return { weights, influence };
}

const total = (row) => row.reduce((a, b) => a + b, 0);
const later = (row, t) => { const all = total(row); return all ? total(row.subarray(t + 1)) / all : 0; };

// ---------------------------------------------------------------- what it says
const percent = (v) => `${v > 0 && v < 0.005 ? "under 1" : Math.round(100 * v)} %`;
const named = (text, t) => `token ${t}, ${name(text[t])}`;

function sentence({ system, head, text, token: t }, { weights, influence }) {
  const best = weights[t].indexOf(Math.max(...weights[t])), ahead = later(influence[t], t);
  const all = influence.map((row, i) => later(row, i) * total(row)).reduce((a, b) => a + b) / total(influence.map(total));
  const future = ahead ? `${percent(ahead)} of what moves its row lies in its future, of all rows ${percent(all)}.`
    : all ? `Nothing later moves its row, but of all rows ${percent(all)} of what moves them is later.` : "Nothing later moves this row or another.";
  return `Head ${HEADS[head]} of ${system}: ${named(text, t)}, looks most at ${named(text, best)}, with ${percent(weights[t][best])} of its attention. ${future}`;
}

// ---------------------------------------------------------------- panels
const TICKS = [0, 8, 16, 24, 31].map((v) => [v, String(v)]);
const tokens = { min: -0.5, max: LENGTH - 0.5, ticks: TICKS };
const nearest = (v) => Math.min(LENGTH - 1, Math.max(0, Math.round(v)));

function letters(g, text, X, theme, base, token) {
  g.textAlign = "center";
  g.textBaseline = "middle";
  g.fillStyle = theme.fg;
  const size = Math.min(13, 1.6 * (X(1) - X(0)));
  Array.from(text).forEach((c, t) => {
    g.font = `${t === token ? "700 " : ""}${size}px ui-monospace, monospace`;
    g.fillText(glyph(c), X(t), base + 10);
  });
}

// A row a token, a column a letter: blue up to the token, red after it.
function mapPlot(title, xlabel, ylabel, rows, { text, token }, alt) {
  const most = Math.max(1e-9, ...rows.flatMap((row) => [...row]));
  return {
    title, xlabel, ylabel, foot: 18, x: tokens, y: { min: LENGTH - 0.5, max: -0.5, ticks: TICKS },
    paint(g, X, Y, theme, box) {
      const w = box.width / LENGTH, h = box.height / LENGTH;
      rows.forEach((row, t) => row.forEach((v, m) => {
        if (v < 1e-4 * most) return;
        g.globalAlpha = Math.sqrt(v / most); // the faint ones too
        g.fillStyle = m > t ? theme.future : theme.past;
        g.fillRect(X(m - 0.5), Y(t - 0.5), w, h);
      }));
      g.globalAlpha = 1;
      curve(g, [-0.5, LENGTH - 0.5], [-0.5, LENGTH - 0.5], X, Y, theme.frame, { width: 1 });
      g.strokeStyle = theme.fg;
      g.lineWidth = 1.6;
      g.strokeRect(box.left, Y(token - 0.5), box.width, h);
      letters(g, text, X, theme, box.top + box.height, token);
    },
    read(x, y) { const [m, t] = [nearest(x), nearest(y)]; return `${named(text, t)}: ${short(rows[t][m] || 0)} on ${named(text, m)}`; },
    alt,
  };
}

function rowPlot({ text, token }, { weights, influence }) {
  const looks = weights[token], hangs = influence[token], most = [Math.max(...looks), Math.max(1e-9, ...hangs)];
  const ticks = [[-1, percent(Math.max(...hangs))], [0, "0"], [1, percent(most[0])]];
  return {
    title: `Row of ${named(text, token)}`, xlabel: "letter of the line", ylabel: "", foot: 20, top: [], toplabel: "up: where it looks; down: what that hangs on",
    x: tokens, y: { min: -1.15, max: 1.15, ticks },
    paint(g, X, Y, theme, box) {
      const bar = (m, v, colour) => { g.fillStyle = colour; g.fillRect(X(m - 0.4), Math.min(Y(v), Y(0)), X(0.4) - X(-0.4), Math.abs(Y(v) - Y(0))); };
      g.globalAlpha = 0.85;
      looks.forEach((v, j) => bar(j, v / most[0], theme.past));
      hangs.forEach((v, m) => bar(m, -v / most[1], m > token ? theme.future : theme.past));
      g.globalAlpha = 1;
      curve(g, [-0.5, LENGTH - 0.5], [0, 0], X, Y, theme.frame, { width: 1 });
      curve(g, [token + 0.5, token + 0.5], [-1.15, 1.15], X, Y, theme.fg, { width: 1.2, dash: [4, 3] });
      letters(g, text, X, theme, box.top + box.height, token);
    },
    read(x) { const m = nearest(x); return `${named(text, m)}: looked at ${short(looks[m] || 0)}, moves ${short(hangs[m])}`; },
    alt: `Of ${named(text, token)}: upwards its attention to the letters up to itself, downwards how much of it moves if a letter falls silent, ` +
      `${percent(later(hangs, token))} of that in its future, in red.`,
  };
}

// ---------------------------------------------------------------- the widget
function lens(model, change) {
  const set = (key) => (value) => change(key, value), keys = ["system", "head", "filter", "frequency", "width", "text", "token"];
  const settings = () => Object.fromEntries(keys.map((key) => [key, model.get(key)]));
  const row = (t) => change("token", nearest(t)), root = { to: Math.sqrt, from: (v) => v * v }, octaves = { to: Math.log2, from: (v) => 2 ** v };
  const own = (key, v, said) => { const band = learned(settings()); return `${said(v)}${band ? `; this head learned ${short(band[key])}` : ""}`; };
  const controls = {
    token: slider("Row of token", { min: 0, max: LENGTH - 1, step: 1, fieldStep: 1, say: (t) => named(model.get("text"), t), note: (t) => name(model.get("text")[t]) }, row),
    filter: menu("Queries and keys pass", FILTERS, set("filter")),
    frequency: slider("Centre frequency", { min: LOWEST, max: HIGHEST, step: 0.001, fieldStep: 0.001, ...root, say: (f) => `${short(f)} cycles per token`, note: (f) => own("centre", f, () => `${short(1 / f)} tokens a cycle`) }, set("frequency")),
    width: slider("Bandwidth", { min: NARROWEST, max: WIDEST, step: 0.01, fieldStep: 0.001, ...octaves, say: (w) => `${short(w)} cycles per token`, note: () => "cycles per token" }, set("width")),
    system: menu("Model", Object.fromEntries(SYSTEMS.map((key) => [key, key])), set("system")),
    head: menu("Head", HEADS, (v) => change("head", +v)),
    text: line(() => model.get("text"), set("text")),
  };
  const panels = { weights: new Panel(320, (_, y) => row(y)), influence: new Panel(320, (_, y) => row(y)), row: new Panel(210, row) };
  controls.token.node.classList.add("fqk-main");
  return {
    traits: keys,
    nodes: [
      element("div", { className: "fqk-panels" }, panels.weights.node, panels.influence.node),
      panels.row.node,
      controls.token.node,
      element("div", { className: "fqk-controls" }, ...["filter", "frequency", "width", "system", "head", "text"].map((key) => controls[key].node)),
    ],
    hear: {
      said: "Letter by letter: how much the token looks at it, in the left ear; how much that hangs on a letter still to come, in the right. A low tick is the token itself.",
      score: () => {
        const s = settings(), d = describe(s), t = s.token;
        return { ticks: Array.from(d.weights[t], (_, u) => +(u === t)), left: d.weights[t], right: Array.from(d.influence[t], (v, u) => (u > t ? v : 0)) };
      },
    },
    update(theme) {
      const s = settings(), d = describe(s);
      for (const [key, control] of Object.entries(controls)) control.show(s[key]);
      for (const key of ["frequency", "width"]) controls[key].enable(s.filter !== "none");
      panels.weights.draw(mapPlot("Where each token looks", "letter that is looked at", "token", d.weights, s,
        `Attention map: each of ${LENGTH} tokens looks at letters up to itself; the upper triangle is hidden by the mask.`), theme);
      panels.influence.draw(mapPlot("What that hangs on", "letter that falls silent", "token", d.influence, s,
        `Influence map: how much of each token's attention moves if a letter falls silent; red, above the diagonal, where the letter is later.`), theme);
      panels.row.draw(rowPlot(s, d), theme);
      return sentence(s, d);
    },
  };
}

export default {
  render: (view) => mount(view, "Attention lens", lens),
  pure: { describe, filters: Object.keys(FILTERS), learned, sentence },
};
