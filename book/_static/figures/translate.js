/* A sentence, its translation token by token, and where the decoder looks. The trained
   model runs in the page if the reader loads it; without it there are recorded ones. */
Figures.define("translate", (stage) => {
  "use strict";
  const { element, show, share, choice, menu, player, button, summary, format } = Figures;
  const { files, sentences } = Figures.data.translate;
  const LAYERS = sentences[0].steps[0].attention.length;
  const HEADS = sentences[0].steps[0].attention[0].length;
  const BEST = sentences[0].steps[0].best.length;

  let model = null; // once loaded
  let tokens = null; // its tokenizer
  let rules = null; // what is known of sentences without it
  let doubtful = false; // the translation that is shown was warned of
  let probability = null; // of all its tokens
  let now = null; // what is shown: the pieces of the source, and the steps
  let milliseconds = null;
  let run = 0; // the translation that may still write

  // Texts of tokens ---------------------------------------------------------------------

  const END = "<eos>";
  const starts = (piece) => piece.startsWith("Ġ") || piece === END; // a word
  const readable = (piece) => (piece === END ? "end" : Tokens.readable([piece]).trim()
    || "␣");
  const joined = (steps) => Tokens.textOf(steps.map(({ piece }) => piece)
    .filter((piece) => !piece.startsWith("<"))).replace(/^ /, "");

  // Parts -------------------------------------------------------------------------------

  const english = element("ol", { class: "live-tokens", lang: "en",
    "aria-label": "English tokens, with the weight of each" });
  const german = element("ol", { class: "live-tokens", lang: "de",
    "aria-label": "German tokens; choose one" });
  const whole = element("p", { class: "live-translation", lang: "de" });
  const notice = element("p", { class: "live-notice", role: "status" });
  const warning = element("strong", { class: "live-warning" });
  const remark = element("span");
  const said = summary();
  const { rows: candidates, table: bars } = Live.candidates(BEST, "Most probable here");
  candidates.forEach(({ name }) => { name.lang = "de"; });

  /* The tokens of a word stand together. */
  const add = (list, piece, made) => {
    if (starts(piece) || !list.lastElementChild) list.append(element("li"));
    list.lastElementChild.append(made);
  };

  let weightsShown = [];
  const drawEnglish = () => {
    weightsShown = now.pieces.map(() => element("span", { class: "live-weight" }));
    english.replaceChildren();
    now.pieces.forEach((piece, i) => add(english, piece,
      element("span", { class: "live-token" },
        element("span", {}, readable(piece)), weightsShown[i])));
  };
  const addGerman = ({ piece }, place) => add(german, piece, element("button", {
    type: "button", class: "live-token", "aria-pressed": "false",
    onclick: () => { steps.stop(); steps.go(place); } }, readable(piece)));

  // What is chosen ----------------------------------------------------------------------

  const attended = () => {
    const layer = now.steps[steps.value].attention[layerChoice.value];
    const head = headChoice.value;
    if (head !== "mean") return layer[head];
    return layer[0].map((_, i) =>
      layer.reduce((sum, weights) => sum + weights[i], 0) / layer.length);
  };

  const update = () => {
    const step = now?.steps[steps.value];
    if (!step) return;
    const weights = attended();
    let most = 0;
    weights.forEach((weight, i) => {
      if (weight > weights[most]) most = i;
      show(weightsShown[i], weight);
      weightsShown[i].parentElement.style.setProperty("--heat", share(weight));
    });
    [...german.querySelectorAll("button")].forEach((each, i) =>
      each.setAttribute("aria-pressed", i === steps.value));
    step.best ??= softmaxBest(step.logits);
    const [, chance] = step.best.find(([piece]) => piece === step.piece) ?? step.best[0];
    step.best.forEach(([piece, probability], i) => {
      const { name, bar, value } = candidates[i];
      name.textContent = readable(piece);
      name.classList.toggle("figure-chosen", piece === step.piece);
      bar.style.width = `${100 * probability}%`;
      show(value, probability, 3);
    });
    said.textContent = `Writing “${readable(step.piece)}”, the decoder looks most at “`
      + `${readable(now.pieces[most])}”, with a weight of ${format(weights[most])}, and `
      + `gives this token a probability of ${format(chance, 3)}.`;
  };

  const steps = player({ label: "Token", steps: 1, interval: 900,
    text: (value) => `${value + 1}`, change: () => update() });
  const layerChoice = choice({ label: "Layer", value: LAYERS - 1,
    options: Array.from({ length: LAYERS }, (_, i) => [i, `${i + 1}`]), change: update });
  const headChoice = choice({ label: "Head", value: "mean",
    options: [["mean", "mean"],
      ...Array.from({ length: HEADS }, (_, i) => [i, `${i + 1}`])], change: update });

  const present = (made, place = 0) => {
    now = made;
    drawEnglish();
    german.replaceChildren();
    now.steps.forEach(addGerman);
    whole.textContent = joined(now.steps);
    whole.classList.remove("live-doubtful");
    if (!now.steps.length) {
      said.textContent = "";
      candidates.forEach(({ name, bar, value }) => {
        name.textContent = "";
        bar.style.width = "0";
        show(value, 0, 3);
      });
      return;
    }
    steps.restart(now.steps.length - 1);
    steps.go(place);
  };

  // The model ---------------------------------------------------------------------------

  /* What can be said of a sentence before it is translated. */
  const objection = (text) => {
    if (!text.trim()) return "There is nothing to translate yet: type an English sentence.";
    const { longest } = model.about;
    const refused = (count) => `This text has ${count} tokens, and the model reads at most `
      + `${longest}. Shorten it.`;
    const least = tokens.minimum(text);
    if (least > longest) return refused(`at least ${least}`);
    const { length } = tokens.encode(text);
    return length > longest ? refused(length) : "";
  };

  /* Say what is to be said, first what speaks against the translation. */
  const tell = (doubts, remarks) => {
    doubtful = doubts.length > 0;
    warning.textContent = doubtful ? `${doubts.join(" ")} Do not trust this translation. ` : "";
    remark.textContent = remarks.join(" ");
    notice.replaceChildren(...[warning, remark].filter((each) => each.textContent));
    whole.classList.toggle("live-doubtful", doubtful);
  };

  const refuse = (why) => {
    run += 1;
    probability = null;
    if (!stop.disabled) model.stop();
    stop.disabled = true;
    present({ pieces: [], steps: [] });
    tell([], [why]);
  };

  const softmaxBest = (row) => {
    const shares = Mathematics.softmax([...row]);
    return shares.map((share, id) => [id, share]).sort((a, b) => b[1] - a[1])
      .slice(0, BEST).map(([id, share]) => [tokens.piece(id), share]);
  };

  const layered = (flat, [layers, heads, length]) =>
    Array.from({ length: layers }, (_, layer) => Array.from({ length: heads }, (__, head) => {
      const start = (layer * heads + head) * length;
      return [...flat.slice(start, start + length)];
    }));

  const translate = async () => {
    const why = objection(input.value);
    const reading = why ? null : rules.read(input.value);
    if (why || reading.refusal) {
      refuse(why || reading.refusal);
      return;
    }
    run += 1;
    const mine = run;
    const ids = tokens.encode(reading.sentence);
    const written = [];
    milliseconds = null;
    stop.disabled = false;
    tell([], []);
    present({ pieces: ids.map(tokens.piece), steps: [] });
    const began = performance.now();
    let end;
    try {
      end = await model.ask("translate", { ids }, (step) => {
        if (mine !== run) return;
        const piece = tokens.piece(step.token);
        written.push({ piece, token: step.token, logits: step.logits, best: null,
          attention: layered(step.attention, step.shape) });
        addGerman(written.at(-1), written.length - 1);
        whole.textContent = joined(written);
      });
    } catch (error) {
      end = { error };
    }
    if (mine !== run) return;
    milliseconds = performance.now() - began;
    stop.disabled = true;
    present({ pieces: ids.map(tokens.piece), steps: written });
    probability = Sentences.probabilityOf(written.map(({ logits }) => logits),
      written.map(({ token }) => token));
    if (end.error) tell([], [`The model failed: ${end.error.message}`]);
    else if (end.stopped) tell([], [`Stopped after ${written.length} tokens.`]);
    else {
      tell(rules.doubts(reading, joined(written), probability, end.ended), [
        ...reading.notes,
        `The model gives this translation a probability of ${format(probability, 2)}.`,
        `${written.length} tokens in ${Math.round(milliseconds)} ms.`]);
    }
  };

  /* Words to choose from; they are made when a reader opens the list. */
  const chips = () => {
    const count = model.about.words.filter((word) => !word.includes("'")).length;
    const made = element("details", { class: "live-chips" },
      element("summary", {}, `The words that it knows: ${count} with all their forms`));
    const add = (word) => {
      const before = input.value.replace(/[.!?\s]+$/u, "");
      input.value = before ? `${before} ${word}` : Sentences.capital(word);
    };
    made.addEventListener("toggle", () => {
      if (made.children.length > 1) return;
      for (const [name, words] of Object.entries(model.about.groups))
        made.append(element("p", { lang: "en" }, `${name}: `,
          ...words.map((word) => element("button", { type: "button", class: "live-chip",
            onclick: () => add(word) }, word))));
    });
    return made;
  };

  const input = element("input", { type: "text", class: "live-input", lang: "en",
    id: "translate-english", autocomplete: "off", autocapitalize: "sentences",
    spellcheck: "false", enterkeyhint: "go", value: sentences[0].text });
  const stop = button({ text: "Stop", press: () => model.stop() });
  stop.disabled = true;
  const form = element("form", { class: "live-form", hidden: true,
    onsubmit: (event) => { event.preventDefault(); translate(); } },
  element("label", { for: "translate-english" }, "Your sentence"), input,
  element("button", { type: "submit", class: "figure-button live-main-button" },
    "Translate"), stop);

  const picker = menu({ label: "Example", value: 0,
    options: sentences.map(({ text }, i) => [i, text]),
    change: (place) => {
      run += 1;
      tell([], []);
      input.value = sentences[place].text;
      if (model) translate();
      else present(sentences[place]);
    } });

  const offer = Live.offer({ files,
    recorded: "The sentences of the list were translated when this page was made.",
    ready: (loaded) => {
      model = loaded;
      tokens = Tokens.make(model.about.vocabulary, model.about.merges);
      rules = Sentences.make(model.about);
      form.hidden = false;
      form.after(chips());
      input.focus();
      translate();
    } });

  stage.append(
    picker.element, offer, form, english, german, whole, notice, steps.element,
    element("div", { class: "figure-controls" }, layerChoice.element, headChoice.element),
    bars, said);
  present(sentences[0], 8);

  return { // the first three are for tests, which need the model loaded
    translate: async (text) => {
      input.value = text;
      await translate();
    },
    encode: (text) => tokens.encode(text),
    logits: (place) => [...now.steps[place].logits],
    numbers: () => ({
      loaded: Boolean(model), busy: !stop.disabled, seconds: model?.seconds ?? null,
      milliseconds, doubtful, probability, text: input.value, translation: whole.textContent,
      notice: notice.textContent, step: steps.value,
      source: now.pieces, written: now.steps.map(({ piece }) => piece),
      weights: weightsShown.map((each) => Number(each.dataset.value)),
      best: candidates.map(({ name, value }) =>
        [name.textContent, Number(value.dataset.value)]),
    }),
  };
});
