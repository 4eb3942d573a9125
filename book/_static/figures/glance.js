/* The trained translator at a glance: change a word of the sentence, choose a German word,
   and see where the model looks to write it. Weights are means over the last layers' heads. */
Figures.define("glance", (stage) => {
  "use strict";
  const { element, shape, button, show, summary } = Figures;
  const { verbs, nouns, sentences } = Figures.data.glance;
  const LEAST = 0.05; // what is less is not drawn
  let verb = "helps", noun = "queen", chosen = 2;
  let english, german, current;

  const percent = (place, share) => {
    show(place, share);
    place.textContent = share < LEAST ? "" : `${Math.round(100 * share)}\u00a0%`;
  };

  // The words -----------------------------------------------------------------------------

  /* A word of the sentence: a menu if it can be changed, its shares above and below. */
  const word = (text) => {
    const options = [verbs, nouns].find((list) => list.includes(text));
    const chip = options
      ? element("select", { class: "glance-word",
        "aria-label": options === verbs ? "The verb" : "The noun",
        onchange: ({ target }) => change(options, target.value) },
      options.map((each) => element("option", { selected: each === text }, each)))
      : element("span", { class: "glance-word" }, text);
    const read = element("span", { class: "glance-share glance-read" });
    const look = element("span", { class: "glance-share glance-look" });
    return { made: element("span", { class: "glance-column" }, read, chip, look),
      chip, read, look };
  };

  const written = (text, i) => {
    const input = element("input", { type: "radio", name: "glance-written", value: i,
      onchange: () => write(i) });
    const made = element("label", { class: "glance-written" }, input,
      element("span", { class: "glance-word" }, text));
    return { made, input };
  };

  const change = (list, value) => {
    if (list === verbs) verb = value; else noun = value;
    refill();
    english.find(({ chip }) => chip.value === value).chip.focus();
  };

  const refill = () => {
    current = sentences[`${verb}-${noun}`];
    english = current.source.map(word);
    german = current.written.map(written);
    above.replaceChildren(...english.map(({ made }) => made));
    below.replaceChildren(...german.map(({ made }) => made));
    write(Math.min(chosen, german.length - 1));
  };

  const write = (i) => {
    chosen = i;
    german.forEach(({ made, input }, j) => {
      input.checked = j === i;
      made.classList.toggle("glance-later", j > i);
    });
    const looks = current.looks[i], source = looks.indexOf(Math.max(...looks));
    const reads = current.reads[source];
    english.forEach(({ read, look, chip }, j) => {
      percent(look, looks[j]);
      percent(read, reads[j]);
      chip.classList.toggle("glance-source", j === source);
    });
    said.textContent = sentence(looks, reads, source);
    draw();
  };

  const list = (shares) => shares.map((share, j) => [share, j])
    .filter(([share]) => share >= LEAST).sort(([a], [b]) => b - a)
    .map(([share, j]) => `“${current.source[j]}” (${Math.round(100 * share)}\u00a0%)`)
    .join(", ");

  const sentence = (looks, reads, source) => `To write “${current.written[chosen]}”, the `
    + `translator looks at ${list(looks)}. In its encoder, `
    + `“${current.source[source]}” has looked at ${list(reads)}. `
    + `It is ${percentage(current.sure[chosen])} sure. ${counterfactual()}`;

  const percentage = (share) => `${(100 * share).toFixed(1)}\u00a0%`;

  /* What the weights do not say: how likely the word would be with another verb. */
  const counterfactual = () => {
    const others = Object.entries(current.instead).map(([other, sure]) =>
      `“${other}” it would be ${percentage(sure[chosen])} sure of it`);
    return `With ${others.join(", with ")}.`;
  };

  // The lines -----------------------------------------------------------------------------

  const middle = (part) => part.offsetLeft + part.offsetWidth / 2;

  const line = (d, share, kind) =>
    shape("path", { d, class: `glance-line glance-${kind}`, "stroke-width": 1 + 8 * share });

  const arc = (from, to, top, share) => {
    if (from === to)
      return line(`M${from - 5} ${top}C${from - 16} ${top - 26} ${from + 16} ${top - 26} `
        + `${from + 5} ${top}`, share, "read");
    const height = Math.min(42, 14 + Math.abs(to - from) / 5);
    return line(`M${from} ${top}C${from} ${top - height} ${to} ${top - height} ${to} ${top}`,
      share, "read");
  };

  const draw = () => {
    const columns = english.map(({ made }) => [middle(made), made.offsetTop]);
    const bottom = above.offsetTop + above.offsetHeight + 5;
    const label = german[chosen].made;
    const x = middle(label), y = label.offsetTop, half = (y - bottom) / 2;
    const looks = current.looks[chosen], source = looks.indexOf(Math.max(...looks));
    const lines = columns.flatMap(([at, top], j) => [
      looks[j] < LEAST ? []
        : line(`M${x} ${y}C${x} ${y - half} ${at} ${bottom + half} ${at} ${bottom}`,
          looks[j], "look"),
      current.reads[source][j] < LEAST ? []
        : arc(columns[source][0], at, top, current.reads[source][j]),
    ].flat());
    svg.replaceChildren(...lines);
  };

  // The page's parts ----------------------------------------------------------------------

  const svg = shape("svg", { class: "glance-lines", "aria-hidden": "true" });
  const above = element("div", { class: "glance-row", role: "group",
    "aria-label": "The English sentence, two words of which can be changed" });
  const below = element("div", { class: "glance-row", role: "radiogroup",
    "aria-label": "The German word that is written" });
  const board = element("div", { class: "glance-board" }, svg, above, below);
  const said = summary();
  stage.append(board, element("div", { class: "glance-foot" },
    button({ text: "Next word", press: () => write((chosen + 1) % german.length) }), said));
  refill();
  new ResizeObserver(draw).observe(board);

  const shares = (name) => english.map((each) => Number(each[name].dataset.value));
  return { numbers: () => ({ verb, noun, chosen, source: [...current.source],
    written: [...current.written], sure: current.sure[chosen], looks: shares("look"),
    instead: Object.fromEntries(Object.entries(current.instead)
      .map(([other, sure]) => [other, sure[chosen]])),
    reads: shares("read"), lines: svg.childElementCount }) };
});
