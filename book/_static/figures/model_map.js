/* The map of the course: the figure look_inside, in the introduction. What it tells of its
   boxes, and its guided path, stand on the page Look inside. Its scripts come when the map
   comes near: on the page they stand as scripts of a kind that no browser runs. */
Figures.define("model_map", async (stage) => {
  "use strict";
  const come = (written) => new Promise((resolve, reject) => {
    const script = Figures.element("script", { src: written.src, onload: resolve,
      onerror: () => reject(new Error(`the file ${written.src} did not come.`)) });
    script.async = false; // they run in their order
    written.replaceWith(script);
  });
  await Promise.all([...document.querySelectorAll("script[type='text/figure']")].map(come));
  return Figures.draw("look_inside", stage, { elsewhere: "look_inside.html" });
});
