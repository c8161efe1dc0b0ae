"""What a reader would call broken on a page, found in the browser: each a script that returns a list of faults."""

# Words of figures that lie over other words, or outside their figure. What is transparent is not there.
COLLISIONS = """() => [...document.querySelectorAll(".fqk-figure")].flatMap((figure) => {
  const frame = figure.getBoundingClientRect(), name = figure.getAttribute("aria-label").slice(0, 60);
  const words = [...figure.querySelectorAll("text")]
    .map((node) => [node.textContent, node.getBoundingClientRect(), node])
    .filter(([text, box, node]) => text.trim() && box.width && getComputedStyle(node).opacity !== "0");
  const outside = words.filter(([, b]) => b.left < frame.left - 1 || b.right > frame.right + 1
    || b.top < frame.top - 1 || b.bottom > frame.bottom + 1).map(([text]) => [name, text, "outside"]);
  const over = words.flatMap(([one, a], i) => words.slice(i + 1).filter(([, b]) =>
    Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1.5
    && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 3).map(([other]) => [name, one, other]));
  return [...outside, ...over];
})"""
