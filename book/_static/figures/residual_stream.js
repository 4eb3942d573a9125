/* The residual stream through a stack of encoder layers before any training: how long a
   token's vector is, and how large a gradient each layer gets; post-norm, pre-norm. */
Figures.define("residual_stream", (stage) => {
  "use strict";
  const { element, shape, drawing, slider, show, format, summary } = Figures;
  const { stacks } = Figures.data.residual_stream;
  const kinds = {
    post: ["post-norm", "LN(x + f(x))"],
    pre: ["pre-norm", "x + f(LN(x))"],
  };
  const [bottom, top, middle, barsFrom] = [318, 58, 92, 196];
  // One scale for all depths, so that they can be compared.
  const all = (name) => Object.values(stacks).flatMap((stack) =>
    Object.keys(kinds).flatMap((kind) => stack[kind][name]));
  const perLength = 86 / Math.max(...all("lengths"));
  const perGradient = 78 / Math.max(...all("gradients"));
  let depth = 12;
  let layer = 12;

  const word = (content, attributes) => {
    const made = shape("text", attributes);
    made.textContent = content;
    return made;
  };

  const panel = (kind) => {
    const [title, formula] = kinds[kind];
    const svg = drawing({ width: 324, height: 350, label: `${title}: the stream from `
      + "the first layer, below, to the last, and a bar for each layer's gradient" });
    const stream = shape("polygon", { class: "residual-stream" });
    const axis = shape("line", { x1: middle, x2: middle, y1: bottom + 8, y2: top - 8,
      stroke: "var(--figure-ink)", "stroke-width": 2 });
    const bars = shape("g", { fill: "var(--figure-2)" });
    const marker = shape("rect", { x: 2, width: 320, rx: 3, fill: "none",
      stroke: "var(--figure-ink)", "stroke-width": 1.5 });
    const which = word("", { x: 320, "text-anchor": "end" });
    const norm = shape("g", {});
    if (kind === "pre") {
      norm.append(
        shape("rect", { x: middle - 30, y: top - 27, width: 60, height: 19, rx: 4,
          fill: "var(--figure-ground)", stroke: "var(--figure-ink)", "stroke-width": 1.5 }),
        word("last LN", { x: middle, y: top - 13, "text-anchor": "middle" }));
    }
    svg.append(
      word(title, { x: 2, y: 16, "font-weight": 600 }),
      word(formula, { x: 322, y: 16, "text-anchor": "end" }),
      shape("line", { x1: barsFrom, x2: barsFrom, y1: bottom, y2: top,
        stroke: "var(--figure-line)" }),
      stream, axis, norm, bars, marker, which,
      word("length of a token", { x: middle, y: 344, "text-anchor": "middle" }),
      word("gradient of W₂", { x: barsFrom, y: 344 }));
    svg.style.touchAction = "pan-y";
    svg.style.cursor = "pointer";

    let rows = [];
    const update = () => {
      const { lengths, gradients } = stacks[depth][kind];
      const step = (bottom - top) / depth;
      const edge = (side) => lengths.map((length, i) =>
        [middle + side * perLength * length, bottom - step * i]);
      stream.setAttribute("points", [...edge(-1), ...edge(1).reverse()].join(" "));
      if (rows.length !== depth) {
        rows = gradients.map(() => shape("rect", { x: barsFrom, rx: 1 }));
        bars.replaceChildren(...rows);
      }
      gradients.forEach((gradient, i) => {
        rows[i].setAttribute("y", bottom - step * (i + 0.82));
        rows[i].setAttribute("height", step * 0.64);
        rows[i].setAttribute("width", perGradient * gradient);
      });
      which.textContent = `layer ${layer}`;
      which.setAttribute("y", bottom - step * layer - 4);
      marker.setAttribute("y", bottom - step * layer);
      marker.setAttribute("height", step);
    };
    return { svg, update };
  };

  const panels = Object.fromEntries(Object.keys(kinds).map((kind) => [kind, panel(kind)]));
  const pick = (svg) => (event) => {
    if (event.type === "pointermove" && !event.buttons) return;
    const { y } = new DOMPoint(event.clientX, event.clientY)
      .matrixTransform(svg.getScreenCTM().inverse());
    const at = Math.ceil((bottom - y) / (bottom - top) * depth);
    layerSlider.set(Math.max(1, Math.min(depth, at)));
    layer = layerSlider.value;
    update();
  };
  Object.values(panels).forEach(({ svg }) => {
    svg.addEventListener("pointerdown", pick(svg));
    svg.addEventListener("pointermove", pick(svg));
  });

  const columns = ["start", "length", "gradient", "last"];
  const cells = {};
  const body = element("tbody", {}, Object.entries(kinds).map(([kind, [title]]) => {
    cells[kind] = Object.fromEntries(columns.map((name) => [name, element("td")]));
    return element("tr", {}, element("th", { scope: "row" }, title),
      Object.values(cells[kind]));
  }));
  const heads = ["length at the start", "", "", ""].map((text) =>
    element("th", { scope: "col" }, text));
  const table = element("table", { class: "figure-matrix" },
    element("thead", {}, element("tr", {}, element("td"), heads)), body);
  const said = summary();

  const update = () => {
    Object.entries(panels).forEach(([kind, { update: redraw }]) => {
      const { lengths, gradients } = stacks[depth][kind];
      redraw();
      show(cells[kind].start, lengths[0]);
      show(cells[kind].length, lengths[layer]);
      show(cells[kind].gradient, gradients[layer - 1]);
      show(cells[kind].last, gradients.at(-1));
    });
    heads[1].textContent = `length after layer ${layer}`;
    heads[2].textContent = `gradient in layer ${layer}`;
    heads[3].textContent = `gradient in the last, ${depth}`;
    const { post, pre } = stacks[depth];
    const ratio = post.gradients.at(-1) / pre.gradients.at(-1);
    said.textContent = `With ${depth} layers, the last layer's gradient is `
      + `${format(ratio, 1)} times as large in post-norm as in pre-norm. In pre-norm the `
      + `stream has grown from ${format(pre.lengths[0], 1)} to `
      + `${format(pre.lengths.at(-1), 1)}, and the last norm divides by that; in `
      + `post-norm every norm has brought it back to ${format(post.lengths.at(-1), 1)}.`;
  };

  const layerSlider = slider({ label: "Layer to read", minimum: 1, maximum: depth,
    value: layer, change: (value) => { layer = value; update(); } });
  const depthSlider = slider({ label: "Layers in the stack", minimum: 4, maximum: 24,
    step: 4, value: depth, change: (value) => {
      // Whoever looked at the last layer goes on looking at the last layer.
      layer = layer === depth ? value : Math.min(layer, value);
      depth = value;
      layerSlider.input.max = depth;
      layerSlider.set(layer);
      update();
    } });
  stage.append(
    element("div", { class: "figure-columns" }, depthSlider.element, layerSlider.element),
    element("div", { class: "figure-columns" },
      Object.values(panels).map(({ svg }) => svg)),
    element("div", { class: "figure-scroll", tabindex: 0, role: "region",
      "aria-label": "Lengths and gradients" }, table),
    said);
  update();

  const read = (kind) => Object.fromEntries(
    columns.map((name) => [name, Number(cells[kind][name].dataset.value)]));
  return { numbers: () => ({ depth, layer, post: read("post"), pre: read("pre") }) };
});
