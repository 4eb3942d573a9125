/* Where a token of a trained Vision Transformer looks: one head, the mean of a layer's heads,
   and what that comes to through both layers, attention rollout. One map at a time, unless all
   are asked for. */
Figures.define("rollout", (stage) => {
  "use strict";
  const { element, shape, choice, toggle, show, format, summary } = Figures;
  const { parts, images } = Figures.data.rollout;
  const SIDE = 4; // patches; token 0 is the class token
  const weightsOf = images.map(({ weights }) => weights.map((heads) =>
    heads.map((rows) => rows.map((row) => row.map((weight) => weight / parts)))));
  let number = 0;
  let token = 0;
  let layer = 0;
  let head = 0;
  let view = "head";
  let residual = true;

  /* The digit in a grey that is seen on white and on black paper. */
  const pictures = images.map(({ pixels }) => {
    const canvas = element("canvas", { width: 8, height: 8 });
    const context = canvas.getContext("2d");
    const made = context.createImageData(8, 8);
    pixels.flat().forEach((ink, i) => made.data.set([118, 124, 132, ink], 4 * i));
    context.putImageData(made, 0, 0);
    return canvas.toDataURL();
  });
  const right = ({ label, answer }) => label === answer;
  const name = (each) => (each ? `row ${Math.ceil(each / SIDE)}, column `
    + `${(each - 1) % SIDE + 1}` : "the class token");

  /* A map of the weights on all tokens: the class token's is the bar above. */
  const map = (title, label) => {
    const picture = shape("image", { y: 1.5, width: 8, height: 8,
      preserveAspectRatio: "none" });
    const places = Array.from({ length: SIDE * SIDE + 1 }, (_, i) => shape("rect", i
      ? { x: (i - 1) % SIDE * 2, y: 1.5 + 2 * Math.floor((i - 1) / SIDE), width: 2,
        height: 2 }
      : { x: 0, y: 0, width: 8, height: 1.2 }));
    places.forEach((place) => {
      place.setAttribute("fill", "var(--figure-4)");
      place.setAttribute("stroke", "var(--figure-line)");
      place.setAttribute("stroke-width", 0.06);
    });
    const largest = element("span", {});
    const made = element("div", { class: "rollout-map" },
      title ? element("span", {}, title) : [],
      shape("svg", { viewBox: "-0.05 -0.05 8.1 9.6", role: "img", "aria-label": label },
        picture, places), largest);
    const update = (weights) => {
      // Its own share would outshine all others.
      const most = Math.max(...weights.filter((_, i) => i !== token));
      weights.forEach((weight, i) => {
        places[i].dataset.value = weight;
        places[i].setAttribute("fill-opacity", 0.85 * Math.min(1, weight / most));
      });
      largest.textContent = `≤ ${format(100 * most, 0)}%`;
    };
    const read = () => places.map((place) => Number(place.dataset.value));
    const lay = (image) => picture.setAttribute("href", image);
    return { element: made, update, read, lay };
  };

  // The image to point at ---------------------------------------------------------------

  const select = (next, focus = false) => {
    token = next;
    update();
    if (focus) buttons[token].focus();
  };
  const move = (event) => {
    const [row, column] = token ? [Math.floor((token - 1) / SIDE), (token - 1) % SIDE]
      : [-1, 0];
    const to = {
      ArrowUp: row > 0 ? token - SIDE : 0,
      ArrowDown: row < 0 ? 1 : row < SIDE - 1 ? token + SIDE : token,
      ArrowLeft: column > 0 ? token - 1 : token,
      ArrowRight: row >= 0 && column < SIDE - 1 ? token + 1 : token,
    }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    select(to, true);
  };
  const buttons = Array.from({ length: SIDE * SIDE + 1 }, (_, i) =>
    element("button", { type: "button", class: i ? "" : "rollout-class",
      "aria-label": i ? name(i) : null, onclick: () => select(i), onkeydown: move },
    i ? "" : "class token"));
  const grid = element("div", { class: "rollout-grid" }, buttons.slice(1));
  const asker = element("div", { role: "group", "aria-label": "The token that looks" },
    buttons[0], grid);

  // The maps ----------------------------------------------------------------------------

  const whole = map("", "Rollout: what the token's output is made of");
  const single = map("", "Where the token looks");
  const heads = weightsOf[0].map((layer, l) => layer.map((_, h) =>
    map(`head ${h + 1}`, `Layer ${l + 1}, head ${h + 1}`)));
  const means = heads.map((_, l) => map("mean", `Layer ${l + 1}, mean of the heads`));
  const spread = element("span", {});
  const said = summary();

  /* Another image, or another way to multiply: for all tokens at once. */
  let rolled = null;
  const renew = () => {
    [whole, single, ...heads.flat(), ...means].forEach(({ lay }) => lay(pictures[number]));
    grid.style.backgroundImage = `url(${pictures[number]})`;
    rolled = Mathematics.attentionRollout(weightsOf[number], residual ? 0.5 : 1);
    // How far the rows are from their mean: half the sum of differences, on average.
    const average = rolled[0].map((_, j) =>
      rolled.reduce((sum, row) => sum + row[j], 0) / rolled.length);
    show(spread, rolled.reduce((sum, row) => sum + row.reduce((total, each, j) =>
      total + Math.abs(each - average[j]) / 2, 0), 0) / rolled.length);
    update();
  };
  const ofMean = (layers) => layers[0][token].map((_, j) =>
    layers.reduce((sum, each) => sum + each[token][j], 0) / layers.length);
  const update = () => {
    const weights = weightsOf[number];
    buttons.forEach((button, i) => {
      button.setAttribute("aria-pressed", i === token);
      button.tabIndex = i === token ? 0 : -1;
    });
    whole.update(rolled[token]);
    heads.forEach((each, l) => {
      each.forEach((made, h) => made.update(weights[l][h][token]));
      means[l].update(ofMean(weights[l]));
    });
    const looked = view === "head" ? weights[layer][head][token] : ofMean(weights[layer]);
    single.update(looked);
    const through = view === "rollout" || view === "all";
    const shares = through ? rolled[token] : looked;
    const which = view === "head" ? `Layer ${layer + 1}, head ${head + 1}`
      : `Layer ${layer + 1}, mean of its heads`;
    shownHeading.textContent = `${through ? "Rollout, both layers" : which}: at what?`;
    const { label, answer, share } = images[number];
    const order = shares.map((weight, i) => [weight, i])
      .filter(([, i]) => i !== token).sort(([a], [b]) => b - a);
    const asked = token ? `the patch in ${name(token)}` : name(0);
    said.textContent = `The model reads this ${label} as a ${answer} `
      + `(${format(100 * share, 0)}%), ${label === answer ? "rightly" : "wrongly"}. `
      + `${through ? "Through both layers" : `${which}:`} ${asked} `
      + `${through ? "has kept" : "keeps"} ${format(100 * shares[token], 0)}% `
      + `of itself, and ${through ? "has read" : "reads"} most from `
      + `${name(order[0][1])} (${format(100 * order[0][0], 0)}%).`;
  };

  /* Show what a view needs, and nothing else. */
  const look = (next) => {
    view = next;
    const through = view === "rollout" || view === "all";
    layerChoice.element.hidden = through;
    headChoice.element.hidden = view !== "head";
    single.element.hidden = through;
    whole.element.hidden = !through;
    mixing.hidden = !through;
    gallery.hidden = view !== "all";
    update();
  };

  const digits = choice({ label: "Digit", value: 0,
    options: images.map((each, i) => [i, element("b", { class: "rollout-digit" },
      element("img", { src: pictures[i], alt: "" }),
      right(each) ? `${each.label} ✓` : `${each.label}, reads ${each.answer}`)]),
    change: (next) => { number = next; renew(); } });
  const residualToggle = toggle({ label: "with the residual connection, ½ A + ½ I",
    value: true, change: (value) => { residual = value; renew(); } });
  const viewChoice = choice({ label: "Show", value: view, change: look,
    options: [["head", "one head"], ["mean", "the mean of a layer"],
      ["rollout", "rollout"], ["all", "all maps"]] });
  const layerChoice = choice({ label: "Layer", value: 0,
    options: heads.map((_, l) => [l, String(l + 1)]),
    change: (next) => { layer = next; update(); } });
  const headChoice = choice({ label: "Head", value: 0,
    options: heads[0].map((_, h) => [h, String(h + 1)]),
    change: (next) => { head = next; update(); } });
  const shownHeading = element("p", { class: "figure-heading" });
  const mixing = element("div", { class: "figure-controls" }, residualToggle.element,
    element("span", {}, "rows differ by ", spread));
  const gallery = element("div", { class: "rollout-heads" }, heads.flatMap((each, l) => [
    element("p", {}, `Layer ${l + 1}`), ...each.map((made) => made.element),
    means[l].element]));
  stage.append(
    digits.element,
    element("div", { class: "figure-controls" }, viewChoice.element, layerChoice.element,
      headChoice.element),
    element("div", { class: "rollout-columns" },
      element("div", {}, element("p", { class: "figure-heading" }, "Who looks?"), asker),
      element("div", {}, shownHeading, single.element, whole.element)),
    mixing, gallery, said);
  renew();
  look(view);

  return { numbers: () => ({ number, token, spread: Number(spread.dataset.value),
    one: single.read(), rollout: whole.read(), heads: heads.map((layer) => layer.map((each) => each.read())),
    means: means.map((each) => each.read()) }) };
});
