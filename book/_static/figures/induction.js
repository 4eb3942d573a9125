/* A head that copies, by rules and without training: layer 1 notes at each position what
   stood before it, layer 2 looks for the position at which its own token is noted. */
Figures.define("induction", (stage) => {
  "use strict";
  const { element, shape, drawing, slider, choice, player, format, heat, show,
    summary } = Figures;
  const BEGIN = "▸", MOST = 12, LEAST = 0.02; // fewer weights than that are not drawn
  const TEXTS = { twice: "KxQbmRKxQbmR", magic: "abracadabra", own: "rabarbar" };
  const STEPS = 4;

  let [text, told, sharp, position, step] = ["twice", true, 6, 9, STEPS];
  let tokens; // what is read, BEGIN first
  let vocabulary;
  let first, second; // attention of the two heads, with all that it computes

  // Two heads, made by rule -----------------------------------------------------------------

  const one = (index, length) => Array.from({ length }, (_, i) => Number(i === index));
  const compute = () => {
    const count = tokens.length;
    vocabulary = [...new Set(tokens)];
    const places = tokens.map((_, i) => one(i, count));
    const own = tokens.map((token) => one(vocabulary.indexOf(token), vocabulary.length));
    const causal = tokens.map((_, i) => tokens.map((__, j) => j <= i));
    // Layer 1 asks for the place before its own, and brings what stands there.
    const asked = tokens.map((_, i) => one(i - 1, count));
    first = Mathematics.attention(Mathematics.scale(asked, sharp), places, own, causal, 1);
    // Layer 2 asks for its own token, among what layer 1 has noted or among the tokens.
    second = Mathematics.attention(Mathematics.scale(own, sharp), told ? first.output : own,
      own, causal, 1);
  };

  const best = (values) => values.indexOf(Math.max(...values));
  const noted = (i) => {
    const values = told ? first.output[i] : one(vocabulary.indexOf(tokens[i]),
      vocabulary.length);
    return { token: vocabulary[best(values)], share: Math.max(...values) };
  };
  /* Where the same token was read last before; -1 if nowhere. */
  const earlier = (i) => tokens.lastIndexOf(tokens[i], i - 1);
  const repeated = () => tokens.map((_, i) => i).filter((i) => i && earlier(i) >= 0);
  /* induction_scores of the second head. */
  const score = () => {
    const found = repeated().map((i) => second.weights[i][earlier(i) + 1]);
    return found.reduce((sum, weight) => sum + weight, 0) / found.length;
  };

  /* Tokens that are expected most: one, or several that are nearly equal. */
  const guesses = () => {
    const expected = second.output[position];
    return expected.map((_, i) => i).filter((i) => expected[i] > 0.8 * Math.max(...expected));
  };

  // The two layers, position by position ----------------------------------------------------

  const WIDTH = 320, HEIGHT = 290;
  const READ = 18, NOTED = 88, BASE = 216, NEXT = 256, BOX = 22;
  const strip = drawing({ width: WIDTH, height: HEIGHT, label: "" });
  const columns = () => tokens.length + 1; // one more, for what comes after the text
  const middle = (i) => 4 + ((WIDTH - 8) * (i + 0.5)) / columns();

  const word = (content, x, y, kind = "", anchor = "middle") => {
    const made = shape("text", { x, y, "text-anchor": anchor, class: kind });
    made.textContent = content;
    return made;
  };
  const title = (content, y) => word(content, 4, y, "induction-title", "start");
  const box = (content, i, y, kind, share = null) => {
    const width = Math.min(BOX, (WIDTH - 8) / columns() - 2);
    return shape("g", { class: `induction-box ${kind}` }, shape("rect", { x: middle(i) - width / 2, y, width,
      height: BOX, rx: 3, style: share === null ? null : `fill: ${heat(share)}` }),
    word(content, middle(i), y + 15.5));
  };
  const join = (from, top, to, bottom, weight, kind) => shape("path", {
    d: `M${middle(from)} ${top}C${middle(from)} ${(top + bottom) / 2} `
      + `${middle(to)} ${(top + bottom) / 2} ${middle(to)} ${bottom}`,
    class: kind, "stroke-width": 0.6 + 3.4 * weight });

  const drawTokens = () => [title("The text", 11),
    ...tokens.map((token, i) => box(token, i, READ,
      i === position || (step === STEPS && handing().includes(i)) ? "induction-asks"
        : i > position ? "induction-later" : "")),
    word("…", middle(tokens.length), READ + 15),
    ...tokens.map((_, i) => word(i, middle(i), READ + BOX + 11, "induction-small"))];

  const drawNotes = () => {
    const seen = tokens.map((_, i) => i).filter((i) => i <= position);
    const lines = !told ? [] : seen.flatMap((i) => first.weights[i].map((weight, j) =>
      (weight >= LEAST ? join(j, READ + BOX + 15, i, NOTED - 3, weight,
        step > 1 && fitting().includes(i) ? "induction-strong" : "induction-line") : null)))
      .filter(Boolean);
    return [...lines,
      title(told ? "Layer 1 notes what stood before" : "Layer 1 is left out",
        NOTED + BOX + 13),
      ...seen.map((i) => {
        const { token, share } = noted(i);
        return box(token, i, NOTED, step > 1 && fitting().includes(i) ? "induction-asks" : "",
          told ? share : 0);
      })];
  };

  const drawScores = () => [title(`Layer 2 asks: ${question()}`, NOTED + BOX + 32),
    ...second.scaled[position].slice(0, position + 1).map((value, j) =>
      word(format(value, 1), middle(j), NOTED + BOX + 46,
        fitting().includes(j) ? "induction-small induction-best" : "induction-small"))];

  const drawWeights = () => [
    shape("line", { x1: 4, x2: WIDTH - 4, y1: BASE, y2: BASE, class: "induction-ground" }),
    ...second.weights[position].slice(0, position + 1).flatMap((weight, j) => [
      shape("rect", { x: middle(j) - 7, width: 14, y: BASE - 36 * weight,
        height: 36 * weight, class: "induction-bar" }),
      ...(weight >= 0.05 ? [word(percent(weight), middle(j), BASE - 36 * weight - 4,
        "induction-small")] : [])])];

  const drawNext = () => {
    const expected = second.output[position], token = vocabulary[best(expected)];
    const late = position > tokens.length / 2, { length } = guesses();
    const label = !sure() ? "unknown" : length > 1 ? `one of ${length}` : "expected next";
    return [...second.weights[position].map((weight, j) => (weight >= LEAST
      ? join(j, BASE + 2, position + 1, NEXT - 2, weight, "induction-strong") : null))
      .filter(Boolean),
    box(sure() ? token : "?", position + 1, NEXT, "induction-next", Math.max(...expected)),
    word(label, middle(position + 1) + (late ? -16 : 16), NEXT + 15.5, "induction-title",
      late ? "end" : "start")];
  };

  const draw = () => {
    const parts = [drawTokens, drawNotes, drawScores, drawWeights, drawNext];
    strip.replaceChildren(...parts.slice(0, step + 1).flatMap((part) => part()));
    strip.setAttribute("aria-label", `${tokens.length} positions, of which position `
      + `${position} asks`);
  };

  // All positions at once: a map for each layer ----------------------------------------------

  const SIDE = 136;
  const map = (name) => {
    const svg = drawing({ width: SIDE + 2, height: SIDE + 2, label: "" });
    svg.style.cursor = "pointer";
    svg.addEventListener("click", ({ clientX, clientY }) => {
      const { y } = new DOMPoint(clientX, clientY)
        .matrixTransform(svg.getScreenCTM().inverse());
      move(Math.max(1, Math.min(tokens.length - 1,
        Math.floor((y / SIDE) * tokens.length))));
    });
    const paint = (weights) => {
      const cell = SIDE / tokens.length;
      svg.replaceChildren(
        shape("rect", { x: 1, y: 1, width: SIDE, height: SIDE, class: "induction-frame" }),
        ...weights.flatMap((line, i) => line.map((weight, j) => (weight >= LEAST
          ? shape("rect", { x: 1 + cell * j, y: 1 + cell * i, width: cell, height: cell,
            class: "induction-cell", "fill-opacity": weight.toFixed(3) }) : null))
          .filter(Boolean)),
        shape("rect", { x: 1, y: 1 + cell * position, width: SIDE, height: cell,
          class: "induction-row" }));
      svg.setAttribute("aria-label", `${name}: weights of all positions, the row of `
        + `position ${position} framed`);
    };
    return { paint, element: element("div", {},
      element("p", { class: "figure-heading" }, name), svg) };
  };
  const maps = [map("Layer 1"), map("Layer 2")];

  const ranking = element("tbody");
  const rank = () => {
    const expected = second.output[position];
    const order = vocabulary.map((_, i) => i)
      .sort((a, b) => expected[b] - expected[a] || a - b).slice(0, 4);
    ranking.replaceChildren(...order.map((i) => {
      const value = element("td");
      show(value, expected[i], 3);
      return element("tr", { class: vocabulary[i] === tokens[position + 1]
        ? "figure-chosen" : "" },
      element("th", { scope: "row" }, vocabulary[i]),
      element("td", { class: "live-bar-cell" }, element("span", { class: "live-bar",
        style: `width: ${100 * expected[i]}%` })), value);
    }));
  };

  // What happens, in words -------------------------------------------------------------------

  const percent = (weight) => `${Math.round(100 * weight)}\u00a0%`;
  const many = (parts) => (parts.length < 2 ? parts.join("")
    : `${parts.slice(0, -1).join(", ")} and ${parts.at(-1)}`);
  const at = (places) => `position${places.length > 1 ? "s" : ""} ${many(places)}`;
  /* Positions whose key is what the query asks for, and those whose token is copied. */
  const fitting = () => tokens.map((_, j) => j).filter((j) => j <= position
    && second.scaled[position][j] > Math.max(sharp, 1) / 2);
  const handing = () => (sure() ? fitting() : []);
  const sure = () => fitting().some((j) => second.weights[position][j] > 1 / (position + 1));
  const question = () => (told ? `who stands after “${tokens[position]}”?`
    : `who is “${tokens[position]}”?`);

  const sentences = [
    () => (earlier(position) < 0
      ? `Position ${position} reads “${tokens[position]}” for the first time: nothing in the `
        + "text says what comes next."
      : `Position ${position} reads “${tokens[position]}”, as position ${earlier(position)} `
        + `did. What followed there was “${tokens[earlier(position) + 1]}”: can it be found?`),
    () => {
      if (!told) return "Without layer 1 a position knows its own token, and nothing else.";
      const i = earlier(position) < 0 ? position : earlier(position) + 1;
      return `Layer 1: each position looks one back and notes what stands there. Position ${i} `
        + `now says: I am “${tokens[i]}”, and before me stood “${noted(i).token}”.`;
    },
    () => `Layer 2: position ${position} asks ${question()} ${fitting().length
      ? `It fits at ${at(fitting())}; scores stand below.` : "It fits nowhere."}`,
    () => (sure() ? `Softmax: ${many(fitting().map((j) =>
      `${percent(second.weights[position][j])} of the weight is on position ${j}`))}.`
      : "Softmax: scores that are nearly equal share the weight."),
    () => {
      const found = guesses(), truth = tokens[position + 1];
      const comes = truth === undefined ? "There the text ends."
        : `The text goes on with “${truth}”${found.length === 1 && sure()
          && vocabulary[found[0]] === truth ? ": copied." : "."}`;
      if (!sure()) return `Nobody stands out, so nothing is copied. ${comes}`;
      const named = found.map((i) =>
        `“${vocabulary[i]}” with ${percent(second.output[position][i])}`);
      return `What stands at ${at(handing())} is handed over. Expected next: ${many(named)}. `
        + comes;
    },
  ];

  const measure = () => (repeated().length ? "Mean weight of layer 2 on what followed the same "
    + `token last time (its induction score): ${format(score(), 3)}.`
    : "No token is read twice: there is nothing to find.");

  // The page's parts --------------------------------------------------------------------------

  const update = () => {
    compute();
    draw();
    maps[0].paint(told ? first.weights : []);
    maps[1].paint(second.weights);
    rank();
    measured.textContent = measure();
    said.textContent = sentences[step]();
  };
  const move = (next) => {
    position = next;
    positions.set(next);
    update();
  };
  const read = () => {
    const letters = Array.from(TEXTS[text].replace(/\s/g, "")).slice(0, MOST);
    tokens = [BEGIN, ...(letters.length ? letters : ["?"])];
    positions.input.max = tokens.length - 1;
    own.hidden = text !== "own";
    move(Math.min(position, tokens.length - 1));
  };

  const input = element("input", { class: "bpe-text", spellcheck: "false",
    autocomplete: "off", autocapitalize: "off", maxlength: 40,
    oninput: () => { TEXTS.own = input.value; read(); } });
  input.value = TEXTS.own;
  const own = element("label", { class: "bpe-field" },
    `Your text, up to ${MOST} letters`, input);
  const positions = slider({ label: "Position", minimum: 1, maximum: MOST, value: position,
    change: (value) => { position = value; update(); } });
  const sharpness = slider({ label: "Sharpness", minimum: 0, maximum: 10, step: 0.5,
    value: sharp, text: (value) => format(value, 1),
    change: (value) => { sharp = value; update(); } });
  const steps = player({ label: "Step", steps: STEPS, step, interval: 2400,
    text: (value) => `${value} of ${STEPS}`,
    change: (value) => { step = value; update(); } });
  const said = summary();
  said.classList.add("induction-said");
  const measured = element("p", { class: "induction-note" });

  stage.append(
    element("div", { class: "figure-controls" },
      choice({ label: "Text", value: text, options: [["twice", "six letters, twice"],
        ["magic", "abracadabra"], ["own", "your own"]],
      change: (value) => { text = value; read(); } }).element,
      choice({ label: "Layer 1", value: told, options: [[true, "notes"], [false, "left out"]],
        change: (value) => { told = value; update(); } }).element),
    own,
    element("div", { class: "figure-columns" },
      element("div", { class: "figure-stack" }, positions.element, sharpness.element),
      steps.element),
    said,
    element("div", { class: "figure-columns" }, strip,
      element("div", { class: "figure-stack" },
        element("div", { class: "induction-maps" }, maps.map((each) => each.element)),
        measured,
        element("table", { class: "live-bars" },
          element("caption", {}, "Expected next"), ranking))));
  read();

  return { numbers: () => ({ tokens, vocabulary, told, sharp, position, step,
    first: first.weights, second: second.weights, score: repeated().length ? score() : null,
    expected: [...ranking.rows].map((row) =>
      [row.cells[0].textContent, Number(row.cells[2].dataset.value)]) }) };
});
