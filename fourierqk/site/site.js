// The book's pages: brings live widgets and plotly figures to life where a page holds their data. Asks no other host.
(() => {
  const folder = document.currentScript.src.replace(/site\.js.*$/, "");
  const scripts = new Map();

  function load(name) { // each script once, and only on pages that need it
    if (!scripts.has(name)) {
      scripts.set(name, new Promise((done, failed) => {
        const tag = document.createElement("script");
        Object.assign(tag, { src: folder + name, onload: done, onerror: () => failed(new Error(`cannot load ${name}`)) });
        document.head.append(tag);
      }));
    }
    return scripts.get(name);
  }

  // Stands in for the model that anywidget would hand to render: the same calls, but no kernel behind them.
  class Model {
    constructor(values) { this.values = values; this.listeners = {}; }
    get(key) { return this.values[key]; }
    set(key, value) {
      if (this.values[key] === value) return;
      this.values[key] = value;
      for (const listener of this.listeners[`change:${key}`] || []) listener();
    }
    on(event, listener) { (this.listeners[event] ??= []).push(listener); }
    off(event, listener) { this.listeners[event] = (this.listeners[event] || []).filter((l) => l !== listener); }
    save_changes() {}
    send() {}
  }

  const contents = (node) => JSON.parse(node.querySelector("script[type='application/json']").textContent);

  async function drawWidget(node) {
    const values = contents(node), script = node.dataset.widget;
    await load(script);
    node.replaceChildren();
    window.fourierqk[script.split(".")[0]].render({ model: new Model(values), el: node });
  }

  // ---- plotly, in the page's colours and width
  function template(node, colorway) {
    const style = getComputedStyle(node), [r, g, b] = style.color.match(/[\d.]+/g).map(Number);
    const ink = (alpha) => `rgba(${r},${g},${b},${alpha})`;
    const axis = { gridcolor: ink(0.14), linecolor: ink(0.35), zerolinecolor: ink(0.35), automargin: true };
    const clear = "rgba(0,0,0,0)", font = { color: ink(1), family: style.fontFamily, size: 13 };
    const below = { ...axis, ticks: "outside", ticklen: 6, tickcolor: clear };
    return { layout: { colorway, font, paper_bgcolor: clear, plot_bgcolor: clear, xaxis: below, yaxis: axis,
      hoverlabel: { font: { family: style.fontFamily } } } };
  }

  // A figure's colours suit white and dark alike; a page that knows which it is puts better ones in their place.
  function shaded(text, shades) {
    const own = shades?.[document.documentElement.dataset.theme === "dark" ? "dark" : "light"] ?? {};
    return Object.entries(own).reduce((so, [one, other]) => so.replaceAll(one, other), text);
  }

  const NARROW = 500, ROW = 125; // pixels: a narrower figure is laid out for a phone, a panel's height on it

  // On a phone: one panel a row, and a legend, with the room that it needs, in place of the names at the ends of lines.
  function narrowed({ data, layout }) {
    const own = { ...layout, margin: { ...layout.margin }, legend: { ...layout.legend, maxheight: 1 } };
    own.annotations = (layout.annotations ?? []).filter(({ name }) => name !== "end");
    if (own.annotations.length < (layout.annotations ?? []).length) {
      own.showlegend = true;
      own.margin.r = 24;
      own.height += 14 * data.filter(({ showlegend }) => showlegend !== false).length;
    }
    const panels = [...new Set(data.map(({ xaxis = "x" }) => xaxis.slice(1)))].map((i) => [`xaxis${i}`, `yaxis${i}`]);
    if (panels.every(([x]) => !layout[x]?.domain?.[0])) return own;
    const shared = panels.some(([x]) => layout[x].matches), square = panels.some(([, y]) => layout[y].scaleanchor);
    const gap = (shared ? 0.25 : 0.35) / panels.length, share = (1 + gap) / panels.length;
    const titles = [0, 1].map((axis) => panels.map((panel) => layout[panel[axis]].title).find((title) => title?.text));
    panels.forEach(([x, y], i) => {
      const top = 1 - i * share, named = !shared || i === panels.length - 1;
      own[x] = { ...layout[x], domain: [0, 1], title: named ? titles[0] : {}, showticklabels: named };
      own[y] = { ...layout[y], domain: [Math.max(0, top - share + gap), top], title: titles[1], showticklabels: true };
    });
    own.height = 90 + panels.length * (square ? 2.2 : 1) * ROW;
    return own;
  }

  async function drawFigure(node) {
    await load("plotly-cartesian.min.js");
    const plot = document.createElement("div"), written = node.querySelector("script[type='application/json']").textContent;
    node.replaceChildren(plot);
    // No mode bar: it covers the figure and offers to send the data to a server. On a touch screen a finger scrolls.
    const touch = matchMedia("(pointer: coarse)").matches ? { dragmode: false } : {};
    let narrow = null, frames = null;
    const draw = () => {
      const content = JSON.parse(shaded(written, JSON.parse(written).shades));
      narrow = node.clientWidth < NARROW;
      frames = content.frames;
      const layout = { ...(narrow ? narrowed(content) : content.layout), ...touch };
      layout.template = template(node, content.colorway ?? undefined);
      plot.style.minHeight = node.style.minHeight = `${layout.height}px`;
      return Plotly.react(plot, content.data, layout, { responsive: true, displayModeBar: false, ...content.config });
    };
    await draw();
    if (frames) await Plotly.addFrames(plot, frames);
    // On paper the pictures shrink or grow as one, whatever the width of the screen that they were drawn for.
    const scalable = () => plot.querySelectorAll(".main-svg").forEach((svg) => {
      svg.setAttribute("viewBox", `0 0 ${svg.getAttribute("width")} ${svg.getAttribute("height")}`);
    });
    scalable();
    plot.on("plotly_afterplot", scalable);
    new MutationObserver(draw).observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
    new ResizeObserver(() => { if ((node.clientWidth < NARROW) !== narrow && node.clientWidth) draw(); }).observe(node);
  }

  const started = new Set();
  function start(node) {
    if (started.has(node)) return;
    started.add(node);
    (node.classList.contains("fqk-live") ? drawWidget : drawFigure)(node)
      .then(() => { node.dataset.drawn = "true"; })
      .catch((error) => { console.error(error); node.append("This figure could not be drawn."); });
  }

  // What a term means is its link's title: the theme, whose script runs after this one, shows it for the keyboard too.
  for (const term of document.querySelectorAll("a[title][href*='glossary.html#term-']")) term.dataset.bsToggle = "tooltip";

  // The theme leaves the sidebar's logo outside every landmark.
  const sidebar = document.querySelector(".bd-sidebar-primary");
  sidebar?.setAttribute("role", "navigation");
  sidebar?.setAttribute("aria-label", "Book");

  const islands = [...document.querySelectorAll(".fqk-live, .fqk-figure")];
  const near = new IntersectionObserver((entries) => {
    for (const { isIntersecting, target } of entries) if (isIntersecting) { near.unobserve(target); start(target); }
  }, { rootMargin: "600px" });
  islands.forEach((node) => near.observe(node));

  // ---- paper
  // A browser prints without waiting for anything, so whatever is still to be drawn is drawn beforehand, bit by bit.
  const idly = (then) => (window.requestIdleCallback ? requestIdleCallback(then, { timeout: 500 }) : setTimeout(then, 200));
  const draw = (left) => left.length && idly(() => { start(left[0]); draw(left.slice(1)); });
  addEventListener("load", () => draw(islands));
  let night = null;
  addEventListener("beforeprint", () => {
    night = document.documentElement.dataset.theme === "dark";
    if (night) document.documentElement.dataset.theme = "light"; // paper is white, whatever the screen was
  });
  addEventListener("afterprint", () => { if (night) document.documentElement.dataset.theme = "dark"; });
})();
