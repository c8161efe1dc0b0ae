// ---------------------------------------------------------------- a formula of the reader's own, as formula.py reads it
const VARIABLES = ["f", "c", "w"]; // frequency, centre, bandwidth
const FUNCTIONS = {
  abs: [1, Math.abs], cos: [1, Math.cos], exp: [1, Math.exp], log: [1, Math.log],
  max: [2, Math.max], min: [2, Math.min], sin: [1, Math.sin], sqrt: [1, Math.sqrt],
};
const OPERATORS = {
  "<": (a, b) => +(a < b), ">": (a, b) => +(a > b), "+": (a, b) => a + b, "-": (a, b) => a - b, "*": (a, b) => a * b, "/": (a, b) => a / b, "^": (a, b) => a ** b,
};
const LEVELS = ["<>", "+-", "*/"]; // what binds least first
const KNOWN = [...VARIABLES, "pi", ...Object.keys(FUNCTIONS)].join(", ");
const TOKEN = /\s*(?:(?<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)|(?<name>[A-Za-z_]\w*)|(?<sign>[-+*/^(),<>]))/dy;

// A function of {f, c, w}; an Error says what is wrong and where. Nothing of the text is run as a script.
function compile(text) {
  const tokens = [], whole = text.trimEnd();
  const fail = (at, what) => { throw new Error(`at character ${at + 1}: ${what}`); };
  for (let at = 0; at < whole.length; at = TOKEN.lastIndex) {
    TOKEN.lastIndex = at;
    const m = TOKEN.exec(whole);
    if (!m) { at += whole.slice(at).length - whole.slice(at).trimStart().length; fail(at, `"${String.fromCodePoint(whole.codePointAt(at))}" has no meaning here`); }
    const kind = Object.keys(m.groups).find((key) => m.groups[key] !== undefined);
    tokens.push([kind, m.groups[kind], m.indices.groups[kind][0]]);
  }
  tokens.push(["end", "", whole.length]);
  const take = (signs) => (tokens[0][0] === "sign" && signs.includes(tokens[0][1]) ? tokens.shift()[1] : "");
  const need = (sign) => take(sign) || fail(tokens[0][2], `"${sign}" is missing`);
  const joined = (sign, left, right) => (v) => OPERATORS[sign](left(v), right(v));
  function level(depth) {
    if (depth === LEVELS.length) return signed();
    let left = level(depth + 1);
    for (let sign; (sign = take(LEVELS[depth]));) left = joined(sign, left, level(depth + 1));
    return left;
  }
  function signed() {
    if (take("-")) { const inner = signed(); return (v) => -inner(v); }
    const base = atom();
    return take("^") ? joined("^", base, signed()) : base;
  }
  function atom() {
    const [kind, token, at] = tokens[0];
    if (take("(")) { const inner = level(0); need(")"); return inner; }
    if (kind !== "number" && kind !== "name") fail(at, `a number, a name or a bracket is missing${token && ` before "${token}"`}`);
    tokens.shift();
    if (kind === "number" || token === "pi") { const value = kind === "number" ? +token : Math.PI; return () => value; }
    if (VARIABLES.includes(token)) return (v) => v[token];
    if (!Object.hasOwn(FUNCTIONS, token)) fail(at, `"${token}" is not known, but ${KNOWN} are`);
    need("(");
    const given = [level(0)], [count, run] = FUNCTIONS[token];
    while (take(",")) given.push(level(0));
    need(")");
    if (given.length !== count) fail(at, `${token} takes ${count} value${count > 1 ? "s" : ""}, not ${given.length}`);
    return (v) => run(...given.map((each) => each(v)));
  }
  const found = level(0);
  if (tokens[0][1]) fail(tokens[0][2], `an operator is missing before "${tokens[0][1]}"`);
  return found;
}

// What is wrong with a formula, in words; "" if nothing is.
function wrongWith({ formula, frequency: c, bandwidth: w }) {
  try {
    const value = compile(formula), at = Array.from({ length: 513 }, (_, k) => k / 1024).find((f) => !Number.isFinite(value({ f, c, w })));
    return at === undefined ? "" : `it is not finite at f = ${short(at)}`;
  } catch (error) {
    return error.message;
  }
}

function own({ formula, frequency: c, bandwidth: w }) { // where it is not finite, nothing passes
  const value = compile(formula);
  return (f) => { const v = value({ f: Math.abs(f), c, w }); return Number.isFinite(v) ? v : 0; };
}

// ---------------------------------------------------------------- the filters, as fourierqk/filters.py defines them
// Settings s = {family, frequency, bandwidth, formula}, in cycles per token. Signals are {re, im}; im is null where real.
const GRID = 1024; // the grid on which fourierqk.filters.Causal takes an impulse response
const TAPS = 128; // reach of the causal families, in tokens

const bands = {
  gaussian: (s) => (f) => Math.exp(-0.5 * ((Math.abs(f) - s.frequency) / s.bandwidth) ** 2),
  hat: (s) => (f) => { const u = (f / s.frequency) ** 2; return u * Math.exp(1 - u); },
};
const cut = (band) => (s) => ({ re: inverse(band(s), GRID).slice(0, TAPS), im: null });

// `band` is what was asked for; a causal family has a `kernel`, which is what runs instead.
const FAMILIES = {
  gaussian: { name: "Gaussian, two-sided", band: bands.gaussian },
  "mexican-hat": { name: "Mexican hat, two-sided", band: bands.hat, fixed: true },
  "causal-gaussian": { name: "Gaussian, future cut off", band: bands.gaussian, kernel: cut(bands.gaussian) },
  "causal-mexican-hat": { name: "Mexican hat, future cut off", band: bands.hat, kernel: cut(bands.hat), fixed: true },
  "causal-morlet": { name: "Morlet, causal half", band: bands.gaussian, kernel: morlet },
  "sliding-gaussian": {
    name: "Gaussian, sliding DFT", band: bands.gaussian,
    kernel: (s) => ({ re: inverse(bands.gaussian(s), TAPS), im: null }),
  },
  own: { name: "Your formula, two-sided", band: own, free: true },
  "causal-own": { name: "Your formula, future cut off", band: own, kernel: cut(own), free: true },
};

const tables = new Map();
function circle(n) { // cos and sin of 2 pi j / n
  if (!tables.has(n)) {
    const angle = Array.from({ length: n }, (_, j) => (2 * Math.PI * j) / n);
    tables.set(n, { cos: Float64Array.from(angle, Math.cos), sin: Float64Array.from(angle, Math.sin) });
  }
  return tables.get(n);
}

// The inverse real DFT of a real, even response over n tokens.
function inverse(band, n) {
  const { cos } = circle(n), half = Math.floor(n / 2), h = new Float64Array(n);
  const gain = Float64Array.from({ length: half + 1 }, (_, k) => band(k / n) * (k === 0 || 2 * k === n ? 1 : 2) / n);
  for (let t = 0; t <= half; t++) {
    let sum = 0;
    for (let k = 0, j = 0; k <= half; k++, j = (j + t) % n) sum += gain[k] * cos[j];
    h[t] = sum;
    if (t) h[n - t] = sum; // an even response has an even echo
  }
  return h;
}

// exp(-t^2 / 2a^2) exp(2 pi i f t) with a = 1 / (2 pi bandwidth): a whole one would have exactly this bandwidth.
function morlet({ frequency, bandwidth }) {
  const a = 1 / (2 * Math.PI * bandwidth), re = new Float64Array(TAPS), im = new Float64Array(TAPS);
  for (let t = 0; t < TAPS; t++) {
    const size = Math.exp(-0.5 * (t / a) ** 2), phase = 2 * Math.PI * frequency * t;
    re[t] = size * Math.cos(phase);
    im[t] = size * Math.sin(phase);
  }
  return { re, im };
}

// What one token turns into over n tokens, lag 0 first; of a two-sided filter, entry n - l is lag -l.
function impulse(s, n) {
  const { band, kernel } = FAMILIES[s.family];
  if (!kernel) return { re: inverse(band(s), n), im: null };
  const fit = (a) => { const h = new Float64Array(n); h.set(a.subarray(0, n)); return h; };
  const { re, im } = kernel(s);
  return { re: fit(re), im: im && fit(im) };
}

// The factor at each frequency of fs.
function response(s, fs) {
  const { band, kernel } = FAMILIES[s.family];
  if (!kernel) return { re: Float64Array.from(fs, band(s)), im: new Float64Array(fs.length) };
  const { re, im } = kernel(s), out = { re: new Float64Array(fs.length), im: new Float64Array(fs.length) };
  fs.forEach((f, i) => {
    const c = Math.cos(2 * Math.PI * f), d = -Math.sin(2 * Math.PI * f);
    let wr = 1, wi = 0, a = 0, b = 0; // the wave exp(-2 pi i f t), turned on by one token a step
    for (let t = 0; t < re.length; t++) {
      const q = im ? im[t] : 0;
      a += re[t] * wr - q * wi;
      b += re[t] * wi + q * wr;
      [wr, wi] = [wr * c - wi * d, wr * d + wi * c];
    }
    out.re[i] = a;
    out.im[i] = b;
  });
  return out;
}

// The filtered signal: circular over the whole of x for a two-sided family, with silence before x for a causal one.
function apply(s, x) {
  const n = x.length, { re, im } = impulse(s, n), wraps = !FAMILIES[s.family].kernel;
  const run = (h) => Float64Array.from(x, (_, t) => {
    let sum = 0;
    for (let u = 0; u < (wraps ? n : t + 1); u++) sum += h[(t - u + n) % n] * x[u];
    return sum;
  });
  return { re: run(re), im: im && run(im) };
}

const SIGNALS = { spaces: "spaces", vowels: "vowels", capitals: "capital letters" };
const MARKS = { spaces: /\s/u, vowels: /[aeiou]/iu, capitals: /\p{Lu}/u };
// 1 where the character is of that kind, else 0.
const indicator = (text, signal) => Float64Array.from(Array.from(text), (c) => (MARKS[signal].test(c) ? 1 : 0));

// ---------------------------------------------------------------- figures that describe a filter
// Frequencies to draw: even on a square-root axis, six a ripple of a kernel of TAPS, and dense around the centre.
function axis({ frequency, bandwidth }) {
  const even = Array.from({ length: 241 }, (_, i) => 0.5 * (i / 240) ** 2);
  const ripples = Array.from({ length: 3 * TAPS }, (_, i) => (i + 0.5) / (6 * TAPS));
  const dense = Array.from({ length: 33 }, (_, i) => frequency + ((i - 16) / 4) * bandwidth);
  return [...even, ...ripples, ...dense.filter((f) => f > 0 && f < 0.5)].sort((a, b) => a - b);
}
const EARLIEST = -64, LATEST = TAPS; // lags drawn
const size = ({ re, im }) => Float64Array.from(re, (v, i) => (im ? Math.hypot(v, im[i]) : Math.abs(v)));
const percent = (v) => `${v > 0 && v < 0.001 ? "under 0.1" : (100 * v).toFixed(v && v < 0.1 ? 1 : 0)} %`;

function describe(s) {
  const family = FAMILIES[s.family], fs = axis(s), gain = size(response(s, fs)), peak = Math.max(1e-9, ...gain);
  const h = impulse(s, GRID), energy = size(h).map((v) => v * v), all = energy.reduce((a, b) => a + b);
  const ahead = family.kernel ? 0 : energy.subarray(GRID / 2 + 1).reduce((a, b) => a + b);
  return { family, fs, gain, peak, at: fs[gain.indexOf(peak)], dc: gain[0] / peak, h, future: all ? ahead / all : 0 };
}

const sentence = (s, d) =>
  (d.family.free && wrongWith(s) ? `Of your formula, ${wrongWith(s)}: nothing passes there. ` : "") +
  `${d.family.name}: centre ${short(s.frequency)} cycles per token, one cycle in ${short(1 / s.frequency)} tokens. ` +
  `The response peaks with ${short(d.peak)} at ${short(d.at)}; at DC it passes ${percent(d.dc)} of that. ` +
  (d.future ? `${percent(d.future)} of the impulse response's energy lies in the future.` : "Nothing of the impulse response lies in the future.");

// ---------------------------------------------------------------- panels
function responsePlot(s, d) {
  const { fs } = d, asked = fs.map(d.family.band(s)), most = Math.max(1e-9, ...asked.map(Math.abs));
  const root = { map: Math.sqrt, unmap: (v) => v * v };
  return {
    title: "Frequency response: drag its peak or flank", xlabel: "cycles per token (square-root axis)", ylabel: "gain / peak gain",
    x: { min: 0, max: 0.5, ...root, ticks: [[0, "0"], [1 / 64, "1/64"], [1 / 16, "1/16"], [1 / 8, "1/8"], [1 / 4, "1/4"], [1 / 2, "1/2"]] },
    y: { min: 0, max: 1.08, ticks: [[0, "0"], [0.5, "0.5"], [1, "1"]] },
    top: [[1 / 64, "64"], [1 / 16, "16"], [1 / 8, "8"], [1 / 4, "4"], [1 / 2, "2"]], toplabel: "tokens per cycle",
    paint(g, X, Y, theme, box) {
      if (d.family.kernel) curve(g, fs, asked.map((v) => Math.abs(v) / most), X, Y, theme.muted, { width: 1.2, dash: [5, 4] });
      curve(g, fs, d.gain.map((v) => v / d.peak), X, Y, theme.band, { fill: 0.18 });
      curve(g, [s.frequency, s.frequency], [0, 1.08], X, Y, theme.muted, { width: 1, dash: [2, 3] });
      if (!d.family.kernel) return;
      g.font = `11px ${theme.font}`;
      g.fillStyle = theme.muted;
      g.textAlign = "right";
      g.textBaseline = "top";
      g.fillText("dashed: the band asked for", box.left + box.width - 6, box.top + 6);
    },
    read(f) { const i = Math.max(0, fs.findIndex((v) => v >= f)); return `${short(fs[i])} cycles per token: gain ${short(d.gain[i])}`; },
    alt: `Frequency response from 0 to one half cycle per token: peak gain ${short(d.peak)} at ${short(d.at)} cycles per token, ${percent(d.dc)} of it at DC.`,
  };
}

function impulsePlot(s, d) {
  const lags = Array.from({ length: LATEST - EARLIEST + 1 }, (_, i) => EARLIEST + i);
  const at = (part) => lags.map((l) => part[(l + GRID) % GRID]);
  const re = at(d.h.re), im = d.h.im && at(d.h.im), zero = -EARLIEST;
  const most = Math.max(1e-9, ...size({ re, im }));
  return {
    title: "Impulse response: drag to stretch it", xlabel: "lag (tokens)", ylabel: "weight",
    x: { min: EARLIEST, max: LATEST, ticks: [-64, -32, 0, 32, 64, 96, 128].map((v) => [v, String(v)]) },
    y: { min: -1.12 * most, max: 1.12 * most, ticks: [-most, 0, most].map((v) => [v, short(v)]) },
    paint(g, X, Y, theme, box) {
      const split = (a, b, part, colour, style) => curve(g, lags.slice(a, b), part.slice(a, b), X, Y, colour, style);
      if (im) split(zero, undefined, im, theme.past, { width: 1.1, dash: [4, 3] });
      split(0, d.future ? zero + 1 : zero, re, theme.future, { fill: 0.22 });
      split(zero, undefined, re, theme.past, { fill: 0.22 });
      g.strokeStyle = theme.muted;
      g.beginPath();
      g.moveTo(X(0), box.top);
      g.lineTo(X(0), box.top + box.height);
      g.stroke();
      g.font = `600 12px ${theme.font}`;
      g.textBaseline = "top";
      g.fillStyle = theme.future;
      g.textAlign = "right";
      g.fillText(`future ${percent(d.future)}`, X(0) - 6, box.top + 5);
      g.fillStyle = theme.past;
      g.textAlign = "left";
      g.fillText(im ? "past (dashed: imaginary)" : "past", X(0) + 6, box.top + 5);
    },
    read(x) { const l = Math.round(x), i = l - EARLIEST; return `lag ${l}${l < 0 ? " (future)" : ""}: ${short(re[i])}${im ? ` + ${short(im[i])} i` : ""}`; },
    alt: `Impulse response over lags ${EARLIEST} to ${LATEST} tokens, the past in blue, the future in red: ${percent(d.future)} of its energy lies at negative lags, in the future.`,
  };
}

function textPlot(s, text, signal, position) {
  const chars = Array.from(text), n = chars.length, x = indicator(text, signal), y = apply(s, x), h = size(impulse(s, n));
  const wraps = !FAMILIES[s.family].kernel, most = Math.max(1e-9, ...size(y)), loudest = Math.max(1e-9, ...h);
  const low = Math.min(0, ...y.re, ...(y.im || [])) < -1e-6 * most ? -1.1 * most : 0, step = 2 ** Math.max(0, Math.ceil(Math.log2(n / 8)));
  return {
    title: `The line, filtered (1 at ${SIGNALS[signal]}, else 0)`, xlabel: "position (tokens)", ylabel: "filtered signal", foot: 24,
    x: { min: -0.5, max: n - 0.5, ticks: chars.flatMap((_, t) => (t % step ? [] : [[t, String(t)]])) },
    y: { min: low, max: 1.1 * most, ticks: (low ? [-most, 0, most] : [0, most]).map((v) => [v, short(v)]) },
    paint(g, X, Y, theme, box) {
      const cell = box.width / n, base = box.top + box.height;
      chars.forEach((c, u) => { // how strongly the listening token weighs this one
        const weight = u > position && !wraps ? 0 : h[(position - u + n) % n] / loudest;
        g.globalAlpha = 0.75 * weight;
        g.fillStyle = u > position ? theme.future : theme.past;
        g.fillRect(X(u - 0.5), base + 2, cell + 0.3, 20);
        g.globalAlpha = 1;
        g.fillStyle = theme.fg;
        if (x[u]) g.fillRect(X(u) - Math.max(1, cell / 4), base + 19, Math.max(2, cell / 2), 3);
        if (cell < 5) return;
        g.font = `${Math.min(14, 1.6 * cell)}px ui-monospace, monospace`;
        g.textAlign = "center";
        g.textBaseline = "middle";
        g.fillText(glyph(c), X(u), base + 10);
      });
      const steps = Array.from(chars.keys());
      if (y.im) curve(g, steps, y.im, X, Y, theme.band, { width: 1.1, dash: [4, 3] });
      curve(g, steps, y.re, X, Y, theme.band, { fill: 0.12 });
      curve(g, [position, position], [low, 1.1 * most], X, Y, theme.fg, { width: 1.2 });
    },
    read(v) { const t = Math.min(n - 1, Math.max(0, Math.round(v))); return `token ${t}: ${short(y.re[t])}${y.im ? ` + ${short(y.im[t])} i` : ""}`; },
    alt: `The filtered signal of a line of ${n} characters; its largest size is ${short(most)}. Below it the characters, shaded by their weight ` +
      `in what token ${position} hears: blue for the past${wraps ? ", red for the future" : "; no future token has any weight"}.`,
  };
}

// ---------------------------------------------------------------- the widget
const octaves = { to: Math.log2, from: (v) => 2 ** v };
const SLOWEST = 1 / 512, FASTEST = 0.499, WIDEST = 1 / 4; // that the page goes to, in cycles per token

function designer(model, change) {
  const set = (key) => (value) => change(key, value);
  const settings = () => Object.fromEntries(["family", "frequency", "bandwidth", "formula"].map((key) => [key, model.get(key)]));
  const names = Object.fromEntries(Object.entries(FAMILIES).map(([key, { name }]) => [key, name]));
  const uses = (variable) => !FAMILIES[model.get("family")].free || RegExp(`\\b${variable}\\b`).test(model.get("formula"));
  const movable = () => !FAMILIES[model.get("family")].fixed && uses("w");
  const within = (key, low, high) => (v) => change(key, +Math.min(high, Math.max(low, v)).toPrecision(4));
  const tune = within("frequency", SLOWEST, FASTEST), widen = within("bandwidth", SLOWEST, WIDEST);
  let flank = false; // what the drag has hold of: the peak, or what falls off beside it
  const grip = (f, _, first) => {
    const far = Math.abs(f - model.get("frequency")) / model.get("bandwidth");
    if (first) flank = movable() && far > 0.6 && far < 2.5;
    if (flank) widen(far * model.get("bandwidth"));
    else if (uses("c")) tune(f);
  };
  const stretch = (lag) => { // a bell of so many tokens, or the trough of a Mexican hat
    const far = Math.max(1, Math.abs(lag));
    if (movable()) widen(1 / (2 * Math.PI * far));
    else if (FAMILIES[model.get("family")].fixed) tune(Math.sqrt(1.5) / (Math.PI * far));
  };
  const controls = {
    family: menu("Filter", names, set("family")),
    frequency: slider("Centre frequency", {
      min: SLOWEST, max: FASTEST, step: 0.01, fieldStep: 0.001, ...octaves,
      say: (f) => `${short(f)} cycles per token, ${short(1 / f)} tokens per cycle`,
      note: (f) => (uses("c") ? `cycles per token, ${short(1 / f)} tokens per cycle` : "c is not in your formula"),
    }, set("frequency")),
    bandwidth: slider("Bandwidth", {
      min: SLOWEST, max: WIDEST, step: 0.01, fieldStep: 0.001, ...octaves,
      say: (w) => `${short(w)} cycles per token`,
      note: () => (FAMILIES[model.get("family")].fixed ? "set by the centre frequency" : uses("w") ? "cycles per token, standard deviation" : "w is not in your formula"),
    }, set("bandwidth")),
    formula: textbox("Your formula of f, centre c and bandwidth w", { longest: 200, check: (formula) => wrongWith({ ...settings(), formula }) }, set("formula")),
    text: textbox("A line of text", { longest: 512 }, set("text")),
    signal: menu("Signal: 1 at", SIGNALS, set("signal")),
  };
  const length = () => Array.from(model.get("text")).length;
  const listen = (t) => change("position", Math.min(length() - 1, Math.max(0, Math.round(t))));
  const place = element("input", { type: "range", min: 0, step: 1, ...KEYS });
  place.addEventListener("input", () => listen(+place.value));
  const panels = { response: new Panel(250, grip), impulse: new Panel(250, stretch), text: new Panel(220, listen) };
  const { family, frequency, bandwidth, formula, text, signal } = controls;
  frequency.node.classList.add("fqk-main");
  text.node.classList.add("fqk-wide");
  formula.node.classList.add("fqk-wide");
  const listener = element("label", { className: "fqk-control" }, element("span", {}, "Listening token"), place);
  return {
    traits: ["family", "frequency", "bandwidth", "formula", "text", "signal", "position"],
    nodes: [
      frequency.node,
      element("div", { className: "fqk-controls" }, family.node, bandwidth.node, formula.node),
      element("div", { className: "fqk-panels" }, panels.response.node, panels.impulse.node),
      element("div", { className: "fqk-controls" }, text.node, signal.node, listener),
      panels.text.node,
    ],
    hear: {
      said: "A tick at each mark of the line. The filtered line as a tone: what it hears of the past in the left ear, of the future in the right.",
      score: () => {
        const s = settings(), x = indicator(model.get("text"), model.get("signal")), n = x.length, h = impulse(s, n).re, wraps = !FAMILIES[s.family].kernel;
        const ear = (ahead) => x.map((_, t) => x.reduce((sum, v, u) => (u > t === ahead && (wraps || !ahead) ? sum + h[(t - u + n) % n] * v : sum), 0));
        return { beats: x, left: ear(false), right: ear(true) };
      },
    },
    update(theme) {
      const s = settings(), d = describe(s), t = Math.min(model.get("position"), length() - 1);
      for (const [key, control] of Object.entries(controls)) control.show(model.get(key));
      frequency.enable(uses("c"));
      bandwidth.enable(movable());
      formula.node.hidden = !d.family.free;
      place.max = length() - 1;
      place.value = t;
      place.setAttribute("aria-valuetext", `token ${t}`);
      panels.response.draw(responsePlot(s, d), theme);
      panels.impulse.draw(impulsePlot(s, d), theme);
      panels.text.draw(textPlot(s, model.get("text"), model.get("signal"), t), theme);
      return sentence(s, d);
    },
  };
}

export default {
  render: (view) => mount(view, "Filter designer", designer),
  pure: { apply, compile, describe, families: Object.keys(FAMILIES), impulse, indicator, response, wrongWith },
};
