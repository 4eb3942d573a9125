/* A trained language model reads a story. Choose a token: what it would say next after each
   block, and where the blocks look to find it. */
Figures.define("logit_lens", (stage) => {
  "use strict";
  const { element, slider, choice, show, format, heat, summary } = Figures;
  const { words, tokens, start, said, follows, looks } = Figures.data.logit_lens;
  const names = said.map((_, layer) => (layer ? `block ${layer}` : "embedding"));
  const last = tokens.length - 1;
  const SURE = 0.5; // from this probability on a layer "has" a token
  let place = start;
  let block = Math.max(1, follows.findIndex((row) => row[place] > SURE));

  const written = (number) => words[number].trim() || "⏎";

  // The story ---------------------------------------------------------------------------

  const select = (next, focus = false) => {
    place = next;
    position.set(place);
    update();
    if (focus) buttons[place].focus();
  };
  const move = (event) => {
    const to = { ArrowLeft: place - 1, ArrowRight: place + 1, Home: 0, End: last }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    select(Math.max(0, Math.min(last, to)), true);
  };
  const buttons = tokens.map((number, i) => element("button", { type: "button",
    "aria-label": `token ${i}: ${written(number)}`, onclick: () => select(i),
    onkeydown: move }, words[number].trim()));
  const story = element("div", { class: "lens-story", role: "group",
    "aria-label": "The story" }, buttons.flatMap((button, i) =>
    [i && words[tokens[i]].startsWith(" ") ? " " : "", button]));

  // What each layer would say -------------------------------------------------------------

  const heads = ["says", "or", "or", "what follows"].map((text) =>
    element("th", { scope: "col" }, text));
  const rows = names.map((name) => {
    const cells = [...said[0][0].map(() => element("td")), element("td")];
    return { cells, element: element("tr", {}, element("th", { scope: "row" }, name), cells) };
  });
  const table = element("table", { class: "figure-matrix lens-table" },
    element("thead", {}, element("tr", {}, element("td"), heads)),
    element("tbody", {}, rows.map((row) => row.element)));

  const chance = (cell, value, before = "") => {
    const number = element("span", {});
    show(number, value);
    cell.replaceChildren(before ? element("b", {}, before) : "", before ? " " : "", number);
    cell.style.setProperty("--heat", heat(value));
  };

  const note = summary();
  const sentence = () => {
    const known = follows.findIndex((row) => row[place] > SURE);
    const found = looks[block - 1][place][0];
    const where = `The head of block ${block} that looks hardest has `
      + `${format(100 * found[1], 0)}% of its weight on “${written(tokens[found[0]])}” `
      + `(token ${found[0]}).`;
    if (place === last) return `Here the story ends. ${where}`;
    const next = written(tokens[place + 1]);
    if (follows.at(-1)[place] <= SURE) {
      return `“${next}” follows, and the model gives it `
        + `${format(100 * follows.at(-1)[place], 0)}%: it could go on otherwise. ${where}`;
    }
    const first = known ? `Block ${known}` : "The embedding";
    return `“${next}” follows. ${first} is the first to give it more than half. ${where}`;
  };

  const update = () => {
    const seen = new Map(looks[block - 1][place]);
    buttons.forEach((button, i) => {
      button.setAttribute("aria-pressed", i === place);
      button.tabIndex = i === place ? 0 : -1;
      button.style.setProperty("--heat", heat(seen.get(i) ?? 0));
      button.classList.toggle("lens-later", i > place);
    });
    rows.forEach(({ cells, element: row }, layer) => {
      said[layer][place].forEach(([number, value], i) =>
        chance(cells[i], value, written(number)));
      if (place < last) chance(cells.at(-1), follows[layer][place]);
      else cells.at(-1).replaceChildren("–");
      row.classList.toggle("figure-chosen", layer === block);
    });
    heads.at(-1).textContent = place < last ? `“${written(tokens[place + 1])}”` : "end";
    note.textContent = sentence();
  };

  const position = slider({ label: "Token that was read last", minimum: 0, maximum: last,
    value: place, change: (value) => { place = value; update(); } });
  const blocks = choice({ label: "Show where it looks: block", value: block,
    options: looks.map((_, layer) => [layer + 1, String(layer + 1)]),
    change: (value) => { block = value; update(); } });
  stage.append(story, position.element, blocks.element,
    element("div", { class: "figure-scroll", tabindex: 0, role: "region",
      "aria-label": "What each layer would say" }, table), note);
  update();

  return { numbers: () => ({ place, block,
    said: rows.map(({ cells }) => cells.slice(0, -1).map((cell) => [
      cell.querySelector("b").textContent, Number(cell.lastChild.dataset.value)])),
    follows: place < last
      ? rows.map(({ cells }) => Number(cells.at(-1).lastChild.dataset.value)) : null,
    looks: looks[block - 1][place] }) };
});
