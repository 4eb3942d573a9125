/* The map of the course: the figure look_inside, in the introduction. What it tells of its
   boxes, and its guided path, stand on the page Look inside. */
Figures.define("model_map", (stage) =>
  Figures.draw("look_inside", stage, { elsewhere: "look_inside.html" }));
