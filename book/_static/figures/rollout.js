/* Where a token of a trained Vision Transformer looks, head by head, and what that comes to
   through both layers: attention rollout over an image. */
Figures.define("rollout", (stage) => {
  "use strict";
  const { element, shape, choice, toggle, show, format, summary } = Figures;
  const { parts, images } = Figures.data.rollout;
  const SIDE = 4; // patches; token 0 is the class token
  const weightsOf = images.map(({ weights }) => weights.map((heads) =>
    heads.map((rows) => rows.map((row) => row.map((weight) => weight / parts)))));
  let number = 0;
  let token = 0;
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
      place.setAttribute("fill", "var(--figure-2)");
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
  const heads = weightsOf[0].map((layer, l) => layer.map((_, h) =>
    map(`head ${h + 1}`, `Layer ${l + 1}, head ${h + 1}`)));
  const means = heads.map((_, l) => map("mean", `Layer ${l + 1}, mean of the heads`));
  const spread = element("span", {});
  const said = summary();

  /* Another image, or another way to multiply: for all tokens at once. */
  let rolled = null;
  const renew = () => {
    [whole, ...heads.flat(), ...means].forEach(({ lay }) => lay(pictures[number]));
    grid.style.backgroundImage = `url(${pictures[number]})`;
    rolled = Mathematics.attentionRollout(weightsOf[number], residual ? 0.5 : 1);
    // How far the rows are from their mean: half the sum of differences, on average.
    const average = rolled[0].map((_, j) =>
      rolled.reduce((sum, row) => sum + row[j], 0) / rolled.length);
    show(spread, rolled.reduce((sum, row) => sum + row.reduce((total, each, j) =>
      total + Math.abs(each - average[j]) / 2, 0), 0) / rolled.length);
    update();
  };
  const update = () => {
    const weights = weightsOf[number];
    buttons.forEach((button, i) => {
      button.setAttribute("aria-pressed", i === token);
      button.tabIndex = i === token ? 0 : -1;
    });
    whole.update(rolled[token]);
    heads.forEach((layer, l) => {
      layer.forEach((each, h) => each.update(weights[l][h][token]));
      means[l].update(weights[l][0][token].map((_, j) =>
        weights[l].reduce((sum, head) => sum + head[token][j], 0) / layer.length));
    });
    const { label, answer, share } = images[number];
    const order = rolled[token].map((weight, i) => [weight, i])
      .filter(([, i]) => i !== token).sort(([a], [b]) => b - a);
    said.textContent = `The model reads this ${label} as a ${answer} `
      + `(${format(100 * share, 0)}%), ${label === answer ? "rightly" : "wrongly"}. Through `
      + `both layers ${token ? `the patch in ${name(token)}` : name(0)} has kept `
      + `${format(100 * rolled[token][token], 0)}% of itself, and read most from `
      + `${name(order[0][1])} (${format(100 * order[0][0], 0)}%).`;
  };

  const digits = choice({ label: "Digit", value: 0,
    options: images.map((each, i) => [i, element("b", { class: "rollout-digit" },
      element("img", { src: pictures[i], alt: "" }),
      right(each) ? `${each.label} ✓` : `${each.label}, reads ${each.answer}`)]),
    change: (next) => { number = next; renew(); } });
  const residualToggle = toggle({ label: "with the residual connection, ½ A + ½ I",
    value: true, change: (value) => { residual = value; renew(); } });
  const heading = (text) => element("p", { class: "figure-heading" }, text);
  stage.append(
    digits.element,
    element("div", { class: "rollout-columns" },
      element("div", {}, heading("Who looks?"), asker),
      element("div", {}, heading("Rollout: at what?"), whole.element)),
    element("div", { class: "figure-controls" }, residualToggle.element,
      element("span", {}, "rows differ by ", spread)),
    element("div", { class: "rollout-heads" }, heads.flatMap((layer, l) => [
      element("p", {}, `Layer ${l + 1}`), ...layer.map((each) => each.element),
      means[l].element])),
    said);
  renew();

  return { numbers: () => ({ number, token, spread: Number(spread.dataset.value),
    rollout: whole.read(), heads: heads.map((layer) => layer.map((each) => each.read())),
    means: means.map((each) => each.read()) }) };
});
