// ---------------------------------------------------------------- forty studies, as seed_bench.py has them
// Settings s = {difference, spread, seeds, interval}. The numbers of chance are fixed: row i is study i, column j seed j.
const STUDIES = 40, MOST = 10, TABLE = 1, SMALLEST = 0.002, LARGEST = 0.1, FARTHEST = 0.1; // spreads, difference: nats per token
const NORMALS = (() => { // Box and Muller: two uniform numbers make two normal ones
  const next = uniform(TABLE), pair = () => {
    const r = Math.sqrt(-2 * Math.log(1 - next())), angle = 2 * Math.PI * next();
    return [r * Math.cos(angle), r * Math.sin(angle)];
  };
  return Array.from({ length: STUDIES }, () => Array.from({ length: MOST / 2 }, pair).flat());
})();

// The 97.5 % quantiles of Student's t with 1 to 9 degrees of freedom.
const STUDENT = [12.706204736175, 4.302652729749, 3.182446305284, 2.776445105198, 2.570581835636, 2.446911851145, 2.364624251593, 2.306004135204, 2.262157162798];
const WIDTH = { student: (seeds) => STUDENT[seeds - 2], normal: () => 1.96 }; // half of it, in standard errors
const INTERVALS = { student: "Student’s t", normal: "normal (1.96 standard errors)" };

const verdict = (low, high) => (high < 0 ? "lower" : low > 0 ? "higher" : "undecided");

// Every study: {mean, low, high, verdict, miss}.
function studies({ difference, spread, seeds, interval }) {
  return NORMALS.map((row) => {
    const z = row.slice(0, seeds), centre = z.reduce((a, b) => a + b) / seeds;
    const se = Math.sqrt(z.reduce((sum, v) => sum + (v - centre) ** 2, 0) / (seeds - 1) / seeds);
    const mean = difference + spread * centre, half = WIDTH[interval](seeds) * spread * se, low = mean - half, high = mean + half;
    return { mean, low, high, verdict: verdict(low, high), miss: low > difference || high < difference };
  });
}

function counts(all) {
  const of = (v) => all.filter((a) => a.verdict === v).length;
  return { lower: of("lower"), undecided: of("undecided"), higher: of("higher"), misses: all.filter((a) => a.miss).length };
}

// ---------------------------------------------------------------- what it says
const nats = (v) => `${v < 0 ? "−" : ""}${Math.abs(v).toFixed(3)}`;
const say = (n, one, many) => `${n} ${n === 1 ? one : many}`;

function sentence(s, c) {
  return `Of ${STUDIES} studies with ${s.seeds} seeds each, ${say(c.lower, "says", "say")} lower, ${say(c.undecided, "is", "are")} undecided, ` +
    `${say(c.higher, "says", "say")} higher. ${say(c.misses, "interval misses", "intervals miss")} the true difference of ` +
    `${nats(s.difference)} nats per token; 95 % intervals should miss it about twice in ${STUDIES}.`;
}

// ---------------------------------------------------------------- drawing
const EDGE = 0.25; // nats per token, either side: fixed, so that wide intervals look wide
const INKS = { lower: "#c87805", undecided: "#7a7a7a", higher: "#8c4ad9" }; // the figures' grey, two of their categories

// A panel read by row: v is the study under the pointer.
class Stack extends Panel {
  valueAt(clientX, clientY) {
    const row = Math.floor(((clientY - this.canvas.getBoundingClientRect().top - this.box.top) / this.box.height) * STUDIES);
    return super.valueAt(clientX) === null || row < 0 || row >= STUDIES ? null : row;
  }
}

function mark(g, x, y, miss) {
  g.beginPath();
  if (miss) {
    g.lineWidth = 2.2;
    for (const d of [-4, 4]) { g.moveTo(x - 4, y - d); g.lineTo(x + 4, y + d); }
    g.stroke();
  } else {
    g.arc(x, y, 2.6, 0, 2 * Math.PI);
    g.fill();
  }
}

function legend(g, theme, box) {
  const write = (x, y, text) => { g.fillStyle = theme.fg; g.fillText(text, x, y); return x + g.measureText(text).width + 12; };
  const rule = (x, y, colour, dash = []) => {
    g.strokeStyle = g.fillStyle = colour;
    g.lineWidth = 3;
    g.setLineDash(dash);
    g.beginPath();
    g.moveTo(x, y);
    g.lineTo(x + 14, y);
    g.stroke();
    g.setLineDash([]);
    return x + 18;
  };
  g.font = `11px ${theme.font}`;
  g.textAlign = "left";
  g.textBaseline = "middle";
  let x = box.left, y = box.top - 23;
  for (const [v, colour] of Object.entries(INKS)) x = write(rule(x, y, colour), y, v);
  [x, y] = [box.left, box.top - 9];
  g.strokeStyle = g.fillStyle = theme.fg;
  mark(g, x + 5, y, true);
  x = write(x + 14, y, "misses the truth");
  write(rule(x, y, theme.fg, [4, 3]), y, "true difference");
}

function stackPlot(s, all) {
  const c = counts(all), beyond = all.filter((a) => a.low < -EDGE || a.high > EDGE).length, inside = (v) => Math.min(EDGE, Math.max(-EDGE, v));
  return {
    title: `${STUDIES} studies of ${s.seeds} seeds`, xlabel: "system − baseline (nats per token)", ylabel: "study", top: [],
    x: { min: -EDGE, max: EDGE, ticks: [-0.2, -0.1, 0, 0.1, 0.2].map((v) => [v, v ? nats(v).slice(0, -2) : "0"]) },
    y: { min: -STUDIES - 0.5, max: -0.5, ticks: [1, 10, 20, 30, 40].map((v) => [-v, String(v)]) },
    paint(g, X, Y, theme, box) {
      const upright = (v, look) => curve(g, [v, v], [-0.5, -STUDIES - 0.5], X, Y, theme.fg, look);
      legend(g, theme, box);
      upright(0, { width: 1.2 });
      upright(s.difference, { width: 1.6, dash: [5, 4] });
      all.forEach(({ mean, low, high, verdict, miss }, i) => {
        const y = Y(-i - 1);
        g.strokeStyle = g.fillStyle = INKS[verdict];
        g.lineWidth = miss ? 3 : 1.6;
        g.beginPath();
        g.moveTo(X(inside(low)), y);
        g.lineTo(X(inside(high)), y);
        g.stroke();
        for (const [out, side] of [[low < -EDGE, -1], [high > EDGE, 1]]) { // it goes on: an arrow head at the edge
          if (!out) continue;
          g.beginPath();
          g.moveTo(X(side * EDGE), y);
          g.lineTo(X(side * EDGE) - 6 * side, y - 3.5);
          g.lineTo(X(side * EDGE) - 6 * side, y + 3.5);
          g.fill();
        }
        const gone = Math.abs(mean) > EDGE;
        if (gone && !miss) return;
        if (miss) g.strokeStyle = theme.fg;
        mark(g, X(inside(mean)) - (gone ? 12 * Math.sign(mean) : 0), y, miss); // beside the arrow head
      });
    },
    read(i) {
      const { mean, low, high, verdict, miss } = all[i];
      return `study ${i + 1}: ${nats(mean)}, from ${nats(low)} to ${nats(high)}: ${verdict}${miss ? ", misses" : ""}`;
    },
    alt: `${STUDIES} intervals, one below the other, with a line at zero and a dashed line at the true difference of ${nats(s.difference)}. ` +
      `${c.lower} lie below zero, ${c.undecided} hold it, ${c.higher} lie above. ${c.misses} miss the true difference` +
      `${beyond ? `; ${beyond} run beyond the edges at ${nats(-EDGE)} and ${nats(EDGE)}` : ""}.`,
  };
}

// ---------------------------------------------------------------- the widget
function bench(model, change) {
  const set = (key) => (value) => change(key, value), unit = () => "nats per token";
  const ratio = LARGEST / SMALLEST; // the slider of the spread: 200 steps of one factor
  const controls = {
    difference: slider("True difference", { min: -FARTHEST, max: FARTHEST, step: 0.001, fieldStep: 0.001, say: (v) => `${nats(v)} nats per token`, note: (v) => (v ? unit() : "none at all") }, set("difference")),
    spread: slider("Spread over seeds", {
      min: SMALLEST, max: LARGEST, step: 1, fieldStep: 0.001, note: unit,
      say: (v) => `${+v.toPrecision(3)} nats per token`,
      to: (v) => (200 * Math.log(v / SMALLEST)) / Math.log(ratio), from: (u) => SMALLEST * ratio ** (u / 200),
    }, set("spread")),
    seeds: slider("Seeds", { min: 2, max: MOST, step: 1, fieldStep: 1, say: (v) => `${v} seeds`, note: () => "pairs of runs a study" }, (v) => change("seeds", Math.round(v))),
    interval: menu("Interval", INTERVALS, set("interval")),
  };
  const panel = new Stack(420), row = (...keys) => element("div", { className: "fqk-controls" }, ...keys.map((key) => controls[key].node));
  controls.seeds.node.classList.add("fqk-main");
  return {
    traits: ["difference", "spread", "seeds", "interval"],
    nodes: [row("difference", "spread", "interval"), controls.seeds.node, panel.node],
    update(theme) {
      const s = Object.fromEntries(Object.keys(controls).map((key) => [key, model.get(key)])), all = studies(s);
      for (const [key, control] of Object.entries(controls)) control.show(s[key]);
      panel.draw(stackPlot(s, all), theme);
      return sentence(s, counts(all));
    },
  };
}

export default {
  render: (view) => mount(view, "Intervals over seeds", bench),
  pure: { counts, inks: INKS, intervals: Object.keys(INTERVALS), sentence, stackPlot, studies },
};
