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

  // ---- plotly, in the page's colours
  function template(node, colorway) {
    const style = getComputedStyle(node), [r, g, b] = style.color.match(/[\d.]+/g).map(Number);
    const ink = (alpha) => `rgba(${r},${g},${b},${alpha})`;
    const axis = { gridcolor: ink(0.14), linecolor: ink(0.35), zerolinecolor: ink(0.35), automargin: true };
    const clear = "rgba(0,0,0,0)", font = { color: ink(1), family: style.fontFamily, size: 13 };
    return { layout: { colorway, font, paper_bgcolor: clear, plot_bgcolor: clear, xaxis: axis, yaxis: axis,
      hoverlabel: { font: { family: style.fontFamily } } } };
  }

  async function drawFigure(node) {
    const { data, layout, frames, config, colorway } = contents(node);
    await load("plotly.min.js");
    const plot = document.createElement("div");
    plot.style.minHeight = node.style.minHeight;
    node.replaceChildren(plot);
    const themed = () => ({ template: template(node, colorway || undefined) });
    // No mode bar: it covers the figure and offers to send the data to a server. On a touch screen a finger scrolls.
    const touch = matchMedia("(pointer: coarse)").matches ? { dragmode: false } : {};
    await Plotly.newPlot(plot, data, { ...layout, ...touch, ...themed() }, { responsive: true, displayModeBar: false, ...config });
    if (frames) await Plotly.addFrames(plot, frames);
    const repaint = new MutationObserver(() => Plotly.relayout(plot, themed()));
    repaint.observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
  }

  const started = new Set();
  function start(node) {
    if (started.has(node)) return;
    started.add(node);
    (node.classList.contains("fqk-live") ? drawWidget : drawFigure)(node)
      .then(() => { node.dataset.drawn = "true"; })
      .catch((error) => { console.error(error); node.append("This figure could not be drawn."); });
  }

  // The theme leaves the sidebar's logo outside every landmark.
  const sidebar = document.querySelector(".bd-sidebar-primary");
  sidebar?.setAttribute("role", "navigation");
  sidebar?.setAttribute("aria-label", "Book");

  const islands = [...document.querySelectorAll(".fqk-live, .fqk-figure")];
  const near = new IntersectionObserver((entries) => {
    for (const { isIntersecting, target } of entries) if (isIntersecting) { near.unobserve(target); start(target); }
  }, { rootMargin: "600px" });
  islands.forEach((node) => near.observe(node));
  addEventListener("beforeprint", () => islands.forEach(start));
})();
