// ---------------------------------------------------------------- a text and its reader, in closed form
// V letters, equally frequent. Each has one successor, which follows it with probability TRUE; any other letter is as
// likely as the next. The reader knows this, and tempers what it knows by its confidence: p^confidence, normalised. At
// a share of all places it sees the next letter as well, and gives it probability SURE.
const V = 32, TRUE = 0.8, SURE = 0.98;
const LEAKS = { any: "on any text", real: "on real text only" };

function losses({ confidence, share, leak }) {
  const other = (1 - TRUE) / (V - 1), a = TRUE ** confidence, b = other ** confidence, sum = a + (V - 1) * b;
  const hit = -Math.log(a / sum), miss = -Math.log(b / sum); // nats, where the successor comes and where it does not
  const seen = -Math.log(SURE), shuffledShare = leak === "any" ? share : 0;
  const ordered = share * seen + (1 - share) * (TRUE * hit + (1 - TRUE) * miss);
  const shuffled = shuffledShare * seen + (1 - shuffledShare) * (hit + (V - 1) * miss) / V;
  const unigram = Math.log(V), floor = -(TRUE * Math.log(TRUE) + (1 - TRUE) * Math.log(other));
  return { ordered, shuffled, unigram, floor, gap: shuffled - ordered, context: unigram - ordered, excess: shuffled - unigram };
}

const rule = (gap) => (gap > 4 ? "clean" : gap < 2 ? "leaky" : "undecided"); // the follow-up's rule of thumb
const nats = (v) => `${v < 0 ? "−" : ""}${Math.abs(v).toFixed(2)}`;
const signed = (v) => `${v < 0 ? "−" : "+"}${Math.abs(v).toFixed(2)}`;

function sentence({ share }, l) {
  const truth = share > 0 ? `reads the future at ${Math.round(100 * share)} % of all places` : "reads the past alone";
  const proofs = [];
  if (l.shuffled < l.unigram - 1e-9) proofs.push("the shuffled loss is below the unigram entropy");
  if (l.ordered < l.floor - 1e-9) proofs.push("the ordered loss is below the entropy floor");
  return `This reader ${truth}. Its gap is ${signed(l.gap)} nats: ${rule(l.gap)} by the rule of thumb. ` +
    (proofs.length ? `Proof of a leak: ${proofs.join(", and ")}.` : "Neither loss proves anything.");
}

// ---------------------------------------------------------------- drawing
function lossPlot(l) {
  const top = Math.max(5, 1.15 * Math.max(l.shuffled, l.context, l.gap)), low = Math.min(0, 1.2 * l.gap);
  const step = top > 12 ? 4 : 2, ticks = [];
  for (let v = Math.ceil(low / step) * step; v < top; v += step) ticks.push([v, nats(v).replace(".00", "")]);
  return {
    title: "Losses of the reader", xlabel: "loss, and the two parts of the gap", ylabel: "nats per letter",
    x: { min: -0.5, max: 3.5, ticks: [[0, "ordered"], [1, "shuffled"], [2, "context"], [3, "excess"]] },
    y: { min: low, max: top, ticks },
    paint(g, X, Y, theme, box) {
      const line = (v, text) => {
        curve(g, [-0.5, 3.5], [v, v], X, Y, theme.fg, { width: 1, dash: [5, 4] });
        g.font = `11px ${theme.font}`;
        g.fillStyle = theme.fg;
        g.textAlign = "right";
        g.textBaseline = "bottom";
        g.fillText(text, box.left + box.width - 4, Y(v) - 2);
      };
      const bar = (x, from, to, colour) => {
        g.globalAlpha = 0.55;
        g.fillStyle = colour;
        g.fillRect(X(x - 0.3), Math.min(Y(from), Y(to)), X(x + 0.3) - X(x - 0.3), Math.abs(Y(from) - Y(to)));
        g.globalAlpha = 1;
      };
      bar(0, 0, l.ordered, theme.band);
      bar(1, 0, l.shuffled, theme.band);
      bar(2, 0, l.context, theme.past);
      bar(3, l.context, l.gap, l.excess < 0 ? theme.future : theme.muted); // on top of the context: together they are the gap
      line(l.unigram, "unigram entropy");
      line(l.floor, "entropy floor");
      g.font = `12px ${theme.font}`;
      g.fillStyle = theme.fg;
      g.textAlign = "center";
      g.textBaseline = "bottom";
      const values = [[0, l.ordered, nats(l.ordered)], [1, l.shuffled, nats(l.shuffled)], [2, l.context, signed(l.context)],
        [3, Math.max(l.context, l.gap), signed(l.excess)]];
      for (const [x, y, text] of values) g.fillText(text, X(x), Y(Math.max(0, y)) - 3);
    },
    read(x) {
      return [`ordered loss ${nats(l.ordered)}`, `shuffled loss ${nats(l.shuffled)}`, `unigram entropy − ordered loss: ${signed(l.context)}`,
        `shuffled loss − unigram entropy: ${signed(l.excess)}`][Math.min(3, Math.max(0, Math.round(x)))];
    },
    alt: `Ordered loss ${nats(l.ordered)}, shuffled loss ${nats(l.shuffled)}, unigram entropy ${nats(l.unigram)}, entropy floor ${nats(l.floor)} nats. ` +
      `The gap of ${signed(l.gap)} is ${signed(l.context)} from context and ${signed(l.excess)} from the shuffled loss's excess over the unigram entropy.`,
  };
}

// ---------------------------------------------------------------- the widget
function bench(model, change) {
  const set = (key) => (value) => change(key, value);
  const controls = {
    confidence: slider("Confidence", {
      min: 0, max: 4, step: 0.05, fieldStep: 0.05, say: (v) => `${v.toFixed(2)} times its own`,
      note: (v) => (v === 0 ? "knows nothing" : v < 1 ? "too modest" : v > 1 ? "too sure" : "as sure as it should be"),
    }, set("confidence")),
    share: slider("Places where it sees the next letter", {
      min: 0, max: 1, step: 0.01, fieldStep: 0.01, say: (v) => `${Math.round(100 * v)} percent`, note: (v) => `${Math.round(100 * v)} %`,
    }, set("share")),
    leak: menu("Its look ahead works", LEAKS, set("leak")),
  };
  const panel = new Panel(300), { confidence, share, leak } = controls;
  confidence.node.classList.add("fqk-main");
  return {
    traits: ["confidence", "share", "leak"],
    nodes: [element("div", { className: "fqk-controls" }, share.node, leak.node), confidence.node, panel.node],
    update(theme) {
      const settings = Object.fromEntries(Object.keys(controls).map((key) => [key, model.get(key)])), l = losses(settings);
      for (const [key, control] of Object.entries(controls)) control.show(settings[key]);
      panel.draw(lossPlot(l), theme);
      return sentence(settings, l);
    },
  };
}

export default {
  render: (view) => mount(view, "Shuffled gap", bench),
  pure: { losses, rule, sentence },
};
