/* Draw a digit, and watch the trained Vision Transformer read it. Without the model there
   are test images that it has read before. */
Figures.define("draw", (stage) => {
  "use strict";
  const { element, shape, drawing, show, format, choice, menu, toggle, button, summary }
    = Figures;
  const { files, mean, std, samples } = Figures.data.draw;
  const SIDE = 8; // pixels; each counts the ink in a field of FIELD x FIELD dots
  const FIELD = 4;
  const DOTS = SIDE * FIELD;
  const PATCH = 4; // pixels
  const PATCHES = (SIDE / PATCH) ** 2;
  const PEN = 2; // half the width of a stroke, in dots
  const NAMES = ["top left", "top right", "bottom left", "bottom right"];

  let model = null;
  let strokes = []; // [[x, y], …], in dots
  let sample = samples[5]; // null: the drawing is shown
  let counts = sample.counts; // 0 … 16 for each pixel
  let seen = sample; // what the model says: probabilities, rollout, needed
  let waiting = null; // a drawing made while the model reads an earlier one

  // From strokes to pixels, as the data set was made ----------------------------------------

  const fitted = () => {
    const all = strokes.flat();
    if (!fit.value || !all.length) return strokes;
    const [left, right] = [0, 1].map((end) => Math[end ? "max" : "min"](
      ...all.map(([x]) => x)));
    const [top, bottom] = [0, 1].map((end) => Math[end ? "max" : "min"](
      ...all.map(([, y]) => y)));
    const reach = Math.max(right - left, bottom - top);
    const factor = reach < 1 ? 1 : (DOTS - 2 * PEN) / reach;
    const place = (value, low, high) => DOTS / 2 + (value - (low + high) / 2) * factor;
    return strokes.map((stroke) => stroke.map(([x, y]) =>
      [place(x, left, right), place(y, top, bottom)]));
  };

  /* Put ink on the dots near a line from a to b. */
  const ink = (dots, [ax, ay], [bx, by]) => {
    const [dx, dy] = [bx - ax, by - ay];
    const length = dx * dx + dy * dy || 1;
    const range = (a, b) => [Math.max(0, Math.floor(Math.min(a, b) - PEN)),
      Math.min(DOTS - 1, Math.ceil(Math.max(a, b) + PEN))];
    const [left, right] = range(ax, bx);
    const [top, bottom] = range(ay, by);
    for (let row = top; row <= bottom; row += 1)
      for (let column = left; column <= right; column += 1) {
        const [x, y] = [column + 0.5, row + 0.5];
        const along = Math.max(0, Math.min(1, ((x - ax) * dx + (y - ay) * dy) / length));
        if (Math.hypot(x - ax - along * dx, y - ay - along * dy) <= PEN)
          dots[row * DOTS + column] = 1;
      }
  };

  const counted = () => {
    const dots = new Uint8Array(DOTS * DOTS);
    for (const stroke of fitted())
      stroke.forEach((point, i) => ink(dots, stroke[Math.max(0, i - 1)], point));
    const pixels = Array(SIDE * SIDE).fill(0);
    dots.forEach((dot, i) => {
      const [row, column] = [Math.floor(i / DOTS), i % DOTS];
      pixels[Math.floor(row / FIELD) * SIDE + Math.floor(column / FIELD)] += dot;
    });
    return pixels;
  };

  // The field to draw in --------------------------------------------------------------------

  const field = shape("svg", { viewBox: `0 0 ${DOTS} ${DOTS}`, "aria-hidden": "true" });
  const lines = shape("path", { fill: "none", stroke: "currentcolor",
    "stroke-width": 2 * PEN, "stroke-linecap": "round", "stroke-linejoin": "round" });
  const pen = shape("circle", { r: 1.6, class: "live-pen", cx: 16, cy: 4 });
  const hint = shape("text", { x: 16, y: 17, "text-anchor": "middle",
    class: "live-pad-hint" });
  hint.textContent = "draw here";
  field.append(hint, lines, pen);
  const pad = element("div", { class: "live-pad", tabindex: 0, role: "application",
    "aria-roledescription": "drawing field",
    "aria-label": "Field to draw a digit in. Arrow keys move the pen, with Shift further; "
      + "the space bar puts it down and lifts it." }, field);
  const penSaid = element("p", { class: "visually-hidden", role: "status" });

  let at = [16, 4];
  let down = false;
  const movePen = (x, y) => {
    at = [x, y].map((value) => Math.max(PEN, Math.min(DOTS - PEN, value)));
    pen.setAttribute("cx", at[0]);
    pen.setAttribute("cy", at[1]);
  };
  const setDown = (next) => {
    down = next;
    pad.classList.toggle("live-pen-down", down);
  };
  const extend = () => { strokes.at(-1).push([...at]); changed(); };
  const begin = () => { sample = null; picker.select.value = ""; strokes.push([]); extend(); };

  const locate = (event) => {
    const box = field.getBoundingClientRect();
    movePen((event.clientX - box.left) / box.width * DOTS,
      (event.clientY - box.top) / box.height * DOTS);
  };
  pad.addEventListener("pointerdown", (event) => {
    if (event.button) return;
    event.preventDefault();
    pad.focus();
    pad.setPointerCapture(event.pointerId);
    setDown(false);
    locate(event);
    begin();
  });
  pad.addEventListener("pointermove", (event) => {
    if (!pad.hasPointerCapture(event.pointerId)) return;
    const all = event.getCoalescedEvents?.() ?? [];
    for (const each of all.length ? all : [event]) {
      locate(each);
      strokes.at(-1).push([...at]);
    }
    changed();
  });
  pad.addEventListener("keydown", (event) => {
    const ways = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1],
      ArrowDown: [0, 1] };
    const way = ways[event.key];
    if (!way && event.key !== " ") return;
    event.preventDefault();
    if (way) {
      const far = event.shiftKey ? 4 : 1;
      movePen(at[0] + way[0] * far, at[1] + way[1] * far);
      if (down) extend();
      return;
    }
    setDown(!down);
    if (down) begin();
    penSaid.textContent = down ? "Pen down" : "Pen up";
  });
  pad.addEventListener("blur", () => setDown(false));

  // What the model sees -------------------------------------------------------------------------

  const picture = drawing({ width: 168, height: 168,
    label: "The image of 8 by 8 pixels that the model reads, cut into four patches" });
  const pixels = counts.map((_, i) => shape("rect", { x: 4 + 20 * (i % SIDE),
    y: 4 + 20 * Math.floor(i / SIDE), width: 20, height: 20 }));
  picture.append(...pixels,
    shape("path", { d: "M4 4H164V164H4ZM84 4V164M4 84H164", fill: "none",
      stroke: "var(--figure-2)", "stroke-width": 1.5 }));
  const corner = (i) => [7 + 80 * (i % 2), 7 + 80 * Math.floor(i / 2)];
  const grounds = NAMES.map((_, i) => shape("rect", { x: corner(i)[0], y: corner(i)[1],
    width: 33, height: 16, rx: 3, class: "live-patch-ground" }));
  const labels = NAMES.map((_, i) => shape("text", { x: corner(i)[0] + 4,
    y: corner(i)[1] + 12, class: "live-patch-share" }));
  picture.append(...grounds, ...labels);

  const { rows: candidates, table: bars } = Live.candidates(10, "The model says");
  candidates.forEach(({ name }, digit) => { name.textContent = digit; });
  bars.classList.add("live-digits");
  const said = summary();
  const notice = element("p", { class: "live-notice", role: "status" });

  const update = () => {
    lines.setAttribute("d", strokes.map((stroke) => stroke.map(([x, y], i) =>
      `${i ? "L" : "M"}${x} ${y}`).join("") + (stroke.length < 2 ? "h.01" : "")).join(""));
    hint.style.display = strokes.length ? "none" : "";
    counts.forEach((count, i) => { pixels[i].style.fill = `color-mix(in srgb, `
      + `var(--figure-ink) ${count * 100 / 16}%, var(--figure-ground))`; });
    const shares = seen?.[shareChoice.value];
    labels.forEach((label, i) => {
      grounds[i].style.display = shares ? "" : "none";
      if (shares) show(label, shares[i]);
      else { label.textContent = ""; delete label.dataset.value; }
    });
    candidates.forEach(({ bar, name, value }, digit) => {
      const probability = seen?.probabilities[digit];
      bar.style.width = `${100 * (probability ?? 0)}%`;
      if (seen) show(value, probability, 3);
      else { value.textContent = "–"; delete value.dataset.value; }
      name.classList.toggle("figure-chosen", Boolean(seen) && digit === answer());
    });
    said.textContent = words();
  };

  const answer = () => seen.probabilities.indexOf(Math.max(...seen.probabilities));
  const words = () => {
    if (!seen) return model ? "Reading …" : "Load the model to have your drawing read.";
    const sure = `${answer()}, with a probability of `
      + format(seen.probabilities[answer()], 3);
    if (sample) return sample.truth === answer() ? `It reads ${sure}, and that is right.`
      : `It reads ${sure}. Whoever labelled the image says ${sample.truth}.`;
    if (counts.every((count) => count === 0)) return "The field is empty, and still it "
      + `must answer: ${sure}. There is no class for nothing.`;
    const most = seen.needed.indexOf(Math.max(...seen.needed));
    return `It reads ${sure}. Without the patch ${NAMES[most]} that would fall most, by `
      + `${format(seen.needed[most])}.`;
  };

  // Reading ---------------------------------------------------------------------------------------

  /* Attention through all layers: the mean of the rows of the product. */
  const rollout = (flat, [layers, heads, length]) => {
    let product = Array.from({ length }, (_, i) =>
      Array.from({ length }, (__, j) => Number(i === j)));
    for (let layer = 0; layer < layers; layer += 1) {
      const mixed = Array.from({ length }, (_, i) => Array.from({ length }, (__, j) => {
        let sum = 0;
        for (let head = 0; head < heads; head += 1)
          sum += flat[((layer * heads + head) * length + i) * length + j];
        return 0.5 * sum / heads + 0.5 * Number(i === j);
      }));
      product = Mathematics.multiply(mixed, product);
    }
    return product[0].map((_, j) =>
      product.reduce((sum, row) => sum + row[j], 0) / length);
  };

  const read = async () => {
    if (!model) return;
    if (waiting) { waiting = "again"; return; }
    waiting = "this";
    const image = counts.map((count) => (Math.round(count * 255 / 16) / 255 - mean) / std);
    try {
      const made = await model.ask("read",
        { image, shape: [1, SIDE, SIDE], patches: PATCHES });
      const probabilities = Mathematics.softmax(made.logits);
      const best = probabilities.indexOf(Math.max(...probabilities));
      seen = { probabilities, rollout: rollout(made.attention, made.shape),
        needed: made.without.map((logits) =>
          probabilities[best] - Mathematics.softmax(logits)[best]) };
    } catch (error) {
      notice.textContent = `The model failed: ${error.message}`;
    }
    const again = waiting === "again";
    waiting = null;
    if (again) read();
    else update();
  };

  const changed = () => {
    counts = sample ? sample.counts : counted();
    if (!model) seen = sample;
    update();
    read();
  };

  // Controls ------------------------------------------------------------------------------------

  const fit = toggle({ label: "Bring it to size, as the data were", value: true,
    change: changed });
  const shareChoice = choice({ label: "Patches", value: "rollout", change: update,
    options: [["none", "plain"], ["rollout", "rollout"], ["needed", "needed"]] });
  const clear = button({ text: "Clear", press: () => {
    strokes = [];
    sample = null;
    picker.select.value = "";
    changed();
  } });
  const undo = button({ text: "Undo", press: () => {
    strokes.pop();
    if (!sample) changed();
    else update();
  } });
  const picker = menu({ label: "Shown", value: 5,
    options: [["", "your drawing"], ...samples.map(({ truth }, i) =>
      [i, i < 10 ? `test image: ${truth}` : `read wrongly: ${truth}`])],
    change: (place) => {
      sample = place === "" ? null : samples[place];
      if (sample) strokes = [];
      changed();
    } });

  const offer = Live.offer({ files,
    recorded: "The test images of the list were read when this page was made.",
    ready: (loaded) => { model = loaded; pad.focus(); changed(); } });

  stage.append(offer,
    element("div", { class: "figure-columns live-three" },
      element("div", { class: "live-part" }, pad,
        element("div", { class: "figure-buttons" }, clear, undo), fit.element, penSaid),
      element("div", { class: "live-part" }, picture, shareChoice.element),
      bars),
    picker.element, notice, said);
  update();

  return { numbers: () => ({
    loaded: Boolean(model), busy: waiting !== null, seconds: model?.seconds ?? null,
    strokes: strokes.map((stroke) => stroke.length), counts: [...counts],
    probabilities: candidates.map(({ value }) => Number(value.dataset.value)),
    patches: labels.map((label) => Number(label.dataset.value)),
    rollout: seen?.rollout, needed: seen?.needed, summary: said.textContent,
  }) };
});
