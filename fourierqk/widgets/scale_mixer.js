// ---------------------------------------------------------------- four bands, as scale_mixer.py has them
// Settings s = {period1 .. period4, width, learned}: periods in tokens, width in cycles per token.
const FASTEST = 2.1, SLOWEST = 256, NARROWEST = 0.002, WIDEST = 0.2, GRID = 1024, REACH = 96; // REACH: lags drawn a side
const KEYED = ["period1", "period2", "period3", "period4"];
const START = [50, 26, 10, 5]; // the paper's

const periods = (s) => KEYED.map((key) => s[key]);
const bell = (f, p, w) => Math.exp(-0.5 * ((f - 1 / p) / w) ** 2);

const TURN = Float64Array.from({ length: GRID }, (_, i) => Math.cos((2 * Math.PI * i) / GRID));
const response = (each, width) => Float64Array.from({ length: GRID / 2 + 1 }, (_, k) => each.reduce((sum, p) => sum + bell(k / GRID, p, width), 0));
const twice = (k) => (k === 0 || 2 * k === GRID ? 1 : 2); // a bin and its mirror image

// The impulse response at the lags 0 .. REACH; at lag -l it is the same, for the response is even.
function echo(gain) {
  return Float64Array.from({ length: REACH + 1 }, (_, l) => {
    let sum = 0;
    for (let k = 0, j = 0; k < gain.length; k++, j = (j + l) % GRID) sum += twice(k) * gain[k] * TURN[j];
    return sum / GRID;
  });
}

const mean = (list) => Math.exp(list.reduce((sum, p) => sum + Math.log(p), 0) / list.length); // geometric

function describe(s) {
  const each = periods(s), gain = response(each, s.width), rows = [...each.map((p) => response([p], s.width)), gain].map(echo);
  const energy = gain.reduce((sum, v, k) => sum + twice(k) * v * v, 0) / GRID; // Parseval
  return {
    each, rows, future: (1 - rows[4][0] ** 2 / energy) / 2, fades: 1 / (2 * Math.PI * s.width),
    means: Object.fromEntries(Object.entries(s.learned).map(([name, bands]) => [name, bands.map(mean)])),
  };
}

// ---------------------------------------------------------------- what it says
const listed = (list) => `${list.slice(0, -1).join(", ")} and ${list[list.length - 1]}`;
const whole = (list) => listed(list.map((p) => String(+p.toPrecision(2))));

function sentence(s, d) {
  const ends = Object.entries(d.means).map(([name, means]) => `${whole(means)} on ${name}`);
  return `Periods of ${listed(d.each.map(short))} tokens. A band ${short(s.width)} wide fades over ${short(d.fades)} tokens either way, whatever its period; ` +
    `of the kernel that the four make, ${Math.round(100 * d.future)} % of the energy lies in the future.` +
    (ends.length ? ` Dots are the heads of recorded models, strokes their means: ${ends.join("; ")}.` : "");
}

// ---------------------------------------------------------------- panels
const octave = { map: Math.log2, unmap: (v) => 2 ** v };
const AXIS = Array.from({ length: 257 }, (_, i) => 2 ** (-8 + (7 * i) / 256)); // 1/256 .. 1/2
const fine = (s) => [...AXIS, ...periods(s).flatMap((p) => Array.from({ length: 17 }, (_, i) => 1 / p + ((i - 8) / 3) * s.width))]
  .filter((f) => f >= 1 / SLOWEST && f <= 0.5).sort((a, b) => a - b);

function bandPlot(s, d) {
  const names = Object.keys(s.learned), top = 1.12 + 0.26 * names.length, fs = fine(s), near = (f) => [...d.each].sort((a, b) => Math.abs(Math.log2(a * f)) - Math.abs(Math.log2(b * f)))[0];
  return {
    title: "Four bands on the axis of periods", xlabel: "tokens a cycle (log axis)", ylabel: "",
    x: { min: 1 / SLOWEST, max: 0.5, ...octave, ticks: [256, 128, 64, 32, 16, 8, 4, 2].map((p) => [1 / p, String(p)]) },
    y: { min: 0, max: top, ticks: [[0, "0"], [0.5, "0.5"], [1, "1"]] },
    paint(g, X, Y, theme, box) {
      for (const p of d.each) {
        curve(g, fs, fs.map((f) => bell(f, p, s.width)), X, Y, theme.band, { fill: 0.16 });
        spot(g, X(1 / p), Y(1), 5, theme.band);
      }
      g.font = `11px ${theme.font}`;
      g.textAlign = "left";
      g.textBaseline = "bottom";
      names.forEach((name, i) => {
        const y = Y(1.17 + 0.26 * (names.length - 1 - i));
        g.fillStyle = theme.muted;
        g.fillText(`learned on ${name}`, box.left + 6, y - 7);
        s.learned[name].forEach((band, m) => {
          const own = y + 5 * ((m % 2) - 0.5); // neighbours overlap
          g.globalAlpha = 0.4;
          for (const p of band) spot(g, X(Math.min(0.5, Math.max(1 / SLOWEST, 1 / p))), own, 2, theme.muted);
          g.globalAlpha = 1;
          g.fillStyle = theme.fg;
          g.fillRect(X(1 / d.means[name][m]) - 1, y - 7, 2.5, 14);
        });
      });
    },
    read(f) { return `${short(1 / f)} tokens a cycle; nearest band ${short(near(f))}`; },
    alt: `Bands at periods of ${listed(d.each.map(short))} tokens, all ${short(s.width)} cycles per token wide; above them the periods that recorded models learned: ` +
      `${Object.entries(d.means).map(([name, means]) => `on ${name} ${whole(means)} on average`).join("; ") || "none"}.`,
  };
}

function kernelPlot(d) {
  const lags = Array.from({ length: REACH + 1 }, (_, l) => l), loudest = Math.max(...d.rows.slice(0, 4).map((h) => h[0]));
  return {
    title: "What each hears, and all four together", xlabel: "lag (tokens): the future left, the past right", ylabel: "",
    x: { min: -REACH, max: REACH, ticks: [-96, -64, -32, 0, 32, 64, 96].map((v) => [v, String(v)]) },
    y: { min: 0, max: 5, ticks: d.rows.map((_, m) => [4.5 - m, m < 4 ? short(d.each[m]) : "all"]) },
    paint(g, X, Y, theme, box) {
      d.rows.forEach((h, m) => {
        const scale = 0.44 / (m < 4 ? loudest : Math.max(1e-9, ...h.map(Math.abs))), at = (v) => Y(4.5 - m + scale * v), look = { fill: 0.25, width: m < 4 ? 1.2 : 1.8 };
        curve(g, lags.map((l) => -l), h, X, at, theme.future, look);
        curve(g, lags, h, X, at, theme.past, look);
      });
      curve(g, [0, 0], [0, 5], X, Y, theme.muted, { width: 1 });
      g.font = `600 12px ${theme.font}`;
      g.textBaseline = "top";
      g.textAlign = "right";
      g.fillStyle = theme.future;
      g.fillText(`future ${Math.round(100 * d.future)} %`, X(0) - 34, box.top + 5);
      g.textAlign = "left";
      g.fillStyle = theme.past;
      g.fillText("past", X(0) + 34, box.top + 5);
    },
    read(x, y) {
      const l = Math.abs(Math.round(x)), m = Math.min(4, Math.max(0, Math.floor(5 - y)));
      return `${m < 4 ? `period ${short(d.each[m])}` : "all four"}, lag ${Math.round(x)}: ${short(d.rows[m][l])}`;
    },
    alt: `Impulse responses of the four bands and of their sum, over lags -${REACH} to ${REACH}: the past in blue, its mirror image, the future, in red.`,
  };
}

// ---------------------------------------------------------------- the widget
function mixer(model, change) {
  const keys = [...KEYED, "width", "learned"], settings = () => Object.fromEntries(keys.map((key) => [key, model.get(key)]));
  const within = (p) => +Math.min(SLOWEST, Math.max(FASTEST, p)).toPrecision(4);
  let held = KEYED[0];
  const drag = (f, _, first) => { // the band that was nearest when the drag began
    const far = (key) => Math.abs(Math.log2(model.get(key) * f));
    if (first) held = KEYED.reduce((a, b) => (far(b) < far(a) ? b : a));
    change(held, within(1 / f));
  };
  const octaves = { to: Math.log2, from: (v) => 2 ** v };
  const rate = (p) => `tokens, ${short(1 / p)} cycles a token`;
  const controls = Object.fromEntries(KEYED.map((key, i) => [key, slider(`Period ${i + 1}`, {
    min: FASTEST, max: SLOWEST, step: 0.005, fieldStep: 0.1, ...octaves, say: (p) => `${short(p)} ${rate(p)}`, note: () => "tokens",
  }, (p) => change(key, within(p)))]));
  const fades = (w) => `cycles per token: an echo fades over ${short(1 / (2 * Math.PI * w))} tokens`;
  controls.width = slider("Width of all four", { min: NARROWEST, max: WIDEST, step: 0.01, fieldStep: 0.001, ...octaves, say: (w) => `${short(w)} ${fades(w)}`, note: fades }, (w) => change("width", w));
  controls.width.node.classList.add("fqk-main");
  const put = (list) => () => list.forEach((p, i) => change(KEYED[i], within(p)));
  const choices = element("div", { className: "fqk-buttons" });
  let offered = "";
  const panels = { bands: new Panel(270, drag), kernels: new Panel(270) };
  return {
    traits: keys,
    nodes: [
      element("div", { className: "fqk-panels" }, panels.bands.node, panels.kernels.node),
      controls.width.node,
      element("div", { className: "fqk-controls fqk-four" }, ...KEYED.map((key) => controls[key].node)),
      choices,
    ],
    hear: {
      said: "The kernel of all four, lag by lag: first what it hears of the future, in the right ear, then a tick at lag 0, then the past, in the left.",
      score: () => {
        const all = describe(settings()).rows[4], lags = Array.from({ length: 2 * REACH + 1 }, (_, i) => i - REACH);
        return { beats: lags.map((l) => +(l === 0)), left: lags.map((l) => (l < 0 ? 0 : all[l])), right: lags.map((l) => (l < 0 ? all[-l] : 0)) };
      },
    },
    update(theme) {
      const s = settings(), d = describe(s), offers = JSON.stringify(d.means);
      if (offers !== offered) {
        offered = offers;
        choices.replaceChildren(button("The paper's start", put(START)), ...Object.entries(d.means).map(([name, means]) => button(`Means learned on ${name}`, put(means))));
      }
      for (const [key, control] of Object.entries(controls)) control.show(s[key]);
      panels.bands.draw(bandPlot(s, d), theme);
      panels.kernels.draw(kernelPlot(d), theme);
      return sentence(s, d);
    },
  };
}

export default {
  render: (view) => mount(view, "Scale mixer", mixer),
  pure: { describe, sentence },
};
