/* A symbol that is pointed at, tapped or focused lights up wherever the page shows it:
   in the formula, the code, the picture and the figures. What belongs together has the
   same `data-lights`, which lights.py and the figures write. */
(() => {
  "use strict";
  const MARKED = "[data-lights]";
  let shown = null; // what is lit
  let kept = null; // what stays lit until it is chosen again, or Escape

  const named = (key) => document.querySelectorAll(`[data-lights="${CSS.escape(key)}"]`);
  const entries = [...document.querySelectorAll(".light")];
  const color = (key) => entries.find((entry) => entry.dataset.lights === key)
    ?.style.getPropertyValue("--symbol");

  const show = (key) => {
    if (key && !color(key)) key = null; // a figure's part that has no legend here
    if (key === shown) return;
    for (const part of document.querySelectorAll(".lit")) part.classList.remove("lit");
    shown = key;
    if (!key) return;
    for (const part of named(key)) {
      part.style.setProperty("--symbol", color(key));
      part.classList.add("lit");
    }
  };

  const keep = (key) => {
    kept = key;
    for (const entry of entries)
      entry.setAttribute("aria-pressed", entry.dataset.lights === kept);
    show(kept);
  };

  // The legend: a row of buttons, one stop for Tab, arrows from one to the next -----------
  for (const list of document.querySelectorAll(".lights-legend")) {
    const own = entries.filter((entry) => list.contains(entry));
    list.setAttribute("role", "toolbar");
    list.setAttribute("aria-label", "Symbols: light up one of them");
    for (const item of list.children) item.setAttribute("role", "presentation");
    own.forEach((entry, i) => {
      entry.setAttribute("role", "button");
      entry.setAttribute("aria-pressed", "false");
      entry.tabIndex = i ? -1 : 0;
      entry.addEventListener("focus", () => {
        for (const each of own) each.tabIndex = each === entry ? 0 : -1;
        show(entry.dataset.lights);
      });
      entry.addEventListener("blur", () => show(kept));
      entry.addEventListener("keydown", (event) => {
        const { key } = event;
        const way = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[key];
        if (way) own[(i + way + own.length) % own.length].focus();
        else if (key === "Enter" || key === " ") choose(entry);
        else return;
        event.preventDefault();
      });
    });
  }

  // Pointer and touch -----------------------------------------------------------------
  const choose = ({ dataset: { lights } }) => keep(lights === kept ? null : lights);
  const marked = ({ target }) => target.closest?.(MARKED);
  document.addEventListener("pointerover", (event) => {
    if (event.pointerType !== "mouse") return;
    show(marked(event)?.dataset.lights ?? kept);
  });
  document.addEventListener("click", (event) => {
    const part = marked(event);
    if (part?.closest(".moving-figure")) return; // there a click has its own meaning
    if (part) choose(part);
    else if (kept && !event.target.closest(".moving-figure")) keep(null);
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") keep(null);
  });
})();
