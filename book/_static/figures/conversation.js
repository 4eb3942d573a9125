/* A token's way through a trained encoder: it talks and thinks in turn, and each time
   something is added to what it carries along. */
Figures.define("conversation", (stage) => {
  "use strict";
  const { element, shape, drawing, menu, choice, player, show, format, still,
    summary } = Figures;
  const { sentences, one } = Figures.data.conversation;
  const [WIDTH, LEFT, BOTTOM, STEP, WIDEST] = [400, 52, 280, 68, 40];
  const LEAST = 0.02; // what is less is not drawn
  let number = 0, token = 2, at = 1;
  let lanes = [], dot = null;

  const sentence = () => sentences[number];
  const stages = () => sentence().added.length;
  const kind = (i) => (i % 2 ? "think" : "talk");
  const name = (i) => (i ? `${kind(i - 1)} ${Math.ceil(i / 2)}` : "start");
  const weights = (i) => sentence().weights[i / 2][token].map((weight) => weight / one);
  const X = (i) => LEFT + (WIDTH - LEFT) * (i + 0.5) / sentence().tokens.length;
  const Y = (i) => BOTTOM - STEP * i;
  const half = (i, t) => 0.5 * WIDEST * sentence().lengths[i][t]
    / Math.max(...sentence().lengths.flat());

  const word = (content, attributes) => {
    const made = shape("text", attributes);
    made.textContent = content;
    return made;
  };

  // Lanes, as wide as a token's vector is long ----------------------------------------------

  const lane = (text, t) => {
    const edge = (side) => sentence().lengths.map((_, i) =>
      `${X(t) + side * half(i, t)},${Y(i)}`);
    const made = shape("polygon", { class: "conversation-lane",
      points: [...edge(-1), ...edge(1).reverse()].join(" ") });
    made.addEventListener("pointerdown", () => { tokens.set(t); });
    return made;
  };

  const side = (i) => word(kind(i), { x: 2, y: Y(i + 0.5) + 4,
    class: `conversation-${kind(i)}` });

  const build = () => {
    const { tokens: texts, added } = sentence();
    lanes = texts.map(lane);
    dot = shape("circle", { r: 7, class: "conversation-dot" });
    svg.replaceChildren(
      ...added.map((_, i) => shape("rect", { x: 0, y: Y(i + 1), width: WIDTH, height: STEP,
        class: `conversation-stage conversation-stage-${kind(i)}` })),
      ...added.map((_, i) => side(i)), ...lanes, lines, boxes,
      ...texts.map((text, t) => word(text, { x: X(t), y: BOTTOM + 20,
        "text-anchor": "middle" })), dot);
    chooser.replaceChildren(tokens.make(texts));
    rows = ["start", ...added].map((_, i) => {
      const cells = { added: element("td"), length: element("td") };
      return { ...cells, made: element("tr", {}, element("th", { scope: "row" }, name(i)),
        ...Object.values(cells)) };
    });
    body.replaceChildren(...rows.map(({ made }) => made));
    update();
  };

  // What follows from the choice --------------------------------------------------------------

  const talk = (i) => weights(i).flatMap((weight, t) => {
    if (weight < LEAST || t === token) return [];
    const [from, to] = [Y(i) - 6, Y(i + 1) + 10], middle = (from + to) / 2;
    return [shape("path", { class: "conversation-line", "stroke-width": 1 + 12 * weight,
      d: `M${X(t)} ${from}C${X(t)} ${middle} ${X(token)} ${middle} ${X(token)} ${to}` })];
  });

  const think = (i) => shape("rect", { x: X(token) - 17, y: Y(i + 0.5) - 11, width: 34,
    height: 22, rx: 6, class: "conversation-box" });

  const update = () => {
    lanes.forEach((made, t) => made.classList.toggle("conversation-chosen", t === token));
    const passed = Array.from({ length: at }, (_, i) => i);
    lines.replaceChildren(...passed.filter((i) => kind(i) === "talk").flatMap(talk));
    boxes.replaceChildren(...passed.filter((i) => kind(i) === "think").map(think));
    dot.style.transition = still() ? "none" : "transform 0.6s";
    dot.style.transform = `translate(${X(token)}px, ${Y(at)}px)`;
    rows.forEach(({ added, length, made }, i) => {
      made.classList.toggle("figure-chosen", i === at);
      show(length, sentence().lengths[i][token]);
      if (i) show(added, sentence().added[i - 1][token]);
      for (const cell of [added, length]) cell.classList.toggle("conversation-later", i > at);
    });
    said.textContent = story();
  };

  const story = () => {
    const own = sentence().tokens[token];
    if (!at) return `“${own}” sets out: its embedding and its position.`;
    const more = format(sentence().added[at - 1][token], 1);
    if (kind(at - 1) === "think")
      return `“${own}” thinks about what it has heard, alone, and adds ${more}.`;
    const shares = weights(at - 1);
    const heard = shares.map((weight, t) => [weight, t]).filter(([, t]) => t !== token)
      .sort(([a], [b]) => b - a).slice(0, 2)
      .map(([weight, t]) => `${Math.round(100 * weight)}\u00a0% from “${sentence().tokens[t]}”`);
    return `“${own}” takes ${heard.join(", ")}, and ${Math.round(100 * shares[token])}\u00a0% `
      + `from itself (the mean of its heads). What it brings home adds ${more}.`;
  };

  // The page's parts --------------------------------------------------------------------------

  const svg = drawing({ width: WIDTH, height: BOTTOM + 30, label: "The lanes of all tokens "
    + "through the encoder, from below to above, each as wide as its vector is long" });
  const lines = shape("g", {}), boxes = shape("g", {});
  const chooser = element("div", {});
  const tokens = {
    make: (texts) => choice({ label: "Token", value: token,
      options: texts.map((text, t) => [t, text]),
      change: (value) => { token = value; update(); } }).element,
    set: (t) => { chooser.querySelectorAll("input")[t].click(); },
  };
  let rows = [];
  const body = element("tbody");
  const table = element("table", { class: "figure-matrix" },
    element("thead", {}, element("tr", {}, element("td"),
      element("th", { scope: "col" }, "added"), element("th", { scope: "col" }, "length"))),
    body);
  const said = summary();
  const steps = player({ label: "Stage", steps: stages(), step: at, interval: 1400,
    text: (i) => name(Number(i)), change: (value) => { at = value; update(); } });
  stage.append(
    menu({ label: "Sentence", value: String(number),
      options: sentences.map(({ tokens: texts }, i) => [String(i), texts.join(" ")]),
      change: (value) => {
        number = Number(value);
        token = Math.min(token, sentence().tokens.length - 1);
        build();
      } }).element,
    chooser,
    steps.element,
    element("div", { class: "figure-columns conversation-columns" }, svg, table),
    said);
  build();

  return { numbers: () => ({ sentence: number, token, stage: at,
    length: Number(rows[at].length.dataset.value),
    added: at ? Number(rows[at].added.dataset.value) : null,
    weights: at && kind(at - 1) === "talk" ? weights(at - 1) : null }) };
});
