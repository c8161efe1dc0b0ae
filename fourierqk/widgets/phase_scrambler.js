// ---------------------------------------------------------------- amplitudes kept, phases changed, as phase_scrambler.py has it
const LONGEST = 256, SHIFT = 32, SEEDS = 99;
const SIGNALS = { spaces: "spaces", vowels: "vowels", capitals: "capital letters" };
const MARKS = { spaces: /\s/u, vowels: /[aeiou]/iu, capitals: /\p{Lu}/u };

// 1 where the character is of that kind, else 0.
const indicator = (text, signal) => Float64Array.from(Array.from(text), (c) => (MARKS[signal].test(c) ? 1 : 0));

function circle(n) { // cos and sin of 2 pi j / n
  const angle = Array.from({ length: n }, (_, j) => (2 * Math.PI * j) / n);
  return { cos: angle.map(Math.cos), sin: angle.map(Math.sin) };
}

// The bins 0 .. n / 2 of the DFT of a real signal.
function transform(x) {
  const n = x.length, { cos, sin } = circle(n), half = Math.floor(n / 2);
  const re = new Float64Array(half + 1), im = new Float64Array(half + 1);
  for (let k = 0; k <= half; k++) {
    for (let t = 0, j = 0; t < n; t++, j = (j + k) % n) {
      re[k] += x[t] * cos[j];
      im[k] -= x[t] * sin[j];
    }
  }
  return { re, im };
}

function inverse({ re, im }, n) {
  const { cos, sin } = circle(n), half = Math.floor(n / 2);
  return Float64Array.from({ length: n }, (_, t) => {
    let sum = 0;
    for (let k = 0, j = 0; k <= half; k++, j = (j + t) % n) {
      sum += (k === 0 || 2 * k === n ? 1 : 2) * (re[k] * cos[j] - im[k] * sin[j]); // a mirror image for all but DC, Nyquist
    }
    return sum / n;
  });
}

function surrogate(x, { shift, scramble, seed }) {
  const n = x.length, { re, im } = transform(x), next = uniform(seed);
  for (let k = 1; 2 * k <= n; k++) {
    const scrambled = 2 * k < n ? 2 * Math.PI * scramble * (next() - 0.5) : 0;
    const angle = scrambled - (2 * Math.PI * k * shift) / n, c = Math.cos(angle), s = Math.sin(angle);
    [re[k], im[k]] = [re[k] * c - im[k] * s, re[k] * s + im[k] * c];
  }
  return inverse({ re, im }, n);
}

// ---------------------------------------------------------------- what is to be seen
const exact = (v) => short(Math.abs(v) < 5e-13 ? 0 : v); // without round-off
const size = ({ re, im }) => Float64Array.from(re, (v, k) => Math.hypot(v, im[k]));
const mean = (a) => a.reduce((sum, v) => sum + v, 0) / a.length;

function correlation(x, y) {
  const mx = mean(x), my = mean(y), dot = (a, ma, b, mb) => a.reduce((sum, v, t) => sum + (v - ma) * (b[t] - mb), 0);
  const spread = Math.sqrt(dot(x, mx, x, mx) * dot(y, my, y, my));
  return spread > 1e-12 ? dot(x, mx, y, my) / spread : 1; // a constant line stays as it is
}

// {x, y: the signals, from, to: their bins, amplitudes: {from, to}, moved: the largest change of an amplitude, alike}
function describe(text, signal, change) {
  const x = indicator(text, signal), y = surrogate(x, change), from = transform(x), to = transform(y);
  const amplitudes = { from: size(from), to: size(to) };
  const moved = Math.max(...amplitudes.from.map((v, k) => Math.abs(v - amplitudes.to[k])));
  return { x, y, from, to, amplitudes, moved, alike: correlation(x, y) };
}

const sentence = (s, d) =>
  `Shifted by ${s.shift} tokens, phases scrambled by ${short(100 * s.scramble)} %. The largest change of an amplitude is ${exact(d.moved)}; ` +
  `the correlation of the line with what it was is ${+d.alike.toFixed(2)}.`;

// ---------------------------------------------------------------- panels
const frequencies = { min: 0, max: 0.5, ticks: [[0, "0"], [1 / 8, "1/8"], [1 / 4, "1/4"], [3 / 8, "3/8"], [1 / 2, "1/2"]] };
const bin = (f, n) => Math.min(Math.floor(n / 2), Math.max(0, Math.round(f * n)));

function amplitudePlot(d) {
  const n = d.x.length, { from, to } = d.amplitudes, inner = [...from].slice(1), most = Math.max(1e-9, ...inner);
  return {
    title: "Amplitudes: circles before", xlabel: "cycles per token", ylabel: "amplitude",
    x: frequencies, y: { min: 0, max: 1.15 * most, ticks: [0, most / 2, most].map((v) => [v, exact(v)]) },
    paint(g, X, Y, theme) {
      to.forEach((v, k) => {
        if (!k) return; // DC, the mean, would dwarf the rest
        curve(g, [k / n, k / n], [0, v], X, Y, theme.band, { width: 2 });
        spot(g, X(k / n), Y(from[k]), 3.2, theme.muted, true);
      });
    },
    read(f) { const k = bin(f, n); return `bin ${k}: ${exact(to[k])}, before ${exact(from[k])}`; },
    alt: `Amplitudes of the bins 1 to ${inner.length}, before (circles) and after (lines): they agree to ${exact(d.moved)}.`,
  };
}

function phasePlot(d) {
  const n = d.x.length, heard = 1e-6 * Math.max(1, ...d.amplitudes.from), turn = ({ re, im }, k) => Math.atan2(im[k], re[k]) / (2 * Math.PI);
  const bins = Array.from(d.amplitudes.from.keys()).filter((k) => k && d.amplitudes.from[k] > heard);
  const moved = bins.filter((k) => Math.abs(turn(d.from, k) - turn(d.to, k)) > 1e-6).length;
  return {
    title: "Phases: circles before", xlabel: "cycles per token", ylabel: "phase (turns)",
    x: frequencies, y: { min: -0.58, max: 0.58, ticks: [[-0.5, "−½"], [0, "0"], [0.5, "½"]] },
    paint(g, X, Y, theme) {
      for (const k of bins) {
        spot(g, X(k / n), Y(turn(d.from, k)), 3.2, theme.muted, true);
        spot(g, X(k / n), Y(turn(d.to, k)), 2.6, theme.band);
      }
    },
    read(f) { const k = bin(f, n); return `bin ${k}: ${turn(d.to, k).toFixed(2)} turns, before ${turn(d.from, k).toFixed(2)}`; },
    alt: `Phases of the same bins, before (circles) and after (dots): ${moved} of ${bins.length} have moved.`,
  };
}

function linePlot(text, d) {
  const chars = Array.from(text), n = chars.length, steps = Array.from(chars.keys()), apart = 2 ** Math.max(0, Math.ceil(Math.log2(n / 8)));
  const low = Math.min(0, ...d.y), high = Math.max(1, ...d.y), room = 0.08 * (high - low);
  return {
    title: "The line: dashed before, solid after", xlabel: "position (tokens)", ylabel: "signal", foot: 24,
    x: { min: -0.5, max: n - 0.5, ticks: steps.filter((t) => t % apart === 0).map((t) => [t, String(t)]) },
    y: { min: low - room, max: high + room, ticks: [[0, "0"], [1, "1"]] },
    paint(g, X, Y, theme, box) {
      const cell = box.width / n, base = box.top + box.height;
      curve(g, steps, d.x, X, Y, theme.muted, { width: 1.2, dash: [4, 3] });
      curve(g, steps, d.y, X, Y, theme.band, { fill: 0.14 });
      if (cell < 5) return;
      g.font = `${Math.min(14, 1.6 * cell)}px ui-monospace, monospace`;
      g.fillStyle = theme.fg;
      g.textAlign = "center";
      g.textBaseline = "middle";
      chars.forEach((c, t) => g.fillText(glyph(c), X(t), base + 11));
    },
    read(v) { const t = Math.min(n - 1, Math.max(0, Math.round(v))); return `token ${t}: ${exact(d.y[t])}, before ${exact(d.x[t])}`; },
    alt: `The line of ${n} characters as a signal before and after its phases changed: it now runs from ${exact(low)} to ${exact(high)}, ` +
      `and its correlation with the line before is ${+d.alike.toFixed(2)}.`,
  };
}

// ---------------------------------------------------------------- the widget
function scrambler(model, change) {
  const set = (key) => (value) => change(key, value), whole = (key) => (value) => change(key, Math.round(value));
  const controls = {
    shift: slider("Shift", { min: -SHIFT, max: SHIFT, step: 1, fieldStep: 1, say: (v) => `${v} tokens`, note: () => "tokens" }, whole("shift")),
    scramble: slider("Scramble", {
      min: 0, max: 1, step: 0.01, fieldStep: 0.01, say: (v) => `${short(100 * v)} percent of a random angle`, note: () => "of a random angle",
    }, set("scramble")),
    seed: slider("Seed", { min: 0, max: SEEDS, step: 1, fieldStep: 1, say: (v) => `seed ${v}`, note: () => (model.get("scramble") ? "which angles" : "no angle is scrambled: choose a share first") }, whole("seed")),
    text: textbox("A line of text", { longest: LONGEST }, set("text")),
    signal: menu("Signal: 1 at", SIGNALS, set("signal")),
  };
  const panels = { amplitudes: new Panel(220), phases: new Panel(220), line: new Panel(220) };
  const { shift, scramble, seed, text, signal } = controls;
  text.node.classList.add("fqk-wide");
  scramble.node.classList.add("fqk-main");
  return {
    traits: ["text", "signal", "shift", "scramble", "seed"],
    nodes: [
      element("div", { className: "fqk-controls" }, shift.node, seed.node),
      scramble.node,
      element("div", { className: "fqk-panels" }, panels.amplitudes.node, panels.phases.node),
      panels.line.node,
      element("div", { className: "fqk-controls" }, text.node, signal.node),
    ],
    hear: {
      said: "A high tick at each mark of the line; the line after its phases changed as a tone that rises and falls with it.",
      score: () => {
        const s = Object.fromEntries(Object.keys(controls).map((key) => [key, model.get(key)])), { x, y } = describe(s.text, s.signal, s);
        return { beats: x, left: y, right: y };
      },
    },
    update(theme) {
      const s = Object.fromEntries(Object.keys(controls).map((key) => [key, model.get(key)]));
      const d = describe(s.text, s.signal, s);
      for (const [key, control] of Object.entries(controls)) control.show(s[key]);
      seed.enable(s.scramble > 0);
      panels.amplitudes.draw(amplitudePlot(d), theme);
      panels.phases.draw(phasePlot(d), theme);
      panels.line.draw(linePlot(s.text, d), theme);
      return sentence(s, d);
    },
  };
}

export default {
  render: (view) => mount(view, "Phase scrambler", scrambler),
  pure: { describe, indicator, sentence, surrogate, transform },
};
