/* Five scores, a factor before the softmax, and the weights that come out. */
Figures.define("softmax", (stage) => {
  "use strict";
  const { element, shape, drawing, slider, show, summary } = Figures;
  const scores = [2, 1, 0.5, -1, -2];
  let factor = 1;

  const bars = scores.map((_, i) =>
    shape("rect", { x: 14 + 62 * i, width: 44, rx: 4, fill: "var(--figure-4)",
      "data-lights": "P" }));
  const svg = drawing({ width: 318, height: 180, label: "Bars of the five weights" });
  svg.append(shape("line", { x1: 4, x2: 314, y1: 160, y2: 160,
    stroke: "var(--figure-line)" }), ...bars);
  const texts = scores.map((_, i) => shape("text", { x: 36 + 62 * i, "text-anchor": "middle" }));
  svg.append(...texts);
  scores.forEach((_, i) => {
    const name = shape("text", { x: 36 + 62 * i, y: 176, "text-anchor": "middle" });
    name.textContent = `key ${i + 1}`;
    svg.append(name);
  });
  const said = summary();

  const update = () => {
    const weights = Mathematics.softmax(scores.map((score) => score * factor));
    weights.forEach((weight, i) => {
      bars[i].setAttribute("y", 160 - 140 * weight);
      bars[i].setAttribute("height", 140 * weight);
      texts[i].setAttribute("y", 154 - 140 * weight);
      show(texts[i], weight);
    });
    const entropy = -weights.reduce((sum, w) => sum + (w ? w * Math.log2(w) : 0), 0);
    said.textContent = "The weights are spread as over "
      + `${Figures.format(2 ** entropy, 1)} keys of five.`;
  };

  const sliders = scores.map((score, i) => slider({
    label: `Score ${i + 1}`, minimum: -4, maximum: 4, step: 0.1, value: score,
    text: (value) => Figures.format(value, 1),
    change: (value) => { scores[i] = value; update(); },
  }));
  const scale = slider({
    label: "All scores times", minimum: 0, maximum: 8, step: 0.1, value: factor,
    text: (value) => Figures.format(value, 1),
    change: (value) => { factor = value; update(); },
  });
  stage.append(
    element("div", { class: "figure-columns" },
      element("div", {}, sliders.map(({ element: made }) => made), scale.element), svg),
    said);
  update();

  return { numbers: () => ({ scores: [...scores], factor,
    weights: texts.map((text) => Number(text.dataset.value)) }) };
});
