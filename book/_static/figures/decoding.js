/* The trained translator writes a sentence, in three views: at each step the best extensions
   and those that the beam keeps; the cache of keys and values with what it saves; what each
   search writes. It begins with the first step of the simplest search. */
Figures.define("decoding", (stage) => {
  "use strict";
  const { element, shape, menu, choice, player, show, format, heat, summary } = Figures;
  const { sentences } = Figures.data.decoding;
  const STATES = ["dropped", "kept", "ended"];
  // Written in full, since rules for classes that no script names are left out of the site.
  const CLASSES = ["decoding-dropped", "decoding-kept", "decoding-ended"];
  const FIRST = 1; // a sentence that is translated rightly
  let sentence = sentences[FIRST];
  let beam = 1;
  let step = 1;
  let cached = true;
  let rows = []; // of the tree, one a step
  let cacheRows = [];

  const found = () => sentence.beams[beam];
  const million = (products) => products / 1e6;

  // The tree ----------------------------------------------------------------------------

  /* Lines from the nodes of a step to those before them, in columns from 0 to 4. */
  const edges = (nodes, path, i) => {
    const svg = shape("svg", { viewBox: "0 0 4 1", preserveAspectRatio: "none",
      class: "decoding-edges", "aria-hidden": "true" });
    const line = (parent, rank) => shape("line", {
      x1: i ? parent + 0.5 : 2, x2: rank + 0.5, y1: 0, y2: 1,
      class: `${path[i] === rank ? "decoding-written " : ""}`
        + CLASSES[nodes[rank][4]],
    });
    // What is written comes last, so that it lies above the others.
    const ranks = nodes.map((_, rank) => rank).sort((a, b) =>
      (path[i] === a) - (path[i] === b));
    svg.append(...ranks.map((rank) => line(nodes[rank][3], rank)));
    return svg;
  };

  const node = ([token, chance, total, , state], written) => {
    const parts = [chance, total].map((value, i) => {
      const place = element("span", {});
      const digits = i ? 3 : 2;
      show(place, value, digits);
      const least = 10 ** -digits;
      if (value < least / 2) place.textContent = `<${least}`;
      else if (!i) place.prepend("×");
      return place;
    });
    const marks = ["", "", "✓ "];
    return element("div", {
      class: `decoding-node ${CLASSES[state]}${written ? " decoding-written" : ""}`,
    }, element("b", {}, element("span", { class: "visually-hidden" },
      `${STATES[state]}${written ? ", will be written" : ""}: `), marks[state] + token),
    element("div", {}, parts));
  };

  const tree = element("ol", { class: "decoding-tree" });
  const buildTree = () => {
    const { steps, path } = found();
    rows = steps.map((nodes, i) => element("li", {}, edges(nodes, path, i),
      nodes.map((each, rank) => node(each, path[i] === rank))));
    tree.replaceChildren(...rows);
  };

  // The cache ---------------------------------------------------------------------------

  const strip = (numbers) => element("td", {}, element("div", { class: "decoding-strip" },
    numbers.map((value) => {
      const cell = element("i", {});
      cell.dataset.value = value;
      cell.style.background = heat(value, 3);
      return cell;
    })));
  const cacheBody = element("tbody", {});
  const buildCache = () => {
    const { cache, path, steps } = found();
    cacheRows = cache.map((layers, t) => {
      const token = t ? steps[t - 1][path[t - 1]][0] : "<sos>";
      return element("tr", {}, element("th", { scope: "row" }, token),
        layers.flatMap((parts) => parts.map(strip)));
    });
    cacheBody.replaceChildren(...cacheRows);
  };
  const cacheTable = element("table", { class: "decoding-cache" },
    element("thead", {},
      element("tr", {}, element("td"), [1, 2].map((layer) =>
        element("th", { scope: "colgroup", colspan: 2 }, `layer ${layer}`))),
      element("tr", {}, element("th", { scope: "col" }, "read"),
        [1, 2].flatMap(() => ["keys", "values"].map((name) =>
          element("th", { scope: "col" }, name))))),
    cacheBody);

  // What it costs, and what is written ----------------------------------------------------

  const names = ["rows", "now", "total"];
  const costs = { kept: "kept", again: "computed again" };
  const costCells = {};
  const costTable = element("table", { class: "figure-matrix" },
    element("thead", {}, element("tr", {}, element("td"),
      ["rows now", "products now", "so far"].map((text) =>
        element("th", { scope: "col" }, text)))),
    element("tbody", {}, Object.entries(costs).map(([kind, title]) => {
      costCells[kind] = Object.fromEntries(names.map((name) => [name, element("td")]));
      return element("tr", {}, element("th", { scope: "row" }, title),
        Object.values(costCells[kind]));
    })));

  const writtenBody = element("tbody", {});
  const buildWritten = () => {
    writtenBody.replaceChildren(...Object.entries(sentence.beams).map(([width, each]) => {
      const [, , total] = each.steps[each.path.length - 1][each.path.at(-1)];
      const place = element("td");
      show(place, total, 3);
      const chosen = Number(width) === beam;
      return element("tr", { class: chosen ? "figure-chosen" : "" },
        element("th", { scope: "row" }, (chosen ? "▸ " : "") + widths[width]),
        element("td", { lang: "de" }, each.text), place, element("td", {}, each.gloss));
    }));
  };
  const widths = { 1: "greedy", 2: "beam of 2", 3: "beam of 3" };
  const writtenTable = element("table", { class: "figure-matrix decoding-results" },
    element("thead", {}, element("tr", {}, element("td"),
      ["writes", "probability", "word for word"].map((text) => element("th", { scope: "col" }, text)))),
    writtenBody);

  // All together ------------------------------------------------------------------------

  const said = summary();
  const sentenceOf = () => {
    const { steps, path } = found();
    const best = steps[path.length - 1][path.at(-1)][2];
    if (!step) return "Nothing is written yet: the search begins with <sos>.";
    if (step < steps.length) {
      const [token, chance] = steps[step - 1][0];
      const kept = steps[step - 1].filter((each) => each[4]).length;
      return `Step ${step}: of all extensions the best ${kept === 1 ? "one is" : `${kept} are`} `
        + `kept. At the front is “${token}”, with ${format(chance)} after its beginning.`;
    }
    const saved = 1 - sum("kept") / sum("again");
    const greedy = sentence.beams[1];
    const itsOwn = greedy.steps.at(-1)[0][2];
    const compared = beam === 1 ? "" : best > itsOwn + 1e-4
      ? `, where greedy search ends at ${format(itsOwn, 3)}` : ", as greedy search does";
    const { text, gloss } = found();
    const verdict = text === sentence.right ? "That is right."
      : `That is wrong: “${sentence.right}” would be right.`;
    return `It ends at a probability of ${format(best, 3)}${compared}: “${text}”, word for word `
      + `“${gloss}”. ${verdict} The cache has saved ${format(100 * saved, 0)}% of the products.`;
  };
  const readSoFar = () => Math.min(step, found().path.length);
  const sum = (kind) => sentence.products[kind].slice(0, readSoFar())
    .reduce((total, each) => total + each, 0);

  const update = () => {
    const read = readSoFar();
    rows.forEach((row, i) => row.classList.toggle("decoding-later", i >= step));
    cacheRows.forEach((row, t) => {
      row.classList.toggle("decoding-later", t >= read);
      row.classList.toggle("decoding-computed",
        t < read && (cached ? t === step - 1 : step <= read));
    });
    const running = step > 0 && step <= found().path.length;
    Object.keys(costs).forEach((kind) => {
      const once = kind === "kept" ? 1 : read;
      show(costCells[kind].rows, running ? once : 0, 0);
      show(costCells[kind].now,
        million(running ? sentence.products[kind][step - 1] : 0));
      show(costCells[kind].total, million(sum(kind)));
      costCells[kind].rows.parentElement.classList.toggle("figure-chosen",
        cached === (kind === "kept"));
    });
    said.textContent = sentenceOf();
  };
  const rebuild = () => {
    buildTree();
    buildCache();
    buildWritten();
    const { length } = found().steps;
    const reached = step;
    steps.restart(length);
    steps.go(Math.min(reached, length));
  };

  const steps = player({ label: "Step", steps: 1,
    change: (value) => { step = value; update(); } });
  const sentenceMenu = menu({ label: "Sentence",
    options: sentences.map(({ text }, i) => [i, text]), value: FIRST,
    change: (i) => { sentence = sentences[i]; rebuild(); } });
  const beamChoice = choice({ label: "Search", value: beam,
    options: Object.entries(widths).map(([width, text]) => [Number(width), text]),
    change: (width) => { beam = width; rebuild(); } });
  const cacheChoice = choice({ label: "Keys and values are", value: "kept",
    options: Object.entries(costs),
    change: (kind) => { cached = kind === "kept"; update(); } });
  const scroll = (label, ...children) => element("div", { class: "figure-scroll",
    tabindex: 0, role: "region", "aria-label": label }, children);

  const legend = (...text) => element("p", { class: "decoding-legend" }, text);
  const views = {
    search: ["the search", element("div", {},
      element("p", { class: "figure-heading" }, "The best four extensions at each step"),
      element("p", { class: "decoding-root" }, "<sos>"), tree,
      legend("× the token’s own probability, then the whole beginning’s. ",
        "Dashed: dropped. ✓: ended. Thick: what is written."))],
    cache: ["the cache", element("div", { class: "decoding-side" },
      element("p", { class: "figure-heading" }, "What the thick path has read"),
      cacheChoice.element, scroll("The cache", cacheTable),
      legend(`${found().cache[0][0][0].length} numbers of each key and value. Framed: `,
        "computed at this step."),
      scroll("Products, in millions", costTable),
      legend("Products in millions, the source’s keys and values among them."))],
    results: ["what each search writes", scroll("What each search writes", writtenTable)],
  };
  const look = (view) => Object.entries(views).forEach(([name, [, part]]) => {
    part.hidden = name !== view;
  });
  const viewChoice = choice({ label: "Show", value: "search", change: look,
    options: Object.entries(views).map(([name, [text]]) => [name, text]) });
  look("search");

  stage.append(
    element("div", { class: "figure-controls" }, sentenceMenu.element, beamChoice.element,
      viewChoice.element),
    steps.element, ...Object.values(views).map(([, part]) => part), said);
  rebuild();

  return { numbers: () => ({ step, beam,
    tree: rows.filter((row) => !row.classList.contains("decoding-later")).map((row) =>
      [...row.querySelectorAll(".decoding-node")].map((each) => ({
        token: each.querySelector("b").lastChild.textContent.replace("✓ ", ""),
        values: [...each.querySelectorAll("[data-value]")].map((place) =>
          Number(place.dataset.value)),
        state: STATES.find((_, i) => each.classList.contains(CLASSES[i])),
        written: each.classList.contains("decoding-written"),
      }))),
    cache: cacheRows.filter((row) => !row.classList.contains("decoding-later"))
      .map((row) => [...row.querySelectorAll("i")].map((cell) =>
        Number(cell.dataset.value))),
    computed: cacheRows.filter((row) =>
      row.classList.contains("decoding-computed")).length,
    products: Object.fromEntries(Object.entries(costCells).map(([kind, cells]) =>
      [kind, names.map((name) => Number(cells[name].dataset.value))])),
    results: [...writtenBody.rows].map((row) =>
      [row.cells[1].textContent, Number(row.cells[2].dataset.value)]),
  }) };
});
