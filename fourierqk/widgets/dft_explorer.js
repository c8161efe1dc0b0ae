// ---------------------------------------------------------------- arrows head to tail, as dft_explorer.py has them
// Settings s = {text, letter, length, frequency, window, zeros}; frequency in cycles per token.
const LONGEST = 96, ZEROS = 192;
const cosines = (...a) => (t, n) => a.reduce((sum, c, i) => sum + c * Math.cos((2 * Math.PI * i * t) / (n - 1)), 0);
const WINDOWS = {
  rectangular: { name: "rectangular", at: () => 1 },
  hann: { name: "Hann", at: cosines(0.5, -0.5) },
  hamming: { name: "Hamming", at: cosines(0.54, -0.46) },
  blackman: { name: "Blackman", at: cosines(0.42, -0.5, 0.08) },
};

const heard = ({ text, length }) => Array.from(text).slice(0, length);

// The arrows' lengths: the window where the letter stands, 0 elsewhere.
function signal(s) {
  const chars = heard(s), { at } = WINDOWS[s.window];
  return Float64Array.from(chars, (c, t) => (c === s.letter ? at(t, chars.length) : 0));
}

// Where the arrows lead after each token.
function walk(x, f) {
  let re = 0, im = 0;
  return Array.from(x, (v, t) => [(re += v * Math.cos(2 * Math.PI * f * t)), (im -= v * Math.sin(2 * Math.PI * f * t))]);
}

// How far they lead in the end, at each of the frequencies: the arrow exp(-2 pi i f t) is turned on token by token.
function reach(x, fs) {
  return Float64Array.from(fs, (f) => {
    const c = Math.cos(2 * Math.PI * f), d = -Math.sin(2 * Math.PI * f);
    let wr = 1, wi = 0, re = 0, im = 0;
    for (const v of x) {
      re += v * wr;
      im += v * wi;
      [wr, wi] = [wr * c - wi * d, wr * d + wi * c];
    }
    return Math.hypot(re, im);
  });
}

const bins = (n) => Array.from({ length: Math.floor(n / 2) + 1 }, (_, k) => k / n);
const FINE = bins(1536); // for the curve between the bins: eight points a bin of the longest line

function describe(s) {
  const x = signal(s), path = walk(x, s.frequency), n = x.length, at = bins(n + s.zeros), total = x.reduce((a, b) => a + b, 0);
  return { x, n, path, total, at, stems: reach(x, at), between: reach(x, FINE), turns: s.frequency * n, end: Math.hypot(...path[n - 1]) };
}

// ---------------------------------------------------------------- what it says
const fixed = (v) => String(+v.toFixed(2));
const counted = (k) => `${fixed(k)} turn${k === 1 ? "" : "s"}`;
const period = (f) => (f ? `${short(1 / f)} tokens a turn` : "it does not turn");

function sentence(s, d) {
  const arrows = d.x.filter((v) => v).length, share = d.end / d.total;
  const start = `k = ${counted(d.turns)} in ${d.n} tokens, ${period(s.frequency)}. `;
  if (!arrows) return `${start}No arrow is laid down: ${name(s.letter)} is not among these tokens.`;
  const how = share > 0.98 ? "they all point the same way" : share < 0.02 ? "they cancel" : "they agree in part";
  return `${start}The ${arrows} arrow${arrows > 1 ? "s" : ""}, one at each ${name(s.letter)}, ${fixed(d.total)} long together, ` +
    `end${arrows > 1 ? "" : "s"} ${fixed(d.end)} from the start: ${how}.`;
}

// ---------------------------------------------------------------- panels
function arrow(g, x0, y0, x1, y1, head) {
  const length = Math.hypot(x1 - x0, y1 - y0), angle = Math.atan2(y1 - y0, x1 - x0);
  const tip = Math.min(head, 0.6 * length);
  g.beginPath();
  g.moveTo(x0, y0);
  g.lineTo(x1, y1);
  for (const side of [-0.45, 0.45]) {
    g.moveTo(x1, y1);
    g.lineTo(x1 - tip * Math.cos(angle + side), y1 - tip * Math.sin(angle + side));
  }
  g.stroke();
}

function walkPlot(s, d) {
  const points = [[0, 0], ...d.path], along = (i) => points.map((p) => p[i]);
  const [left, right, low, high] = [Math.min(...along(0)), Math.max(...along(0)), Math.min(...along(1)), Math.max(...along(1))];
  return {
    title: "An arrow a letter, head to tail", x: { min: 0, max: 1 }, y: { min: 0, max: 1 },
    paint(g, X, Y, theme, box) {
      const room = 26, least = 2.2; // pixels around, arrows across: the scale grows and shrinks with the walk
      const scale = Math.min((box.width - 2 * room) / Math.max(right - left, least), (box.height - 2 * room) / Math.max(high - low, least));
      const at = ([re, im]) => [box.left + box.width / 2 + scale * (re - (left + right) / 2), box.top + box.height / 2 - scale * (im - (low + high) / 2)];
      const start = at([0, 0]), end = at(d.path[d.n - 1]);
      g.strokeStyle = theme.grid;
      g.beginPath();
      for (const [a, b] of [[[box.left, start[1]], [box.left + box.width, start[1]]], [[start[0], box.top], [start[0], box.top + box.height]]]) {
        g.moveTo(...a);
        g.lineTo(...b);
      }
      g.stroke();
      g.strokeStyle = theme.fg;
      g.lineWidth = 1.6;
      g.setLineDash([5, 4]);
      g.beginPath();
      g.moveTo(...start);
      g.lineTo(...end);
      g.stroke();
      g.setLineDash([]);
      g.strokeStyle = theme.band;
      g.lineWidth = 2;
      d.x.forEach((v, t) => { if (v) arrow(g, ...at(points[t]), ...at(points[t + 1]), 9); });
      spot(g, ...start, 4, theme.fg, true);
      spot(g, ...end, 4, theme.fg);
      g.font = `12px ${theme.font}`;
      g.fillStyle = theme.muted;
      g.textAlign = "left";
      g.textBaseline = "bottom";
      g.fillText(`○ start   ● end: ${fixed(d.end)} of ${fixed(d.total)}`, box.left, box.top + box.height);
    },
    alt: `Arrows laid head to tail, one at each ${name(s.letter)}: together ${fixed(d.total)} long, they end ${fixed(d.end)} from the start.`,
  };
}

function spectrumPlot(s, d) {
  const most = d.total || 1, f = s.frequency, r = Math.max(1.2, Math.min(3, 90 / d.at.length));
  return {
    title: "How far they lead, for every k", xlabel: "frequency k/n (cycles per token)", ylabel: "length of the sum",
    x: { min: 0, max: 0.5, ticks: [[0, "0"], [1 / 10, "1/10"], [1 / 5, "1/5"], [3 / 10, "3/10"], [2 / 5, "2/5"], [1 / 2, "1/2"]] },
    y: { min: 0, max: 1.1 * most, ticks: [0, most / 2, most].map((v) => [v, short(v)]) },
    top: [[1 / 20, "20"], [1 / 10, "10"], [1 / 5, "5"], [1 / 4, "4"], [1 / 3, "3"], [1 / 2, "2"]], toplabel: "tokens a turn",
    paint(g, X, Y, theme) {
      curve(g, FINE, d.between, X, Y, theme.muted, { width: 1, dash: [2, 2] });
      d.at.forEach((at, k) => {
        curve(g, [at, at], [0, d.stems[k]], X, Y, theme.band, { width: Math.min(2, r) });
        spot(g, X(at), Y(d.stems[k]), r, theme.band);
      });
      curve(g, [f, f], [0, 1.1 * most], X, Y, theme.fg, { width: 1.4, dash: [5, 4] });
      spot(g, X(f), Y(d.end), 5, theme.fg);
    },
    read(v) { const k = Math.round(v * (d.n + s.zeros)); return `bin ${k} of ${d.n + s.zeros}: ${fixed(d.stems[Math.min(k, d.stems.length - 1)])}`; },
    alt: `Length of the sum over frequency from 0 to one half cycle per token, stems at ${d.stems.length} bins; at the chosen ${short(f)} it is ${fixed(d.end)} of ${fixed(d.total)}.`,
  };
}

// The line in rows, under each letter the arrow as it points there. A press chooses the letter of the signal.
const ROW = 46, CELL = 17;
class Line extends Bare {
  fit(n) {
    const width = this.node.clientWidth - 24;
    this.per = Math.max(1, Math.min(n, Math.floor(width / CELL)));
    this.cell = Math.min(22, width / this.per);
    this.height = 34 + ROW * Math.ceil(n / this.per);
  }

  valueAt(clientX, clientY) {
    const at = this.canvas.getBoundingClientRect(), column = Math.floor((clientX - at.left - this.box.left) / this.cell);
    const t = Math.floor((clientY - at.top - this.box.top) / ROW) * this.per + column;
    return column >= 0 && column < this.per && t >= 0 && t < this.plot.chars.length ? t : null;
  }
}

function linePlot(s, d, panel) {
  const chars = Array.from(s.text);
  return {
    title: "The line, and the arrow at each token", chars, x: { min: 0, max: 1 }, y: { min: 0, max: 1 },
    paint(g, X, Y, theme, box) {
      g.textAlign = "center";
      g.textBaseline = "middle";
      chars.forEach((c, t) => {
        const x = box.left + ((t % panel.per) + 0.5) * panel.cell, y = box.top + Math.floor(t / panel.per) * ROW, hit = c === s.letter && t < d.n;
        g.font = `${hit ? "700 " : ""}13px ui-monospace, monospace`;
        g.fillStyle = hit ? theme.band : t < d.n ? theme.fg : theme.frame;
        g.fillText(glyph(c), x, y + 8);
        if (t >= d.n) return; // beyond the length: not heard
        const angle = 2 * Math.PI * s.frequency * t, [u, v] = [6.5 * Math.cos(angle), 6.5 * Math.sin(angle)];
        g.strokeStyle = hit ? theme.band : theme.frame;
        g.lineWidth = hit ? 2 : 1;
        arrow(g, x - u, y + 27 - v, x + u, y + 27 + v, 5);
      });
    },
    read(t) { return t < d.n ? `token ${t}, ${name(chars[t])}: ${fixed((s.frequency * t) % 1)} turns` : `token ${t}, ${name(chars[t])}: not heard`; },
    alt: `The line, ${chars.length} tokens of which ${d.n} are heard: ${s.text}. Under each the turning arrow.`,
  };
}

// ---------------------------------------------------------------- the widget
function explorer(model, change) {
  const set = (key) => (value) => change(key, value), whole = (key) => (value) => change(key, Math.round(value));
  const settings = () => Object.fromEntries(["text", "letter", "length", "frequency", "window", "zeros"].map((key) => [key, model.get(key)]));
  const count = () => heard(settings()).length;
  const tune = (f) => change("frequency", Math.min(0.5, Math.max(0, f)));
  const drag = (f) => { // a bin near by is what was meant
    const n = count() + model.get("zeros"), bin = Math.round(f * n) / n;
    tune(Math.abs(f - bin) * n < 0.15 ? bin : +f.toPrecision(5));
  };
  const turn = (k) => `turn${k === 1 ? "" : "s"} in ${count()} tokens, ${period(k / count())}`;
  const controls = {
    frequency: slider("Turns along the line, k", { min: 0, max: 20, step: 0.05, fieldStep: 0.05, say: (k) => `${fixed(k)} ${turn(k)}`, note: turn }, (k) => tune(k / count())),
    letter: menu("An arrow at each", {}, set("letter")),
    length: slider("Length", { min: 2, max: LONGEST, step: 1, fieldStep: 1, say: (v) => `${v} tokens`, note: () => "tokens are heard" }, whole("length")),
    window: menu("Window", Object.fromEntries(Object.entries(WINDOWS).map(([key, w]) => [key, w.name])), set("window")),
    zeros: slider("Zeros appended", { min: 0, max: ZEROS, step: 1, fieldStep: 1, say: (v) => `${v} zeros`, note: (v) => (v ? "more points of one curve" : "none") }, whole("zeros")),
    text: textbox("A line of text", { shortest: 2, longest: LONGEST }, set("text")),
  };
  const panels = { walk: new Bare(250), spectrum: new Panel(250, drag), line: new Line(80, (t) => change("letter", Array.from(model.get("text"))[t])) };
  controls.frequency.node.classList.add("fqk-main");
  controls.text.node.classList.add("fqk-wide");
  return {
    traits: Object.keys(settings()),
    nodes: [
      element("div", { className: "fqk-panels" }, panels.walk.node, panels.spectrum.node),
      panels.line.node,
      controls.frequency.node,
      element("div", { className: "fqk-controls" }, ...["letter", "length", "window", "zeros", "text"].map((key) => controls[key].node)),
    ],
    hear: {
      said: "A high tick at each arrow, a low one where the turning arrow points east. Where the two keep step, the arrows lead far.",
      score: () => {
        const s = settings(), { x } = describe(s), turns = (t) => Math.floor(s.frequency * t + 1e-9);
        return { beats: x, ticks: x.map((_, t) => +(!t || !s.frequency || turns(t) > turns(t - 1))) };
      },
    },
    update(theme) {
      const s = settings(), d = describe(s), chars = Array.from(s.text);
      const counts = Object.fromEntries([...new Set([...chars, s.letter])].sort().map((c) => [c, `${name(c)} (${chars.filter((o) => o === c).length})`]));
      controls.letter.fill(counts);
      controls.length.bound(2, chars.length, 1);
      controls.frequency.bound(0, d.n / 2, 0.05);
      for (const [key, control] of Object.entries(controls)) control.show({ frequency: d.turns, length: d.n }[key] ?? s[key]);
      panels.line.fit(chars.length);
      panels.walk.draw(walkPlot(s, d), theme);
      panels.spectrum.draw(spectrumPlot(s, d), theme);
      panels.line.draw(linePlot(s, d, panels.line), theme);
      return sentence(s, d);
    },
  };
}

export default {
  render: (view) => mount(view, "DFT explorer", explorer),
  pure: { bins, describe, reach, sentence, signal, walk, windows: Object.keys(WINDOWS) },
};
