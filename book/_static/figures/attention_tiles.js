/* Attention in tiles: a query meets the keys tile by tile and keeps a maximum, a sum and an
   output; beside it the softmax over its whole row. */
Figures.define("attention_tiles", (stage) => {
  "use strict";
  const { element, shape, drawing, slider, choice, toggle, player, format, heat, show,
    summary } = Figures;
  const T = 16, LONG = 100_000, LARGE = 10_000;
  const NOTHING = { maximum: -Infinity, total: 0, output: [0] };
  // Two numbers for each query and key, one for each value: by a rule, of no model. Keys
  // become longer, so that a later one often has a larger score.
  const POSITIONS = Array.from({ length: T }, (_, i) => i);
  const vector = (length, angle) => [length * Math.cos(angle), length * Math.sin(angle)];
  const q = POSITIONS.map((i) => vector(2, 0.8 * i + 0.3));
  const k = POSITIONS.map((j) => vector(0.8 + j / 14, 1.9 * j));
  const v = [4, 8, 3, 6, 1, 7, 9, 2, 5, 3, 8, 1, 6, 9, 2, 7].map((value) => [value]);

  let [together, block, times, causal, query, step] = ["one", 4, 1, false, 9, 2];
  let whole; // attention at once, with all that it computes on its way
  let runs; // for each query what is kept after 0, 1, 2, … tiles

  // Which queries and keys ---------------------------------------------------------------

  const span = (first, count) => POSITIONS.slice(first, first + count);
  const asking = () => ({ one: [query], all: POSITIONS,
    tile: span(query - (query % block), block) })[together];
  const keysOf = (tile) => span(tile * block, block);
  /* Tiles of keys that one of the queries sees; those after them are skipped. */
  const met = () => Math.floor((causal ? asking().at(-1) : T - 1) / block) + 1;
  const named = (keys) => (keys.length === 1 ? `key ${keys[0]}`
    : `keys ${keys[0]} to ${keys.at(-1)}`);

  const compute = () => {
    const mask = causal && POSITIONS.map((i) => POSITIONS.map((j) => j <= i));
    whole = Mathematics.attention(q, k, v, mask, Math.SQRT2 / times);
    runs = whole.masked.map((scores) => {
      const states = [NOTHING];
      for (let tile = 0; tile < T / block; tile += 1) {
        const keys = keysOf(tile);
        states.push(Mathematics.onlineStep(states[tile], keys.map((j) => scores[j]),
          keys.map((j) => v[j])));
      }
      return states;
    });
  };

  /* The same sums of the keys met so far, with no maximum taken off. */
  const plain = () => {
    const powers = whole.masked[query].slice(0, step * block).map(Math.exp);
    const sum = (terms) => terms.reduce((total, term) => total + term, 0);
    return [sum(powers), sum(powers.map((power, j) => power * v[j][0]))];
  };

  // Numbers for people -------------------------------------------------------------------

  const grouped = (value) => format(value, 0).replace(/\B(?=(\d{3})+$)/g, "\u202f");
  const scoreText = (value) => (times === 1 ? format(value, 3) : grouped(value));
  const put = (place, value, text) => {
    place.textContent = text;
    place.dataset.value = value;
  };
  const putScore = (place, value) => put(place, value, scoreText(value));
  const clear = (place) => put(place, NaN, "–");

  // The map of all pairs -----------------------------------------------------------------

  const CELL = 14, LEFT = 20, TOP = 18, SIDE = CELL * T, RIGHT = LEFT + SIDE;
  const x = (j) => LEFT + CELL * j, y = (i) => TOP + CELL * i;
  const word = (content, left, top, anchor = "end") => {
    const made = shape("text", { x: left, y: top, "text-anchor": anchor });
    made.textContent = content;
    return made;
  };
  const map = drawing({ width: 320, height: TOP + SIDE + 4, label: "" });
  const cells = POSITIONS.map((i) => POSITIONS.map((j) =>
    shape("rect", { x: x(j), y: y(i), width: CELL, height: CELL })));
  const columns = POSITIONS.map((j) => word(j, x(j + 0.5), TOP - 5, "middle"));
  const lines = POSITIONS.map((i) => {
    const base = y(i) + 11;
    const made = { name: word(i, LEFT - 5, base), now: word("", RIGHT + 34, base),
      sign: word("", RIGHT + 43, base, "middle"), end: word("", 319, base) };
    map.append(...Object.values(made));
    return made;
  });
  const hidden = shape("path", { class: "tiles-hidden" });
  const skipped = shape("path", { class: "tiles-skipped" });
  const frame = shape("rect", { class: "tiles-frame", height: CELL });
  map.append(...cells.flat(), ...columns, hidden, skipped, frame,
    word("o / l", RIGHT + 22, TOP - 5, "middle"), word("softmax", 319, TOP - 5));
  map.style.cursor = "pointer";
  map.addEventListener("click", ({ clientX, clientY }) => {
    const place = new DOMPoint(clientX, clientY)
      .matrixTransform(map.getScreenCTM().inverse());
    const within = (value) => Math.max(0, Math.min(T - 1, Math.floor(value)));
    query = within((place.y - TOP) / CELL);
    step = Math.floor(within((place.x - LEFT) / CELL) / block) + 1;
    queries.set(query);
    restart();
  });

  const paint = (rows) => {
    const count = met();
    cells.forEach((line, i) => line.forEach((cell, j) => {
      const tile = Math.floor(j / block), plays = rows.includes(i);
      const held = plays && tile === step - 1;
      cell.setAttribute("class", held ? "tiles-held" : plays && tile < step - 1
        ? "tiles-met" : plays && tile < count ? "tiles-later" : "tiles-idle");
      cell.style.fill = held ? heat(whole.masked[i][j], 2.6 * times) : "";
    }));
    hidden.setAttribute("d", rows.flatMap((i) => POSITIONS
      .filter((j) => causal && j > i && j < count * block)
      .map((j) => `M${x(j + 0.5)} ${y(i + 0.5)}h0`)).join(""));
    const [top, bottom] = [y(rows[0]), y(rows.at(-1) + 1)];
    skipped.setAttribute("d", POSITIONS.filter((j) => j % block === 0 && j >= count * block)
      .map((j) => `M${x(j)} ${top}L${x(j + block)} ${bottom}`
        + `M${x(j)} ${bottom}L${x(j + block)} ${top}`).join(""));
    for (const [name, value] of Object.entries({ x: x((step - 1) * block), y: y(query),
      width: CELL * block, visibility: step ? "visible" : "hidden" }))
      frame.setAttribute(name, value);
    columns.forEach((text, j) => { text.style.display = j % block ? "none" : ""; });
    compare(rows);
    map.setAttribute("aria-label", `All pairs of ${T} queries and ${T} keys. Held: `
      + `${rows.length} × ${step ? block : 0} scores.`);
  };

  /* Beside each query its output so far, and that of its whole row. */
  const compare = (rows) => lines.forEach(({ name, now, sign, end }, i) => {
    const { total, output } = runs[i][step], plays = rows.includes(i) && step > 0;
    const value = output[0] / total, [last] = whole.output[i];
    name.setAttribute("class", i === query ? "tiles-chosen" : "");
    put(now, plays ? value : NaN, plays ? format(value) : "");
    sign.textContent = plays ? equals(value, last) : "";
    show(end, last);
    end.setAttribute("class", rows.includes(i) ? "" : "tiles-quiet");
  });
  const equals = (value, other) => (Math.abs(value - other) < 1e-9 ? "=" : "≠");

  // Tables -------------------------------------------------------------------------------

  const table = (caption, header, body, className = "") => {
    const title = element("caption", {}, caption);
    // What stands above the names of rows is no heading.
    const heads = header.map((text, i) => (i ? element("th", { scope: "col" }, text)
      : element("td")));
    return { title, heads, element: element("table", {
      class: `figure-matrix tiles-table ${className}` }, title,
    element("thead", {}, element("tr", {}, heads)), element("tbody", {}, body)) };
  };
  const line = (name, count) => {
    const places = Array.from({ length: count }, () => element("td"));
    return { places, row: element("tr", {}, element("th", { scope: "row" }, name), places) };
  };

  const tileBody = table("", ["", "score s", "exp(s − m)", "value"], []);
  const kept = { m: line("m", 4), l: line("l", 4), o: line("o", 4) };
  const ledger = table("", ["", "before", "", "tile", "after"],
    Object.values(kept).map(({ row }) => row));
  const ways = { running: line("with m", 3), plain: line("without m", 3) };
  const atOnce = element("td");
  const outputs = table("", ["", "l", "o", "o / l"],
    [...Object.values(ways).map(({ row }) => row), element("tr", {},
      element("th", { scope: "row", colspan: 3 }, "softmax of the whole row"), atOnce)]);
  const counts = { scores: line("scores of a tile", 2), kept: line("m, l and o", 2),
    pairs: line("scores of all pairs", 2) };
  const held = table("Numbers held at once", ["", `T = ${T}`, `T = ${grouped(LONG)}`],
    Object.values(counts).map(({ row }) => row), "figure-facts");

  const fillTile = () => {
    const keys = keysOf(Math.max(0, step - 1)), { powers } = runs[query][step];
    const scores = keys.map((j) => whole.masked[query][j]);
    tileBody.title.textContent = step ? `The tile: ${named(keys)}` : "No tile yet";
    tileBody.element.tBodies[0].replaceChildren(...keys.map((j, i) => {
      const { places, row } = line(step ? `key ${j}` : "–", 3);
      if (!step) places.forEach(clear);
      else {
        putScore(places[0], scores[i]);
        places[0].style.setProperty("--heat", heat(scores[i], 2.6 * times));
        places[0].classList.toggle("figure-marked", scores[i] === runs[query][step].maximum);
        show(places[1], powers[i], 3);
        show(places[2], v[j][0], 0);
      }
      return row;
    }));
  };

  const fillLedger = () => {
    const { m, l, o } = kept, now = runs[query][step];
    ledger.title.textContent = `What query ${query} keeps`;
    ledger.heads[2].textContent = step ? `× ${format(now.factor, 3)}` : "× factor";
    if (!step) {
      [m, l, o].forEach(({ places }) => places.slice(0, 3).forEach(clear));
    } else {
      const before = runs[query][step - 1];
      putScore(m.places[0], before.maximum);
      put(m.places[1], NaN, "");
      putScore(m.places[2], Math.max(...keysOf(step - 1).map((j) => whole.masked[query][j])));
      [[l, before.total, now.total], [o, before.output[0], now.output[0]]]
        .forEach(([{ places }, old, sum]) => {
          show(places[0], old, 3);
          show(places[1], old * now.factor, 3);
          show(places[2], sum - old * now.factor, 3);
          places[2].prepend("+ ");
        });
    }
    putScore(m.places[3], now.maximum);
    show(l.places[3], now.total, 3);
    show(o.places[3], now.output[0], 3);
  };

  const fillOutputs = () => {
    const { total, output } = runs[query][step], [end] = whole.output[query];
    outputs.title.textContent = `The output of query ${query}`;
    for (const [{ places }, sums] of [[ways.running, [total, output[0]]],
      [ways.plain, plain()]]) {
      [...sums, sums[1] / sums[0]].forEach((value, i) => show(places[i], value, 3));
      places[2].classList.toggle("figure-wrong", step > 0 && Number.isNaN(sums[1] / sums[0]));
      if (!step) clear(places[2]);
    }
    show(atOnce, end, 3);
    if (step) atOnce.prepend(`${equals(output[0] / total, end)} `);
    warning.textContent = warn();
  };

  /* What becomes of the sums without a maximum. */
  const warn = () => {
    const [total, output] = plain();
    if (!step || !Number.isNaN(output / total)) return "";
    const largest = scoreText(Math.max(...whole.masked[query].slice(0, step * block)));
    return total ? `Without m: exp(${largest}) is too large for a computer's number, it `
      + "becomes ∞, and ∞ / ∞ is NaN." : `Without m: exp(${largest}) and all others are 0, and 0 / 0 is NaN.`;
  };

  const fillCounts = (rows) => {
    const many = together === "all" ? LONG : rows.length;
    const columnsOf = { scores: [rows.length * block, many * block],
      kept: [3 * rows.length, 3 * many], pairs: [T * T, LONG * LONG] };
    for (const [name, values] of Object.entries(columnsOf))
      values.forEach((value, i) => put(counts[name].places[i], value, grouped(value)));
    counts.scores.places[0].prepend(`${rows.length} × ${block} = `);
    counts.pairs.places[0].prepend(`${T} × ${T} = `);
    counts.pairs.places[1].textContent = "10¹⁰";
  };

  // What happens, in words -----------------------------------------------------------------

  const sentence = () => {
    if (!step) return "No key has been met: m is −∞, l and o are 0. Press Next.";
    const keys = keysOf(step - 1);
    return `Query ${query} meets ${named(keys)}. ${change(keys)}${step === met()
      ? " No tile is left: o / l equals the softmax of the whole row." : ""}`;
  };
  const change = (keys) => {
    const before = runs[query][step - 1].maximum, now = runs[query][step];
    const [old, largest] = [before, now.maximum].map(scoreText);
    if (causal && keys[0] > query)
      return "It may see none of them, and nothing changes; later queries do.";
    if (step === 1) return `The largest score is m = ${largest}; from it l and o are measured.`;
    if (now.maximum === before)
      return `No score is above m = ${old}: the factor is exp(0) = 1, the tile is added.`;
    return `The score ${largest} is above m = ${old}: the sums are multiplied by `
      + `exp(${old} − ${largest}) = ${format(now.factor, 3)}, then the tile is added.`;
  };
  /* What is not computed, and what is computed in vain. */
  const skipping = () => {
    if (!causal) return "";
    const first = met() * block, dots = "Dots: later keys, hidden. ";
    if (first < T) return `${dots}Crossed out: ${named(span(first, T))}, in the future of `
      + `${together === "one" ? "the query" : "all these queries"}, are skipped.`;
    return `${dots}No tile is skipped: the last query sees a key of each. `
      + `${together === "all" ? "So queries are cut into tiles, too." : ""}`;
  };

  // The page's parts ------------------------------------------------------------------------

  const update = () => {
    const rows = asking();
    paint(rows);
    fillTile();
    fillLedger();
    fillOutputs();
    fillCounts(rows);
    skips.textContent = skipping();
    said.textContent = sentence();
  };
  const restart = () => {
    const wanted = Math.min(step, met());
    compute();
    steps.restart(met());
    steps.go(wanted);
  };

  const queries = slider({ label: "Query", minimum: 0, maximum: T - 1, value: query,
    change: (value) => { query = value; restart(); } });
  const steps = player({ label: "Tiles met", steps: met(), step, interval: 1600,
    text: (value) => `${value} of ${met()}`,
    change: (value) => { step = value; update(); } });
  const said = summary();
  said.classList.add("tiles-said");
  const skips = element("p", { class: "tiles-note" });
  const warning = element("p", { class: "tiles-note" });
  const swatch = (name, text) => [element("span", { class: name }), text];

  stage.append(
    element("div", { class: "figure-controls" },
      choice({ label: "Queries at once", value: together,
        options: [["one", "one"], ["tile", "a tile"], ["all", `all ${T}`]],
        change: (value) => { together = value; restart(); } }).element,
      choice({ label: "Size of a tile", value: block,
        options: [1, 2, 4, 8].map((size) => [size, String(size)]),
        change: (value) => {
          step = Math.ceil((step * block) / value);
          block = value;
          restart();
        } }).element,
      choice({ label: "Scores times", value: times,
        options: [[1, "1"], [LARGE, grouped(LARGE)]],
        change: (value) => { times = value; restart(); } }).element,
      toggle({ label: "causal", value: causal,
        change: (value) => { causal = value; restart(); } }).element),
    element("div", { class: "figure-columns" }, queries.element, steps.element),
    said,
    element("div", { class: "tiles-parts" },
      element("div", { class: "figure-stack" },
        element("p", { class: "figure-heading" }, "Queries, in rows, meet keys, in columns"),
        map,
        element("p", { class: "tiles-key" }, swatch("tiles-key-held", "held"),
          swatch("tiles-key-met", "met, forgotten"), swatch("tiles-key-later", "to come")),
        skips),
      element("div", { class: "figure-stack tiles-numbers" },
        tileBody.element, ledger.element, outputs.element, warning),
      element("div", {}, held.element)));
  restart();

  const read = (places) => places.map(({ dataset }) => Number(dataset.value));
  const readAll = (named) => Object.fromEntries(Object.entries(named)
    .map(([name, { places }]) => [name, read(places)]));
  return { numbers: () => ({ together, block, times, causal, query, step, q, k, v,
    tiles: met(), ledger: readAll(kept), factor: runs[query][step].factor ?? null,
    ways: readAll(ways), atOnce: Number(atOnce.dataset.value), counts: readAll(counts),
    tile: [...tileBody.element.tBodies[0].rows].map((row) => read([...row.cells].slice(1))),
    outputs: read(lines.map(({ now }) => now)), ends: read(lines.map(({ end }) => end)) }) };
});
