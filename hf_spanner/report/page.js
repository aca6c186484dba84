// Filters of the sentences: by kind, by type and by words. Without JavaScript every sentence is shown.
const bar = document.querySelector(".filters");
if (bar) {
  const articles = [...document.querySelectorAll("article")].map((node) => ({
    node,
    items: [...node.querySelectorAll("li")],
    words: [...node.querySelectorAll(".nested-ner")].map((text) => text.textContent).join(" ").toLowerCase(),
  }));
  const buttons = [...bar.querySelectorAll("button")];
  const [type, search, output] = ["select", "input", "output"].map((name) => bar.querySelector(name));
  const update = () => {
    const kinds = new Set(buttons.filter((b) => b.ariaPressed === "true").map((b) => b.value));
    const query = search.value.trim().toLowerCase();
    let shown = 0, sentences = 0;
    articles.forEach(({ node, items, words }) => {
      let any = 0;
      for (const item of items) {
        item.hidden = !((!kinds.size || kinds.has(item.dataset.kind)) && (!type.value || type.value === item.dataset.type));
        any += !item.hidden;
      }
      node.hidden = !any || !words.includes(query);
      if (!node.hidden) { shown += any; sentences += 1; }
    });
    output.value = `${shown.toLocaleString("en")} in ${sentences.toLocaleString("en")} sentences`;
  };
  buttons.forEach((b) => b.addEventListener("click", () => { b.ariaPressed = b.ariaPressed !== "true"; update(); }));
  type.addEventListener("change", update);
  search.addEventListener("input", update);
  update();
}
