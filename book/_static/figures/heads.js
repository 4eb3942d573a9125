/* All heads of the trained translator: small heat-maps to choose one from, and where it
   looks, word by word. */
Figures.define("heads", (stage) => {
  "use strict";
  const { element, shape, menu, choice, show, format, summary } = Figures;
  const { sentences, one } = Figures.data.heads;
  const ROW = 32, LEAST = 0.02; // what is less is not drawn
  const KINDS = {
    encoder: "An English word looks at the English sentence.",
    decoder: "What has been read of the translation looks back at it.",
    cross: "The German word to be written looks at the English sentence.",
  };
  let number = 1, kind = "encoder", layer = 1, head = 1, row = 2;
  let keys, queries, hovered = null;

  const sentence = () => sentences[number];
  const weights = (l = layer, h = head) =>
    sentence().weights[kind][l][h].map((line) => line.map((weight) => weight / one));
  const asking = () => ({ encoder: sentence().source, decoder: sentence().read,
    cross: sentence().written })[kind];
  const asked = () => (kind === "decoder" ? sentence().read : sentence().source);

  // All heads, small ------------------------------------------------------------------------

  const thumbnail = (l, h) => {
    const lines = weights(l, h);
    const svg = shape("svg", { viewBox: `0 0 ${lines[0].length} ${lines.length}`,
      preserveAspectRatio: "none", "aria-hidden": "true" });
    lines.forEach((line, i) => line.forEach((weight, j) => {
      if (weight >= LEAST) svg.append(shape("rect", { x: j, y: i, width: 1, height: 1,
        "fill-opacity": weight.toFixed(2) }));
    }));
    const input = element("input", { type: "radio", name: "heads-head",
      "aria-label": `layer ${l + 1}, head ${h + 1}`,
      onchange: () => { layer = l; head = h; look(); } });
    input.checked = l === layer && h === head;
    return element("label", {}, input, element("span", {}, svg, `head ${h + 1}`));
  };

  const drawAll = () => {
    const layers = sentence().weights[kind];
    all.replaceChildren(element("legend", { class: "figure-heading" }, "All heads"),
      ...layers.flatMap((heads, l) => [
        element("div", { class: "heads-layer" }, `layer ${l + 1}`),
        ...heads.map((_, h) => thumbnail(l, h))]));
  };

  // One head, word by word --------------------------------------------------------------------

  const query = (text, i) => {
    const input = element("input", { type: "radio", name: "heads-query", value: i,
      onchange: () => { row = i; hover(null); } });
    input.checked = i === row;
    return { input, made: element("label", {
      onpointerenter: ({ pointerType }) => { if (pointerType === "mouse") hover(i); },
      onpointerleave: () => hover(null),
    }, input, element("span", {}, text)) };
  };

  const key = (text) => {
    const share = element("span", { class: "heads-share" });
    return { share, made: element("div", { class: "heads-key" },
      element("span", {}, text), share) };
  };

  const drawWords = () => {
    row = Math.min(row, asking().length - 1);
    hovered = null;
    queries = asking().map(query);
    keys = asked().map(key);
    const height = ROW * Math.max(queries.length, keys.length);
    svg.setAttribute("viewBox", `0 0 100 ${height}`);
    svg.style.height = `${height}px`;
    left.replaceChildren(...queries.map(({ made }) => made));
    right.replaceChildren(...keys.map(({ made }) => made));
    look();
  };

  const hover = (i) => {
    hovered = i;
    look();
  };

  const line = (i, j, weight, faint) => {
    const [from, to] = [(i + 0.5) * ROW, (j + 0.5) * ROW];
    return shape("path", { d: `M2 ${from}C50 ${from} 50 ${to} 98 ${to}`,
      class: faint ? "heads-faint" : null, "vector-effect": "non-scaling-stroke",
      "stroke-width": (faint ? 0.5 : 1) + (faint ? 3 : 8) * weight });
  };

  const look = () => {
    const lines = weights(), chosen = hovered ?? row, drawn = [];
    const join = (i) => lines[i].forEach((weight, j) => {
      if (weight >= LEAST) drawn.push(line(i, j, weight, i !== chosen));
    });
    lines.forEach((_, i) => { if (i !== chosen) join(i); });
    join(chosen);
    svg.replaceChildren(...drawn);
    keys.forEach(({ share, made }, j) => {
      show(share, lines[chosen][j]);
      share.textContent = lines[chosen][j] < 0.005 ? ""
        : `${Math.round(100 * lines[chosen][j])}\u00a0%`;
      made.style.setProperty("--heat", Figures.share(lines[chosen][j]));
    });
    if (hovered === null) said.textContent = `${KINDS[kind]} ${story(lines)}`;
  };

  const story = (lines) => {
    const largest = Math.max(...lines[row]);
    const spread = lines.reduce((sum, line) => sum + 2 ** line.reduce((entropy, weight) =>
      entropy - (weight ? weight * Math.log2(weight) : 0), 0), 0) / lines.length;
    return `In layer ${layer + 1}, head ${head + 1}, “${asking()[row]}” puts `
      + `${Math.round(100 * largest)}\u00a0% on “${asked()[lines[row].indexOf(largest)]}”. `
      + `A row of this head is spread as over ${format(spread, 1)} of ${asked().length} `
      + "tokens, on average.";
  };

  // The page's parts --------------------------------------------------------------------------

  const redraw = () => { drawAll(); drawWords(); translation.textContent = sentence().german; };
  const translation = element("p", { class: "figure-summary", lang: "de" });
  const all = element("fieldset", { class: "heads-all" });
  const left = element("div", { class: "heads-column" });
  const right = element("div", { class: "heads-column" });
  const svg = shape("svg", { class: "heads-lines", preserveAspectRatio: "none",
    "aria-hidden": "true" });
  const said = summary();
  stage.append(
    menu({ label: "Sentence", value: String(number),
      options: sentences.map(({ english }, i) => [String(i), english]),
      change: (value) => { number = Number(value); redraw(); } }).element,
    translation,
    choice({ label: "Attention", value: kind, options: [["encoder", "encoder"],
      ["decoder", "decoder"], ["cross", "from decoder to encoder"]],
    change: (value) => { kind = value; redraw(); } }).element,
    element("div", { class: "heads-parts" }, all,
      element("fieldset", { class: "heads-words" },
        element("legend", { class: "figure-heading" }, "Who looks, and where"),
        left, svg, right)),
    said);
  redraw();

  return { numbers: () => ({ sentence: number, kind, layer, head, row: hovered ?? row,
    asking: [...asking()], asked: [...asked()],
    weights: keys.map(({ share }) => Number(share.dataset.value)) }) };
});
