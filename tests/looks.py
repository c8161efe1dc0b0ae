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

# Formulas that end at the edge of their box, and neither break nor show that they go on.
CUT_FORMULAS = """() => [...document.querySelectorAll("article mjx-container[display=true]")]
  .filter((box) => box.scrollWidth > box.clientWidth + 1 && !/gradient/.test(getComputedStyle(box).backgroundImage))
  .map((box) => box.closest("div").id)"""

# Names in tables that go on in a second line.
BROKEN_NAMES = """() => [...document.querySelectorAll("article table .pre")].filter((name) => {
    const words = document.createRange();
    words.selectNodeContents(name);
    return new Set([...words.getClientRects()].map(({ top }) => Math.round(top))).size > 1;
  }).map((name) => name.textContent)"""

# Tables that scroll and take their first column along.
LOOSE_TABLES = """() => [...document.querySelectorAll("article table")].filter((table) => {
    const box = table.parentElement, cell = table.querySelector("td");
    return table.scrollWidth > box.clientWidth + 1 && cell && getComputedStyle(cell).position !== "sticky";
  }).map((table) => table.textContent.trim().slice(0, 60))"""

# Lines of code that end out of sight.
CUT_CODE = """() => [...document.querySelectorAll("article .highlight pre")]
  .filter((block) => block.scrollWidth > block.clientWidth + 1).map((block) => block.textContent.slice(0, 60))"""

FAULTS = {
    "words of figures collide": COLLISIONS, "formulas are cut": CUT_FORMULAS, "names are broken": BROKEN_NAMES,
    "first columns scroll away": LOOSE_TABLES, "code is cut": CUT_CODE,
}  # fmt: skip
