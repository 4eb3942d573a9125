/* What helps to read: progress, quizzes, hints one by one, definitions at their links.
   Everything works without it, too: links stay links, answers and hints unfold. Nothing is
   fetched and nothing leaves the browser. */
(() => {
  "use strict";

  const KEY = "course-progress";
  const KINDS = ["read", "quiz", "notebook"];
  const SECONDS_BEFORE_READ = 60; // whoever jumps to a page's end has not read it
  const WAYS = {
    reader: ["read", "quiz"],
    student: ["read", "quiz", "notebook"],
    short: ["read", "quiz", "notebook"],
    instructor: ["read", "notebook"],
  };

  const make = (tag, attributes = {}, ...children) => {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes))
      if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
      else if (value !== false) made.setAttribute(name, value === true ? "" : value);
    made.append(...children);
    return made;
  };

  // Memory ------------------------------------------------------------------------------

  /* A browser may refuse to remember, and what it remembers may be anybody's. */
  const recall = () => {
    const empty = { way: "reader", read: {}, quiz: {}, notebook: {} };
    try {
      const known = JSON.parse(localStorage.getItem(KEY)) || {};
      for (const kind of KINDS)
        for (const page of Object.keys(Object(known[kind])))
          if (known[kind][page] === true) empty[kind][page] = true;
      if (Object.hasOwn(WAYS, known.way)) empty.way = known.way;
    } catch {
      // begin with nothing
    }
    return empty;
  };

  let memory = recall();

  const remember = () => {
    try {
      localStorage.setItem(KEY, JSON.stringify(memory));
    } catch {
      // it lasts as long as the page
    }
    showProgress();
  };

  const note = (kind, page, done = true) => {
    if (!page || Boolean(memory[kind][page]) === done) return;
    memory = { ...recall(), way: memory.way };
    if (done) memory[kind][page] = true;
    else delete memory[kind][page];
    remember();
  };

  // Marks in the sidebar ------------------------------------------------------------------

  const end = document.getElementById("page-end");
  const here = end ? end.dataset.page : "";
  const kindHere = end ? end.dataset.kind : "";

  /* Which page of a chapter a link of the sidebar leads to. */
  const led = (link) => {
    const path = decodeURI(new URL(link.href, location.href).pathname);
    const exercise = path.match(/\/exercises\/(\w+)\/\1\.html$/);
    if (exercise) return { page: exercise[1], kind: "exercises" };
    const chapter = path.match(/\/book\/(\d\d_\w+|introduction)\.html$/);
    return chapter && { page: chapter[1], kind: "chapter" };
  };

  /* How many exercises of a chapter have passed in its page (on_page/exercises.js). */
  const passed = (page) => {
    try {
      return Object.keys(localStorage).filter((key) => key.startsWith("course-answer:"))
        .map((key) => JSON.parse(localStorage.getItem(key)))
        .filter((answer) => answer?.chapter === page && answer.passed === true).length;
    } catch {
      return 0;
    }
  };

  const said = ({ page, kind }) => {
    if (kind === "exercises") {
      const count = passed(page);
      return [
        ...(memory.notebook[page] ? ["notebook downloaded"] : []),
        ...(count ? [`${count} passed in the page`] : []),
      ];
    }
    return [
      ...(memory.read[page] ? ["read"] : []),
      ...(memory.quiz[page] ? ["quiz solved"] : []),
    ];
  };

  const whole = ({ page, kind }) =>
    kind === "exercises" || page === "introduction" ||
    Boolean(memory.read[page] && memory.quiz[page]);

  const mark = (link) => {
    const target = led(link);
    if (!target) return;
    const words = said(target).join(", ");
    let sign = link.querySelector(".progress-mark");
    if (!words) {
      if (sign) sign.remove();
      return;
    }
    if (!sign) {
      sign = make("span", { class: "progress-mark" });
      link.append(sign);
    }
    sign.dataset.whole = whole(target);
    sign.title = words;
    sign.replaceChildren(make("span", { class: "visually-hidden" }, ` (${words})`));
  };

  const showProgress = () => {
    document.querySelectorAll(".bd-docs-nav a.internal").forEach(mark);
    document.querySelectorAll(".ways-table tbody th a, .ways-table tbody td a").forEach(mark);
    showRead();
    showBar();
  };

  // This page read ------------------------------------------------------------------------

  const readButton = make(
    "button",
    {
      type: "button",
      class: "page-read",
      "aria-pressed": "false",
      onclick: () => note("read", here, !memory.read[here]),
    },
    "I have read this",
  );

  const showRead = () =>
    readButton.setAttribute("aria-pressed", String(Boolean(memory.read[here])));

  const watchEnd = () => {
    if (kindHere !== "chapter") return;
    end.prepend(readButton);
    const opened = Date.now();
    if (!("IntersectionObserver" in window)) return;
    const seen = (entries) => {
      const long = Date.now() - opened >= SECONDS_BEFORE_READ * 1000;
      if (!long || !entries.some((entry) => entry.isIntersecting)) return;
      observer.disconnect(); // whoever takes the mark away means it
      note("read", here);
    };
    const observer = new IntersectionObserver(seen);
    observer.observe(end);
  };

  const watchDownload = () => {
    for (const link of document.querySelectorAll("a[download], a.notebook-link"))
      link.addEventListener("click", () => note("notebook", here));
  };

  // The bar and the ways, on the home page --------------------------------------------------

  const ways = document.querySelector(".ways-through");
  let bar = null;

  const chapters = () =>
    [...ways.querySelectorAll("tbody tr")].map((row) => row.dataset.chapter);

  const showBar = () => {
    if (!bar) return;
    const kinds = WAYS[memory.way];
    const all = chapters().length * kinds.length;
    const done = chapters().reduce(
      (sum, page) => sum + kinds.filter((kind) => memory[kind][page]).length, 0);
    bar.meter.max = all;
    bar.meter.value = done;
    const count = (kind) => chapters().filter((page) => memory[kind][page]).length;
    const names = { read: "chapters read", quiz: "quizzes solved",
      notebook: "notebooks taken" };
    bar.words.textContent = kinds
      .map((kind) => `${count(kind)} of ${chapters().length} ${names[kind]}`)
      .join(", ");
    ways.dataset.way = memory.way;
    bar.radios.forEach((radio) => (radio.checked = radio.value === memory.way));
    bar.reset.hidden = !KINDS.some((kind) => Object.keys(memory[kind]).length);
    if (bar.reset.hidden) bar.sure.hidden = true;
  };

  const drawBar = () => {
    if (!ways) return;
    const radios = Object.keys(WAYS).map((way) =>
      make("input", { type: "radio", name: "way", value: way, id: `way-${way}`,
        onchange: () => {
          memory = { ...recall(), way };
          remember();
        } }));
    const choices = radios.map((radio) =>
      make("label", { for: radio.id }, radio,
        radio.value === "short" ? "short way" : radio.value));
    const meter = make("progress", { "aria-labelledby": "progress-words" });
    const words = make("p", { id: "progress-words" });
    const forget = () => {
      memory = { way: memory.way, read: {}, quiz: {}, notebook: {} };
      remember();
      radios.find((radio) => radio.checked).focus();
    };
    const sure = make("span", { class: "progress-sure", hidden: true },
      make("button", { type: "button", onclick: forget }, "Yes, forget all of it"),
      make("button", { type: "button", onclick: () => {
        sure.hidden = true;
        reset.focus();
      } }, "No"));
    const reset = make("button", { type: "button", class: "progress-reset",
      onclick: () => {
        sure.hidden = false;
        sure.querySelector("button").focus();
      } }, "Forget my progress");
    bar = { meter, words, radios, reset, sure };
    ways.prepend(
      make("fieldset", { class: "ways-choice" },
        make("legend", {}, "I am here as a"), ...choices),
      make("div", { class: "progress-bar-row" }, meter, words),
    );
    ways.append(make("p", { class: "progress-forget" },
      make("span", {}, "Progress is kept in this browser only. "), reset, sure));
  };

  // Quizzes -------------------------------------------------------------------------------

  const drawQuiz = (quiz) => {
    const forms = [...quiz.querySelectorAll("form")];
    const solved = new Set();
    for (const form of forms) {
      const answers = form.querySelector("details");
      const verdict = form.querySelector(".quiz-verdict");
      const chosen = () => form.querySelector("input:checked");
      form.querySelector("button").hidden = false;
      answers.hidden = true;
      form.addEventListener("change", () => {
        verdict.replaceChildren();
        delete form.dataset.state;
      });
      form.addEventListener("submit", (event) => {
        event.preventDefault();
        const choice = chosen();
        if (!choice) {
          verdict.replaceChildren(make("p", {}, "Choose an answer first."));
          return;
        }
        const right = choice.value === form.dataset.right;
        const why = form.querySelector(`[data-option="${choice.value}"] .quiz-why`);
        form.dataset.state = right ? "right" : "wrong";
        verdict.replaceChildren(
          make("p", { class: "quiz-word" }, right ? "✓ Right." : "✗ Not so."),
          ...[...why.childNodes].map((node) => node.cloneNode(true)),
        );
        if (!right) return;
        answers.hidden = false;
        solved.add(form);
        if (solved.size === forms.length) note("quiz", quiz.dataset.quiz);
      });
    }
  };

  // Hints, one by one -----------------------------------------------------------------------

  /* Hint 2 stays shut until hint 1 was opened. A closed hint counts as seen. */
  const chainHints = () => {
    const hints = [...document.querySelectorAll("article details")].filter((details) =>
      /^\s*Hint \d/.test(details.querySelector("summary")?.textContent || ""));
    let before = null;
    for (const hint of hints) {
      const number = Number(hint.querySelector("summary").textContent.match(/\d+/)[0]);
      const previous = number > 1 ? before : null;
      before = hint;
      if (!previous) continue;
      const summary = hint.querySelector("summary");
      const first = make("span", { class: "hint-first" }, `(after hint ${number - 1})`);
      summary.append(" ", first);
      summary.setAttribute("aria-disabled", "true");
      const refuse = (event) => {
        if (hint.open || summary.getAttribute("aria-disabled") !== "true") return;
        event.preventDefault();
      };
      summary.addEventListener("click", refuse);
      previous.addEventListener("toggle", () => {
        if (!previous.open) return;
        summary.removeAttribute("aria-disabled");
        first.remove();
      });
    }
  };

  // Definitions and equations at their links ----------------------------------------------------

  const kept = (name) => {
    const copy = document.querySelector(`#definitions [data-about="${CSS.escape(name)}"]`);
    if (copy) return [...copy.childNodes];
    const original = document.getElementById(name);
    if (!original) return null;
    if (original.matches("dt")) return [...(original.nextElementSibling?.childNodes || [])];
    return [original];
  };

  const withoutNames = (node) => {
    const copy = node.cloneNode(true);
    if (copy.nodeType !== Node.ELEMENT_NODE) return copy;
    copy.querySelectorAll(".headerlink").forEach((link) => link.remove());
    for (const named of [copy, ...copy.querySelectorAll("[id]")]) named.removeAttribute("id");
    return copy;
  };

  const popover = () => {
    const box = make("div", { class: "definition", id: "definition", role: "tooltip",
      hidden: true });
    document.body.append(box);
    let shownFor = null;
    let timer = 0;

    const hide = () => {
      clearTimeout(timer);
      if (shownFor) shownFor.removeAttribute("aria-describedby");
      shownFor = null;
      box.hidden = true;
    };

    const place = (link) => {
      const lines = link.getClientRects();
      const at = lines[0] || link.getBoundingClientRect();
      const room = document.documentElement.clientWidth;
      const left = Math.max(8, Math.min(at.left, room - box.offsetWidth - 8));
      const above = at.top - box.offsetHeight - 6;
      const below = (lines[lines.length - 1] || at).bottom + 6;
      const fits = below + box.offsetHeight <= innerHeight || above < 0;
      box.style.left = `${left + scrollX}px`;
      box.style.top = `${(fits ? below : above) + scrollY}px`;
    };

    const show = (link, touched) => {
      const parts = kept(link.hash.slice(1));
      clearTimeout(timer);
      if (!parts || shownFor === link) return;
      hide();
      box.replaceChildren(...parts.map(withoutNames));
      if (touched)
        box.append(make("p", {}, make("a", { href: link.href, class: "definition-more" },
          link.hash.startsWith("#term-") ? "In the glossary" : "To the equation")));
      box.hidden = false;
      shownFor = link;
      link.setAttribute("aria-describedby", box.id);
      place(link);
    };

    const soon = (action, delay) => {
      clearTimeout(timer);
      timer = setTimeout(action, delay);
    };

    let touched = false;
    const selector = 'a[href*="#term-"], a[href*="#equation-"]';
    for (const link of document.querySelectorAll(selector)) {
      if (link.classList.contains("headerlink") || link.closest("#definitions")) continue;
      link.addEventListener("pointerenter", (event) => {
        if (event.pointerType !== "touch") soon(() => show(link, false), 150);
      });
      link.addEventListener("pointerleave", (event) => {
        if (event.pointerType !== "touch") soon(hide, 250);
      });
      link.addEventListener("pointerdown", (event) => {
        touched = event.pointerType === "touch";
      });
      link.addEventListener("focus", () => {
        if (!touched) show(link, false);
      });
      link.addEventListener("blur", () => soon(hide, 100));
      link.addEventListener("click", (event) => {
        // the first touch shows, as nothing can point without touching
        if (touched && shownFor !== link && kept(link.hash.slice(1))) {
          event.preventDefault();
          show(link, true);
        }
        touched = false;
      });
    }
    box.addEventListener("pointerenter", () => clearTimeout(timer));
    box.addEventListener("pointerleave", (event) => {
      if (event.pointerType !== "touch") soon(hide, 250);
    });
    document.addEventListener("keydown", (event) => {
      if (event.key === "Escape") hide();
    });
    document.addEventListener("pointerdown", (event) => {
      if (shownFor && !box.contains(event.target) && !shownFor.contains(event.target))
        hide();
    });
    // a touch on the box must not close it before its link is followed
    box.addEventListener("pointerdown", () => setTimeout(() => clearTimeout(timer)));
  };

  drawBar();
  watchEnd();
  watchDownload();
  document.querySelectorAll(".quiz").forEach(drawQuiz);
  chainHints();
  popover();
  showProgress();
  addEventListener("storage", (event) => {
    if (event.key !== KEY && event.key !== null) return;
    memory = recall();
    showProgress();
  });
  addEventListener("course-answer", showProgress);
  addEventListener("pageshow", (event) => {
    if (!event.persisted) return;
    memory = recall();
    showProgress();
  });
})();
