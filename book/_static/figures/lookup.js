/* A token's one-hot row times a table, and the row of the table that its id names. */
Figures.define("lookup", (stage) => {
  "use strict";
  const { element, choice, toggle, format, heat, show, summary } = Figures;
  const tokens = ["<pad>", "<unk>", "<sos>", "<eos>", "the", "dog", "is", "eating"];
  const table = [
    [0.1, -0.2, 0.0, 0.3], [-0.4, 0.2, 0.5, -0.1], [1.1, 0.4, -0.3, 0.6],
    [-0.9, 1.2, 0.2, -0.5], [0.3, -0.7, 0.9, 0.1], [1.4, 0.8, -0.6, -1.2],
    [-0.2, 0.5, 1.3, 0.7], [0.6, -1.1, -0.8, 1.0],
  ];
  const sizes = {
    here: { T: 1, N: 8, d: 4, text: "this table, 1 token" },
    transformer: { T: 64, N: 37000, d: 512, text: "37 000 × 512, 64 tokens" },
    large: { T: 1024, N: 50257, d: 768, text: "50 257 × 768, 1024 tokens" },
  };
  let [id, column, shifted, size] = [5, 0, false, "here"];

  const whole = (value) => String(value).replace(/\B(?=(\d{3})+$)/g, "\u202f");
  const bytes = (value) => (value < 1000 ? `${value} B` : value < 1e6
    ? `${format(value / 1e3, 1)} kB` : `${format(value / 1e6, 1)} MB`);

  // The table: one row a token, its entry of the one-hot row beside it -----------------
  const group = `lookup-${Math.random()}`;
  const radios = tokens.map((_, i) => element("input", {
    type: "radio", name: group, onchange: () => { id = i; update(); },
  }));
  const ones = tokens.map(() => element("td"));
  const cells = table.map((row) => row.map((value) => {
    const cell = element("td", { style: `--heat: ${heat(value, 2)}` });
    show(cell, value, 1);
    return cell;
  }));
  const rows = tokens.map((token, i) => element("tr", {},
    element("th", { scope: "row", class: "lookup-pick" },
      element("label", {}, radios[i], element("span", {}, `${i} ${token}`))),
    ones[i], cells[i]));
  const result = (name) => {
    const title = element("th", { scope: "row", colspan: 2 }, name);
    const values = table[0].map(() => element("td"));
    return { title, values, row: element("tr", {}, title, values) };
  };
  const product = result("one-hot × E");
  const copied = result("row of E");
  const heads = table[0].map((_, j) => element("th", { scope: "col" }, `E, ${j}`));
  const made = element("table", { class: "figure-matrix lookup-table" },
    element("caption", {}, "Choose a token"),
    element("thead", {}, element("tr", {}, element("th", { scope: "col" }, "id, token"),
      element("th", { scope: "col" }, "one-hot"), heads)),
    element("tbody", {}, rows),
    element("tbody", { class: "lookup-results" }, product.row, copied.row));

  // The sum written out, and what both ways cost ---------------------------------------
  const terms = tokens.map(() => element("span"));
  const total = element("strong");
  const sum = element("p", { class: "lookup-sum" },
    terms.flatMap((term, i) => (i ? [" + ", term] : [term])), " = ", total);
  const cost = (name) => [element("th", { scope: "row" }, name), element("td"),
    element("td")];
  const costs = ["multiplications", "numbers copied", "what goes in"].map(cost);
  const prices = element("table", { class: "figure-matrix figure-facts" },
    element("thead", {}, element("tr", {}, element("td"),
      element("th", { scope: "col" }, "one-hot × E"),
      element("th", { scope: "col" }, "lookup"))),
    element("tbody", {}, costs.map((row) => element("tr", {}, row))));
  const said = summary();

  const price = () => {
    const { T, N, d } = sizes[size];
    const counts = [[T * N * d, 0], [0, T * d], [4 * T * N, 8 * T]];
    counts.forEach((pair, i) => pair.forEach((value, j) => {
      const cell = costs[i][j + 1];
      cell.textContent = i < 2 ? whole(value) : bytes(value);
      cell.dataset.value = value;
    }));
  };

  const update = () => {
    const oneHot = tokens.map((_, i) => Number(i === id));
    const row = shifted ? (id + tokens.length - 1) % tokens.length : id;
    const values = Mathematics.multiply([oneHot], table)[0];
    oneHot.forEach((value, i) => {
      show(ones[i], value, 0);
      rows[i].classList.toggle("figure-strong", i === id);
      cells[i].forEach((cell) => cell.classList.toggle("figure-marked", i === row));
    });
    radios[id].checked = true;
    const same = row === id;
    copied.title.textContent = shifted && id === 0 ? "row −1 of E" : `row ${row} of E`;
    values.forEach((value, j) => {
      show(product.values[j], value, 1);
      show(copied.values[j], table[row][j], 1);
      for (const [place, shown] of [[product, value], [copied, table[row][j]]])
        place.values[j].style.setProperty("--heat", heat(shown, 2));
      copied.values[j].classList.toggle("figure-wrong", !same);
      heads[j].classList.toggle("figure-strong", j === column);
    });
    oneHot.forEach((value, i) => {
      const number = table[i][column];
      terms[i].textContent = `${value}·${number < 0 ? `(${format(number, 1)})`
        : format(number, 1)}`;
      terms[i].classList.toggle("figure-faint", !value);
    });
    show(total, values[column], 1);
    price();
    tell(row);
  };

  const tell = (row) => {
    const { T, N, d } = sizes[size];
    if (row !== id) {
      said.textContent = id === 0
        ? "Id 0, taken as counted from 1, is row −1: in Python the last row, without any "
          + `error. “<pad>” gets the vector of “${tokens[row]}”.`
        : `Counted from 1, id ${id} reads row ${row}: “${tokens[id]}” gets the vector of `
          + `“${tokens[row]}”, and nothing complains.`;
      return;
    }
    said.textContent = `Both ways give “${tokens[id]}” the same row. The product needs `
      + `${whole(T * N * d)} multiplications, of which ${whole(T * (N - 1) * d)} are by 0; `
      + "the lookup needs none.";
  };

  stage.append(
    element("div", { class: "figure-columns" },
      element("div", {}, made),
      element("div", { class: "figure-stack" },
        choice({ label: "Write out column", options: [0, 1, 2, 3].map((j) => [j, String(j)]),
          value: column, change: (value) => { column = value; update(); } }).element,
        sum,
        choice({ label: "What it costs:",
          options: Object.entries(sizes).map(([name, { text }]) => [name, text]),
          value: size, change: (value) => { size = value; update(); } }).element,
        prices,
        toggle({ label: "A slip: look up as if ids were counted from 1",
          change: (value) => { shifted = value; update(); } }).element)),
    said);
  update();

  const read = (places) => places.map((place) => Number(place.dataset.value));
  return { numbers: () => ({ id, column, table: cells.map(read), oneHot: read(ones),
    product: read(product.values), copied: read(copied.values),
    written: Number(total.dataset.value), size: sizes[size],
    costs: costs.map(([, ...pair]) => read(pair)) }) };
});
