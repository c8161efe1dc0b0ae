// ---------------------------------------------------------------- one head of attention over a short line
// Letters are waves of their code; queries, keys and values are the letters themselves. Queries and keys may pass a
// kernel along time first, scores may be masked; the head's output is added to the letter.
const D = 8;
const letter = (code) => Float64Array.from({ length: D }, (_, i) => Math.cos(1.7 * code * (i + 1) + i));

const MASKS = { causal: "causal", none: "none", finite: "−10 instead of −∞", block: "causal by blocks of 4" };
const BIAS = {
  causal: (t, s) => (s > t ? -Infinity : 0),
  none: () => 0,
  finite: (t, s) => (s > t ? -10 : 0),
  block: (t, s) => (Math.floor(s / 4) > Math.floor(t / 4) ? -Infinity : 0),
};
const KERNELS = { none: "no filter", causal: "one-sided", "two-sided": "two-sided", circular: "one-sided, in a circle", mean: "mean of the line" };
const WEIGHT = { // of token s in what token t becomes, in a line of n
  none: (t, s) => (s === t ? 1 : 0),
  causal: (t, s) => (s > t ? 0 : 0.7 ** (t - s)),
  "two-sided": (t, s) => 0.7 ** Math.abs(t - s),
  circular: (t, s, n) => 0.7 ** ((t - s + n) % n),
  mean: (t, s, n) => 1 / n,
};

function attend(codes, { mask, kernel }) {
  const x = codes.map(letter), n = x.length;
  const mixed = x.map((_, t) => Float64Array.from({ length: D }, (_, i) => x.reduce((sum, v, s) => sum + WEIGHT[kernel](t, s, n) * v[i], 0)));
  return x.map((own, t) => {
    const scores = mixed.map((k, s) => mixed[t].reduce((sum, q, i) => sum + q * k[i], 0) / Math.sqrt(D) + BIAS[mask](t, s));
    const most = Math.max(...scores), w = scores.map((e) => Math.exp(e - most)), sum = w.reduce((a, b) => a + b);
    return own.map((v, i) => v + w.reduce((total, ws, s) => total + (ws / sum) * x[s][i], 0));
  });
}

const codesOf = (text) => Array.from(text, (c) => c.codePointAt(0));
// How far output t moves when letter s is replaced by the next one of the alphabet: rows t, columns s.
function influence(text, settings) {
  const codes = codesOf(text), before = attend(codes, settings);
  const columns = codes.map((_, s) => {
    const after = attend(codes.map((c, i) => c + (i === s)), settings);
    return before.map((y, t) => y.reduce((most, v, i) => Math.max(most, Math.abs(after[t][i] - v)), 0));
  });
  return codes.map((_, t) => columns.map((column) => column[t]));
}

const SEEN = 1e-12; // of the largest influence: what lies below is round-off
function describe(text, settings) {
  const map = influence(text, settings), most = Math.max(1e-300, ...map.flat());
  const heard = (t, s) => map[t][s] > SEEN * most;
  const leaks = map.flatMap((row, t) => row.flatMap((_, s) => (s > t && heard(t, s) ? [[t, s]] : [])));
  return { map, most, heard, leaks, ahead: leaks.reduce((far, [t, s]) => Math.max(far, s - t), 0) };
}

// ---------------------------------------------------------------- drawing
const DECADES = 6;
const SPACE = "␣";
function mapPlot(text, d, token) {
  const chars = Array.from(text, (c) => (/\s/u.test(c) ? SPACE : c)), n = chars.length;
  const shade = (t, s) => (d.heard(t, s) ? Math.max(0.25, 1 + Math.log10(d.map[t][s] / d.most) / DECADES) : 0);
  const moved = chars.map((_, t) => t).filter((t) => d.heard(t, token)), early = moved.filter((t) => t < token);
  return {
    title: "Influence of each letter on each output", xlabel: "letter edited", ylabel: "output moved", foot: 24,
    x: { min: -0.5, max: n - 0.5, ticks: chars.map((c, s) => [s, c]) },
    y: { min: 0.5 - n, max: 0.5, ticks: chars.map((c, t) => [-t, c]) },
    paint(g, X, Y, theme, box) {
      const w = box.width / n, h = box.height / n, base = box.top + box.height;
      chars.forEach((c, t) => {
        chars.forEach((_, s) => {
          g.globalAlpha = shade(t, s);
          g.fillStyle = s > t ? theme.future : theme.past;
          g.fillRect(X(s - 0.5) + 0.5, Y(0.5 - t) + 0.5, w - 1, h - 1);
        });
        g.globalAlpha = 0.8 * shade(t, token); // the strip below: what the chosen edit moved
        g.fillStyle = t < token ? theme.future : theme.past;
        g.fillRect(X(t - 0.5) + 0.5, base + 2, w - 1, 20);
        g.globalAlpha = 1;
        g.fillStyle = theme.fg;
        g.font = `${t === token ? "700 " : ""}13px ui-monospace, monospace`;
        g.textAlign = "center";
        g.textBaseline = "middle";
        g.fillText(c, X(t), base + 12);
      });
      curve(g, [-0.5, n - 0.5], [0.5, 0.5 - n], X, Y, theme.muted, { width: 1 });
      g.strokeStyle = theme.fg;
      g.lineWidth = 2;
      g.strokeRect(X(token - 0.5), box.top, w, box.height);
    },
    read(v) {
      const s = Math.min(n - 1, Math.max(0, Math.round(v))), early = chars.filter((_, t) => t < s && d.heard(t, s)).length;
      return `letter ${s}: moves ${early} earlier output${early === 1 ? "" : "s"}`;
    },
    alt: `Influence map of ${n} letters: ${d.leaks.length} cells right of the diagonal, in the future. ` +
      `Editing letter ${token} moves outputs ${moved.join(", ") || "none"}${early.length ? `, of which ${early.join(", ")} come before it` : ""}.`,
  };
}

const share = (v) => (v < 1e-3 ? v.toExponential(1) : v.toPrecision(2));

function sentence(d, token) {
  const early = d.map.map((_, t) => t).filter((t) => t < token && d.heard(t, token));
  const chosen = early.length ? `Editing letter ${token} moves ${early.length} earlier output${early.length > 1 ? "s" : ""}.`
    : `Editing letter ${token} moves nothing before it.`;
  const worst = Math.max(0, ...d.leaks.map(([t, s]) => d.map[t][s]));
  return `${chosen} ` + (d.leaks.length
    ? `The future is heard, up to ${d.ahead} letter${d.ahead > 1 ? "s" : ""} ahead, with up to ${share(worst / d.most)} of the strongest influence.`
    : "No output of this line depends on a later letter.");
}

// ---------------------------------------------------------------- the widget
function mapper(model, change) {
  const set = (key) => (value) => change(key, value), length = () => Array.from(model.get("text")).length;
  const choose = (s) => change("token", Math.min(length() - 1, Math.max(0, Math.round(s))));
  const controls = { mask: menu("Mask", MASKS, set("mask")), kernel: menu("Queries and keys pass", KERNELS, set("kernel")), text: textbox("A line of text", { longest: 24 }, set("text")) };
  const place = element("input", { type: "range", min: 0, step: 1, ...KEYS });
  place.addEventListener("input", () => choose(+place.value));
  const panel = new Panel(380, choose);
  return {
    traits: ["mask", "kernel", "text", "token"],
    nodes: [
      element("div", { className: "fqk-controls" }, controls.mask.node, controls.kernel.node, controls.text.node),
      element("label", { className: "fqk-control fqk-main" }, element("span", {}, "Edited letter"), place),
      panel.node,
    ],
    hear: {
      said: "Token by token, how far each output moves: in the left ear where it hears its past, in the right where it comes before the edit. A tick marks the edited letter.",
      score: () => {
        const token = Math.min(model.get("token"), length() - 1), d = describe(model.get("text"), { mask: model.get("mask"), kernel: model.get("kernel") });
        const moved = d.map.map((row, t) => (d.heard(t, token) ? row[token] : 0));
        return { beats: moved.map((_, t) => +(t === token)), left: moved.map((v, t) => (t < token ? 0 : v)), right: moved.map((v, t) => (t < token ? v : 0)) };
      },
    },
    update(theme) {
      const text = model.get("text"), token = Math.min(model.get("token"), length() - 1);
      const d = describe(text, { mask: model.get("mask"), kernel: model.get("kernel") });
      for (const [key, control] of Object.entries(controls)) control.show(model.get(key));
      place.max = length() - 1;
      place.value = token;
      place.setAttribute("aria-valuetext", `letter ${token}`);
      panel.draw(mapPlot(text, d, token), theme);
      return sentence(d, token);
    },
  };
}

export default {
  render: (view) => mount(view, "Influence map", mapper),
  pure: { describe, influence, kernels: Object.keys(KERNELS), masks: Object.keys(MASKS) },
};
