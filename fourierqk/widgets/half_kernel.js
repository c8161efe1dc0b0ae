// ---------------------------------------------------------------- half kernels, as fourierqk/filters.py defines them
// Settings s = {shape, scale, taps}; a kernel is the shape at u = t / scale, from t = 0 on.
const SMALLEST = 2, LARGEST = 64, MOST = 256, OMEGA0 = 6, FINE = 16; // scales, taps, Morlet's angle a scale, steps a token

const bell = (u) => Math.exp(-0.5 * u * u);
const SHAPES = { // `turns`: cycles a scale
  gaussian: { name: "Gaussian", at: (u) => [bell(u), 0], turns: 0 },
  "mexican-hat": { name: "Mexican hat", at: (u) => [(1 - u * u) * bell(u), 0], turns: Math.SQRT1_2 / Math.PI },
  morlet: { name: "Morlet", at: (u) => [bell(u) * Math.cos(OMEGA0 * u), bell(u) * Math.sin(OMEGA0 * u)], turns: OMEGA0 / (2 * Math.PI) },
};

// The curve at `n` places, `step` tokens apart, from t = first on.
function samples({ shape, scale }, n, step = 1, first = 0) {
  const re = new Float64Array(n), im = new Float64Array(n);
  for (let i = 0; i < n; i++) [re[i], im[i]] = SHAPES[shape].at((first + i * step) / scale);
  return { re, im };
}
const kernel = (s) => samples(s, s.taps);
const length = (s) => Math.min(s.taps, Math.ceil(6 * s.scale)); // tokens until the curve is cut or has faded
const fine = (s) => samples(s, length(s) * FINE, 1 / FINE, 0.5 / FINE); // the midpoints of FINE steps a token

// The transform of samples `step` tokens apart, at each frequency of fs, in cycles per token.
function transform({ re, im }, step, fs) {
  return Array.from(fs, (f) => {
    const c = Math.cos(2 * Math.PI * f * step), d = -Math.sin(2 * Math.PI * f * step);
    let wr = 1, wi = 0, a = 0, b = 0; // the wave exp(-2 pi i f t), turned on by one sample a step
    for (let i = 0; i < re.length; i++) {
      a += re[i] * wr - im[i] * wi;
      b += re[i] * wi + im[i] * wr;
      [wr, wi] = [wr * c - wi * d, wr * d + wi * c];
    }
    return [a * step, b * step];
  });
}
const size = (pairs) => pairs.map(([a, b]) => Math.hypot(a, b));
const response = (s, fs) => transform(kernel(s), 1, fs);
const drawn = (s, fs) => size(transform(fine(s), 1 / FINE, fs)); // magnitude of the curve's, before it is sampled

const energyOf = ({ re, im }) => re.reduce((sum, v, i) => sum + v * v + im[i] * im[i], 0);

const FAINT = 1e-6; // a share of the kernel's energy that no plot shows
function reach(s) { // the last lag that matters
  const { re, im } = kernel({ ...s, taps: MOST }), energy = Array.from(re, (v, t) => v * v + im[t] * im[t]);
  let left = energy.reduce((a, b) => a + b) * FAINT, t = MOST - 1;
  while (t > 0 && (left -= energy[t]) > 0) t--;
  return t;
}

// Everything that is shown: `fs` from -1/2 to 1, the gain that runs (up to 1/2) and that of the curve, in units of the
// peak that runs; shares of energy: held by the taps, beyond Nyquist before sampling; DC relative to the peak.
function describe(s) {
  const steps = Math.max(64, length(s)), fs = Array.from({ length: 3 * steps + 1 }, (_, i) => i / (2 * steps) - 0.5);
  const inside = fs.slice(0, 2 * steps + 1), runs = size(response(s, inside)), peak = Math.max(...runs), asked = drawn(s, fs);
  const whole = energyOf(samples(s, Math.ceil(8 * s.scale))), all = energyOf(fine(s)) / FINE;
  let within = 0;
  for (let i = 0; i < 2 * steps; i++) within += (asked[i] ** 2 + asked[i + 1] ** 2) / 2 / (2 * steps);
  return {
    fs, inside, runs: runs.map((v) => v / peak), asked: asked.map((v) => v / peak), at: Math.abs(inside[runs.indexOf(peak)]),
    held: Math.min(1, energyOf(kernel(s)) / whole), beyond: Math.max(0, 1 - within / all), dc: runs[steps] / peak,
  };
}

// ---------------------------------------------------------------- what it says
const percent = (v) => (v >= 0.995 && v < 0.9995 ? "over 99 %" : v > 0 && v < 0.001 ? "under 0.1 %" : `${(100 * v).toFixed(v && v < 0.1 ? 1 : 0)} %`);
const rhythm = ({ shape, scale }) => (SHAPES[shape].turns ? `one cycle in ${short(scale / SHAPES[shape].turns)} tokens` : "no rhythm of its own");

const sentence = (s, d) =>
  `Half a ${SHAPES[s.shape].name} of scale ${short(s.scale)}: ${rhythm(s)}. ${s.taps} tap${s.taps > 1 ? "s hold" : " holds"} ${percent(d.held)} of its energy. ` +
  `DC passes ${percent(d.dc)} of the peak. Of the curve, before it is sampled, ${percent(d.beyond)} of the energy lies beyond Nyquist.`;

// ---------------------------------------------------------------- panels
function kernelPlot(s) {
  const right = [16, 32, 64, 128].find((v) => v >= 3.5 * s.scale) || 256, step = right / 1024, complex = s.shape === "morlet";
  const line = samples(s, 1024, step), at = Array.from(line.re, (_, i) => i * step), { re, im } = kernel(s);
  const shown = Array.from(re.keys()).filter((t) => t < right), low = complex || s.shape === "mexican-hat" ? -1.1 : 0;
  return {
    title: "The kernel and its taps", xlabel: "lag (tokens)", ylabel: "weight",
    x: { min: -0.5, max: right, ticks: [0, 1, 2, 3, 4].map((i) => [(i * right) / 4, String((i * right) / 4)]) },
    y: { min: low, max: 1.1, ticks: (low ? [-1, 0, 1] : [0, 1]).map((v) => [v, String(v)]) },
    paint(g, X, Y, theme, box) {
      if (s.taps < right) {
        g.fillStyle = theme.grid;
        g.fillRect(X(s.taps - 0.5), box.top, X(right) - X(s.taps - 0.5), box.height);
      }
      curve(g, at, line.re, X, Y, theme.muted, { width: 1 });
      if (complex) curve(g, at, line.im, X, Y, theme.muted, { width: 1, dash: [2, 3] });
      g.fillStyle = g.strokeStyle = theme.past;
      g.lineWidth = 1.2;
      const r = Math.max(1.2, Math.min(3, 100 / right));
      for (const t of shown) {
        for (const [part, filled] of complex ? [[im, false], [re, true]] : [[re, true]]) {
          g.beginPath();
          g.arc(X(t), Y(part[t]), r, 0, 2 * Math.PI);
          filled ? g.fill() : g.stroke();
        }
      }
      g.font = `11px ${theme.font}`;
      g.fillStyle = theme.muted;
      g.textAlign = "right";
      g.textBaseline = "top";
      g.fillText(complex ? "filled: real part, hollow: imaginary" : "dots: the taps", box.left + box.width - 6, box.top + 6);
    },
    read(v) { const t = Math.max(0, Math.round(v)); return t < re.length ? `lag ${t}: ${short(re[t])}${complex ? ` + ${short(im[t])} i` : ""}` : `lag ${t}: no tap`; },
    alt: `Half a ${SHAPES[s.shape].name} of scale ${short(s.scale)} over lags 0 to ${right}, sampled once a token by ${s.taps} taps; grey where no tap is left.`,
  };
}

function responsePlot(s, d) {
  const top = 1.08 * Math.max(1, ...d.asked), outside = Array.from(d.fs.keys()).filter((i) => d.fs[i] >= 0.5);
  return {
    title: "Its response, and what is folded", xlabel: "cycles per token", ylabel: "gain / peak gain",
    x: { min: -0.5, max: 1, ticks: [-0.5, -0.25, 0, 0.25, 0.5, 0.75, 1].map((v) => [v, String(v)]) },
    y: { min: 0, max: top, ticks: [[0, "0"], [0.5, "0.5"], [1, "1"]] },
    paint(g, X, Y, theme, box) {
      const pick = (a) => outside.map((i) => a[i]);
      g.fillStyle = theme.grid;
      g.fillRect(X(0.5), box.top, X(1) - X(0.5), box.height);
      curve(g, pick(d.fs), pick(d.asked), X, Y, theme.muted, { fill: 0.5, width: 0.1 });
      curve(g, d.fs, d.asked, X, Y, theme.muted, { width: 1.2, dash: [5, 4] });
      curve(g, d.inside, d.runs, X, Y, theme.band, { fill: 0.18 });
      g.font = `11px ${theme.font}`;
      g.fillStyle = theme.muted;
      g.textAlign = "right";
      g.textBaseline = "top";
      g.fillText("beyond Nyquist", box.left + box.width - 6, box.top + 6);
      g.fillText("dashed: unsampled", box.left + box.width - 6, box.top + 20);
    },
    read(f) {
      const i = Math.min(d.fs.length - 1, Math.max(0, Math.round((f + 0.5) * (d.inside.length - 1))));
      return `${short(d.fs[i])} cycles per token: ${i < d.runs.length ? `gain ${short(d.runs[i])}, ` : ""}before sampling ${short(d.asked[i])}`;
    },
    alt: `Response from minus one half to one cycle per token. What runs ends at one half and peaks at ${short(d.at)}; at DC it passes ${percent(d.dc)} of that. ` +
      `Dashed, the curve before sampling: ${percent(d.beyond)} of its energy lies beyond one half on either side, and is folded back.`,
  };
}

// ---------------------------------------------------------------- the widget
function halfKernel(model, change) {
  const settings = () => ({ shape: model.get("shape"), scale: model.get("scale"), taps: model.get("taps") });
  const names = Object.fromEntries(Object.entries(SHAPES).map(([key, { name }]) => [key, `half a ${name}`]));
  const octaves = { to: Math.log2, from: (v) => 2 ** v };
  const tapped = (v) => {
    const end = reach(settings());
    return `tap${v > 1 ? "s" : ""}, lags 0 to ${v - 1}${v > end + 1 ? `; the kernel has faded by lag ${end}, and a tap beyond it moves nothing` : ""}`;
  };
  const controls = {
    shape: menu("Kernel", names, (v) => change("shape", v)),
    scale: slider("Scale", { min: SMALLEST, max: LARGEST, step: 0.01, fieldStep: 0.1, ...octaves, say: (a) => `${short(a)} tokens, ${rhythm({ ...settings(), scale: a })}`, note: (a) => `tokens, ${rhythm({ ...settings(), scale: a })}` }, (v) => change("scale", v)),
    taps: slider("Taps", { min: 1, max: MOST, step: 1, fieldStep: 1, say: (v) => `${v} ${tapped(v)}`, note: tapped }, (v) => change("taps", Math.round(v))),
  };
  const panels = { kernel: new Panel(260), response: new Panel(260) }, { shape, scale, taps } = controls;
  scale.node.classList.add("fqk-main");
  return {
    traits: ["shape", "scale", "taps"],
    nodes: [
      element("div", { className: "fqk-controls" }, shape.node, taps.node),
      scale.node,
      element("div", { className: "fqk-panels" }, panels.kernel.node, panels.response.node),
    ],
    hear: {
      said: "A tick, and then the taps, real part, as a tone in the left ear: half a kernel hears the past alone.",
      score: () => { const { re } = kernel(settings()); return { beats: [1], left: re.slice(0, reach(settings()) + 1) }; },
    },
    update(theme) {
      const s = settings(), d = describe(s);
      for (const [key, control] of Object.entries(controls)) control.show(s[key]);
      panels.kernel.draw(kernelPlot(s), theme);
      panels.response.draw(responsePlot(s, d), theme);
      return sentence(s, d);
    },
  };
}

export default {
  render: (view) => mount(view, "Half a kernel", halfKernel),
  pure: { describe, drawn, kernel, response, sentence, shapes: Object.keys(SHAPES) },
};
