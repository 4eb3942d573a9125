/* Numbers in a sentence: a slider for the one to choose, and the others follow. */
(() => {
  "use strict";
  for (const holder of document.querySelectorAll(".numbers-table")) {
    const { name, start, columns } = JSON.parse(holder.dataset.table);
    const places = (kind) => [...document.querySelectorAll(`.${kind}`)]
      .filter(({ dataset: { numbers } }) => numbers.startsWith(`${name}.`))
      .map((place) => [place, columns[place.dataset.numbers.split(".")[1]]]);
    const sliders = [];

    const set = (at) => {
      for (const [place, values] of places("moved")) place.value = values[at];
      for (const [input, value, values] of sliders) {
        input.value = at;
        value.textContent = values[at];
        input.setAttribute("aria-valuetext", values[at]);
      }
    };

    for (const [place, values] of places("move")) {
      const input = document.createElement("input");
      Object.assign(input, { type: "range", min: 0, max: values.length - 1, step: 1 });
      input.setAttribute("aria-label", place.dataset.numbers.split(".")[1].replaceAll("_", " "));
      input.addEventListener("input", () => set(Number(input.value)));
      sliders.push([input, place.querySelector(".move-value"), values]);
      place.append(input);
    }
    set(start);
  }
})();
