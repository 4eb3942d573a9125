/* Byte pairs merged step by step, and a text of the reader's cut with the merges so far. */
Figures.define("byte_pairs", (stage) => {
  "use strict";
  const { element, choice, toggle, player, summary } = Figures;
  const [longest, trialLongest, most] = [600, 120, 80];
  const garden = "Bobby likes berries. Bobby likes black tea. Anna likes strawberries.\n"
    + "The berries are black, the blueberries are blue. Bobby likes Anna.\n"
    + "The blackbird likes black cherries. Anna likes Bobby.\n"
    + "Bobby mag Beeren. Bobby mag Tee. Anna mag Erdbeeren. Die Beeren sind\n"
    + "schwarz, die Heidelbeeren sind blau. Bobby mag Anna. Die Amsel mag\n"
    + "Brombeertee. Anna mag Bobby. Brom: ein Element. Bromid: ein Salz.\n";
  const corpora = {
    low: { name: "low lower lowest", text: "low lower lowest", trial: "slower lowest" },
    cats: { name: "the cat", text: "the cat sat on the mat the cat ate the cat slept",
      trial: "the cat sat at the sea" },
    garden: { name: "the garden", text: garden, trial: "Bobby likes blackberries." },
    own: { name: "your own", text: "Peter Piper picked a peck of pickled peppers.",
      trial: "Peter packed pickles." },
  };
  let [corpus, across, edited] = ["low", false, false];
  let trained = { words: [], merges: [], tables: [] };

  // Byte-pair encoding ------------------------------------------------------------------
  // What Python's \w and \s are, for letters of all scripts
  const [word, space] = ["\\p{L}\\p{N}_",
    "\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000"];
  const ordinary = new RegExp(` ?[${word}]+| ?[^${word}${space}]+|[${space}]+(?![^${space}])`
    + `|[${space}]+`, "gu");
  const pieces = (text) => (across ? [text].filter(Boolean) : text.match(ordinary) ?? []);

  const count = (words) => {
    const counts = new Map();
    for (const { symbols, times } of words)
      for (let i = 0; i + 1 < symbols.length; i += 1) {
        const key = `${symbols[i]}\u0000${symbols[i + 1]}`;
        const found = counts.get(key) ?? { pair: [symbols[i], symbols[i + 1]], times: 0 };
        found.times += times;
        counts.set(key, found);
      }
    // A stable sort: of equally frequent pairs the one that appears first stays first.
    return [...counts.values()].sort((a, b) => b.times - a.times);
  };
  const merge = (symbols, [left, right]) => {
    const merged = [];
    for (let i = 0; i < symbols.length; i += 1) {
      const found = symbols[i] === left && symbols[i + 1] === right;
      merged.push(found ? left + right : symbols[i]);
      if (found) i += 1;
    }
    return merged;
  };
  const cut = (text, merges) => pieces(text).flatMap((piece) =>
    merges.reduce((symbols, pair) => merge(symbols, pair), Array.from(piece)));
  const train = (text) => {
    const counts = new Map();
    for (const piece of pieces(text)) counts.set(piece, (counts.get(piece) ?? 0) + 1);
    let words = [...counts].map(([piece, times]) => ({ symbols: Array.from(piece), times }));
    const [states, merges, tables] = [[words], [], [count(words)]];
    while (merges.length < most && tables.at(-1).length) {
      const { pair } = tables.at(-1)[0];
      merges.push(pair);
      words = words.map(({ symbols, times }) => ({ symbols: merge(symbols, pair), times }));
      states.push(words);
      tables.push(count(words));
    }
    return { states, merges, tables };
  };

  // Tokens as boxes: a letter keeps its place, only the seams vanish ----------------------
  const visible = (text) => text.replace(/ /g, "␣").replace(/[\n\r]/g, "⏎");
  const box = (token, kinds = "") => {
    const size = Array.from(token).length;
    return element("span", { class: `bpe-token ${size > 1 ? "bpe-joined" : ""} ${kinds}`,
      style: `--size: ${size}`, "data-token": token }, visible(token));
  };
  const boxes = (symbols, next) => {
    const made = symbols.map((symbol) => box(symbol));
    for (let i = 0; next && i + 1 < symbols.length; i += 1)
      if (symbols[i] === next[0] && symbols[i + 1] === next[1]) {
        made[i].classList.add("bpe-next", "bpe-next-left");
        made[i + 1].classList.add("bpe-next", "bpe-next-right");
        i += 1;
      }
    return made;
  };

  const words = element("div", { class: "bpe-words", role: "region", tabindex: 0,
    "aria-label": "The words of the text and their tokens" });
  const ranking = element("tbody");
  const pairs = element("table", { class: "figure-matrix bpe-pairs" },
    element("caption", {}, "Most frequent pairs"), ranking);
  const cutting = element("div", { class: "bpe-words bpe-cut" });
  const vocabulary = element("div", { class: "bpe-words bpe-vocabulary",
    role: "region", tabindex: 0, "aria-label": "The vocabulary" });
  const sizes = element("p", { class: "figure-heading" });
  const verdict = element("p", {});
  const said = summary();
  said.classList.add("bpe-steady");

  const field = (tag, label, value, change) => {
    const input = element(tag, { class: "bpe-text", value, oninput: change,
      spellcheck: "false", autocomplete: "off", autocapitalize: "off" });
    input.value = value;
    return { input, element: element("label", { class: "bpe-field" }, label, input) };
  };
  const own = field("textarea", "Your text", corpora.own.text, () => {
    corpora.own.text = own.input.value;
    learn();
  });
  own.input.rows = 3;
  const trial = field("input", "Cut a word or a sentence", corpora.low.trial, () => {
    edited = true;
    update();
  });

  const steps = player({ label: "Merges", steps: 0, change: () => update(),
    text: (value) => `${value} of ${trained.merges.length}` });

  const rank = (table) => {
    const top = table[0]?.times ?? 1;
    ranking.replaceChildren(...Array.from({ length: 6 }, (_, i) => {
      if (!table[i]) return element("tr", {}, element("td", { colspan: 2 }, "\u00a0"));
      const { pair, times } = table[i];
      return element("tr", { class: i ? "" : "figure-strong" },
        element("th", { scope: "row" }, box(pair[0]), " + ", box(pair[1])),
        element("td", {}, element("span", { class: "bpe-bar",
          style: `--share: ${times / top}` }, String(times))));
    }));
  };

  const grow = (alphabet, merges) => {
    const many = (number, name) => `${number} ${name}${number === 1 ? "" : "s"}`;
    sizes.textContent = `Vocabulary: ${many(alphabet.length, "character")} + ${
      many(merges.length, "merge")} = ${many(alphabet.length + merges.length, "token")}`;
    vocabulary.replaceChildren(...alphabet.map((each) => box(each)),
      ...merges.map((pair, i) => box(pair.join(""),
        i === merges.length - 1 ? "bpe-newest" : "")));
    vocabulary.scrollTop = 1e6; // to the newest
  };

  const trying = (alphabet, merges) => {
    const letters = Array.from(trial.input.value);
    const tokens = cut(letters.slice(0, trialLongest).join(""), merges);
    const known = new Set(alphabet);
    const strange = tokens.filter((token) => !known.has(token)
      && Array.from(token).length === 1);
    cutting.replaceChildren(...tokens.map((token) =>
      box(token, strange.includes(token) ? "bpe-unknown" : "")));
    const parts = [tokens.length ? `Characters: ${Math.min(letters.length, trialLongest)}, `
      + `tokens: ${tokens.length}.` : "Type something to cut."];
    if (strange.length) parts.push(`Not in the vocabulary: ${
      [...new Set(strange)].slice(0, 8).map(visible).join(" ")} (dashed), which becomes <unk>.`);
    if (letters.length > trialLongest)
      parts.push(`Only the first ${trialLongest} of ${letters.length} characters are cut.`);
    verdict.textContent = parts.join(" ");
  };

  const update = () => {
    const step = steps.value;
    const { states, merges, tables, alphabet } = trained;
    const next = merges[step];
    words.replaceChildren(...states[step].map(({ symbols, times }) =>
      element("span", { class: "bpe-word", "data-times": times }, boxes(symbols, next),
        times > 1 ? element("span", { class: "bpe-times" }, `×${times}`) : [])));
    rank(tables[step]);
    grow(alphabet, merges.slice(0, step));
    trying(alphabet, merges.slice(0, step));
    tell(step);
  };

  const tell = (step) => {
    const { merges, tables, alphabet, length } = trained;
    const name = (pair) => pair.map((part) => `“${visible(part)}”`).join(" + ");
    const parts = [];
    if (!alphabet.length) parts.push("There is nothing to count: the text is empty.");
    if (step) parts.push(`Merge ${step} made “${visible(merges[step - 1].join(""))}”.`);
    if (merges[step]) {
      const { times } = tables[step][0];
      const equal = tables[step].filter((each) => each.times === times).length - 1;
      parts.push(`Next: ${name(merges[step])}, ${times} ${times > 1 ? "times" : "time"}${equal
        ? `; ${equal} more ${equal > 1 ? "pairs are" : "pair is"} as frequent, and the first `
          + "to appear wins" : ""}.`);
    } else if (alphabet.length) parts.push(tables[step].length
      ? `This figure stops after ${most} merges.`
      : across ? "The whole text is one token." : "Every word is one token: no pair is left.");
    if (length > longest) parts.push(`Only the first ${longest} of ${length} characters `
      + "are counted.");
    said.textContent = parts.join(" ");
  };

  const learn = (step = 0) => {
    const letters = Array.from(corpora[corpus].text);
    const text = letters.slice(0, longest).join("");
    trained = { ...train(text), length: letters.length,
      alphabet: [...new Set(Array.from(text))]
        .sort((a, b) => a.codePointAt(0) - b.codePointAt(0)) };
    own.element.hidden = corpus !== "own";
    if (!edited) trial.input.value = corpora[corpus].trial;
    steps.restart(trained.merges.length);
    if (step) steps.go(step);
  };

  stage.append(
    element("div", { class: "figure-controls" },
      choice({ label: "Text", value: corpus,
        options: Object.entries(corpora).map(([key, { name }]) => [key, name]),
        change: (value) => { corpus = value; learn(); } }).element,
      toggle({ label: "A slip: merge across words, too",
        change: (value) => { across = value; learn(); } }).element),
    own.element, words, steps.element, said,
    element("div", { class: "figure-columns" },
      element("div", { class: "figure-scroll", role: "region", tabindex: 0,
        "aria-label": "The most frequent pairs" }, pairs),
      element("div", { class: "figure-stack" }, trial.element, cutting, verdict)),
    element("div", {}, sizes, vocabulary));
  learn(1);

  const tokens = (place) => [...place.querySelectorAll("[data-token]")]
    .map((each) => each.dataset.token);
  return { numbers: () => ({ step: steps.value, steps: trained.merges.length,
    merges: trained.merges.slice(0, steps.value),
    words: [...words.children].map((each) => [tokens(each), Number(each.dataset.times)]),
    pairs: [...ranking.children].map((row) => [...tokens(row),
      Number(row.querySelector(".bpe-bar")?.textContent)]).filter((row) => row.length > 1),
    vocabulary: tokens(vocabulary), trial: trial.input.value, cut: tokens(cutting) }) };
});
