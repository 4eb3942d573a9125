/* The sinusoidal encoding as clock hands and as a heat map, what it makes of a pair of
   columns and of the inner product of two rows, and last a formula with a slip. */
Figures.define("positions", (stage) => {
  "use strict";
  const { element, shape, drawing, slider, choice, format, heat, show, summary } = Figures;
  const length = 64;
  const bases = [10, 100, 1000, 10000, 100000];
  let [base, d, p, k, hand, slip] = [10000, 16, 12, 5, 0, "none"];

  // Formulas: a row for each position ---------------------------------------------------
  const table = (value) => Array.from({ length }, (_, row) =>
    Array.from({ length: d }, (__, column) => value(row, column)));
  const pairs = (angle) => table((row, column) =>
    (column % 2 ? Math.cos : Math.sin)(angle(row, column - (column % 2))));
  const right = () => pairs((row, even) => row / base ** (even / d));
  const formulas = {
    none: { text: "none", source: "", make: right },
    exponent: { text: "exponent over p, too", source: "Exponent over p, too",
      make: () => pairs((row, even) => (row / base) ** (even / d)) },
    base: { text: "base 1000", source: "Base 1000",
      make: () => pairs((row, even) => row / 1000 ** (even / d)) },
    single: { text: "cosine first, no pairs", source: "No pairs",
      make: () => table((row, column) => (column % 2 ? Math.sin : Math.cos)(
        (row + 1) / base ** ((column + 1) / d))) },
    shifted: { text: "columns from 1", source: "Columns from 1",
      make: () => table((row, column) => (column % 2 ? Math.sin : Math.cos)(
        row / base ** ((column + (column % 2)) / d))) },
  };

  // Heat maps: one pixel a number, enlarged by the browser ------------------------------
  const map = () => {
    const title = element("p", { class: "figure-heading" });
    const canvas = element("canvas", { height: length, class: "positions-map", role: "img" });
    const marks = [0, 1].map((i) =>
      element("span", { class: `positions-row positions-row-${i}`,
        "data-lights": i ? "k" : "p" }));
    return { title, canvas, marks, element: element("div", {}, title,
      element("div", { class: "positions-frame" }, canvas, marks)) };
  };
  const paint = ({ canvas }, values, { cold, ground, warm }) => {
    canvas.width = d;
    const context = canvas.getContext("2d");
    const image = context.createImageData(d, length);
    values.flat().forEach((value, i) => {
      const end = value < 0 ? cold : warm;
      for (let part = 0; part < 3; part += 1)
        image.data[4 * i + part] = ground[part] + Math.abs(value) * (end[part] - ground[part]);
      image.data[4 * i + 3] = 255;
    });
    context.putImageData(image, 0, 0);
  };

  // The clocks: one hand for each pair of columns, at p (solid) and p + k (dashed) --------
  const clocks = element("div", { class: "positions-clocks" });
  const makeClocks = () => {
    clocks.replaceChildren(...Array.from({ length: d / 2 }, (_, i) => {
      const svg = drawing({ width: 64, height: 64, label: "" });
      svg.append(shape("circle", { cx: 32, cy: 32, r: 28, fill: "none",
        stroke: "var(--figure-line)" }));
      for (const dashes of ["none", "4 3"])
        svg.append(shape("line", { x1: 32, y1: 32, stroke: "var(--figure-1)",
          "data-lights": dashes === "none" ? "p" : "k",
          "stroke-width": dashes === "none" ? 3.5 : 2, "stroke-dasharray": dashes }));
      return element("div", { class: "positions-clock", "data-lights": "i" }, svg,
        ["sine", "cosine"].map((part) => element("span", { "data-lights": part })));
    }));
  };
  const turnClocks = ([values]) => [...clocks.children].forEach((clock, i) => {
    const [svg, ...cells] = clock.children;
    const pair = (row) => [values[row][2 * i], values[row][2 * i + 1]];
    svg.setAttribute("aria-label", `Hand ${i} at position ${p}`);
    svg.querySelectorAll("line").forEach((line, j) => {
      const [sine, cosine] = pair(j ? p + k : p);
      line.setAttribute("x2", 32 + 26 * cosine);
      line.setAttribute("y2", 32 - 26 * sine);
    });
    cells.forEach((cell, j) => {
      show(cell, pair(p)[j]);
      cell.style.setProperty("--heat", heat(pair(p)[j]));
    });
  });

  // One pair of columns in the plane: the cosine to the right, the sine upwards ----------
  const plane = (colour) => {
    const svg = drawing({ width: 150, height: 150, label: "" });
    const at = (value) => 75 + 62 * value;
    const dots = Array.from({ length }, () => shape("circle", { r: 2.4, fill: colour,
      "fill-opacity": 0.5 }));
    const hands = [0, 1].map((i) => shape("line", { x1: 75, y1: 75, stroke: colour,
      "stroke-width": i ? 2.5 : 4, "stroke-dasharray": i ? "5 3" : "none",
      "stroke-linecap": "round" }));
    svg.append(shape("circle", { cx: 75, cy: 75, r: 62, fill: "none",
      stroke: "var(--figure-line)" }), ...dots, ...hands);
    const update = (values) => {
      values.forEach((row, i) => {
        dots[i].setAttribute("cx", at(row[2 * hand + 1]));
        dots[i].setAttribute("cy", at(-row[2 * hand]));
      });
      [p, p + k].forEach((row, i) => {
        hands[i].setAttribute("x2", at(values[row][2 * hand + 1]));
        hands[i].setAttribute("y2", at(-values[row][2 * hand]));
      });
    };
    return { svg, update };
  };

  // Inner products of rows p and p + k, for all p ---------------------------------------
  const chart = drawing({ width: 340, height: 150, label: "" });
  const [chartX, chartY] = [(row) => 34 + 4.6 * row, (share) => 75 - 62 * share];
  for (const [share, name] of [[-1, "−d/2"], [0, "0"], [1, "d/2"]]) {
    const text = shape("text", { x: 28, y: chartY(share) + 4, "text-anchor": "end",
      class: "positions-tick" });
    text.textContent = name;
    chart.append(text, shape("line", { x1: 34, x2: 332, y1: chartY(share),
      y2: chartY(share), stroke: "var(--figure-line)", "stroke-opacity": share ? 0.5 : 1 }));
  }
  const lines = ["var(--figure-1)", "var(--figure-2)"].map((stroke, i) =>
    shape("polyline", { fill: "none", stroke, "stroke-width": i ? 2 : 3,
      "stroke-dasharray": i ? "5 3" : "none" }));
  const here = shape("line", { y1: 8, y2: 142, stroke: "var(--figure-quiet)",
    "stroke-dasharray": "2 3" });
  chart.append(here, ...lines);

  const maps = [map(), map()];
  const planes = [plane("var(--figure-1)"), plane("var(--figure-2)")];
  const labels = ["inner product", "squared length", "smallest step"];
  const cells = labels.map(() => [element("td"), element("td")]);
  const heads = ["right", ""].map((text) => element("th", { scope: "col" }, text));
  const slipped = () => [maps[1].element, planes[1].svg, lines[1], heads[1],
    ...cells.map(([, cell]) => cell)];
  const facts = element("table", { class: "figure-matrix figure-facts" },
    element("thead", {}, element("tr", {}, element("td"), heads)),
    element("tbody", {}, labels.map((text, i) =>
      element("tr", {}, element("th", { scope: "row" }, text), cells[i]))));
  const planeTitle = element("p", { class: "figure-heading" });
  const chartTitle = element("p", { class: "figure-heading" });
  const said = summary();
  let tables = [];

  const measure = (values) => {
    const steps = values.slice(2).map((row, i) =>
      Math.hypot(...row.map((value, j) => value - values[i + 1][j])));
    const products = values.slice(0, length - k).map((row, i) =>
      Mathematics.dot(row, values[i + k]));
    const lengths = values.map((row) => Mathematics.dot(row, row));
    return { products, smallest: Math.min(...products), largest: Math.max(...products),
      lengths: [Math.min(...lengths), Math.max(...lengths)], step: Math.min(...steps) };
  };

  /* One number where both are the same. */
  const range = (cell, [least, most]) => {
    cell.textContent = most - least < 1e-9 ? format(least)
      : `${format(least)} to ${format(most)}`;
    cell.dataset.value = JSON.stringify([least, most]);
  };

  /* What depends on positions only: the maps keep their pixels. */
  const point = () => {
    const found = tables.map(measure);
    turnClocks(tables);
    found.forEach((each, i) => {
      range(cells[0][i], [each.smallest, each.largest]);
      range(cells[1][i], each.lengths);
      show(cells[2][i], each.step, 4);
      planes[i].update(tables[i]);
      lines[i].setAttribute("points", each.products
        .map((value, row) => `${chartX(row)},${chartY(value / (d / 2))}`).join(" "));
      [p, p + k].forEach((row, j) => {
        maps[i].marks[j].style.top = `${100 * row / length}%`;
      });
    });
    here.setAttribute("x1", chartX(p));
    here.setAttribute("x2", chartX(p));
    planeTitle.textContent = `Columns ${2 * hand} and ${2 * hand + 1}: all positions, and `
      + `the hands of ${p} (solid) and ${p + k} (dashed)`;
    chartTitle.textContent = `PE(p) · PE(p + ${k}), for every p`;
    tell(found);
  };

  const tell = ([good, bad]) => {
    const turn = format(k / base ** (2 * hand / d));
    const first = `${k} positions on, hand ${hand} has turned by ${turn} radians, and `
      + `the inner product is ${format(good.smallest)}, wherever one starts. `;
    const ends = {
      none: "",
      exponent: "With the exponent over p, too, hand 0 stands still after position 0, and "
        + `neighbours are as little as ${format(bad.step, 4)} apart.`,
      base: base === 1000 ? "This is the same base: nothing differs."
        : "With base 1000 nothing breaks, but every hand after the first has another speed.",
      single: "Without pairs the points leave the circle, rows differ in length, and the "
        + `inner product wanders between ${format(bad.smallest)} and ${format(bad.largest)}.`,
      shifted: "With columns from 1 the first sine is missing, the last column has a speed "
        + "of its own, and the two columns of a hand have two speeds.",
    };
    said.textContent = first + ends[slip];
  };

  const update = () => {
    const { source, make } = formulas[slip];
    tables = [right(), make()];
    makeClocks();
    for (const each of slipped()) each.style.display = slip === "none" ? "none" : "";
    const palette = Figures.colours(stage, ["cold", "ground", "warm"]);
    hand = Math.min(hand, d / 2 - 1);
    controls.hand.input.max = d / 2 - 1;
    controls.hand.set(hand);
    [slip === "none" ? "All rows, one per position" : "Right", source].forEach((title, i) => {
      maps[i].title.textContent = title;
      maps[i].canvas.setAttribute("aria-label",
        `${title}: heat map of ${length} positions and ${d} columns`);
      planes[i].svg.setAttribute("aria-label", `${title}: the pair of columns in the plane`);
      paint(maps[i], tables[i], palette);
    });
    chart.setAttribute("aria-label", "Inner products against the position");
    heads[1].textContent = source.toLowerCase();
    point();
  };

  const number = (label, minimum, maximum, step, value, change, text = String) =>
    slider({ label, minimum, maximum, step, value, text, change });
  const controls = {
    base: number("Base", 0, bases.length - 1, 1, 3,
      (value) => { base = bases[value]; update(); },
      (value) => String(bases[value]).replace(/(?=(000)+$)/, "\u202f")),
    width: number("Width d", 4, 64, 2, d, (value) => { d = value; update(); }),
    place: number("Position p", 0, 43, 1, p, (value) => { p = value; point(); }),
    offset: number("Offset k", 0, 20, 1, k, (value) => { k = value; point(); }),
    hand: number("Hand i", 0, d / 2 - 1, 1, hand, (value) => { hand = value; point(); }),
  };
    stage.append(
    element("div", { class: "figure-columns" },
      controls.place.element, controls.offset.element),
    clocks, said,
    element("div", { class: "figure-columns" },
      element("div", { class: "figure-stack" }, maps.map((each) => each.element)),
      element("div", { class: "figure-stack" },
        planeTitle, element("div", { class: "positions-two" }, planes.map(({ svg }) => svg)),
        chartTitle, chart)),
    element("div", { class: "figure-columns" },
      element("div", { class: "figure-stack" },
        [controls.base, controls.width, controls.hand].map((each) => each.element)),
      facts),
    choice({ label: "Beside it a slip", value: slip, change: (value) => {
      slip = value;
      update();
    }, options: Object.entries(formulas).map(([name, { text }]) => [name, text]) }).element);
  new MutationObserver(update).observe(document.documentElement,
    { attributes: true, attributeFilter: ["data-theme"] });
  update();

  const read = (row) => row.map((cell) => JSON.parse(cell.dataset.value));
  return { numbers: () => ({ base, d, p, k, hand, slip, tables,
    products: read(cells[0]), lengths: read(cells[1]), steps: read(cells[2]) }) };
});
