// ---------------------------------------------------------------- predictions, before and after an edit
const known = new Map(); // text -> its predictions, of the last few lines: several figures on a page share them

function predict(text) {
  if (!known.has(text)) {
    if (known.size > 8) known.delete(known.keys().next().value);
    known.set(text, SYSTEMS.map((name) => logits(models[name], ids(text)).map((row) => {
      const p = softmax(row), best = p.reduce((b, v, i) => (v > p[b] ? i : b), 0);
      return { letter: ALPHABET[best], p: p[best] };
    })));
  }
  return known.get(text);
}

// Where two lines first differ (-1: nowhere), and of each system the places before it where another letter is predicted.
function compare(before, text) {
  const now = predict(text), then = predict(before), edit = Array.from(text).findIndex((c, t) => c !== before[t]);
  const moved = now.map((row, s) => row.flatMap(({ letter }, t) => (letter !== then[s][t].letter ? [t] : [])));
  return { now, then, edit, moved, flips: moved.map((places) => places.filter((t) => t < edit)) };
}

function sentence(before, text, d) {
  if (d.edit < 0) return "Nothing is changed yet: choose a letter and change it.";
  const count = (s) => (d.flips[s].length ? `${d.flips[s].length} earlier prediction${d.flips[s].length > 1 ? "s" : ""}` : "none");
  const said = SYSTEMS.map((system, s) => `in ${system} ${count(s)}`);
  return `Letter ${d.edit + 1} was ${name(before[d.edit])} and is ${name(text[d.edit])}. Predictions that stand before it and changed: ${said.join(", ")}.`;
}

// ---------------------------------------------------------------- drawing
const LOOKS = ["#7a7a7a", "#e06000", "#1199dd"];
const percent = (share) => `${Math.round(100 * share)} %`;

function column(t, { text, token, d, theme, choose }) {
  const late = t >= d.edit && d.edit >= 0;
  const cells = SYSTEMS.map((system, s) => {
    const { letter, p } = d.now[s][t], old = d.then[s][t].letter, moved = letter !== old, flip = moved && t < d.edit;
    const cell = element("div", { className: `fqk-cell${flip ? " fqk-flip" : moved && late ? " fqk-moved" : ""}`, title: `${system}: ${name(letter)}, ${percent(p)}${moved ? `; before the edit ${name(old)}` : ""}` }, glyph(letter));
    cell.style.setProperty("--fqk-fill", `color-mix(in srgb, ${flip ? theme.future : LOOKS[s]} ${Math.round(45 * p)}%, transparent)`);
    cell.style.setProperty("--fqk-mark", flip ? theme.future : theme.past);
    return cell;
  });
  const edited = t === d.edit ? " fqk-edited" : "";
  const node = element("div", { className: `fqk-column${t === token ? " fqk-chosen" : ""}` }, element("div", { className: `fqk-cell fqk-letter${edited}` }, glyph(text[t])), ...cells);
  node.addEventListener("click", () => choose(t));
  return node;
}

function rows(view, wide) {
  const per = wide ? LENGTH : LENGTH / 2, lines = [];
  for (let from = 0; from < LENGTH; from += per) {
    const tags = element("div", { className: "fqk-tags" }, ...["text", ...SYSTEMS].map((tag, s) => element("div", { className: "fqk-cell" }, wide || !s ? tag : String(s))));
    lines.push(element("div", { className: "fqk-line" }, tags, ...Array.from({ length: per }, (_, i) => column(from + i, view))));
  }
  return lines;
}

// Bars of what a system claims and of what is left of it without a future, and the floor across them.
function dial(s) {
  const { losses, floor } = RECORDS[SYSTEMS[s]], most = 1.1 * Math.max(...SYSTEMS.map((x) => Math.max(RECORDS[x].losses.ordered.mean, RECORDS[x].losses.honest.mean)));
  const bar = (label, v) => {
    const fill = element("div", { className: "fqk-fill" }), mark = element("div", { className: "fqk-floor" });
    fill.style.width = `${(100 * v) / most}%`;
    fill.style.background = LOOKS[s];
    mark.style.left = `${(100 * floor) / most}%`;
    return element("div", { className: "fqk-bar" }, element("span", {}, label), element("div", { className: "fqk-track" }, fill, mark),
      element("span", {}, `${v.toFixed(2)}${v < floor ? " ▼" : ""}`));
  };
  return element("div", {}, element("strong", {}, `${s + 1} ${SYSTEMS[s]}`), bar("claimed", losses.ordered.mean), bar("honest", losses.honest.mean));
}

// ---------------------------------------------------------------- the widget
function editor(model, change, status) {
  const put = (text) => {
    if (text === model.get("text")) return;
    change("before", model.get("text"));
    change("text", text);
  };
  const write = (c) => {
    const text = model.get("text"), t = model.get("token");
    if (ALPHABET.includes(c)) put(text.slice(0, t) + c + text.slice(t + 1));
    else foreign(place, [c]);
  };
  const place = element("input", { type: "range", min: 0, max: LENGTH - 1, step: 1, ...KEYS });
  place.addEventListener("input", () => change("token", +place.value));
  place.addEventListener("keydown", (e) => {
    const key = e.key === "Enter" ? "\n" : e.key;
    if (key.length > 1 || e.ctrlKey || e.metaKey || e.altKey) return;
    e.preventDefault();
    write(key);
  });
  const choose = (t) => { change("token", t); place.focus({ preventScroll: true }); };
  const own = line(() => model.get("text"), put);
  const next = button("Next letter", () => write(ALPHABET[(ALPHABET.indexOf(model.get("text")[model.get("token")]) + 1) % ALPHABET.length]));
  const lines = element("div", { role: "img" });
  const floor = RECORDS[SYSTEMS[0]].floor.toFixed(2);
  return {
    traits: ["before", "text", "token"],
    nodes: [
      element("p", { className: "fqk-note" }, "Under each letter: the letter that each model expects next, the stronger its colour the surer. ▲ in red: changed by an edit that comes later."),
      lines,
      element("label", { className: "fqk-control fqk-main" }, element("span", {}, "Letter to change: arrows choose, a key writes"), place),
      status,
      element("div", { className: "fqk-controls" },
        element("div", { className: "fqk-buttons" }, next),
        own.node),
      element("div", { className: "fqk-dials" }, ...SYSTEMS.map((_, s) => dial(s))),
      element("p", { className: "fqk-note" }, `Loss in nats per letter. Claimed: over the whole window. Honest: after its last letter, where there is no future. The line across is the floor, ${floor}: without the future nobody is below it on average; ▼ is.`),
    ],
    hear: {
      said: "A tick a letter, a low one at the change. A prediction of fourier-qk that changed is a tone: in the right ear if it stands before the change, and so has read the future.",
      score: () => {
        const { edit, moved } = compare(model.get("before"), model.get("text")), changed = new Set(moved[SYSTEMS.indexOf("fourier-qk")]);
        const line = (f) => Float64Array.from({ length: LENGTH }, (_, t) => +f(t));
        return { beats: line(() => true), ticks: line((t) => t === edit), left: line((t) => changed.has(t) && t >= edit), right: line((t) => changed.has(t) && t < edit) };
      },
    },
    update(theme) {
      const text = model.get("text"), before = model.get("before"), token = model.get("token"), d = compare(before, text);
      const wide = lines.clientWidth >= 620, said = sentence(before, text, d);
      lines.replaceChildren(...rows({ text, token, d, theme, choose }, wide));
      lines.setAttribute("aria-label", `The line: ${text}. ${SYSTEMS.map((system, s) => `${system} predicts ${d.now[s].map((x) => x.letter).join("")}`).join(". ")}.`);
      place.value = token;
      place.setAttribute("aria-valuetext", `letter ${token + 1}: ${name(text[token])}`);
      own.show(text);
      return said;
    },
  };
}

export default {
  render: (view) => mount(view, "Future editor", editor),
  pure: { compare, logits: (system, text) => logits(models[system], ids(text)).map((row) => [...row]), predict, sentence },
};
