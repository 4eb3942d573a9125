/* What the moving figures share: making elements, controls that work by keyboard and by
   touch, numbers that tests can read back. A figure's script calls

     Figures.define("name", (stage) => { …; return { numbers: () => ({ … }) }; });

   and is called with the element to draw in. It may be on a page more than once. */
const Figures = (() => {
  "use strict";

  const builders = {};
  const data = {}; // filled by data/NAME.js
  let identifiers = 0;

  const identifier = () => `figure-part-${(identifiers += 1)}`;

  /* Whether the reader asked for less motion: then nothing slides, it jumps. */
  const still = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

  // Elements --------------------------------------------------------------------------

  const fill = (made, attributes, children) => {
    for (const [name, value] of Object.entries(attributes)) {
      if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
      else if (value !== false && value !== null && value !== undefined)
        made.setAttribute(name, value === true ? "" : value);
    }
    made.append(...children.flat());
    return made;
  };

  /* An HTML element: element("button", { class: "x", onclick: f }, "text", child). */
  const element = (tag, attributes = {}, ...children) =>
    fill(document.createElement(tag), attributes, children);

  /* The same for SVG. */
  const shape = (tag, attributes = {}, ...children) =>
    fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);

  /* An <svg> that grows with the page; label says what it shows. A drawing with handles
     in it is a group, since what is in an image cannot be reached. */
  const drawing = ({ width, height, label, group = false }) =>
    shape("svg", {
      viewBox: `0 0 ${width} ${height}`,
      role: group ? "group" : "img",
      "aria-label": label,
      class: "figure-drawing",
    });

  // Numbers ---------------------------------------------------------------------------

  /* A number for people: a true minus sign, and no "−0.00". */
  const format = (value, digits = 2) => {
    if (Number.isNaN(value)) return "NaN";
    if (!Number.isFinite(value)) return value < 0 ? "−∞" : "∞";
    const text = Math.abs(value).toFixed(digits);
    return (value < 0 && Number(text) !== 0 ? "−" : "") + text;
  };

  /* Show a number, and keep all its digits for whoever reads it back. */
  const show = (place, value, digits = 2) => {
    place.textContent = format(value, digits);
    place.dataset.value = value;
  };

  /* A colour for a value between -limit and limit: blue below 0, sand above. */
  const heat = (value, limit = 1) => {
    if (!Number.isFinite(value)) return "transparent"; // what a mask has taken out
    const share = Math.round(Math.min(1, Math.abs(value) / limit) * 100) || 0;
    const end = value < 0 ? "--figure-cold" : "--figure-warm";
    return `color-mix(in srgb, var(${end}) ${share}%, var(--figure-ground))`;
  };

  /* A colour for a weight of attention, between 0 and 1: purple, as in all plots. */
  const share = (weight) => `color-mix(in srgb, var(--figure-weight) `
    + `${Math.round(weight * 100)}%, var(--figure-ground))`;

  /* What the figures' colours are now, in a canvas's terms: name -> [red, green, blue]. */
  const colours = (stage, names) => {
    const probe = element("span");
    stage.append(probe);
    const found = Object.fromEntries(names.map((name) => {
      probe.style.color = `var(--figure-${name})`;
      return [name, getComputedStyle(probe).color.match(/[\d.]+/g).slice(0, 3).map(Number)];
    }));
    probe.remove();
    return found;
  };

  /* A table of numbers, coloured; update(values) changes them. `header` and `side` name
     columns and rows. */
  const matrix = ({ label, header, side, values, limit = 1, digits = 2, mark = null,
    color = (value) => heat(value, limit) }) => {
    const cells = values.map((row) => row.map(() => element("td")));
    const head = header && element("tr", {}, side ? element("td") : [],
      header.map((text) => element("th", { scope: "col" }, text)));
    const body = cells.map((row, i) =>
      element("tr", {}, side ? element("th", { scope: "row" }, side[i]) : [], row));
    const made = element("table", { class: "figure-matrix" },
      element("caption", {}, label), head ? element("thead", {}, head) : [],
      element("tbody", {}, body));
    const update = (next) => next.forEach((row, i) => row.forEach((value, j) => {
      show(cells[i][j], value, digits);
      cells[i][j].style.setProperty("--heat", color(value));
      if (mark) cells[i][j].classList.toggle("figure-marked", mark(i, j, value));
    }));
    update(values);
    return { element: made, cells, update };
  };

  // Controls: native ones wherever there are --------------------------------------------

  const slider = ({ label, minimum, maximum, step = 1, value, text = String, change }) => {
    const id = identifier();
    const output = element("output", { for: id }, text(value));
    const input = element("input", {
      id, type: "range", min: minimum, max: maximum, step, value,
      "aria-valuetext": text(value),
    });
    const set = (next) => {
      input.value = next;
      output.textContent = text(Number(input.value));
      input.setAttribute("aria-valuetext", output.textContent);
    };
    input.addEventListener("input", () => {
      set(input.value);
      change(Number(input.value));
    });
    const made = element("div", { class: "figure-slider" },
      element("label", { for: id }, label), input, output);
    return { element: made, input, set, get value() { return Number(input.value); } };
  };

  /* One of a few: options are [value, text] pairs. */
  const choice = ({ label, options, value, change }) => {
    const name = identifier();
    const inputs = new Map();
    const made = element("fieldset", { class: "figure-choice" },
      element("legend", {}, label),
      options.map(([option, text]) => {
        const input = element("input", {
          type: "radio", name, value: option, onchange: () => change(option),
        });
        inputs.set(option, input);
        return element("label", {}, input, element("span", {}, text));
      }));
    const set = (option) => { inputs.get(option).checked = true; };
    set(value);
    const chosen = () => [...inputs].find(([, input]) => input.checked)[0];
    return { element: made, set, get value() { return chosen(); } };
  };

  /* One of many, or of long ones: a native menu. Options as for choice. */
  const menu = ({ label, options, value, change }) => {
    const id = identifier();
    const select = element("select", { id, onchange: () => change(select.value) },
      options.map(([option, text]) => element("option", { value: option }, text)));
    select.value = value;
    const made = element("div", { class: "figure-menu" },
      element("label", { for: id }, label), select);
    return { element: made, select, get value() { return select.value; } };
  };

  const toggle = ({ label, value = false, change }) => {
    const input = element("input", {
      type: "checkbox", onchange: () => change(input.checked),
    });
    input.checked = value;
    const made = element("label", { class: "figure-toggle" }, input,
      element("span", {}, label));
    return { element: made, input, get value() { return input.checked; } };
  };

  const button = ({ text, press, label = null }) =>
    element("button", { type: "button", class: "figure-button", onclick: press,
      "aria-label": label }, text);

  /* Steps 0 … steps, by slider, by buttons, or by themselves until somebody stops them. */
  const player = ({ label, steps, step = 0, interval = 900, text = String, change }) => {
    let timer = null;
    const go = (next) => {
      bar.set(Math.max(0, Math.min(Number(bar.input.max), next)));
      refresh();
      change(bar.value);
    };
    const stop = () => {
      clearInterval(timer);
      timer = null;
      play.textContent = "Play";
    };
    const run = () => {
      if (timer) return stop();
      if (bar.value >= Number(bar.input.max)) go(0);
      play.textContent = "Pause";
      timer = setInterval(() => {
        go(bar.value + 1);
        if (bar.value >= Number(bar.input.max)) stop();
      }, interval);
    };
    const bar = slider({ label, minimum: 0, maximum: steps, value: step, text,
      change: (value) => { stop(); refresh(); change(value); } });
    const back = button({ text: "Back", press: () => { stop(); go(bar.value - 1); } });
    const next = button({ text: "Next", press: () => { stop(); go(bar.value + 1); } });
    const play = button({ text: "Play", press: run });
    const refresh = () => {
      back.disabled = bar.value <= 0;
      next.disabled = bar.value >= Number(bar.input.max);
    };
    /* A new sequence: so many steps, from the first. */
    const restart = (count) => { stop(); bar.input.max = count; go(0); };
    refresh();
    const made = element("div", { class: "figure-player" }, bar.element,
      element("div", { class: "figure-buttons" }, back, play, next));
    return { element: made, go, restart, stop, get value() { return bar.value; } };
  };

  /* A point to drag in a drawing, with the pointer or the arrow keys (Shift: ten times as
     far). move(x, y) is given a place in the drawing's units, within bounds
     [left, top, right, bottom], and answers with the text that is read out. */
  const handle = ({ svg, label, x, y, step = 4, bounds, move, className = "" }) => {
    const point = shape("g", {
      tabindex: 0, role: "slider", "aria-label": label, "aria-valuenow": 0,
      "aria-roledescription": "point in the plane", class: `figure-handle ${className}`,
    }, shape("circle", { r: 22, class: "figure-handle-reach" }),
    shape("circle", { r: 8, class: "figure-handle-dot" }));
    const [left, top, right, bottom] = bounds;
    const place = (nextX, nextY) => {
      x = Math.max(left, Math.min(right, nextX));
      y = Math.max(top, Math.min(bottom, nextY));
      point.setAttribute("transform", `translate(${x} ${y})`);
    };
    const to = (nextX, nextY) => {
      place(nextX, nextY);
      point.setAttribute("aria-valuetext", move(x, y));
    };
    point.addEventListener("pointerdown", (event) => {
      event.preventDefault();
      point.focus();
      point.setPointerCapture(event.pointerId);
    });
    point.addEventListener("pointermove", (event) => {
      if (!point.hasPointerCapture(event.pointerId)) return;
      const at = new DOMPoint(event.clientX, event.clientY)
        .matrixTransform(svg.getScreenCTM().inverse());
      to(at.x, at.y);
    });
    point.addEventListener("keydown", (event) => {
      const ways = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1],
        ArrowDown: [0, 1] };
      const way = ways[event.key];
      if (!way) return;
      event.preventDefault();
      const far = step * (event.shiftKey ? 10 : 1);
      to(x + way[0] * far, y + way[1] * far);
    });
    place(x, y);
    svg.append(point);
    return { element: point, place, say: (words) =>
      point.setAttribute("aria-valuetext", words) };
  };

  /* A sentence below the figure that says what has changed, for everybody. */
  const summary = () => element("p", { class: "figure-summary", "aria-live": "polite" });

  // Starting ----------------------------------------------------------------------------

  const define = (name, build) => { builders[name] = build; };

  /* Draw a figure that stands on another's page under another name. */
  const draw = (name, stage, options) => builders[name](stage, options);

  /* What builds a figure gives what it is, or a promise, where scripts have to come first. */
  const build = (figure) => {
    if (figure.begun) return;
    figure.begun = true;
    const stage = figure.querySelector(".moving-figure-stage");
    stage.replaceChildren();
    const ready = (made) => {
      figure.figure = made;
      figure.dataset.state = "ready";
    };
    const failed = (error) => {
      figure.dataset.state = "failed";
      stage.replaceChildren(element("p", {}, "This figure could not be drawn: "
        + error.message));
      console.error(error);
    };
    try {
      const made = builders[figure.dataset.figure](stage);
      if (made instanceof Promise) made.then(ready).catch(failed);
      else ready(made);
    } catch (error) { failed(error); }
  };

  /* A figure is drawn when it comes near what is seen, or is printed. */
  const start = () => {
    const figures = [...document.querySelectorAll("figure[data-figure]")];
    const watch = new IntersectionObserver((changes) => {
      for (const { isIntersecting, target } of changes) {
        if (!isIntersecting) continue;
        watch.unobserve(target);
        build(target);
      }
    }, { rootMargin: "100% 0px" });
    for (const figure of figures) watch.observe(figure);
    addEventListener("beforeprint", () => figures.forEach(build));
  };
  // Deferred scripts run in their order, before this event: all figures are defined then.
  document.addEventListener("DOMContentLoaded", start);

  return { data, define, draw, element, shape, drawing, format, show, heat, share, colours, matrix,
    slider, choice, menu, toggle, button, player, handle, summary, still };
})();
