// Predictions: what stands between an admonition with choices and the next "Answer" is veiled until one is chosen.
// Without this script, and in print, all of it is open.
(() => {
  const titled = (node, title) => node.querySelector(":scope > .admonition-title")?.textContent.trim() === title;

  function veiled(box) { // the elements up to the answer, and it
    const found = [];
    for (let node = box.nextElementSibling; node; node = node.nextElementSibling) {
      found.push(node);
      if (titled(node, "Answer")) return found;
    }
    return []; // there is no answer to lead to
  }

  function lift(nodes) {
    for (const node of nodes) {
      node.inert = false;
      node.classList.remove("fqk-veiled");
    }
    const answer = nodes[nodes.length - 1];
    if (answer.classList.contains("toggle-hidden")) answer.querySelector(".toggle-button")?.click();
  }

  document.querySelectorAll(".admonition:has(> ul.contains-task-list)").forEach((box, number) => {
    const list = box.querySelector(":scope > ul.contains-task-list"), nodes = veiled(box);
    const said = document.createElement("p");
    said.className = "fqk-verdict";
    said.setAttribute("role", "status");
    said.textContent = "What follows is veiled until you choose.";
    let right = null;
    const labels = [...list.children].map((item) => {
      const mark = item.querySelector("input"), from = mark.parentNode, good = mark.checked;
      const label = document.createElement("label"), radio = document.createElement("input"), words = document.createElement("span");
      mark.nextSibling.data = mark.nextSibling.data.trimStart();
      mark.remove();
      words.append(...from.childNodes);
      radio.type = "radio";
      radio.autocomplete = "off"; // a page that is loaded again is veiled again
      radio.name = `fqk-prediction-${number}`;
      label.append(radio, words);
      if (good) right = words;
      radio.addEventListener("change", () => {
        const holds = good ? ["Right."] : ["Not so. What holds is: “", right.cloneNode(true), "”."]; // formulas are elements
        said.replaceChildren(...holds, " The result is open below; why stands under “Answer”.");
        lift(nodes);
      });
      return label;
    });
    const choices = document.createElement("div");
    choices.className = "fqk-choices";
    choices.setAttribute("role", "radiogroup");
    choices.setAttribute("aria-label", "Your prediction");
    choices.append(...labels);
    list.replaceWith(choices, said);
    for (const node of nodes) {
      node.inert = true;
      node.classList.add("fqk-veiled");
    }
    const wanted = () => { // a link that leads behind the veil opens it
      const target = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
      if (target && nodes.some((node) => node.contains(target))) lift(nodes);
    };
    addEventListener("hashchange", wanted);
    wanted();
  });
})();
