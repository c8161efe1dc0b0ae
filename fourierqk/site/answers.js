// Exercises: a box for a number or a word, judged by the rule that stands in the page, which is the Python checker's.
const answers = (() => {
  // ---------------------------------------------------------------- numbers, as a reader writes them
  const CALLS = { sqrt: Math.sqrt, ln: Math.log, log: Math.log, log2: Math.log2, log10: Math.log10, exp: Math.exp, sin: Math.sin, cos: Math.cos };
  const NAMES = { pi: Math.PI, "π": Math.PI, e: Math.E };

  // The value of an expression, NaN if it is none: + - * / ^ ( ), pi, e and the calls above.
  function value(text) {
    const plain = text.replace(/\b(np|math|torch)\./g, "").replace(/−/g, "-").replace(/[·×]/g, "*").replace(/\*\*/g, "^");
    const parts = plain.match(/\d+\.?\d*(e[+-]?\d+)?|\.\d+(e[+-]?\d+)?|[a-zπ]\w*|\S/gi) || [];
    let at = 0;
    const take = (...wanted) => wanted.includes(parts[at]) && parts[at++];
    const sum = () => {
      let v = product();
      for (let op; (op = take("+", "-")); ) v = op === "+" ? v + product() : v - product();
      return v;
    };
    const product = () => {
      let v = signed();
      for (let op; (op = take("*", "/")); ) v = op === "*" ? v * signed() : v / signed();
      return v;
    };
    const signed = () => (take("-") ? -signed() : take("+") ? signed() : power());
    const power = () => { const base = atom(); return take("^") ? base ** signed() : base; };
    const atom = () => {
      const part = parts[at++];
      if (part === "(") { const v = sum(); return take(")") ? v : NaN; }
      if (Object.hasOwn(CALLS, part) && take("(")) { const v = CALLS[part](sum()); return take(")") ? v : NaN; }
      return Object.hasOwn(NAMES, part) ? NAMES[part] : /^[\d.]/.test(part ?? "") ? Number(part) : NaN;
    };
    const v = sum();
    return at === parts.length && Number.isFinite(v) ? v : NaN;
  }

  // ---------------------------------------------------------------- the rule
  const close = (a, b, rel, abs) => a === b || Math.abs(a - b) <= Math.max(rel * Math.max(Math.abs(a), Math.abs(b)), abs);
  function isOne(v, values, rel, abs) {
    if (Array.isArray(values)) return values.some((w) => close(v, w, rel, abs));
    return (values.low ?? -Infinity) <= v && v <= (values.high ?? Infinity);
  }

  // What is wrong with an answer, a text; null if nothing is.
  function judge(rule, text) {
    if (rule.kind === "word") return text === rule.right ? null : rule.says[text];
    const v = value(text), exact = rule.kind === "whole" && Number.isInteger(v);
    if (Number.isNaN(v)) return rule.no_number.replace("{}", text.trim());
    if ((rule.kind !== "whole" || exact) && isOne(v, rule.right, exact ? 0 : rule.rel_tol, rule.abs_tol)) return null;
    const known = rule.wrong.find(([values]) => isOne(v, values, exact ? 0 : rule.rel_tol, rule.abs_tol));
    if (known) return known[1];
    return rule.kind === "whole" && !exact ? `${rule.not_whole.replace("{}", +v.toPrecision(6))} ${rule.otherwise}` : rule.otherwise;
  }

  // ---------------------------------------------------------------- the box
  function element(tag, props, ...children) {
    const node = Object.assign(document.createElement(tag), props);
    node.append(...children);
    return node;
  }

  function box(node) {
    const rule = JSON.parse(node.querySelector("script").textContent);
    const said = element("p", { className: "fqk-verdict" });
    said.setAttribute("role", "status");
    const answer = rule.kind === "word"
      ? element("select", {}, element("option", { value: "" }, "choose"), ...rule.words.map((word) => element("option", { value: word }, word)))
      : element("input", { type: "text", autocomplete: "off", spellcheck: false, placeholder: "a number, or 2 * pi / 7" });
    const label = element("label", {}, `Your answer${rule.unit ? ` (${rule.unit})` : ""} `, answer);
    const form = element("form", { className: "fqk-answer" }, label, element("button", { type: "submit" }, "Check"), said);
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      if (!answer.value.trim()) { said.textContent = "No answer yet."; return; }
      const wrong = judge(rule, answer.value);
      answer.setAttribute("aria-invalid", wrong !== null);
      said.textContent = wrong === null ? "Correct." : `Not yet: ${wrong}`;
    });
    node.replaceWith(form);
  }

  document.querySelectorAll("div.fqk-answer").forEach(box);
  return { judge, value };
})();
