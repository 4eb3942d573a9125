/* Queries, keys and values as arrows to drag in two planes; scores, weights and outputs
   follow. It begins with the rotations of the chapter's geometric example. */
Figures.define("attention", (stage) => {
  "use strict";
  const { element, shape, drawing, choice, toggle, button, handle, matrix, format,
    summary } = Figures;
  const SIZE = 300, UNIT = 88, MIDDLE = SIZE / 2, REACH = 1.6;
  const NAMES = ["blue", "car", "drives"];
  const PLANES = { q: ["query", "--figure-1"], k: ["key", "--figure-2"],
    v: ["value", "--figure-3"], z: ["output", "--figure-5"] };
  const ANGLES = { q: -Math.PI / 4, k: Math.PI / 8, v: (5 * Math.PI) / 16 };
  const INPUTS = [[1, 0], [0, 1], [-Math.SQRT1_2, -Math.SQRT1_2]];

  let T = 2, mask = "none", scaled = true, row = 1;
  let vectors, parts, tables;

  const turn = (angle) => [[Math.cos(angle), -Math.sin(angle)],
    [Math.sin(angle), Math.cos(angle)]];
  const start = (letter) =>
    Mathematics.multiply(INPUTS.slice(0, T), turn(ANGLES[letter]));
  const padded = (i) => mask === "padding" && i === T - 1;
  const names = () => NAMES.slice(0, T).map((name, i) => (padded(i) ? "pad" : name));
  const index = (i) => "₀₁₂"[i];
  const may = () => Array.from({ length: T }, (_, i) => Array.from({ length: T },
    (_, j) => (mask === "causal" ? j <= i : !padded(j))));
  const at = ([x, y]) => [MIDDLE + UNIT * x, MIDDLE - UNIT * y];

  // Drawing -----------------------------------------------------------------------------

  const plane = (label) => {
    const svg = drawing({ width: SIZE, height: SIZE, label, group: true });
    const thin = { stroke: "var(--figure-line)", "stroke-width": 0.8, fill: "none" };
    svg.append(
      shape("circle", { cx: MIDDLE, cy: MIDDLE, r: UNIT, "stroke-dasharray": "2 4", ...thin }),
      shape("path", { d: `M4 ${MIDDLE}H${SIZE - 4}M${MIDDLE} 4V${SIZE - 4}`, ...thin }));
    const one = shape("text", { x: MIDDLE - 0.75 * UNIT, y: MIDDLE + 0.82 * UNIT,
      "text-anchor": "end", class: "attention-tick" });
    one.textContent = "length 1";
    svg.append(one);
    return svg;
  };

  /* An arrow from the origin with its name at the tip; set(vector, width) moves it. */
  const arrow = (svg, letter, i) => {
    const color = `var(${PLANES[letter][1]})`;
    const line = shape("line", { x1: MIDDLE, y1: MIDDLE, stroke: color,
      "stroke-linecap": "round" });
    const text = shape("text", { class: "attention-name",
      style: `fill: ${color}; paint-order: stroke; stroke: var(--figure-ground); stroke-width: 4px`,
      "text-anchor": "middle", "dominant-baseline": "central" });
    text.textContent = letter + index(i);
    for (const part of [line, text]) part.dataset.lights = letter.toUpperCase();
    svg.append(line, text);
    return (vector, width, hidden = false, place = beyond(vector)) => {
      const [x, y] = at(vector);
      line.setAttribute("x2", x);
      line.setAttribute("y2", y);
      line.setAttribute("stroke-width", width);
      line.setAttribute("stroke-dasharray", hidden ? "1 7" : "none");
      text.setAttribute("x", place[0]);
      text.setAttribute("y", place[1]);
    };
  };

  /* Where a name stands: beyond the tip of its arrow, or in another direction. */
  const beyond = (vector, angle = Math.atan2(vector[1], vector[0])) => {
    const [x, y] = at(vector);
    return [x + 21 * Math.cos(angle), y - 21 * Math.sin(angle)];
  };

  /* Where the outputs' names stand: each as far as it can from all else in the plane. */
  const aside = (outputs, values) => {
    const along = ([x, y]) => [0.25, 0.5, 0.75, 1].map((part) => at([part * x, part * y]));
    const taken = [...outputs.flatMap(along), ...values.flatMap(along),
      ...values.map((vector) => beyond(vector))];
    return outputs.map((vector) => {
      const room = ([x, y]) => Math.min(x - 12, SIZE - 12 - x, y - 12, SIZE - 12 - y,
        ...taken.map((other) => Math.hypot(x - other[0], y - other[1])));
      const own = Math.atan2(vector[1], vector[0]);
      const places = Array.from({ length: 16 },
        (_, turned) => beyond(vector, own + (turned * Math.PI) / 8));
      const best = places.reduce((one, other) =>
        (room(other) > room(one) + 0.5 ? other : one));
      taken.push(best);
      return best;
    });
  };

  const tip = (svg, letter, i) => {
    const [x, y] = at(vectors[letter][i]);
    const bound = UNIT * REACH;
    const point = handle({
      svg, x, y, step: UNIT / 20, className: `attention-${letter}`,
      label: `${PLANES[letter][0]} of ${NAMES[i]}`,
      bounds: [MIDDLE - bound, MIDDLE - bound, MIDDLE + bound, MIDDLE + bound],
      move: (right, down) => {
        vectors[letter][i] = [(right - MIDDLE) / UNIT, (MIDDLE - down) / UNIT];
        update();
        return words(letter, i);
      },
    });
    point.say(words(letter, i));
    return point;
  };

  const words = (letter, i) => vectors[letter][i].map((part) => format(part)).join(", ");

  const build = () => {
    vectors = { q: start("q"), k: start("k"), v: start("v") };
    const asking = plane("The plane of queries and keys");
    const answering = plane("The plane of values and outputs");
    const tokens = vectors.q.map((_, i) => i);
    const hull = shape("polygon", { class: "attention-hull" });
    const path = shape("polyline", { class: "attention-path" });
    answering.append(hull);
    parts = { hull, path, arrows: {
      q: tokens.map((i) => arrow(asking, "q", i)),
      k: tokens.map((i) => arrow(asking, "k", i)),
      v: tokens.map((i) => arrow(answering, "v", i)),
    } };
    answering.append(path);
    parts.arrows.z = tokens.map((i) => arrow(answering, "z", i));
    parts.ends = tokens.map(() => shape("rect", { x: -6, y: -6, width: 12, height: 12,
      rx: 2, class: "attention-z" }));
    answering.append(...parts.ends);
    for (const i of tokens) tip(asking, "k", i);
    for (const i of tokens) tip(asking, "q", i);
    for (const i of tokens) tip(answering, "v", i);
    planes.replaceChildren(
      element("div", {}, element("p", { class: "figure-heading" },
        "Queries and keys"), asking),
      element("div", {}, element("p", { class: "figure-heading" },
        "Values and outputs"), answering));
    follow.replaceChildren(choice({ label: "Who asks", value: row,
      options: tokens.map((i) => [i, NAMES[i]]),
      change: (value) => { row = value; update(); } }).element);
    tabulate();
  };

  const tabulate = () => {
    const side = names(), empty = (columns) => side.map(() => Array(columns).fill(0));
    const table = (label, columns, header, color) => matrix({ label, header, side,
      digits: 3, values: empty(columns), color });
    tables = {
      scores: table("Scores QKᵀ", T, side),
      masked: table(scaled ? "÷ √2, masked" : "masked", T, side),
      weights: table("Weights A", T, side, Figures.share),
      output: table("Output AV", 2, ["x", "y"]),
    };
    const letters = { masked: "S", weights: "P", output: "Z" };
    for (const [name, letter] of Object.entries(letters))
      tables[name].element.dataset.lights = letter;
    if (mask === "none") tables.masked.element.caption.textContent =
      scaled ? "÷ √2" : "not scaled";
    results.replaceChildren(...Object.values(tables).map(({ element: made }) => made));
    update();
  };

  // What follows from the vectors ---------------------------------------------------------

  const update = () => {
    const { q, k, v } = vectors, seen = may();
    const found = Mathematics.attention(q, k, v, seen, scaled ? Math.SQRT2 : 1);
    for (const [name, { cells, update: fill }] of Object.entries(tables)) {
      fill(found[name]);
      cells.forEach((line, i) =>
        line[0].parentElement.classList.toggle("figure-chosen", i === row));
    }
    const share = found.weights[row];
    q.forEach((vector, i) => parts.arrows.q[i](vector, i === row ? 5 : 1.5));
    k.forEach((vector, i) => parts.arrows.k[i](vector, 1.5 + 7 * share[i], !seen[row][i]));
    v.forEach((vector, i) => parts.arrows.v[i](vector, 1.5 + 7 * share[i], !seen[row][i]));
    const free = aside(found.output, v);
    found.output.forEach((vector, i) => {
      parts.arrows.z[i](vector, i === row ? 5 : 1.5, false, free[i]);
      parts.ends[i].setAttribute("transform", `translate(${at(vector)})`);
    });
    parts.hull.setAttribute("points", v.map(at).join(" "));
    let end = [0, 0];
    parts.path.setAttribute("points", [end, ...v.map((vector, j) => {
      end = end.map((part, c) => part + share[j] * vector[c]);
      return end;
    })].map(at).join(" "));
    said.textContent = sentence(share, found.output[row], found.weights);
  };

  const sentence = (share, output, weights) => {
    const sum = names().map((name, j) => `${format(share[j], 3)} · v(${name})`);
    const reached = weights[1][0] > 0.6;
    return `${names()[row]} takes home ${sum.join(" + ")} = `
      + `(${output.map((part) => format(part, 3)).join(", ")}). `
      + (reached ? `Reached: car gives blue ${format(weights[1][0], 3)}.`
        : `Now make car look at blue: its weight there is ${format(weights[1][0], 3)}; `
          + "bring it above 0.6.");
  };

  // The page's parts ----------------------------------------------------------------------

  const planes = element("div", { class: "figure-columns" });
  const results = element("div", { class: "attention-tables" });
  const follow = element("div", {});
  const said = summary();
  stage.append(
    element("div", { class: "figure-controls" },
      choice({ label: "Mask", value: "none",
        options: [["none", "none"], ["causal", "causal"], ["padding", "padding"]],
        change: (value) => { mask = value; tabulate(); } }).element,
      toggle({ label: "divide scores by √d_k", value: true,
        change: (value) => { scaled = value; tabulate(); } }).element,
      choice({ label: "Tokens", value: 2, options: [[2, "2"], [3, "3"]],
        change: (value) => { T = value; row = Math.min(row, T - 1); build(); } }).element,
      button({ text: "Start again", press: build })),
    planes, follow, results, said);
  build();

  const read = (name) => tables[name].cells.map((line) =>
    line.map((cell) => Number(cell.dataset.value)));
  return { numbers: () => ({ ...structuredClone(vectors), tokens: T, mask, scaled, row,
    scores: read("scores"), masked: read("masked"), weights: read("weights"),
    output: read("output") }) };
});
