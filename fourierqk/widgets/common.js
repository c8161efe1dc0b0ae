// What all widgets share: theme, a small canvas plotter, controls. Python puts this text in front of a widget's own
// file; together they are one ES module without imports, so that it also loads as a classic script from file://.

// ---------------------------------------------------------------- theme
// The computed text colour tells light from dark in the book, in JupyterLab and in Colab alike.
function themeOf(el) {
  const [r, g, b] = getComputedStyle(el).color.match(/[\d.]+/g).map(Number);
  const dark = 0.299 * r + 0.587 * g + 0.114 * b > 140;
  const ink = (alpha) => `rgba(${r},${g},${b},${alpha})`;
  return {
    ink, fg: ink(1), muted: ink(0.75), frame: ink(0.35), grid: ink(0.14), font: getComputedStyle(el).fontFamily,
    past: dark ? "#6cb2f5" : "#2b6cb0", future: dark ? "#fc8181" : "#c53030", band: dark ? "#b79cf7" : "#6b46c1",
  };
}

function watchTheme(redraw) {
  const seen = new MutationObserver(redraw);
  seen.observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme", "data-mode", "theme", "class"] });
  seen.observe(document.body, { attributes: true, attributeFilter: ["data-jp-theme-light", "data-jp-theme-name", "class"] });
  const system = matchMedia("(prefers-color-scheme: dark)");
  system.addEventListener("change", redraw);
  return () => { seen.disconnect(); system.removeEventListener("change", redraw); };
}

// ---------------------------------------------------------------- elements and controls
function element(tag, props = {}, ...children) {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(props)) key in node ? (node[key] = value) : node.setAttribute(key, value);
  node.append(...children);
  return node;
}

function button(label, act) {
  const node = element("button", { type: "button" }, label);
  node.addEventListener("click", act);
  return node;
}

// What the reader gave is not taken: say why beside it. The next change of the widget takes the sentence away.
function refuse(field, sentence) {
  const box = field.closest(".fqk-control");
  box.querySelector(".fqk-refused")?.remove();
  field.setAttribute("aria-invalid", "true");
  box.append(element("span", { className: "fqk-refused", role: "alert" }, sentence));
}

function forgive(root) {
  for (const node of root.querySelectorAll(".fqk-refused")) node.remove();
  for (const node of root.querySelectorAll("[aria-invalid]")) node.removeAttribute("aria-invalid");
}

// JupyterLab's command mode eats the arrow keys unless the input itself carries this attribute.
const KEYS = { "data-lm-suppress-shortcuts": "true" };

// Every control: {node, show(value)}; `change(value)` is called with what the reader chose. Labels wrap their input,
// so that no ids are needed and any number of instances can share a page.
function menu(label, options, change) {
  const select = element("select", KEYS);
  let held = "";
  const fill = (choices) => { // only when they differ, since a new list closes one that is open
    if (JSON.stringify(choices) === held) return;
    held = JSON.stringify(choices);
    select.replaceChildren(...Object.entries(choices).map(([value, text]) => element("option", { value }, text)));
  };
  fill(options);
  select.addEventListener("change", () => change(select.value));
  const node = element("label", { className: "fqk-control" }, element("span", {}, label), select);
  return { node, fill, show: (v) => { select.value = v; } };
}

// A slider with a number field beside it for exact values. to/from map a value to the slider's own scale; say(value)
// is the text that a screen reader hears, note(value) the text after the field. bound(min, max, step) sets other limits.
function slider(label, { min, max, step, digits = 4, to = (v) => v, from = (v) => v, fieldStep, say, note }, change) {
  const range = element("input", { type: "range", min: to(min), max: to(max), step, ...KEYS });
  const field = element("input", { type: "number", min, max, step: fieldStep, "aria-label": `${label}, exact value`, ...KEYS });
  const after = element("span", { className: "fqk-note" });
  let shown = null;
  const show = (v) => {
    shown = v;
    range.value = to(v);
    range.setAttribute("aria-valuetext", say(v));
    if (field.getRootNode().activeElement !== field) field.value = +v.toPrecision(digits);
    after.textContent = note(v);
  };
  const within = (v) => Math.min(max, Math.max(min, v)); // a slider's end may be beyond a limit by round-off
  const written = (v) => String(+v.toPrecision(digits));
  range.addEventListener("input", () => change(within(+from(+range.value).toPrecision(6))));
  field.addEventListener("change", () => {
    const typed = +field.value, nearest = within(typed);
    if (field.value === "") show(shown);
    else if (written(typed) === written(nearest)) change(nearest);
    else refuse(field, `${field.value} is out of range: ${written(min)} to ${written(max)}.`);
  });
  field.addEventListener("blur", () => show(shown));
  const bound = (low, high, by) => {
    [min, max] = [low, high];
    Object.assign(range, { min: to(min), max: to(max), step: by });
    Object.assign(field, { min, max });
  };
  const node = element("div", { className: "fqk-control" },
    element("label", {}, element("span", {}, label), range), element("div", { className: "fqk-exact" }, field, after));
  return { node, show, bound, enable: (on) => { range.disabled = field.disabled = !on; node.classList.toggle("fqk-off", !on); } };
}

// check(text) -> what is wrong with it, in words, or "": such a text stands, is not taken, and is not written over.
function textbox(label, { shortest = 1, longest, check = () => "" }, change) {
  const area = element("textarea", { rows: 2, maxLength: longest, spellcheck: false, ...KEYS });
  area.addEventListener("input", () => {
    const length = Array.from(area.value).length, few = `${label} needs ${shortest} character${shortest > 1 ? "s" : ""} or more, and this has ${length}.`;
    const wrong = length < shortest ? few : check(area.value);
    if (wrong) refuse(area, wrong);
    else change(area.value);
  });
  return {
    node: element("label", { className: "fqk-control" }, element("span", {}, label), area),
    show: (v) => { if (area.value !== v && !(area.matches(":focus") && area.hasAttribute("aria-invalid"))) area.value = v; },
  };
}

// ---------------------------------------------------------------- numbers and letters as they are shown
const short = (v) => String(+v.toPrecision(3));
const name = (c) => ({ " ": "space", "\n": "line end" })[c] || c;
const glyph = (c) => ({ "\n": "↵", "\t": "→", " ": "␣" })[c] || c;

// ---------------------------------------------------------------- chance
// Numbers in [0, 1): a linear congruential generator of 32 bits, the same as `uniform` in Python.
function uniform(seed) {
  let state = seed;
  const next = () => (state = (Math.imul(1664525, state) + 1013904223) >>> 0) / 2 ** 32;
  for (let i = 0; i < 4; i++) next(); // neighbouring seeds begin alike
  return next;
}

// ---------------------------------------------------------------- one panel on a canvas
// plot = {title, xlabel, ylabel, x: {min, max, ticks, map?}, y: {min, max, ticks}, top?: ticks, toplabel?, foot?,
// paint(g, X, Y, theme, box), read?(x, y) -> text under the pointer, alt}; a tick is [value, text]; `map` bends an axis.
// press(x, y, first): where the reader presses and drags, also when the drag leaves the panel; first: it begins.
class Panel {
  constructor(height, press) {
    this.height = height;
    this.canvas = element("canvas", { role: "img", className: press ? "fqk-held" : "" });
    this.tip = element("div", { className: "fqk-tip", hidden: true, "aria-hidden": "true" });
    this.node = element("div", { className: "fqk-panel" }, this.canvas, this.tip);
    const point = (e) => {
      const held = press && this.canvas.hasPointerCapture(e.pointerId);
      const x = this.valueAt(e.clientX, e.clientY, held);
      this.tip.hidden = x === null || !this.plot.read;
      if (x === null) return;
      const y = this.heightAt(e.clientY);
      if (held) press(x, y, e.type === "pointerdown");
      this.tip.textContent = this.plot.read?.(x, y);
    };
    this.canvas.addEventListener("pointerdown", (e) => {
      if (press && e.button === 0 && this.valueAt(e.clientX, e.clientY) !== null) this.canvas.setPointerCapture(e.pointerId);
      point(e);
    });
    this.canvas.addEventListener("pointermove", point);
    this.canvas.addEventListener("pointerleave", () => { this.tip.hidden = true; });
  }

  valueAt(clientX, clientY, held) { // null beside the axis, its end for a drag that went there
    const { left, width } = this.box, { min, max, map = (v) => v, unmap = (v) => v } = this.plot.x;
    const u = (clientX - this.canvas.getBoundingClientRect().left - left) / width;
    return (u < 0 || u > 1) && !held ? null : unmap(map(min) + Math.min(1, Math.max(0, u)) * (map(max) - map(min)));
  }

  heightAt(clientY) {
    const { top, height } = this.box, { min, max } = this.plot.y;
    const u = 1 - (clientY - this.canvas.getBoundingClientRect().top - top) / height;
    return min + Math.min(1, Math.max(0, u)) * (max - min);
  }

  draw(plot, theme) {
    this.plot = plot;
    const w = this.node.clientWidth, h = this.height, dpr = window.devicePixelRatio || 1, { canvas } = this;
    if (!w) return; // not laid out yet: the ResizeObserver calls again
    if (canvas.width !== Math.round(w * dpr) || canvas.height !== Math.round(h * dpr)) {
      canvas.width = Math.round(w * dpr);
      canvas.height = Math.round(h * dpr);
      canvas.style.height = `${h}px`;
    }
    canvas.setAttribute("aria-label", plot.alt);
    const g = canvas.getContext("2d");
    g.setTransform(dpr, 0, 0, dpr, 0, 0);
    g.clearRect(0, 0, w, h);
    const { left, top, right, bottom } = this.margins(plot);
    const box = (this.box = { left, top, width: w - left - right, height: h - top - bottom });
    const { min, max, map = (v) => v } = plot.x;
    const X = (v) => box.left + ((map(v) - map(min)) / (map(max) - map(min))) * box.width;
    const Y = (v) => box.top + (1 - (v - plot.y.min) / (plot.y.max - plot.y.min)) * box.height;
    this.axes(g, plot, theme, box, X, Y, w, h);
    g.save();
    plot.paint(g, X, Y, theme, box);
    g.restore();
  }

  margins({ top, foot = 0 }) {
    return { left: 50, top: top ? 54 : 28, right: 12, bottom: foot + 42 };
  }

  axes(g, plot, theme, box, X, Y, w, h) {
    const bottom = box.top + box.height, text = (s, x, y, align, base) => { g.textAlign = align; g.textBaseline = base; g.fillText(s, x, y); };
    const rule = (x0, y0, x1, y1) => { g.beginPath(); g.moveTo(x0, y0); g.lineTo(x1, y1); g.stroke(); };
    g.lineWidth = 1;
    g.font = `600 13px ${theme.font}`;
    g.fillStyle = theme.fg;
    text(plot.title, box.left, 6, "left", "top");
    g.font = `12px ${theme.font}`;
    g.fillStyle = theme.muted;
    text(plot.xlabel, box.left + box.width / 2, h - 4, "center", "bottom");
    g.save();
    g.translate(11, box.top + box.height / 2);
    g.rotate(-Math.PI / 2);
    text(plot.ylabel, 0, 0, "center", "middle");
    g.restore();
    g.strokeStyle = theme.grid;
    for (const [v, s] of plot.x.ticks) { rule(X(v), box.top, X(v), bottom); text(s, X(v), bottom + (plot.foot || 0) + 5, "center", "top"); }
    for (const [v, s] of plot.y.ticks) { rule(box.left, Y(v), box.left + box.width, Y(v)); text(s, box.left - 5, Y(v), "right", "middle"); }
    for (const [v, s] of plot.top || []) text(s, X(v), box.top - 4, "center", "bottom");
    if (plot.toplabel) text(plot.toplabel, box.left, box.top - 18, "left", "bottom");
    g.strokeStyle = theme.frame;
    g.strokeRect(box.left + 0.5, box.top + 0.5, box.width, box.height);
  }
}

// A panel that has a title and no axes.
class Bare extends Panel {
  margins() { return { left: 12, top: 28, right: 12, bottom: 6 }; }

  axes(g, plot, theme, box) {
    g.font = `600 13px ${theme.font}`;
    g.fillStyle = theme.fg;
    g.textAlign = "left";
    g.textBaseline = "top";
    g.fillText(plot.title, box.left, 6);
  }
}

// A curve through the points, and the area between it and zero.
function curve(g, xs, ys, X, Y, colour, { fill = 0, width = 1.8, dash = [] } = {}) {
  const line = new Path2D();
  xs.forEach((x, i) => line.lineTo(X(x), Y(ys[i])));
  if (fill) {
    const area = new Path2D(line);
    area.lineTo(X(xs[xs.length - 1]), Y(0));
    area.lineTo(X(xs[0]), Y(0));
    g.globalAlpha = fill;
    g.fillStyle = colour;
    g.fill(area);
    g.globalAlpha = 1;
  }
  g.strokeStyle = colour;
  g.lineWidth = width;
  g.lineJoin = "round";
  g.setLineDash(dash);
  g.stroke(line);
  g.setLineDash([]);
}

function spot(g, x, y, r, colour, hollow) {
  g.beginPath();
  g.arc(x, y, r, 0, 2 * Math.PI);
  g.fillStyle = g.strokeStyle = colour;
  g.lineWidth = 1.4;
  if (hollow) g.stroke(); else g.fill();
}

// ---------------------------------------------------------------- the widget protocol
// build(model, change, status) -> {nodes, traits, update(theme), hear?}: nodes fill the widget, update shows the model's state
// and returns a sentence on it, which stands in `status`: last, or where the nodes have it. Input redraws once a frame;
// the kernel, if there is one, hears of it after a pause. Reset brings back the state in which the widget was made;
// `hear` is what sound.js plays.
function mount({ model, el }, name, build) {
  const root = element("div", { className: "fqk-widget", role: "group", "aria-label": name });
  const status = element("p", { className: "fqk-status", role: "status" });
  let frame = 0, saving = 0, saying = 0;
  const queue = () => { frame ||= requestAnimationFrame(redraw); };
  const change = (key, value) => {
    forgive(root);
    model.set(key, value);
    queue();
    clearTimeout(saving);
    saving = setTimeout(() => model.save_changes(), 150);
  };
  const { nodes, traits, update, hear } = build(model, change, status);
  const sound = hear && player(hear);
  const first = traits.map((key) => [key, model.get(key)]);
  const reset = button("Reset", () => { for (const [key, value] of first) change(key, value); });
  root.append(...nodes, ...(nodes.includes(status) ? [] : [status]), element("div", { className: "fqk-buttons" }, reset, ...(sound ? sound.nodes : [])));
  el.append(root);
  function redraw() {
    frame = 0;
    if (!root.isConnected) return; // JupyterLab renders first and attaches later; the ResizeObserver calls then
    const sentence = update(themeOf(root));
    clearTimeout(saying);
    saying = setTimeout(() => { status.textContent = sentence; }, status.textContent ? 300 : 0);
  }
  for (const key of traits) model.on(`change:${key}`, queue);
  const size = new ResizeObserver(queue);
  size.observe(root);
  const unwatch = watchTheme(queue);
  redraw();
  return () => {
    sound?.stop();
    cancelAnimationFrame(frame);
    clearTimeout(saving);
    clearTimeout(saying);
    for (const key of traits) model.off(`change:${key}`, queue);
    size.disconnect();
    unwatch();
    root.remove();
  };
}
