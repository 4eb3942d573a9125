/* A trained model, open: one token on its way from the letters that are typed to the
   probabilities of the next word, with every number that is computed on it. `elsewhere` is
   the page that tells of its boxes, where that is another one than the figure's. */
Figures.define("look_inside", (stage, options) => {
  "use strict";
  const { elsewhere } = options ?? {};
  const { element, shape, choice, slider, toggle, button, show, format, heat, summary }
    = Figures;
  const { files, chapters } = Figures.data.look_inside;
  const KINDS = {
    translator: { file: files[0], layers: 2, name: "translator", label: "English sentence",
      text: "Anna helps the clever queen.", most: 48 },
    lm: { file: files[1], layers: 4, name: "language model", label: "Beginning of a story",
      text: "This is the story of Finn and Ella. Ella had a tiny ladder, "
        + "and Finn had a red mirror. Before bed Ella wrote a poem about her", most: 128 },
  };
  const DARKEST = 2.5; // times the root of the mean square
  const BEST = 8; // candidates that are shown
  const WRITTEN = 24; // tokens that the language model adds at a time
  const { EOS, SOS } = Model.special;

  let kind = "translator";
  let model = null; // once it is loaded
  let own = null; // the model that the reader gave
  const loaded = {}; // kind -> model
  let trace = null, plain = null; // as it is, and without the reader's changes
  let view = "map";
  let numbersOf = null; // the row whose numbers are listed
  let key = 0; // the key that is looked at in a head
  let written = []; // what the language model has added
  let milliseconds = null; // of the last change, computing and drawing
  const place = { source: 0, target: 0 };
  const off = new Set(); // heads
  const hidden = { source: new Set(), target: new Set() }; // words
  let side = "target"; // of the token that is followed

  // Names -------------------------------------------------------------------------------

  const sides = () => (kind === "translator" ? ["source", "target"] : ["target"]);
  const towerNames = () => (kind === "translator" ? { source: "Encoder", target: "Decoder" }
    : { target: "Language model" });
  const piece = (id) => {
    const text = model.tokens.text(id);
    if (kind === "translator" && id === SOS) return "start";
    if (kind === "translator" && id === EOS) return "end";
    return text.replaceAll("\n", "⏎").trim() || "␣";
  };
  const names = (which) => trace[which].ids.map(piece);
  const quoted = (text) => `“${text}”`;
  const percent = (share) => `${format(100 * share, share < 0.0995 ? 1 : 0)}\u00a0%`;
  const layersOf = () => model?.config.layers ?? KINDS[kind].layers;

  // Boxes: an identifier says which, "target/1/0/3" is a head --------------------------------

  const PARTS = { // of a layer: title, chapter, topics
    source: [["Self-attention", 5, ["heads", "norm", "residual"]],
      ["Feed-forward", 6, ["feed-forward", "norm", "residual"]]],
    target: [["Self-attention, masked", 5, ["heads", "mask", "norm", "residual"]],
      ["Cross-attention", 5, ["memory", "heads", "norm", "residual"]],
      ["Feed-forward", 6, ["feed-forward", "norm", "residual"]]],
    lm: [["Self-attention, masked", 5, ["heads", "mask", "norm", "residual"]],
      ["Feed-forward", 6, ["feed-forward", "norm", "residual"]]],
  };
  const partsOf = (which) => PARTS[kind === "lm" ? "lm" : which];

  const WRITES = { // what the exercises call it
    translator: { Tokenizer: "bpe_encode", Embedding: "Embedding",
      Position: "SinusoidalPositionalEncoding", "Self-attention": "MultiHeadAttention",
      "Self-attention, masked": "MultiHeadAttention", "Cross-attention": "MultiHeadAttention",
      "Feed-forward": "FeedForward", Norm: "LayerNorm", "Norm: the memory": "LayerNorm",
      Logits: "tied_logits", "Softmax: the next word": "softmax" },
    lm: { Embedding: "Embedding", "Self-attention, masked": "GroupedQueryAttention",
      "Feed-forward": "SwiGLU", Norm: "RMSNorm", Logits: "tied_logits",
      "Softmax: the next word": "softmax" },
  };
  const TOWERS = { source: 6, target: 7, lm: 11 }; // their chapters
  const OTHERS = { // parts and models that are not on the map, by chapter
    "For other tasks": [["Class token: one answer", 2], ["Patches: images", 8]],
    "Trained for real": [["Translator", 9], ["Vision", 10], ["Language model", 11]] };
  /* It may be broken between its words: a box is narrow. */
  const writtenAs = (title) => WRITES[kind][title]?.replaceAll(/(?<=[a-z_])(?=[A-Z])/gu, "\u200b");
  const chapterSign = (number) => element("span", { class: "inside-chapter" },
    `ch.\u00a0${number}`);

  const split = (id) => {
    const [which, ...rest] = id.split("/");
    const [layer, part, head] = rest.map(Number);
    return Number.isNaN(layer) ? { which, box: rest[0] } : { which, layer, part, head };
  };
  const partAt = ({ which, layer, part }) => trace[which].layers[layer][part];

  /* The boxes of a tower, in the order in which a token passes them. */
  const boxesOf = (which) => {
    const boxes = [{ id: `${which}/tokens`, title: "Tokenizer", chapter: 1 },
      { id: `${which}/embedding`, title: "Embedding", chapter: 1 }];
    if (kind === "translator" || model?.config.positions === "learned")
      boxes.push({ id: `${which}/position`, title: "Position", chapter: 3 });
    for (let layer = 0; layer < layersOf(); layer += 1) {
      partsOf(which).forEach(([title, chapter], part) => boxes.push({
        id: `${which}/${layer}/${part}`, title, chapter, layer, first: part === 0 }));
    }
    boxes.push({ id: `${which}/norm`, title: which === "source" ? "Norm: the memory" : "Norm",
      chapter: 6 });
    if (which === "target") {
      boxes.push({ id: "target/logits", title: "Logits", chapter: 1 },
        { id: "target/shares", title: "Softmax: the next word", chapter: 4 });
    }
    return boxes;
  };

  /* What a box has made of the token that is followed. */
  const result = (id) => {
    const { which, box, layer } = split(id);
    const tower = trace[which];
    const at = place[which];
    if (layer !== undefined) return partAt(split(id)).output[at];
    if (box === "embedding") return tower.embedded[at];
    if (box === "position") return tower.start[at];
    if (box === "norm") return tower.final[at];
    if (box === "logits") return best(trace).map(([, , logit]) => logit);
    return best(trace).map(([, share]) => share);
  };

  // The candidates for the next word ---------------------------------------------------------

  const shares = (of) => Model.shares(of.logits[place.target], temperature.value);

  /* [id, probability, logit] of the most probable, and how probable they were before. */
  const best = (of) => {
    const row = shares(of);
    const logits = of.logits[place.target];
    const order = [...row.keys()].sort((a, b) => row[b] - row[a] || logits[b] - logits[a]);
    return order.slice(0, BEST).map((id) => [id, row[id], logits[id]]);
  };

  // Strips: a row of numbers as a row of colours ---------------------------------------------

  let colours = null;
  const readColours = () => {
    colours = Figures.colours(stage, ["cold", "ground", "warm", "weight"]);
  };

  /* The darkest colour stands for 1 where the rows are shares; of a vector, for 2.5 times
     its usual number. */
  const paint = (canvas, rows, shares = false) => {
    const [width, height] = [rows[0].length, rows.length];
    const most = shares ? 1 : DARKEST * Model.size(rows[0]) / Math.sqrt(width) || 1;
    canvas.width = width;
    canvas.height = height;
    const context = canvas.getContext("2d");
    const image = context.createImageData(width, height);
    const { cold, ground, warm, weight } = colours;
    rows.forEach((row, i) => row.forEach((value, j) => {
      const share = Math.min(1, Math.abs(value) / most);
      const end = shares ? weight : value < 0 ? cold : warm;
      const at = 4 * (i * width + j);
      for (let part = 0; part < 3; part += 1)
        image.data[at + part] = ground[part] + share * (end[part] - ground[part]);
      image.data[at + 3] = 255;
    }));
    context.putImageData(image, 0, 0);
  };

  /* A row in the lens: its name, its colours, its length. Pressed, it lists its numbers. */
  const row = (label, values, tone = "") => {
    const canvas = element("canvas", { class: "inside-strip", "aria-hidden": "true" });
    paint(canvas, [values]);
    const length = element("span", { class: "inside-length" });
    show(length, Model.size(values), 1);
    return element("button", { type: "button", class: `inside-row ${tone}`,
      "data-key": `row ${label}`, "aria-expanded": String(numbersOf === label),
      "aria-label": `${label}: ${values.length} numbers, length `
        + `${format(Model.size(values), 1)}`,
      onclick: () => { numbersOf = numbersOf === label ? null : label; render(); } },
    element("span", { class: "inside-label" }, label), canvas, length);
  };

  /* Rows of a box, and below them the numbers of the one that is pressed. */
  const rows = (...given) => {
    const known = given.filter(Boolean);
    const chosen = known.find(([label]) => label === numbersOf);
    return element("div", { class: "inside-rows" },
      known.map(([label, values, tone]) => row(label, values, tone)),
      chosen ? numbers(chosen) : []);
  };

  const numbers = ([label, values]) => {
    let most = 1e-9;
    for (const value of values) most = Math.max(most, Math.abs(value));
    return element("div", { class: "inside-numbers", role: "img", tabindex: 0,
      "aria-label": `The ${values.length} numbers of ${label}: `
        + [...values].map((value) => format(value)).join(", ") },
    [...values].map((value) => {
      const cell = element("span", { style: `--heat: ${heat(value, most)}` });
      show(cell, value);
      return cell;
    }));
  };

  // Tokens --------------------------------------------------------------------------------------

  const lists = {};
  const texts = {};
  for (const which of ["source", "target"]) {
    lists[which] = element("div", { class: "inside-tokens", role: "group" });
    texts[which] = element("p", { class: "inside-towername" });
  }

  /* Keys that the view looks at: place -> weight. */
  const looked = (which) => {
    const at = split(view);
    if (!trace || at.layer === undefined) return null;
    const part = partAt(at);
    if (part.kind !== "attention") return null;
    if ((part.across ? "source" : at.which) !== which) return null;
    const heads = Number.isNaN(at.head) || at.head === undefined ? part.weights
      : [part.weights[at.head]];
    const query = place[at.which];
    return Array.from(heads[0][query], (_, i) =>
      heads.reduce((sum, weights) => sum + weights[query][i], 0) / heads.length);
  };

  const follow = (which, i) => {
    side = which;
    place[which] = i;
    const { which: inView } = split(view);
    if (sides().includes(inView) && inView !== which && view !== "map"
      && partAtOrNull(split(view))?.across !== true) view = mirrored(view, which);
    render();
  };
  const partAtOrNull = (at) => (at.layer === undefined ? null : partAt(at));
  /* The box of the other tower that does the same; the feed-forward network is its last. */
  const mirrored = (id, which) => {
    const { box, layer, part } = split(id);
    if (box) return ["logits", "shares"].includes(box) && which === "source" ? "source/norm"
      : `${which}/${box}`;
    const feed = part === partsOf(which === "source" ? "target" : "source").length - 1;
    return `${which}/${layer}/${feed ? partsOf(which).length - 1 : 0}`;
  };

  const drawTokens = () => {
    for (const which of sides()) {
      const weights = looked(which);
      const group = lists[which];
      group.setAttribute("aria-label", which === "source" ? "Tokens that are read"
        : "Tokens that are written; choose the one to follow");
      const focused = document.activeElement?.parentElement === group
        ? [...group.children].indexOf(document.activeElement) : -1;
      group.replaceChildren(...names(which).map((name, i) => {
        const chip = element("button", { type: "button", class: "inside-token",
          "aria-pressed": String(side === which && place[which] === i),
          onclick: () => follow(which, i),
          onkeydown: (event) => step(event, which, i) }, name);
        chip.tabIndex = place[which] === i ? 0 : -1;
        chip.classList.toggle("inside-kept", place[which] === i);
        chip.classList.toggle("inside-hidden", hidden[which].has(i));
        if (hidden[which].has(i)) chip.setAttribute("aria-label", `${name}, masked`);
        if (weights && i < weights.length)
          chip.style.setProperty("--heat", Figures.share(weights[i]));
        return chip;
      }));
      if (focused >= 0) group.children[Math.min(place[which], group.children.length - 1)].focus();
    }
  };
  const step = (event, which, i) => {
    const last = trace[which].ids.length - 1;
    const to = { ArrowLeft: i - 1, ArrowRight: i + 1, Home: 0, End: last }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    follow(which, Math.max(0, Math.min(last, to)));
  };

  // The map ---------------------------------------------------------------------------------------

  const map = element("div", { class: "inside-map" });
  const wires = shape("svg", { class: "inside-wires", "aria-hidden": "true" });
  let boxes = new Map(); // identifier -> its parts

  const makeBox = ({ id, title, chapter, layer, first }) => {
    const strip = element("canvas", { class: "inside-strip", width: 1, height: 1,
      "aria-hidden": "true" });
    const looks = element("canvas", { class: "inside-looks", width: 1, height: 1,
      "aria-hidden": "true" });
    const attends = /attention/u.test(title);
    const made = element("button", { type: "button", class: "inside-box",
      "data-chapter": chapter, "data-writes": writtenAs(title), onclick: () => go(id),
      "aria-label": `${title} ch.\u00a0${chapter}`
        + (layer === undefined ? "" : `, layer ${layer + 1}`) },
    element("span", { class: "inside-title" }, `${title} `, chapterSign(chapter)),
    attends ? looks : [], id.endsWith("/tokens") ? [] : strip);
    boxes.set(id, { made, strip, looks: attends ? looks : null });
    const heading = first ? [element("span", { class: "inside-layer" },
      `layer ${layer + 1}`)] : [];
    return [...heading, made];
  };

  const buildMap = () => {
    boxes = new Map();
    map.classList.toggle("inside-two", kind === "translator");
    map.replaceChildren(wires, ...sides().map((which) => {
      texts[which].replaceChildren(`${towerNames()[which]} `,
        chapterSign(TOWERS[kind === "lm" ? "lm" : which]));
      return element("div", {}, element("div", { class: "inside-tower" }, texts[which],
        boxesOf(which).map(makeBox).flat()), which === "source" ? others() : []);
    }));
  };

  const others = () => element("div", { class: "inside-others" },
    Object.entries(OTHERS).map(([name, links]) => [element("p", {}, name),
      ...links.map(([text, chapter]) => element("a", { href: chapters[chapter][0] },
        `${text} `, chapterSign(chapter)))]).flat());

  const drawMap = () => {
    for (const [id, { made, strip, looks }] of boxes) {
      made.setAttribute("aria-pressed", view === id || view.startsWith(`${id}/`));
      if (!trace || id.endsWith("/tokens")) continue;
      paint(strip, [result(id)], id === "target/shares");
      if (looks) {
        const part = partAt(split(id));
        paint(looks, part.weights.map((weights) => weights[place[split(id).which]]), true);
      }
      made.classList.toggle("inside-cut", Boolean(looks)
        && [...off].some((each) => each.startsWith(`${partAt(split(id)).name}/`)));
    }
  };

  /* Lines from the memory to every cross-attention. */
  const drawWires = () => {
    wires.replaceChildren();
    if (kind !== "translator" || !map.offsetWidth) return;
    const from = map.getBoundingClientRect();
    wires.setAttribute("viewBox", `0 0 ${from.width} ${from.height}`);
    const memory = boxes.get("source/norm").made.getBoundingClientRect();
    const x = memory.right - from.left;
    const y = memory.top + memory.height / 2 - from.top;
    for (let layer = 0; layer < layersOf(); layer += 1) {
      const { made } = boxes.get(`target/${layer}/1`);
      const to = made.getBoundingClientRect();
      const [left, middle] = [to.left - from.left, to.top + to.height / 2 - from.top];
      const bend = (x + left) / 2;
      wires.append(shape("path", { d: `M${x} ${y}H${bend}V${middle}H${left}` }));
    }
  };

  // The lens: what happens in a box ------------------------------------------------------------

  const lens = element("div", { class: "inside-lens", role: "region",
    "aria-label": "What happens in the box that is chosen" });

  const go = (id) => {
    view = id;
    numbersOf = null;
    const at = split(id);
    if (sides().includes(at.which)) side = at.which;
    if (trace && at.head >= 0) key = strongest(partAt(at).weights[at.head][place[at.which]]);
    render();
    if (map.offsetWidth === 0) lens.scrollIntoView({ block: "nearest" });
  };
  const strongest = (weights) => weights.reduce((most, weight, i) =>
    (weight > weights[most] ? i : most), 0);

  const titleOf = (id) => [...boxesOf("source"), ...boxesOf("target")]
    .find((box) => box.id === id)?.title;

  const crumbs = () => {
    const at = split(view);
    const found = [["map", "Model"]];
    if (view !== "map") {
      const inLayer = at.layer === undefined ? "" : `, layer ${at.layer + 1}`;
      const box = view.split("/").slice(0, at.layer === undefined ? 2 : 3).join("/");
      found.push([box, `${towerNames()[at.which]}${inLayer}: ${titleOf(box)}`]);
      if (at.head >= 0) found.push([view, `Head ${at.head + 1}`]);
    }
    return element("nav", { class: "inside-crumbs", "aria-label": "Where you are" },
      found.flatMap(([id, text], i) => {
        const last = i === found.length - 1;
        return [i ? " › " : "", last && !numbersOf
          ? element("span", { "aria-current": "location" }, text)
          : element("button", { type: "button", "data-key": `crumb ${i}`,
            onclick: () => go(id) }, text)];
      }), numbersOf ? [" › ", element("span", { "aria-current": "location" },
        `${numbersOf}: its numbers`)] : []);
  };

  const keyNames = (at) => {
    const part = partAt(at);
    const count = part.weights[0][place[at.which]].length;
    return names(part.across ? "source" : at.which).slice(0, count);
  };
  const followed = () => names(split(view).which)[place[split(view).which]];

  const VIEWS = {
    map: () => (trace ? [element("p", {}, "Every strip is the vector of the token that is "
      + "followed, one colour for each number: blue below 0, sand above. Small purple maps show "
      + "where its heads look, one row per head. Choose a box to look into it."),
    candidates((entry) => entry[1], percent, 1, true)]
      : [element("p", {}, "This is the whole model, with the chapter in which you write each box. "
        + "Choose a box for its equation and its exercise. Open the model, and every box shows "
        + "what it computes of a sentence that you type.")]),

    tokens: ({ which }) => [element("p", {}, "The text is cut into pieces that the model knows; "
      + "each has a number, counted from 0."),
    element("div", { class: "figure-scroll", tabindex: 0, role: "region",
      "aria-label": "Tokens and their ids" },
    element("table", { class: "figure-matrix" },
      element("thead", {}, element("tr", {}, element("th", { scope: "col" }, "token"),
        names(which).map((name) => element("th", { scope: "col" }, name)))),
      element("tbody", {}, element("tr", {}, element("th", { scope: "row" }, "id"),
        trace[which].ids.map((id, i) => element("td", {
          class: i === place[which] ? "figure-marked" : "" }, id))))))],

    embedding: ({ which }) => [element("p", {}, `Row ${trace[which].ids[place[which]]} of the `
      + `table belongs to ${quoted(followed())}: ${model.config.d_model} numbers that training has `
      + "found. They are multiplied by √d."),
    rows(["embedding", trace[which].embedded[place[which]]])],

    position: ({ which }) => [element("p", {}, `${quoted(followed())} stands at position `
      + `${place[which]}, counted from 0. The position's own row is added.`),
    rows(["embedding", trace[which].embedded[place[which]]],
      ["position", trace[which].places[place[which]]],
      ["sum", trace[which].start[place[which]]])],

    norm: ({ which }) => [element("p", {}, which === "source"
      ? "The last norm of the encoder. Its rows are the memory: the decoder's cross-attention "
        + "takes its keys and values from them."
      : "The last norm, before the vector is compared with the words."),
    rows(["stream", trace[which].layers.at(-1).at(-1).output[place[which]]],
      ["normalised", trace[which].final[place[which]]])],

    attention: (at) => {
      const part = partAt(at);
      const i = place[at.which];
      return [
        rows(["stream, in", part.input[i]], ["normalised", part.normed[i]]),
        element("div", { class: "inside-heads" }, part.weights.map((_, head) => headRow(at, head))),
        rows(["heads, merged", part.merged[i], "inside-z"], ["times W_O: added", part.added[i]],
          ["stream, out", part.output[i]])];
    },

    feed: (at) => {
      const part = partAt(at);
      const i = place[at.which];
      const active = part.active[i];
      const order = [...active.keys()].sort((a, b) => Math.abs(active[b]) - Math.abs(active[a]));
      const on = active.filter((value) => Math.abs(value) > 0.05).length;
      return [
        rows(["stream, in", part.input[i]], ["normalised", part.normed[i]],
          part.hidden[i] && ["times W_1", part.hidden[i]],
          part.gate[i] && ["gate", part.gate[i]], part.up[i] && ["up", part.up[i]],
          [part.gate[i] ? "gate × up" : "activated", active], ["added", part.added[i]],
          ["stream, out", part.output[i]]),
        element("p", { class: "figure-faint" }, `${on} of ${active.length} units are larger than `
          + `0.05. The strongest are ${order.slice(0, 4).map((unit) =>
            `${unit + 1} (${format(active[unit])})`).join(", ")}, counted from 1.`)];
    },

    head: (at) => headBody(at),

    logits: () => {
      const table = model.tensors.output ?? model.tensors["embedding.weight"];
      const [[id, , logit]] = best(trace);
      const width = model.config.d_model;
      return [element("p", {}, `The vector is compared with the row of each of the `
        + `${table.shape[0]} words: a dot product. ${quoted(piece(id))} has the largest, `
        + `${format(logit)}.`),
      rows(["vector, normalised", trace.target.final[place.target]],
        [`row of ${quoted(piece(id))}`, table.data.slice(id * width, (id + 1) * width)]),
      candidates((entry) => entry[2], (value) => format(value),
        Math.max(...best(trace).map((entry) => Math.abs(entry[2]))))];
    },

    shares: () => [element("p", {}, `The logits are divided by the temperature, `
      + `${format(temperature.value, 1)}, and softmax turns them into probabilities.`),
    candidates((entry) => entry[1], percent, 1, true)],
  };

  /* A bar for each; marked: with what it was before the reader's changes. */
  const candidates = (of, write, most, marked = false) => {
    const before = marked && plain !== trace ? shares(plain) : null;
    const chosen = trace.next?.[place.target] ?? trace.target.ids[place.target + 1];
    return element("table", { class: "live-bars inside-bars" },
      element("caption", {}, `After ${quoted(names("target")[place.target])}`
        + (before ? "; the mark is what it was without your changes" : "")),
      element("tbody", {}, best(trace).map((entry) => {
        const bar = element("span", { class: "live-bar" });
        bar.style.width = `${Math.max(0, (100 * of(entry)) / most)}%`;
        const value = element("td");
        show(value, of(entry));
        value.textContent = write(of(entry));
        const mark = before ? element("span", { class: "inside-mark",
          style: `left: ${100 * before[entry[0]]}%` }) : [];
        return element("tr", { class: entry[0] === chosen ? "figure-chosen" : "" },
          element("th", { scope: "row" }, piece(entry[0])),
          element("td", { class: "live-bar-cell" }, bar, mark), value);
      })));
  };

  // Attention, a head after the other ------------------------------------------------------------

  /* A head in the lens of an attention: where it looks, its way in, its switch. */
  const headRow = (at, head) => {
    const part = partAt(at);
    const weights = part.weights[head][place[at.which]];
    const known = keyNames(at);
    const most = strongest(weights);
    const name = `${part.name}/${head}`;
    const cells = element("span", { class: "inside-cells", "aria-hidden": "true" },
      [...weights].map((weight, i) => element("span", { title: known[i],
        style: `--heat: ${Figures.share(weight)}` })));
    return element("div", { class: `inside-head${off.has(name) ? " inside-off" : ""}` },
      element("button", { type: "button", class: "inside-open", "data-key": `head ${head}`,
        onclick: () => go(`${view}/${head}`),
        "aria-label": `Look into head ${head + 1}: most weight, ${percent(weights[most])}, on `
          + quoted(known[most]) },
      element("span", { class: "inside-label" }, `head ${head + 1}`), cells,
      element("span", { class: "inside-most" }, `${known[most]} ${percent(weights[most])}`)),
      onOff(name, head));
  };
  const onOff = (name, head, label = "on") => {
    const made = toggle({ label, value: !off.has(name), change: (value) => {
      if (value) off.delete(name); else off.add(name);
      recompute();
    } });
    made.input.dataset.key = `switch ${head}`;
    made.input.setAttribute("aria-label", `Head ${head + 1} is on`);
    return made.element;
  };

  const headBody = (at) => {
    const part = partAt(at);
    const i = place[at.which];
    const { head } = at;
    const known = keyNames(at);
    key = Math.min(key, known.length - 1);
    const [q, z] = [part.q[head][i], part.z[head][i]];
    const root = Math.sqrt(model.width);
    const [scores, weights, allowed] = [part.scores[head][i], part.weights[head][i],
      part.allowed[i]];
    const turned = model.config.positions === "rotary";
    const body = known.map((name, j) => {
      const weight = element("td", { class: "inside-weight",
        style: `--heat: ${Figures.share(weights[j])}` });
      show(weight, weights[j]);
      const score = element("td");
      show(score, allowed[j] ? scores[j] / root : -Infinity);
      return element("tr", { class: j === key ? "figure-chosen" : "" },
        element("th", { scope: "row" }, element("button", { type: "button",
          "data-key": `key ${j}`, "aria-pressed": String(j === key),
          onclick: () => { key = j; render(); } }, name)),
        stripCell(part.k[head][j], "inside-k"), score, weight,
        stripCell(part.v[head][j], "inside-v"));
    });
    return [
      rows([turned ? "query, turned" : "query", q, "inside-q"]),
      element("div", { class: "figure-scroll", tabindex: 0, role: "region",
        "aria-label": "Keys, scores, weights and values" },
      element("table", { class: "figure-matrix inside-keys" },
        element("thead", {}, element("tr", {}, ["token", "key", `q·k/√${model.width}`, "weight",
          "value"].map((text) => element("th", { scope: "col" }, text)))),
        element("tbody", {}, body))),
      later(at, known.length),
      rows(["key", part.k[head][key], "inside-k"], ["value", part.v[head][key], "inside-v"],
        ["sum of weight × value", z, "inside-z"]),
      element("p", { class: "inside-sum" }, sumOf(q, part.k[head][key], root, allowed[key],
        weights[key], known[key])),
      element("div", { class: "figure-controls" }, onOff(`${part.name}/${head}`, head,
        `head ${head + 1} is on`))];
  };

  const stripCell = (values, tone) => {
    const canvas = element("canvas", { class: "inside-strip", role: "img",
      "aria-label": `${values.length} numbers, length ${format(Model.size(values), 1)}` });
    paint(canvas, [values]);
    return element("td", { class: tone }, canvas);
  };

  /* What the causal mask hides. */
  const later = (at, count) => {
    const part = partAt(at);
    const rest = trace[at.which].ids.length - count;
    if (!part.causal || rest < 1) return [];
    return element("p", { class: "figure-faint" }, `The mask hides ${rest} later token`
      + `${rest > 1 ? "s" : ""}: ${names(at.which).slice(count).slice(0, 6).join(" ")}`
      + `${rest > 6 ? " …" : ""}`);
  };

  const sumOf = (q, k, root, allowed, weight, name) => {
    const product = Model.dot(q, k);
    const first = [0, 1, 2].map((i) => `${format(q[i])}·${format(k[i])}`).join(" + ");
    if (!allowed) return `${quoted(name)} is masked: its score is −∞, its weight 0.`;
    return `${quoted(name)}: q·k = ${first} + … = ${format(product)}; divided by `
      + `√${model.width}: ${format(product / root)}; after softmax: ${format(weight)}.`;
  };

  // What the page says of a box: its equation, its exercise, its chapter --------------------------

  const TOPICS = { map: [], tokens: ["tokenizer"], embedding: ["embedding"],
    position: ["position"], norm: ["norm"], logits: ["logits"], shares: ["softmax", "temperature"],
    head: ["queries", "scores", "mask", "softmax", "values"] };
  const TITLES = { tokenizer: "Tokenizer", embedding: "Embedding", position: "Position",
    norm: "Norm", heads: "Heads", residual: "Residual", "feed-forward": "Feed-forward",
    mask: "Mask", memory: "Memory", queries: "Queries, keys, values", scores: "Scores",
    softmax: "Softmax", values: "Weighted values", logits: "Logits",
    temperature: "Temperature" };
  let topic = null;

  const sectionOf = (name) => {
    const anchor = document.getElementById(`inside-${name}`);
    return anchor?.closest("section") ?? anchor;
  };
  const copyOf = (name) => {
    const section = sectionOf(name);
    if (!section) return element("p", {}, TITLES[name]);
    const copy = element("div", { class: "inside-about-text" },
      ...[...section.children].filter((each) => !/^(H\d|SPAN)$/u.test(each.tagName))
        .map((each) => each.cloneNode(true)));
    for (const each of copy.querySelectorAll("[id]")) each.removeAttribute("id");
    return copy;
  };

  const linksTo = (wanted) => (wanted.length ? [element("p", {}, "Equation and code: ",
    wanted.flatMap((name, i) => [i ? ", " : "", element("a", {
      href: `${elsewhere}#inside-${name}` }, TITLES[name])]))] : []);

  const about = element("div", { class: "inside-about" });
  let aboutShown = "";
  const drawAbout = (wanted) => {
    if (!wanted.includes(topic)) [topic = null] = wanted;
    const now = `${wanted.join()} ${topic}`;
    if (now === aboutShown) return;
    aboutShown = now;
    if (elsewhere) { about.replaceChildren(...linksTo(wanted)); return; }
    about.replaceChildren(...(topic ? [
      element("div", { class: "inside-topics", role: "group",
        "aria-label": "Equation, code and chapter of" },
      wanted.map((name) => element("button", { type: "button", class: "figure-button",
        "aria-pressed": String(name === topic),
        onclick: () => { topic = name; drawAbout(wanted); refocus(about, name); } },
      TITLES[name]))), copyOf(topic)] : []));
  };
  const refocus = (parent, name) => [...parent.querySelectorAll("button")]
    .find((each) => each.textContent === TITLES[name])?.focus();

  const viewKind = () => {
    const at = split(view);
    if (view === "map") return "map";
    if (at.layer === undefined) return at.box;
    if (at.head >= 0) return "head";
    return partsOf(at.which)[at.part][0] === "Feed-forward" ? "feed" : "attention";
  };
  const topicsOf = (what) => TOPICS[what] ?? partsOf(split(view).which)[split(view).part][2];

  /* Of a box, before any model is loaded. */
  const unopened = () => {
    const { chapter, title } = [...boxesOf("source"), ...boxesOf("target")]
      .find(({ id }) => id === view);
    const [page, name] = chapters[chapter];
    const writes = WRITES[kind][title];
    return element("p", {}, "You write it in ",
      element("a", { href: page }, `chapter ${chapter}, ${name}`),
      ...(writes ? [": ", element("code", {}, writes)] : []),
      `. Open the ${KINDS[kind].name} to see its numbers.`);
  };

  const drawLens = () => {
    const focused = lens.contains(document.activeElement)
      ? document.activeElement.dataset.key : null;
    const what = viewKind();
    const parts = trace || what === "map" ? VIEWS[what](split(view)) : [unopened()];
    lens.replaceChildren(crumbs(), ...parts.flat());
    if (focused) lens.querySelector(`[data-key="${focused}"]`)?.focus();
    drawAbout(topicsOf(what));
  };

  // A sentence that says what is seen ----------------------------------------------------------

  const said = summary();
  const story = () => {
    if (!trace) return "";
    const at = split(view);
    const what = viewKind();
    const mine = quoted(names(side)[place[side]]);
    if (what === "head") {
      const weights = partAt(at).weights[at.head][place[at.which]];
      const most = strongest(weights);
      return `In head ${at.head + 1}, ${quoted(followed())} looks most at `
        + `${quoted(keyNames(at)[most])}, with a weight of ${format(weights[most])}.`;
    }
    if (what === "attention" || what === "feed") {
      const part = partAt(at);
      const i = place[at.which];
      return `To ${quoted(followed())}, a vector of length ${format(Model.size(part.input[i]), 1)}, `
        + `this part adds one of length ${format(Model.size(part.added[i]), 1)}.`;
    }
    const [[id, share]] = best(trace);
    const asked = side === "target" ? mine : quoted(names("target")[place.target]);
    return `After ${asked}, the model gives ${quoted(piece(id))} a probability of `
      + `${percent(share)}.${changed() ? ` ${difference(id)}` : ""}`;
  };
  const difference = (id) => {
    const row = shares(plain);
    return `Without your changes it was ${percent(row[id])}.`;
  };
  const changed = () => off.size + hidden.source.size + hidden.target.size > 0;

  // Computing ----------------------------------------------------------------------------------

  const output = element("p", { class: "inside-output" });
  const trust = element("p", { class: "inside-trust", role: "status" });
  const notice = element("p", { class: "live-notice", role: "status" });
  const tell = (text = "") => { notice.textContent = text; };

  const objection = (text) => {
    const { tokens, config } = model;
    if (!text.trim()) return "There is nothing to read yet: type something.";
    const strange = tokens.strange?.(text) ?? [];
    if (strange.length)
      return `The model has never read ${strange.slice(0, 5).map(quoted).join(", ")}: leave `
        + `${strange.length > 1 ? "them" : "it"} out.`;
    const most = Math.min(config.max_length, KINDS[kind].most);
    const count = text.length > 20 * most ? Infinity : tokens.encode(text).length;
    return count > most ? `This page follows up to ${most} tokens of this model, and the text has `
      + `${Number.isFinite(count) ? count : "many more"}. Shorten it.` : "";
  };

  const changes = () => ({ off, source: hidden.source, target: hidden.target });
  const nothing = { off: new Set(), source: new Set(), target: new Set() };
  const textOf = (reading) => model.tokens.decode(reading.next.filter((id) => id !== EOS));

  // Whether to trust a translation, by the rules of chapter 9 --------------------------------------

  let doubts = []; // reasons not to
  let probability = null; // of all its tokens
  /* Of a model of the reader's nothing is known but what it computes itself. */
  const judge = (translation) => {
    probability = Sentences.probabilityOf(trace.logits, trace.next);
    if (model.rules)
      doubts = model.rules.doubtsAsTyped(input.value, translation, probability, trace.ended);
    else doubts = trace.ended ? [] : [Sentences.ENDLESS];
  };

  const drawTrust = () => {
    const warning = doubts.length ? ["Do not trust this translation."] : [];
    const reasons = probability === null ? [] : [...doubts,
      `The model gives this translation a probability of ${percent(probability)}.`];
    output.firstChild?.classList.toggle("live-doubtful", doubts.length > 0);
    const whole = [...warning, ...reasons].join(" ");
    if (trust.textContent === whole) return; // a screen reader would say it again
    trust.replaceChildren(...warning.flatMap((text) => [element("strong", {}, text), " "]),
      reasons.join(" "));
  };
  const trustNothing = () => {
    doubts = [];
    probability = null;
    drawTrust();
  };

  let unchanged = {}; // the translation without the reader's changes, of which text
  const compute = () => {
    const ids = model.tokens.encode(input.value);
    if (kind === "translator") {
      const most = Math.min(model.config.max_length, 2 * ids.length + 8);
      trace = Model.translate(model, ids, changes(), most);
      plain = changed() ? Model.read(model, { source: ids, target: trace.target.ids }) : trace;
      const now = textOf(trace);
      if (unchanged.model !== model || unchanged.text !== input.value) {
        unchanged = { model, text: input.value,
          output: changed() ? textOf(Model.translate(model, ids, nothing, most)) : now };
      }
      const before = unchanged.output;
      output.replaceChildren(element("span", { lang: "de" }, now),
        trace.ended ? "" : " …", before === now ? ""
          : element("small", {}, " Without your changes: ",
            element("span", { lang: "de" }, before)));
      judge(now);
      drawTrust();
    } else {
      const all = [...ids, ...written];
      trace = Model.read(model, { target: all }, changes());
      plain = changed() ? Model.read(model, { target: all }) : trace;
      output.replaceChildren(element("span", {}, input.value),
        element("strong", {}, model.tokens.decode(written)));
      trustNothing();
    }
    for (const which of sides())
      place[which] = Math.max(0, Math.min(place[which], trace[which].ids.length - 1));
  };

  const recompute = () => {
    const began = performance.now();
    const why = objection(input.value);
    tell(why);
    if (!why) {
      compute();
      render();
    }
    milliseconds = performance.now() - began;
  };

  const render = () => {
    stage.classList.toggle("inside-open-box", view !== "map");
    stage.classList.toggle("inside-live", Boolean(trace));
    if (trace) drawTokens();
    drawMap();
    drawLens();
    drawControls();
    said.textContent = story();
  };

  // Writing on, with the language model ----------------------------------------------------------

  let writing = 0; // a later one, or a change of the text, ends it
  const writeOn = async () => {
    writing += 1;
    const mine = writing;
    const most = Math.min(model.config.max_length, KINDS.lm.most);
    for (let i = 0; i < WRITTEN; i += 1) {
      const began = performance.now();
      if (trace.target.ids.length >= most) {
        tell(`This page follows up to ${most} tokens of this model.`);
        return;
      }
      const row = Model.shares(trace.logits.at(-1), temperature.value);
      const id = Model.draw(row, Math.random());
      written.push(id);
      Model.continued(trace, [id]);
      if (plain !== trace) Model.continued(plain, [id]);
      place.target = trace.target.ids.length - 1;
      side = "target";
      output.lastChild.textContent = model.tokens.decode(written);
      render();
      milliseconds = performance.now() - began;
      await new Promise((resolve) => { requestAnimationFrame(resolve); });
      if (mine !== writing) return;
    }
  };

  // Controls ---------------------------------------------------------------------------------------

  const input = element("input", { type: "text", class: "live-input", id: "inside-text",
    lang: "en", autocomplete: "off", spellcheck: "false", value: KINDS.translator.text,
    oninput: () => { writing += 1; written = []; clearHidden(); recompute(); } });
  const inputLabel = element("label", { for: "inside-text" }, KINDS.translator.label);
  const writer = button({ text: "Write on", press: writeOn });
  const form = element("form", { class: "live-form", hidden: true,
    onsubmit: (event) => event.preventDefault() }, inputLabel, input, writer);

  const clearHidden = () => { hidden.source.clear(); hidden.target.clear(); };
  const temperature = slider({ label: "Temperature", minimum: 0, maximum: 2, step: 0.1, value: 1,
    text: (value) => format(value, 1), change: () => { if (trace) render(); } });
  const mask = button({ text: "Mask this word", press: () => {
    const set = hidden[side];
    if (!set.delete(place[side])) set.add(place[side]);
    recompute();
  } });
  const reset = button({ text: "Undo all changes", press: () => {
    off.clear();
    clearHidden();
    temperature.set(1);
    recompute();
  } });
  const controls = element("div", { class: "figure-controls", hidden: true },
    temperature.element, mask, reset);
  const drawControls = () => {
    form.hidden = controls.hidden = !trace;
    writer.hidden = kind !== "lm";
    if (!trace) return;
    const name = names(side)[place[side]];
    mask.textContent = `${hidden[side].has(place[side]) ? "Show" : "Mask"} ${quoted(name)}`;
    reset.disabled = !changed() && temperature.value === 1;
  };

  // Which model ------------------------------------------------------------------------------------

  const use = (opened) => {
    writing += 1;
    model = opened;
    kind = opened.kind;
    written = [];
    off.clear();
    clearHidden();
    trace = null;
    inputLabel.textContent = KINDS[kind].label;
    input.value = KINDS[kind].text;
    const strange = objection(input.value);
    if (strange && kind === "lm") input.value = fitting(opened.tokens);
    place.source = 4;
    place.target = kind === "lm" ? Infinity : 3;
    side = "target";
    view = "map";
    buildMap();
    drawOffer();
    recompute();
    drawWires();
  };
  /* A beginning for a model with another alphabet. */
  const fitting = (tokens) => [...KINDS.lm.text].filter((letter) =>
    !tokens.strange(letter).length).join("").slice(0, 40) || tokens.text(0);

  const select = (wanted) => {
    kind = wanted;
    own = null;
    if (loaded[wanted]) { use(loaded[wanted]); return; }
    model = trace = plain = null;
    view = "map";
    output.replaceChildren();
    trustNothing();
    tell();
    buildMap();
    drawOffer();
    for (const which of ["source", "target"]) lists[which].replaceChildren();
    render();
    drawWires();
  };

  const kinds = choice({ label: "Model", value: "translator",
    options: [["translator", "translator"], ["lm", "language model"]], change: select });

  const loader = button({ text: "Load", press: () => load(kind) });
  loader.classList.add("live-main-button");
  const offer = element("div", { class: "inside-offer" });
  const drawOffer = () => {
    const { file, name } = KINDS[kind];
    loader.textContent = `Open the ${name}, ${Live.megabytes([file])} MB`;
    offer.replaceChildren(...(model ? [] : [loader]));
    if (own) for (const each of kinds.element.querySelectorAll("input")) each.checked = false;
    else kinds.set(kind);
  };

  const load = async (wanted) => {
    if (loaded[wanted]) return use(loaded[wanted]);
    const { file } = KINDS[wanted];
    loader.disabled = true;
    tell("Loading …");
    try {
      if (!window.DecompressionStream) throw new Error("this browser cannot unpack files.");
      const [text] = await Live.fetched(file, (bytes) =>
        tell(`${format(bytes / 1e6, 1)} of ${Live.megabytes([file])} MB`));
      const { rules, ...given } = Folder.shipped(await unpack(text));
      loaded[wanted] = { ...Model.open(given), rules: rules && Sentences.make(rules) };
      own = null;
      use(loaded[wanted]);
    } catch (error) {
      tell(`The model could not be loaded: ${error.message}`);
    } finally {
      loader.disabled = false;
    }
    return undefined;
  };

  /* A folder of the reader's, from a dialogue or dropped onto the figure. */
  const take = async (given) => {
    tell("Reading …");
    try {
      own = Model.open(await Folder.read(await given));
      use(own);
      tell(`Your own ${KINDS[kind].name}: ${own.config.layers} layers, ${own.config.heads} heads. `
        + "It stays in this page.");
    } catch (error) {
      tell(error instanceof Model.Refused ? error.message
        : `This could not be read: ${error.message}`);
    }
  };
  const chooser = element("input", { type: "file", multiple: true, id: "inside-files",
    class: "inside-files", onchange: () => take([...chooser.files]) });
  const ownModel = elsewhere ? element("p", { class: "inside-own" },
    "A guided path in ten steps, and your own model: ",
    element("a", { href: elsewhere }, "Look inside")) : element("p", { class: "inside-own" },
    element("label", { for: "inside-files" }, "Your own model: drop its folder here, or choose "
      + "its three files"), chooser);
  if (!elsewhere) {
    stage.addEventListener("dragover", (event) => event.preventDefault());
    stage.addEventListener("drop", (event) => {
      event.preventDefault();
      take(Folder.dropped(event.dataTransfer));
    });
  }

  // The guided path ------------------------------------------------------------------------------

  const VERB_HEAD = "encoder.layers.1.attention/1"; // the last step switches it off
  const PATH = [ // what each step shows; its words stand on the page
    { side: "source", view: "source/tokens" },
    { side: "source", view: "source/embedding" },
    { side: "source", view: "source/position" },
    { side: "source", view: "source/1/0" },
    { side: "source", view: "source/1/0/0" },
    { side: "source", view: "source/1/1" },
    { side: "target", view: "target/0/0/1" },
    { side: "target", view: "target/1/1" },
    { side: "target", view: "target/shares" },
    { side: "source", view: "source/1/0", without: VERB_HEAD },
  ];
  let stepNumber = -1;
  const guide = element("div", { class: "inside-guide" });
  const guideText = element("div", { "aria-live": "polite" });
  const words = (i) => {
    const items = sectionOf("path")?.querySelectorAll("ol > li") ?? [];
    return items[i] ? [...items[i].childNodes].map((each) => each.cloneNode(true))
      : [`Step ${i + 1}`];
  };
  const start = button({ text: "Guided path, ten steps", press: () => guideTo(0) });
  const back = button({ text: "Back", press: () => guideTo(stepNumber - 1) });
  const next = button({ text: "Next", press: () => guideTo(stepNumber + 1) });
  const leave = button({ text: "Leave the path", press: () => guideTo(-1) });

  const guideTo = async (i) => {
    if (i >= 0 && (own || kind !== "translator" || !model)) await load("translator");
    if (i >= 0 && !model) return;
    stepNumber = i;
    drawGuide();
    if (stepNumber < 0) { start.focus(); return; }
    const { view: wanted, without, side: which } = PATH[stepNumber];
    input.value = KINDS.translator.text;
    off.clear();
    clearHidden();
    temperature.set(1);
    if (without) off.add(without);
    Object.assign(place, { source: 3, target: 2 }); // "the", and "hilft", before "der"
    view = wanted;
    numbersOf = topic = null;
    side = which;
    recompute();
    go(wanted);
    (stepNumber === PATH.length - 1 ? leave : next).focus();
  };
  const drawGuide = () => {
    if (stepNumber < 0) { guide.replaceChildren(start); return; }
    back.disabled = stepNumber === 0;
    next.disabled = stepNumber === PATH.length - 1;
    guideText.replaceChildren(element("strong", {}, `${stepNumber + 1} of ${PATH.length} `),
      ...words(stepNumber));
    guide.replaceChildren(guideText, element("div", { class: "figure-buttons" }, back, next,
      leave));
  };

  // Together -------------------------------------------------------------------------------------

  const tokenizers = element("div", { class: "inside-texts" });
  for (const which of ["source", "target"]) {
    tokenizers.append(element("div", { class: "inside-line" }, lists[which]));
  }
  stage.append(
    element("div", { class: "figure-controls" }, kinds.element, offer),
    form, notice, output, trust, tokenizers,
    element("div", { class: "inside-columns" }, map,
      element("div", { class: "inside-side" }, elsewhere ? [] : guide, lens, about)),
    controls, said, ownModel);
  readColours();
  buildMap();
  drawOffer();
  drawGuide();
  render();
  new ResizeObserver(drawWires).observe(map);
  new MutationObserver(() => { readColours(); render(); })
    .observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });

  return {
    inside: () => ({ model, trace, plain }), // for tests
    go, follow,
    numbers: () => ({ kind, loaded: Boolean(model), view, side, place: { ...place },
      text: input.value, output: output.textContent, notice: notice.textContent,
      trust: trust.textContent, doubtful: doubts.length > 0, probability,
      temperature: temperature.value, off: [...off], step: stepNumber, numbersOf, key,
      hidden: { source: [...hidden.source], target: [...hidden.target] }, milliseconds,
      best: trace ? best(trace).map(([id, share]) => [piece(id), share]) : [] }),
  };
});
