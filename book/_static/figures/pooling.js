/* Three real tokens and some padding in the plane, and three ways to one vector. */
Figures.define("pooling", (stage) => {
  "use strict";
  const { element, shape, drawing, slider, choice, toggle, handle, format, show,
    summary } = Figures;
  const [unit, left, top] = [26, 3.3, 11.2]; // pixels to 1; the origin's place
  const names = ["Bobby", "likes", "blackberries"];
  const tokens = [[1, 2], [3, 0], [2, 4]];
  let pad = [6, 10];
  let query = [1, 0];
  let [count, masked, zeros, readout] = [1, true, false, "mean"];
  const titles = { token: "class token", mean: "mean", max: "max" };

  const X = (value) => (left + value) * unit;
  const Y = (value) => (top - value) * unit;
  const pair = (vector, digits = 1) =>
    `(${vector.map((value) => format(value, digits)).join(", ")})`;

  // Readouts: of all rows, the padding last ---------------------------------------------
  const held = () => (zeros ? [0, 0] : pad);
  const rows = (mask) => [...tokens, ...Array(mask ? 0 : count).fill(held())];
  const weights = (kind, all) => (kind === "mean" ? all.map(() => 1 / all.length)
    : Mathematics.softmax(all.map((row) => Mathematics.dot(row, query) / Math.SQRT2)));
  const pool = (kind, mask) => {
    const all = rows(mask);
    if (kind === "max") return [0, 1].map((j) => Math.max(...all.map((row) => row[j])));
    return Mathematics.multiply([weights(kind, all)], all)[0];
  };

  // The plane ---------------------------------------------------------------------------
  const svg = drawing({ width: 322, height: 376, group: true,
    label: "Plane with the three tokens, the padding and the readout" });
  const line = (x1, y1, x2, y2, stroke = "var(--figure-line)") =>
    shape("line", { x1, y1, x2, y2, stroke });
  svg.append(line(0, Y(0), 322, Y(0)), line(X(0), 0, X(0), 376));
  for (let value = -2; value <= 10; value += 2) {
    if (!value) continue;
    const tick = (x, y, anchor) => {
      const text = shape("text", { x, y, "text-anchor": anchor, class: "pooling-tick" });
      text.textContent = format(value, 0);
      return text;
    };
    if (value <= 8) svg.append(line(X(value), Y(0) - 3, X(value), Y(0) + 3),
      tick(X(value), Y(0) + 17, "middle"));
    svg.append(line(X(0) - 3, Y(value), X(0) + 3, Y(value)),
      tick(X(0) - 7, Y(value) + 4, "end"));
  }
  const rays = [...tokens, pad].map(() => shape("line", { stroke: "var(--figure-1)",
    "stroke-linecap": "round", "stroke-opacity": 0.45 }));
  const arrow = shape("line", { x1: X(0), y1: Y(0), stroke: "var(--figure-4)",
    "stroke-width": 3 });
  const gap = shape("line", { stroke: "var(--figure-2)", "stroke-width": 2,
    "stroke-dasharray": "4 4" });
  const right = shape("rect", { x: -10, y: -10, width: 20, height: 20, fill: "none",
    stroke: "var(--figure-3)", "stroke-width": 3 });
  const found = shape("path", { d: "M0 -8L8 0L0 8L-8 0Z", fill: "var(--figure-2)",
    stroke: "var(--figure-ground)" });
  svg.append(...rays, arrow, gap);

  const label = (text) => {
    const made = shape("text", { class: "pooling-name" });
    made.textContent = text;
    svg.append(made);
    return made;
  };
  const labels = [...names, "padding", "query"].map(label);
  const sides = [[-13, 4, "end"], [0, 24, "middle"], [0, -14, "middle"],
    [-13, 4, "end"], [0, 24, "middle"]];
  const beside = (text, [x, y], i) => {
    let [right, down, anchor] = sides[i];
    if (anchor === "end" && x < 0) [right, anchor] = [13, "start"];
    text.setAttribute("text-anchor", anchor);
    text.setAttribute("x", X(x) + right);
    text.setAttribute("y", Y(y) + down);
  };
  const bounds = [X(-3), Y(11), X(9), Y(-3)];
  const grip = (name, at, change, limits = bounds, className = "") => handle({
    svg, label: name, x: X(at[0]), y: Y(at[1]), step: unit / 10, bounds: limits,
    className, move: (x, y) => {
      const next = [x / unit - left, top - y / unit].map((v) => Math.round(v * 10) / 10);
      change(next);
      update();
      return pair(next);
    },
  });
  const grips = tokens.map((token, i) =>
    grip(`Token ${names[i]}`, token, (next) => { tokens[i] = next; }));
  const padGrip = grip("Vector of the padding", pad, (next) => { pad = next; }, bounds, "pooling-hollow");
  const queryGrip = grip("Query of the class token", query, (next) => { query = next; },
    [X(-3), Y(3), X(3), Y(-3)], "pooling-query");
  svg.append(right, found);

  // Numbers -----------------------------------------------------------------------------
  const weightCells = [...names, "padding"].map(() => element("td"));
  const vectorCells = weightCells.map(() => element("td"));
  const firstCells = [...names, ""].map((name) => element("th", { scope: "row" }, name));
  const weightHead = element("th", { scope: "col" });
  const byToken = element("table", { class: "figure-matrix figure-facts" },
    element("thead", {}, element("tr", {}, element("td"),
      element("th", { scope: "col" }, "vector"), weightHead)),
    element("tbody", {}, weightCells.map((cell, i) =>
      element("tr", {}, firstCells[i], vectorCells[i], cell))));
  const kinds = Object.keys(titles);
  const resultCells = kinds.map(() => [0, 1].map(() => element("td")));
  const resultRows = kinds.map((kind, i) => element("tr", {},
    element("th", { scope: "row" }, titles[kind]), resultCells[i]));
  const results = element("table", { class: "figure-matrix figure-facts" },
    element("thead", {}, element("tr", {}, element("td"),
      element("th", { scope: "col" }, "real tokens"),
      element("th", { scope: "col" }, "padding, too"))),
    element("tbody", {}, resultRows));
  const key = element("p", { class: "pooling-key" },
    element("span", { class: "pooling-key-square" }), "of the real tokens ",
    element("span", { class: "pooling-key-diamond" }), "as computed");
  const said = summary();

  const draw = (truth, now, shares) => {
    [...tokens, held()].forEach((at, i) => {
      const share = shares[i];
      const ends = { x1: X(at[0]), y1: Y(at[1]), x2: X(now[0]), y2: Y(now[1]),
        "stroke-width": 12 * share, visibility: share ? "visible" : "hidden" };
      for (const [name, value] of Object.entries(ends)) rays[i].setAttribute(name, value);
      beside(labels[i], at, i);
    });
    const places = { x1: X(truth[0]), y1: Y(truth[1]), x2: X(now[0]), y2: Y(now[1]) };
    for (const [name, value] of Object.entries(places)) gap.setAttribute(name, value);
    right.setAttribute("transform", `translate(${X(truth[0])} ${Y(truth[1])})`);
    found.setAttribute("transform", `translate(${X(now[0])} ${Y(now[1])})`);
    const seen = count ? "visible" : "hidden";
    padGrip.element.setAttribute("visibility", seen);
    padGrip.element.setAttribute("tabindex", zeros ? -1 : 0);
    labels[3].setAttribute("visibility", seen);
    padGrip.place(X(held()[0]), Y(held()[1]));
    const asks = readout === "token" ? "visible" : "hidden";
    for (const part of [arrow, queryGrip.element, labels[4]])
      part.setAttribute("visibility", asks);
    arrow.setAttribute("x2", X(query[0]));
    arrow.setAttribute("y2", Y(query[1]));
    beside(labels[4], query, 4);
  };

  const update = () => {
    const shares = readout === "max" ? [0, 0, 0, 0] : weights(readout, rows(masked));
    const padShare = shares.slice(3).reduce((sum, share) => sum + share, 0);
    const four = [...shares.slice(0, 3), padShare];
    const all = kinds.map((kind) => [pool(kind, true), pool(kind, false)]);
    const [truth, plain] = all[kinds.indexOf(readout)];
    const now = masked ? truth : plain;
    weightHead.textContent = readout === "max" ? "gives" : "weight";
    firstCells[3].textContent = `padding × ${count}`;
    [...tokens, held()].forEach((at, i) => {
      const there = i < 3 || count > 0;
      vectorCells[i].textContent = there ? pair(at) : "–";
      if (readout === "max") {
        const given = there && (i < 3 || !masked)
          ? [0, 1].filter((j) => at[j] === now[j]).map((j) => "xy"[j]) : [];
        weightCells[i].textContent = given.join(", ") || "–";
        delete weightCells[i].dataset.value;
      } else show(weightCells[i], four[i]);
    });
    all.forEach((both, i) => {
      both.forEach((vector, j) => {
        resultCells[i][j].textContent = pair(vector, 2);
        resultCells[i][j].dataset.value = JSON.stringify(vector);
        resultCells[i][j].classList.toggle("figure-marked",
          kinds[i] === readout && (j === 0) === masked);
      });
      resultRows[i].classList.toggle("figure-strong", kinds[i] === readout);
    });
    draw(truth, now, four);
    tell(truth, now, padShare);
  };

  const tell = (truth, now, padShare) => {
    const off = Math.hypot(now[0] - truth[0], now[1] - truth[1]);
    const what = `The ${titles[readout]} is ${pair(now, 2)}`;
    if (!count) said.textContent = `${what}. There is no padding, and no mistake yet.`;
    else if (masked) said.textContent = `${what}: with the mask, padding has no say, `
      + "whatever it holds and however much of it there is.";
    else if (off < 1e-9) said.textContent = `${what}. The padding is read, too, and `
      + "changes nothing by luck: move a token.";
    else if (readout === "max") said.textContent = `${what} where it should be `
      + `${pair(truth, 2)}: the padding won.`;
    else said.textContent = `${what} where it should be ${pair(truth, 2)}: `
      + `${format(100 * padShare, 0)} % of it is padding.`;
  };

  const controls = element("div", { class: "figure-stack" },
    choice({ label: "Readout", options: Object.entries(titles), value: readout,
      change: (value) => { readout = value; update(); } }).element,
    slider({ label: "Padding", minimum: 0, maximum: 12, value: count,
      text: (value) => `${value}`,
      change: (value) => { count = value; update(); } }).element,
    choice({ label: "It holds", value: false,
      options: [[false, "numbers"], [true, "zeros"]],
      change: (value) => { zeros = value; update(); } }).element,
    toggle({ label: "Mask: read the real tokens only", value: masked,
      change: (value) => { masked = value; update(); } }).element,
    byToken, results);
  stage.append(element("div", { class: "figure-columns" },
    element("div", {}, svg, key), controls), said);
  update();

  return { numbers: () => ({ tokens, padding: held(), count, query, readout, masked,
    weights: weightCells.map((cell) => Number(cell.dataset.value ?? NaN)),
    results: Object.fromEntries(kinds.map((kind, i) => [kind,
      resultCells[i].map((cell) => JSON.parse(cell.dataset.value))])) }) };
});
