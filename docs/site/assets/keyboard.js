// What the theme leaves out for the keyboard and for screen readers.

// On a narrow window the buttons of the header are labels of hidden boxes, which the Tab key does not reach.
for (const [box, name] of [["__drawer", "Navigation"], ["__search", "Search"]]) {
  const label = document.querySelector(`.md-header label[for="${box}"]`);
  if (!label) continue;
  label.setAttribute("role", "button");
  label.setAttribute("tabindex", "0");
  label.setAttribute("aria-label", name);
  label.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    event.stopPropagation(); // the theme clicks a label with the focus, too
    label.click();
  });
}

// The search is a shadow tree, in which the place of a result has a contrast of 3.4:1.
document.addEventListener("focusin", ({ target }) => {
  const tree = target.shadowRoot;
  if (!tree || tree.getElementById("pb-contrast")) return;
  const style = document.createElement("style");
  style.id = "pb-contrast";
  style.textContent = "menu { color: rgb(var(--color-foreground) / 0.7) !important; }";
  tree.append(style);
});

// Wide tables and long lines of code scroll sideways. Those that do get a stop of the Tab key, a role and a name, so that
// the arrow keys scroll them and a screen reader announces them; they lose all three when the window has room for them.
(() => {
  const SCROLLER = { table: ".md-typeset__scrollwrap", code: "pre > code" };
  const article = document.querySelector("article");
  if (!article) return;

  function textOf(heading) {
    const copy = heading.cloneNode(true);
    copy.querySelectorAll(".headerlink").forEach((link) => link.remove());
    return copy.textContent.trim();
  }

  function set(element, attributes) {
    for (const [name, value] of Object.entries(attributes)) {
      if (value === null) element.removeAttribute(name);
      else if (element.getAttribute(name) !== value) element.setAttribute(name, value);
    }
  }

  function mark() {
    let heading = document.title;
    const counts = new Map();
    const found = article.querySelectorAll(`h1, h2, h3, h4, h5, h6, ${SCROLLER.table}, ${SCROLLER.code}`);
    const changes = [];
    for (const element of found) {
      if (/^H[1-6]$/.test(element.tagName)) {
        heading = textOf(element);
        continue;
      }
      const kind = element.matches(SCROLLER.table) ? "Table" : "Code";
      const count = (counts.get(kind + heading) || 0) + 1;
      counts.set(kind + heading, count);
      const scrolls = element.scrollWidth > element.clientWidth;
      if (!scrolls && element.getAttribute("role") !== "region") continue;
      const given = { tabindex: "0", role: "region", "aria-label": `${kind}${count > 1 ? ` ${count}` : ""}: ${heading}` };
      changes.push([element, scrolls ? given : { tabindex: null, role: null, "aria-label": null }]);
    }
    // The theme puts the button that copies a block into a landmark, one for each block.
    article.querySelectorAll(".md-code__nav").forEach((each) => set(each, { role: "none" }));
    // After all sizes are read: a change in between would lay the page out again for each of them.
    changes.forEach(([element, attributes]) => set(element, attributes));
  }

  // The theme wraps tables, and sets the index of code, after this script has run.
  new MutationObserver(mark).observe(article, {
    attributeFilter: ["tabindex"],
    childList: true,
    subtree: true,
  });
  new ResizeObserver(mark).observe(article);
})();
