// ---------------------------------------------------------------- the spectrum of a text, as fourierqk/data/spectrum.py has it
const WINDOW = 256, SHORTEST = 16, LONGEST = 4096, ROWS = 36, HEARD = 400; // tokens, characters, characters, rows shown, tokens played

const LISTEN = { all: "every character", spaces: "spaces and line ends", lines: "line ends", vowels: "vowels", capitals: "capital letters" };
const MARKS = { spaces: /\s/u, lines: /\n/u, vowels: /[aeiou]/iu, capitals: /\p{Lu}/u };

// The text as numbers that name its tokens: each character's own, or 1 at a mark and 0 elsewhere.
function codes(text, listen) {
  const chars = Array.from(text);
  return MARKS[listen] ? chars.map((c) => +MARKS[listen].test(c)) : chars.map((c) => c.codePointAt(0));
}

// {freq, relative, windows}: Welch's average over Hann windows. No indicator is written down: their power spectra add up
// to the transform of the weight with which tokens tau apart are the same.
function spectrum(x) {
  const n = Math.min(WINDOW, x.length), half = Math.floor(n / 2), p = new Map();
  for (const v of x) p.set(v, (p.get(v) || 0) + 1 / x.length);
  const chance = [...p.values()].reduce((sum, q) => sum + q * q, 0), angle = (2 * Math.PI) / n;
  const w = Float64Array.from({ length: n }, (_, t) => (1 - Math.cos(angle * t)) / 2);
  const same = new Float64Array(n), mean = [0, 0]; // the mean of an indicator, seen through the window, fills bins 0 and 1
  let windows = 0;
  for (let s = 0; s + n <= x.length; s += half, windows++) {
    for (let lag = 0; lag < n; lag++) {
      let sum = 0;
      for (let t = lag; t < n; t++) if (x[s + t] === x[s + t - lag]) sum += w[t] * w[t - lag];
      same[lag] += sum;
    }
    for (let t = 0; t < n; t++) for (const k of [0, 1]) mean[k] += w[t] * p.get(x[s + t]) * Math.cos(angle * k * t);
  }
  const freq = Float64Array.from({ length: half + 1 }, (_, k) => k / n), level = (1 - chance) * windows * (3 / 8) * n;
  const relative = freq.map((_, k) => {
    let sum = same[0];
    for (let lag = 1; lag < n; lag++) sum += 2 * same[lag] * Math.cos(angle * ((k * lag) % n));
    const W = [n / 2, -n / 4][k] || 0;
    const power = sum - 2 * W * (mean[k] || 0) + chance * W * W * windows;
    return p.size > 1 ? Math.max(0, power / level) : 0;
  });
  return { freq, relative, windows };
}

// Where each token lies when the text is written in rows of `period` tokens, and which tokens are marked: those listened
// to or, for every character, those that stand again in the same place one row on.
function fold(x, period, listen) {
  const step = Math.round(period), marked = (t) => (listen === "all" ? x[t] === x[t + step] : x[t] === 1);
  return x.map((_, t) => {
    const row = Math.floor(t / period + 1e-9);
    return { row, column: Math.max(0, Math.floor(t - row * period + 1e-9)), marked: marked(t) };
  });
}

// The share of marked tokens in each column.
function columns(cells) {
  const all = [], hits = [];
  for (const { column, marked } of cells) {
    all[column] = (all[column] || 0) + 1;
    hits[column] = (hits[column] || 0) + marked;
  }
  return all.map((count, i) => hits[i] / count);
}

// ---------------------------------------------------------------- what it says
const at = ({ freq, relative }, period) => relative[Math.min(relative.length - 1, Math.max(1, Math.round((2 * (freq.length - 1)) / period)))];

function sentence(s, period, shares) {
  const most = Math.max(...shares), k = s.relative.indexOf(Math.max(...s.relative.slice(2)));
  return `One cycle in ${short(period)} tokens has ${short(at(s, period))} times the power of the same tokens in random order. ` +
    `In rows of that length the fullest column holds ${short(100 * most)} % marks. The strongest rhythm has a period of ${short(1 / s.freq[k])} tokens.`;
}

// ---------------------------------------------------------------- panels
const TICKS = [256, 128, 64, 32, 16, 8, 4, 2];

function spectrumPlot(s, period) {
  const low = s.freq[1], top = 1.1 * Math.max(1.2, ...s.relative.slice(1)), ticks = TICKS.filter((p) => 1 / p >= low);
  const fs = [...s.freq.slice(1)], ys = [...s.relative.slice(1)];
  return {
    title: "Spectrum of the text", xlabel: "cycles per token (log axis)", ylabel: "power / chance",
    x: { min: low, max: 0.5, map: Math.log2, unmap: (v) => 2 ** v, ticks: ticks.map((p) => [1 / p, `1/${p}`]) },
    y: { min: 0, max: top, ticks: [0, 1, ...(top > 2 ? [Math.floor(top)] : [])].map((v) => [v, short(v)]) },
    top: ticks.map((p) => [1 / p, String(p)]), toplabel: "tokens per cycle",
    paint(g, X, Y, theme) {
      curve(g, [low, 0.5], [1, 1], X, Y, theme.muted, { width: 1, dash: [5, 4] });
      curve(g, fs, ys, X, Y, theme.band, { fill: 0.18 });
      curve(g, [1 / period, 1 / period], [0, top], X, Y, theme.fg, { width: 1.4 });
    },
    read(f) { return `${short(f)} cycles per token, ${short(1 / f)} tokens per cycle: ${short(at(s, 1 / f))}`; },
    alt: `Power over frequency on a log axis, in units of the same tokens in random order; the chosen period of ${short(period)} tokens has ${short(at(s, period))}.`,
  };
}

function columnPlot(shares, period) {
  const top = 1.1 * Math.max(0.05, ...shares), step = Math.max(1, Math.ceil(shares.length / 12));
  return {
    title: "Marks in each column", xlabel: "column (tokens)", ylabel: "share",
    x: { min: -0.5, max: shares.length - 0.5, ticks: shares.flatMap((_, c) => (c % step ? [] : [[c, String(c)]])) },
    y: { min: 0, max: top, ticks: [0, top / 1.1].map((v) => [v, short(v)]) },
    paint(g, X, Y, theme) {
      g.fillStyle = theme.band;
      shares.forEach((v, c) => g.fillRect(X(c - 0.4), Y(v), X(c + 0.4) - X(c - 0.4), Y(0) - Y(v)));
    },
    read(v) { const c = Math.min(shares.length - 1, Math.max(0, Math.round(v))); return `column ${c}: ${short(100 * shares[c])} %`; },
    alt: `Share of marked tokens in each of ${shares.length} columns, from ${short(Math.min(...shares))} to ${short(Math.max(...shares))}.`,
  };
}

function foldPlot(text, cells, period, listen) {
  const chars = Array.from(text), rows = Math.min(ROWS, cells[cells.length - 1].row + 1), wide = Math.ceil(period);
  const shown = cells.filter(({ row }) => row < rows), every = Math.max(1, Math.ceil(rows / 6));
  return {
    title: `The text in rows of ${short(period)} tokens`, ylabel: "row",
    xlabel: `filled: ${listen === "all" ? "the row below has the same" : LISTEN[listen]}`,
    x: { min: -0.5, max: Math.max(wide, 28) - 0.5, ticks: [] }, // letters keep together in short rows
    y: { min: rows - 0.5, max: -0.5, ticks: Array.from({ length: rows }, (_, r) => r).filter((r) => r % every === 0).map((r) => [r, String(r)]) },
    paint(g, X, Y, theme) {
      const w = X(1) - X(0), h = Y(1) - Y(0);
      g.font = `${Math.min(13, 1.5 * w, h)}px ui-monospace, monospace`;
      g.textAlign = "center";
      g.textBaseline = "middle";
      shown.forEach(({ row, column, marked }, t) => {
        g.fillStyle = marked ? theme.band : theme.grid;
        g.globalAlpha = marked ? 0.75 : 0.35;
        g.fillRect(X(column - 0.5) + 0.25, Y(row - 0.5) + 0.25, Math.max(1, w - 0.5), Math.max(1, h - 0.5));
        g.globalAlpha = 1;
        if (w < 5 || h < 7) return;
        g.fillStyle = theme.fg;
        g.fillText(glyph(chars[t]), X(column), Y(row));
      });
    },
    read(v) { return `column ${Math.min(wide - 1, Math.max(0, Math.round(v)))}`; },
    alt: `The text written in rows of ${short(period)} tokens, ${rows} rows of it, the marked tokens filled in. Marks that line up in columns keep this period.`,
  };
}

// ---------------------------------------------------------------- the widget
function finder(model, change) {
  const longest = () => Math.min(WINDOW, Array.from(model.get("text")).length);
  const pick = (p) => change("period", +Math.min(WINDOW, Math.max(2, p)).toPrecision(4));
  const say = (p) => `tokens per cycle, ${short(1 / p)} cycles per token`;
  const controls = {
    listen: menu("Listen to", LISTEN, (v) => change("listen", v)),
    period: slider("Period", { min: 2, max: WINDOW, step: 0.005, fieldStep: 0.1, to: Math.log2, from: (v) => 2 ** v, say: (p) => `${short(p)} ${say(p)}`, note: say }, pick),
    text: textbox("A text", { shortest: SHORTEST, longest: LONGEST }, (v) => change("text", v)),
  };
  const panels = { spectrum: new Panel(250, (f) => pick(1 / f)), columns: new Panel(250), fold: new Panel(430) };
  controls.text.node.classList.add("fqk-wide");
  controls.period.node.classList.add("fqk-main");
  let known = {}; // the spectrum waits for another text, not for another period
  return {
    traits: ["listen", "period", "text"],
    nodes: [
      element("div", { className: "fqk-controls" }, controls.listen.node, controls.text.node),
      controls.period.node,
      element("div", { className: "fqk-panels" }, panels.spectrum.node, panels.columns.node),
      panels.fold.node,
    ],
    hear: {
      said: "A low tick where a row begins, a high one at each mark. If the period is right, the two keep step.",
      score: () => {
        const cells = fold(codes(model.get("text"), model.get("listen")), Math.min(longest(), model.get("period")), model.get("listen")).slice(0, HEARD);
        return { beats: cells.map((c) => +c.marked), ticks: cells.map((c) => +(c.column === 0)) };
      },
    },
    update(theme) {
      const text = model.get("text"), listen = model.get("listen"), period = Math.min(longest(), model.get("period"));
      if (known.text !== text || known.listen !== listen) {
        const x = codes(text, listen);
        known = { text, listen, x, s: spectrum(x) };
      }
      const cells = fold(known.x, period, listen), shares = columns(cells);
      for (const [key, control] of Object.entries(controls)) control.show(key === "period" ? period : model.get(key));
      panels.spectrum.draw(spectrumPlot(known.s, period), theme);
      panels.columns.draw(columnPlot(shares, period), theme);
      panels.fold.draw(foldPlot(text, cells, period, listen), theme);
      return sentence(known.s, period, shares);
    },
  };
}

export default {
  render: (view) => mount(view, "Rhythm finder", finder),
  pure: { codes, columns, fold, listen: Object.keys(LISTEN), spectrum },
};
