/* What stands around a page: its colours, the search, the sidebars and menus, and where in
   the page one is. It does what the theme's own scripts do, which lay the whole page out
   several times before anything can be used, and need Bootstrap. */
(() => {
  "use strict";

  const root = document.documentElement;
  const all = (selector) => [...document.querySelectorAll(selector)];

  // Colours -----------------------------------------------------------------------------

  const dark = matchMedia("(prefers-color-scheme: dark)");

  /* Where a browser forbids it, to name a storage is an error already. */
  const store = (place, name, value) => {
    try {
      window[place][name] = value;
    } catch {
      // it lasts as long as the page
    }
  };
  const stored = (place, name) => {
    try {
      return window[place].getItem(name);
    } catch {
      return null;
    }
  };

  /* The script in the page's head has done the same for the mode that was stored. */
  const setMode = (mode) => {
    const theme = mode === "auto" ? (dark.matches ? "dark" : "light") : mode;
    root.dataset.mode = mode;
    if (root.dataset.theme !== theme) root.dataset.theme = theme;
    for (const menu of all(".dropdown-menu"))
      menu.classList.toggle("dropdown-menu-dark", theme === "dark");
    store("localStorage", "mode", mode);
    store("localStorage", "theme", theme);
  };

  const nextMode = () => {
    const order = dark.matches ? ["auto", "light", "dark"] : ["auto", "dark", "light"];
    setMode(order[(order.indexOf(root.dataset.mode) + 1) % order.length]);
  };

  setMode(["light", "dark"].includes(root.dataset.mode) ? root.dataset.mode : "auto");
  dark.addEventListener("change", () => {
    if (root.dataset.mode === "auto") setMode("auto");
  });
  for (const button of all(".theme-switch-button"))
    button.addEventListener("click", nextMode);

  // Dialogs -----------------------------------------------------------------------------

  /* A dialog closes when one presses beside it. */
  const closeFromOutside = (dialog) =>
    dialog.addEventListener("click", ({ clientX, clientY }) => {
      const { left, right, top, bottom } = dialog.getBoundingClientRect();
      const inside = left <= clientX && clientX <= right && top <= clientY
        && clientY <= bottom;
      if (dialog.open && !inside) dialog.close();
    });

  // Search --------------------------------------------------------------------------------

  const dialog = document.getElementById("pst-search-dialog");
  const field = document.querySelector(":not(#pst-search-dialog) > form.bd-search input");
  const isMac = /^(Mac|iPhone|iPad)/.test(navigator.platform);

  /* What searches is loaded with the first search. */
  const prepare = () => {
    prepare.done ??= document.head.append(Object.assign(document.createElement("script"),
      { src: `${root.dataset.content_root}_static/search.js` })) ?? true;
  };

  const search = () => {
    if (!field) {
      prepare();
      if (dialog.open) dialog.close();
      else dialog.showModal();
    } else if (document.activeElement === field) {
      field.blur();
    } else {
      field.focus();
      field.select();
      field.scrollIntoView({ block: "center" });
    }
  };

  if (dialog) {
    closeFromOutside(dialog);
    for (const button of all(".search-button__button"))
      button.addEventListener("click", search);
    addEventListener("keydown", (event) => {
      const command = isMac ? event.metaKey && !event.ctrlKey
        : event.ctrlKey && !event.metaKey;
      if (command && !event.shiftKey && !event.altKey && /^k$/i.test(event.key)) {
        event.preventDefault();
        search();
      } else if (event.key === "Escape" && field && document.activeElement === field) {
        field.blur();
      }
    }, true);
    if (isMac)
      for (const key of all(".search-button__kbd-shortcut kbd.kbd-shortcut__modifier"))
        key.textContent = "⌘";
  }

  // Sidebars ------------------------------------------------------------------------------

  const moveInto = (from, to) => {
    to.append(...from.childNodes);
    to.classList.add(...from.classList);
    from.removeAttribute("class");
  };

  const sidebars = ["primary", "secondary"].map((name) => ({
    name,
    button: document.querySelector(`.${name}-toggle`),
    bar: document.getElementById(`pst-${name}-sidebar`),
    over: document.getElementById(`pst-${name}-sidebar-modal`),
  }));
  const wide = matchMedia("(min-width: 992px)");

  for (const { name, button, bar, over } of sidebars) {
    if (!button || !bar || !over) continue;
    button.addEventListener("click", () => {
      if (name === "primary" && wide.matches) {
        bar.classList.toggle("pst-sidebar-hidden");
        return;
      }
      moveInto(bar, over);
      over.showModal(); // the browser gives the focus back when it is closed
    });
    closeFromOutside(over);
    over.addEventListener("close", () => moveInto(over, bar));
  }

  /* The list of pages stays where it was scrolled to; at first its page is in view. */
  const list = document.getElementById("pst-primary-sidebar");
  if (list && wide.matches)
    requestAnimationFrame(() => {
      const before = Number.parseInt(stored("sessionStorage", "sidebar-scroll-top"), 10);
      const active = [...list.querySelectorAll(".bd-docs-nav .active")].pop();
      if (before >= 0) {
        list.scrollTop = before;
      } else if (active) {
        const { top } = active.getBoundingClientRect();
        if (top > innerHeight / 2)
          list.scrollTop = top - list.getBoundingClientRect().top - list.clientHeight / 4;
      }
    });
  if (list)
    addEventListener("pagehide", () =>
      store("sessionStorage", "sidebar-scroll-top", list.scrollTop));

  // Menus -----------------------------------------------------------------------------------

  const buttons = all("[data-bs-toggle='dropdown']");
  const isOpen = (button) => button.getAttribute("aria-expanded") === "true";
  const show = (button, open) => {
    button.setAttribute("aria-expanded", String(open));
    button.parentElement.querySelector(".dropdown-menu").classList.toggle("show", open);
  };

  for (const button of buttons) {
    button.addEventListener("click", () => show(button, !isOpen(button)));
    button.parentElement.addEventListener("focusout", (event) => {
      if (!button.parentElement.contains(event.relatedTarget)) show(button, false);
    });
  }
  document.addEventListener("click", (event) => {
    for (const button of buttons)
      if (!button.contains(event.target)) show(button, false);
  });
  document.addEventListener("keydown", (event) => {
    for (const button of buttons.filter(isOpen))
      if (event.key === "Escape") {
        show(button, false);
        button.focus();
      }
  });

  // Where in the page one is ------------------------------------------------------------------

  const links = all("#pst-page-toc-nav a[href^='#']");
  const entries = all("#pst-page-toc-nav .toc-entry");
  let chosen = 0; // until when the link that was followed stays marked
  let marked = null;

  const mark = (link) => {
    marked = link;
    for (const each of links) {
      each.classList.toggle("active", each === link);
      if (each === link) each.setAttribute("aria-current", "true");
      else each.removeAttribute("aria-current");
    }
    for (const entry of entries) entry.classList.toggle("active", entry.contains(link));
  };

  const markPlace = () => {
    const link = location.hash.length > 1 && links.find(({ hash }) => hash === location.hash);
    if (!link) return;
    chosen = Date.now() + 1000;
    mark(link);
  };

  if (links.length) {
    const named = (link) => document.getElementById(decodeURIComponent(link.hash.slice(1)));
    const headings = new Map(links.filter(named).map((link) =>
      [named(link).querySelector(":is(h1, h2, h3, h4, h5, h6)") || named(link), link]));
    const leftBelow = ({ isIntersecting, target, boundingClientRect, rootBounds }) =>
      !isIntersecting && headings.get(target) === marked
      && boundingClientRect.top >= rootBounds.bottom;
    const seen = new IntersectionObserver((changes) => {
      const change = changes.filter(({ isIntersecting }) => isIntersecting).pop();
      if (Date.now() < chosen) return;
      if (change) mark(headings.get(change.target));
      else if (changes.some(leftBelow)) mark(links[links.indexOf(marked) - 1]);
    }, { rootMargin: "0px 0px -70% 0px" });
    for (const heading of headings.keys()) seen.observe(heading);
    const beginning = document.querySelector(".bd-article h1");
    if (beginning)
      new IntersectionObserver((changes) => { // the last of them is how it is now
        if (changes.at(-1).isIntersecting && Date.now() > chosen) mark(null);
      }, { rootMargin: "0px 0px -70% 0px" }).observe(beginning);
    addEventListener("hashchange", markPlace);
    markPlace();
  }

  /* The list of a page's sections folds up while a margin note stands in its place. */
  const contents = document.querySelector(".bd-sidebar-secondary");
  if (contents) {
    const inView = new Set();
    const notes = new IntersectionObserver((changes) => {
      for (const { isIntersecting, target } of changes)
        if (isIntersecting) inView.add(target);
        else inView.delete(target);
      contents.classList.toggle("hide", inView.size > 0);
    }, { rootMargin: "0px 0px -33% 0px" });
    for (const note of all("aside.margin")) notes.observe(note);
  }

  const top = document.querySelector(".sbt-scroll-pixel-helper");
  if (top)
    new IntersectionObserver(([{ boundingClientRect }]) =>
      document.body.classList.toggle("scrolled", boundingClientRect.y < 0)).observe(top);

  // What scrolls can be reached by keyboard ---------------------------------------------------

  const scrolls = ({ scrollWidth, clientWidth, scrollHeight, clientHeight }) =>
    scrollWidth > clientWidth || scrollHeight > clientHeight;
  const sizes = new ResizeObserver((changes) => {
    const found = changes.map(({ target }) => [target, scrolls(target)]);
    for (const [target, reachable] of found)
      if (reachable) target.tabIndex = 0;
      else target.removeAttribute("tabindex");
  });
  for (const box of all("pre, .cell_output > .output, .pst-scrollable-table-container, "
    + ".plot-frame, div.math, .formula"))
    sizes.observe(box);

  // Not on paper --------------------------------------------------------------------------------

  const around = [".bd-header-announcement", ".bd-header", ".bd-header-article",
    ".bd-sidebar-primary", ".bd-sidebar-secondary", ".bd-footer-article",
    ".bd-footer-content", ".bd-footer"];
  for (const part of all(around.join())) part.classList.add("noprint");
})();
