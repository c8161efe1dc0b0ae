// ---------------------------------------------------------------- who hears the impulse, as token_ring.py has it
const TOKENS = 16, REACH = 3;
const KERNELS = { "two-sided": "two-sided: lags −3 to 3", "one-sided": "one-sided: lags 0 to 3" };

// Where the impulse is heard: {place, lag, weight, way} for each lag of the kernel. Places from TOKENS on are silence.
// way: "past" (the token itself, or one that comes later), "look-ahead" and "wrap-round" (one that comes before),
// "cut off" (a zero).
function echoes({ kernel, position, zeros }) {
  const n = TOKENS + zeros, lags = Array.from({ length: 2 * REACH + 1 }, (_, i) => i - REACH);
  return lags.filter((lag) => lag >= 0 || kernel === "two-sided").map((lag) => {
    const place = (position + lag + n) % n, early = lag < 0 ? "look-ahead" : "wrap-round";
    const way = place >= TOKENS ? "cut off" : place < position ? early : "past";
    return { place, lag, weight: (REACH + 1 - Math.abs(lag)) / 10, way };
  });
}

function output(s) {
  const y = new Float64Array(TOKENS);
  for (const { place, weight } of echoes(s)) if (place < TOKENS) y[place] += weight;
  return y;
}

// ---------------------------------------------------------------- what it says
const places = (heard, way) => heard.filter((e) => e.way === way).map((e) => e.place);
const tokens = (at) => `token${at.length > 1 ? "s" : ""} ${at.join(", ")}`;

function sentence(s) {
  const heard = echoes(s), ahead = places(heard, "look-ahead"), round = places(heard, "wrap-round"), cut = places(heard, "cut off");
  const ways = [[ahead, "by look-ahead"], [round, "by wrap-round"]].filter(([at]) => at.length).map(([at, way]) => `${tokens(at)} ${way}`);
  const zeros = s.zeros ? `${s.zeros} zero${s.zeros > 1 ? "s" : ""} appended` : "no zeros appended";
  return `Impulse at token ${s.position}, ${zeros}. ` +
    (ways.length ? `It is heard before it comes: ${ways.join(", ")}.` : "No token hears it before it comes.") +
    (["", " One echo falls on a zero and is cut off."][cut.length] ?? ` ${cut.length} echoes fall on zeros and are cut off.`);
}

// ---------------------------------------------------------------- panels
const colour = (way, theme) => ({ past: theme.past, "cut off": theme.muted }[way] || theme.future);
const LOUDEST = (REACH + 1) / 10;

// Read by angle.
class Circle extends Bare {
  valueAt(clientX, clientY, held) {
    const { x, y, radius } = this.circle, at = this.canvas.getBoundingClientRect();
    const dx = clientX - at.left - x, dy = clientY - at.top - y;
    if (!held && (Math.hypot(dx, dy) > 1.4 * radius || Math.hypot(dx, dy) < 0.5 * radius)) return null;
    const { places: n } = this.plot, place = Math.round((Math.atan2(dx, -dy) / (2 * Math.PI)) * n + n) % n;
    return place;
  }

  get circle() {
    const { left, top, width, height } = this.box;
    return { x: left + width / 2, y: top + height / 2, radius: Math.min(width, height) / 2 - 20 };
  }
}

function ringPlot(s, text, panel) {
  const n = TOKENS + s.zeros, chars = Array.from(text), heard = new Map(echoes(s).map((e) => [e.place, e]));
  const early = [...heard.values()].filter((e) => e.way === "look-ahead" || e.way === "wrap-round").length;
  return {
    title: s.zeros ? `A ring of ${TOKENS} tokens and ${s.zeros} zeros` : `A ring of ${TOKENS} tokens`, places: n,
    x: { min: 0, max: 1 }, y: { min: 0, max: 1 },
    paint(g, X, Y, theme) {
      const { x, y, radius } = panel.circle, r = Math.min(13, (0.82 * Math.PI * radius) / n);
      const at = (place, R) => [x + R * Math.sin((2 * Math.PI * place) / n), y - R * Math.cos((2 * Math.PI * place) / n)];
      const write = (t, [u, v], size, ink, family = theme.font) => { g.font = `${size}px ${family}`; g.fillStyle = ink; g.fillText(t, u, v); };
      const disc = ([u, v]) => { g.beginPath(); g.arc(u, v, r, 0, 2 * Math.PI); };
      g.textAlign = "center";
      g.textBaseline = "middle";
      for (let place = 0; place < n; place++) {
        const e = heard.get(place), silent = place >= TOKENS, source = place === s.position;
        disc(at(place, radius));
        g.setLineDash(silent ? [2, 3] : []);
        if (e) {
          g.globalAlpha = (e.way === "wrap-round" ? 0.25 : 0.85) * (0.25 + (0.75 * e.weight) / LOUDEST);
          g.fillStyle = colour(e.way, theme);
          g.fill();
          g.globalAlpha = 1;
        }
        g.strokeStyle = source ? theme.fg : e ? colour(e.way, theme) : theme.frame;
        g.lineWidth = source ? 2.5 : 1.2;
        g.stroke();
        g.setLineDash([]);
        if (silent) continue;
        write(String(place), at(place, radius - r - 9), 11, theme.muted);
        if (r > 5) write(glyph(chars[place]), at(place, radius), Math.min(13, 1.3 * r), theme.fg, "ui-monospace, monospace");
      }
      write("time ↻", [x, y - 8], 12, theme.muted);
      write(`impulse at ${s.position}`, [x, y + 10], 12, theme.fg);
    },
    read(place) { const e = heard.get(place); return `${place < TOKENS ? `token ${place}` : "a zero"}${e ? `: ${e.weight}, lag ${e.lag}, ${e.way}` : ": hears nothing"}`; },
    alt: `A ring of ${n} places: tokens 0 to 15 clockwise${s.zeros ? `, then ${s.zeros} zeros` : ", the last beside the first"}. ` +
      `The impulse is at token ${s.position}; ${heard.size} places hear it, ${early} of them tokens that come before it, in red.`,
  };
}

function linePlot(s, text) {
  const chars = Array.from(text), y = output(s), heard = echoes(s).filter((e) => e.place < TOKENS), top = 0.56;
  return {
    title: "What each token hears", xlabel: "position (tokens)", ylabel: "filtered signal", foot: 20,
    x: { min: -0.5, max: TOKENS - 0.5, ticks: [0, 4, 8, 12, 15].map((v) => [v, String(v)]) },
    y: { min: 0, max: top, ticks: [0, 0.2, 0.4].map((v) => [v, String(v)]) },
    paint(g, X, Y, theme, box) {
      const base = box.top + box.height, bar = (e) => [X(e.place - 0.4), Y(e.weight), X(e.place + 0.4) - X(e.place - 0.4), base - Y(e.weight)];
      g.textBaseline = "middle";
      g.textAlign = "center";
      for (const e of heard) {
        g.fillStyle = g.strokeStyle = colour(e.way, theme);
        g.globalAlpha = e.way === "wrap-round" ? 0.25 : 0.8;
        g.fillRect(...bar(e));
        g.globalAlpha = 1;
        g.lineWidth = 1.5;
        g.strokeRect(...bar(e));
      }
      g.font = "13px ui-monospace, monospace";
      g.fillStyle = theme.fg;
      chars.forEach((c, t) => g.fillText(glyph(c), X(t), base + 11));
      curve(g, [s.position, s.position], [0, 0.47], X, Y, theme.fg, { width: 1.4, dash: [3, 3] });
      g.font = `12px ${theme.font}`;
      g.textAlign = "left";
      let left = box.left + 8;
      for (const way of ["look-ahead", "wrap-round", "past"]) {
        g.fillStyle = g.strokeStyle = colour(way, theme);
        g.globalAlpha = way === "wrap-round" ? 0.25 : 0.8;
        g.fillRect(left, box.top + 7, 10, 10);
        g.globalAlpha = 1;
        g.strokeRect(left, box.top + 7, 10, 10);
        g.fillText(way, left + 15, box.top + 12);
        left += 15 + g.measureText(way).width + 12;
      }
    },
    read(v) { const t = Math.min(TOKENS - 1, Math.max(0, Math.round(v))); return `token ${t}: ${+y[t].toFixed(1)}`; },
    alt: `Bars over the 16 tokens: ${heard.map((e) => `token ${e.place} hears ${e.weight} (${e.way})`).join(", ")}.`,
  };
}

// ---------------------------------------------------------------- the widget
function tokenRing(model, change) {
  const whole = (key, most) => (v) => change(key, Math.min(most, Math.max(0, Math.round(v))));
  const move = (place) => { if (place < TOKENS) whole("position", TOKENS - 1)(place); };
  const counted = { min: 0, step: 1, fieldStep: 1, digits: 2 };
  const letter = (t) => Array.from(model.get("text"))[t];
  const controls = {
    position: slider("Impulse at token", { ...counted, max: TOKENS - 1, say: (v) => `token ${v}`, note: (v) => `“${glyph(letter(v))}”` }, move),
    kernel: menu("Kernel", KERNELS, (v) => change("kernel", v)),
    zeros: slider("Zeros appended", { ...counted, max: TOKENS, say: (v) => `${v} zeros`, note: () => "before the transform" }, whole("zeros", TOKENS)),
  };
  const panels = { ring: new Circle(290, move), line: new Panel(290, move) };
  controls.position.node.classList.add("fqk-main");
  return {
    traits: ["kernel", "position", "zeros", "text"],
    nodes: [
      element("div", { className: "fqk-controls" }, controls.kernel.node, controls.zeros.node),
      controls.position.node,
      element("div", { className: "fqk-panels" }, panels.ring.node, panels.line.node),
    ],
    hear: {
      said: "A tick at the impulse. What hears it as its past sounds in the left ear; what hears it before it comes, in the right.",
      score: () => {
        const s = { kernel: model.get("kernel"), position: model.get("position"), zeros: model.get("zeros") }, y = output(s);
        return { beats: y.map((_, t) => +(t === s.position)), left: y.map((v, t) => (t < s.position ? 0 : v)), right: y.map((v, t) => (t < s.position ? v : 0)) };
      },
    },
    update(theme) {
      const s = { kernel: model.get("kernel"), position: model.get("position"), zeros: model.get("zeros") };
      for (const [key, control] of Object.entries(controls)) control.show(s[key]);
      panels.ring.draw(ringPlot(s, model.get("text"), panels.ring), theme);
      panels.line.draw(linePlot(s, model.get("text")), theme);
      return sentence(s);
    },
  };
}

export default {
  render: (view) => mount(view, "Ring of tokens", tokenRing),
  pure: { echoes, kernels: Object.keys(KERNELS), output, sentence },
};
