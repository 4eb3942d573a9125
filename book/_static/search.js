/* The search, while one types: sections of all pages that hold every word asked for, the
   best first. A word that is nowhere is taken for the most frequent one that differs by
   one slip. course.js loads this when the search is opened; the search page has it. */
(() => {
  "use strict";
  const root = document.documentElement.dataset.content_root;
  const LEAST = 4; // letters of a word that may have a slip
  const AROUND = 110; // letters of a text shown on either side of a word

  // Texts: one file, which a page from a disk can load, too ---------------------------------
  let loading;
  const load = () => (loading ??= new Promise((resolve, refuse) => {
    const script = document.createElement("script");
    script.src = `${root}search_texts.js`;
    script.onload = () => resolve(prepared(window.searchTexts));
    script.onerror = refuse;
    document.head.append(script);
  }));

  const prepared = (pages) => Object.entries(pages).flatMap(([page, [title, sections]]) =>
    sections.map(([anchor, heading, text]) => ({
      page, title, anchor, heading, text,
      low: text.toLowerCase(), lowHeading: heading.toLowerCase(),
      rank: page.startsWith("book/") ? (/book\/\d/.test(page) ? 1.3 : 1) : 0.8,
    })));

  // Words with a slip -----------------------------------------------------------------------
  let words;
  const counted = (sections) => {
    if (words) return words;
    words = new Map();
    for (const { low, lowHeading } of sections)
      for (const [word] of `${lowHeading} ${low}`.matchAll(/[\p{L}_][\p{L}\d_]{2,}/gu))
        words.set(word, (words.get(word) ?? 0) + 1);
    return words;
  };

  /* Whether two words differ by one letter more, less, other, or two exchanged. */
  const near = (one, other) => {
    if (Math.abs(one.length - other.length) > 1) return false;
    let i = 0;
    while (i < one.length && one[i] === other[i]) i += 1;
    const [a, b] = [one.slice(i), other.slice(i)];
    return a.slice(1) === b || a === b.slice(1) || a.slice(1) === b.slice(1)
      || (a[0] === b[1] && a[1] === b[0] && a.slice(2) === b.slice(2));
  };

  const mended = (sections, term) => {
    if (term.length < LEAST) return term;
    const close = [...counted(sections)].filter(([word]) => near(term, word));
    return close.sort(([, a], [, b]) => b - a)[0]?.[0] ?? term;
  };

  // Finding ---------------------------------------------------------------------------------
  const times = (text, term) => {
    let count = 0;
    for (let at = text.indexOf(term); at >= 0 && count < 5; at = text.indexOf(term, at + 1))
      count += at && /[\p{L}\d]/u.test(text[at - 1]) ? 0.2 : 1; // within a word: little
    return count;
  };

  const score = (section, terms) => {
    let sum = 0;
    for (const term of terms) {
      const found = times(section.low, term) + 8 * times(section.lowHeading, term);
      if (!found) return 0;
      sum += found;
    }
    const phrase = terms.join(" ");
    if (terms.length > 1) sum += 4 * times(section.low, phrase);
    return (sum + 12 * times(section.lowHeading, phrase)) * section.rank;
  };

  const find = async (query) => {
    const sections = await load();
    const asked = query.toLowerCase().split(/\s+/).filter(Boolean);
    const exists = (term) => sections.some(({ low, lowHeading }) =>
      low.includes(term) || lowHeading.includes(term));
    const terms = asked.map((term) => (exists(term) ? term : mended(sections, term)));
    const found = sections.map((section) => [score(section, terms), section])
      .filter(([points]) => points).sort(([a], [b]) => b - a).map(([, section]) => section);
    return { terms, found, changed: terms.join(" ") !== asked.join(" ") };
  };

  // Showing ---------------------------------------------------------------------------------
  const element = (tag, attributes, ...children) => {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.append(...children);
    return made;
  };

  /* The text around the first word found, all words marked. */
  const excerpt = ({ text, low }, terms) => {
    const first = Math.min(...terms.map((term) => low.indexOf(term)).filter((at) => at >= 0));
    const begin = Number.isFinite(first) ? Math.max(0, first - AROUND) : 0;
    const part = text.slice(begin, begin + 2 * AROUND);
    const marks = terms.map((term) => term.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
    const pieces = part.split(new RegExp(`(${marks.join("|")})`, "i"));
    return element("p", { class: "context" }, begin ? "… " : "", ...pieces.map((piece, i) =>
      (i % 2 ? element("mark", {}, piece) : piece)), " …");
  };

  const entry = (section, terms) => {
    const { page, title, anchor, heading } = section;
    const address = `${root}${page}${anchor ? `#${anchor}` : ""}`;
    const name = heading && heading !== title ? `${title} · ${heading}` : title;
    return element("li", {}, element("a", { href: address }, name),
      excerpt(section, terms));
  };

  const show = async (place, query, most) => {
    place.query = query;
    if (!query) return place.replaceChildren();
    let content;
    try {
      const { terms, found, changed } = await find(query);
      const said = found.length
        ? `${found.length} ${found.length === 1 ? "section" : "sections"}`
          + (changed ? ` with “${terms.join(" ")}”` : "")
        : `Nothing has “${query}” in it.`;
      content = [element("p", { class: "search-summary", role: "status" }, said),
        element("ul", { class: "search-found" },
          ...found.slice(0, most).map((section) => entry(section, terms)))];
    } catch {
      content = [element("p", { role: "status" }, "The texts could not be loaded.")];
    }
    if (place.query === query) place.replaceChildren(...content); // no later one came
  };

  const connect = (form, place, most) => {
    const field = form.querySelector("input");
    field.addEventListener("input", () => show(place, field.value.trim(), most));
    form.parentElement.addEventListener("keydown", (event) => {
      const way = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (!way) return;
      const stops = [field, ...place.querySelectorAll("a")];
      const next = stops[stops.indexOf(document.activeElement) + way];
      if (!next) return;
      event.preventDefault();
      next.focus();
    });
    if (field.value.trim()) show(place, field.value.trim(), most);
    else load().catch(() => {});
  };

  const dialog = document.querySelector("#pst-search-dialog form");
  const page = document.getElementById("search-results");
  if (page) {
    const form = page.parentElement.querySelector("form");
    form.querySelector("input").value = new URLSearchParams(location.search).get("q") ?? "";
    connect(form, page, 60);
  } else if (dialog) {
    const place = element("div", { class: "search-place" });
    dialog.after(place);
    connect(dialog, place, 8);
  }
})();
