/* Trained models in the page. Nothing is loaded before load() is called.

     const model = await Live.load(files);     // facts() of tools/live_models.py
     await model.ask("translate", { ids }, (step) => { … });

   What is loaded are scripts that call Live.receive: a page opened from a disk may load
   nothing else. The model runs in a worker (tools/live_worker.js), beside the page. */
const Live = (() => {
  "use strict";

  const base = new URL(".", document.currentScript.src);
  const waiting = {}; // name -> what is done with its content

  const NEEDED = {
    WebAssembly: "WebAssembly",
    Worker: "background scripts (Worker)",
    DecompressionStream: "decompression (DecompressionStream)",
  };

  /* What this browser lacks, in words; an empty text if nothing. */
  const lacks = () => Object.keys(NEEDED).filter((name) => !window[name])
    .map((name) => NEEDED[name]).join(" and ");

  /* How much travels, as a server compresses it. */
  const megabytes = (files) =>
    (files.reduce((sum, file) => sum + file.bytes, 0) / 1e6).toFixed(1);

  const receive = (name, ...content) => waiting[name]?.(content);

  /* Load one script; the page keeps no copy of what it brings. */
  const fetched = ({ name, version }) => new Promise((resolve, reject) => {
    const script = document.createElement("script");
    const settle = (how, value) => {
      delete waiting[name];
      script.remove();
      how(value);
    };
    waiting[name] = (content) => settle(resolve, content);
    script.onerror = () => settle(reject, new Error(`The file ${name}.js did not come.`));
    script.src = new URL(`${name}.js?v=${version}`, base);
    document.head.append(script);
  });

  /* The first of the files is the runtime, the second a model. */
  const load = async (files) => {
    const [[runtime, source], [content]] = await Promise.all(files.map(fetched));
    const address = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
    const worker = new Worker(address);
    const asked = new Map(); // number -> { resolve, reject, step }
    let count = 0;
    const ask = (call, given, step = null) => new Promise((resolve, reject) => {
      count += 1;
      asked.set(count, { resolve, reject, step });
      worker.postMessage({ request: count, call, given });
    });
    worker.onmessage = ({ data }) => {
      const { resolve, reject, step } = asked.get(data.request);
      if (data.step) return step(data.step);
      asked.delete(data.request);
      if ("error" in data) reject(new Error(data.error));
      else resolve(data.result);
    };
    worker.onerror = (event) => {
      event.preventDefault();
      const error = new Error(event.message || "The model's worker did not start.");
      for (const { reject } of asked.values()) reject(error);
      asked.clear();
    };
    try {
      const about = await ask("begin", { runtime, model: content });
      return { about, ask, stop: () => ask("stop") };
    } catch (error) {
      worker.terminate();
      throw error;
    } finally {
      URL.revokeObjectURL(address);
    }
  };

  /* The part of a figure that offers to load a model: `recorded` says what can be seen
     without it, ready(model) is called once it is there. */
  const offer = ({ files, recorded, ready }) => {
    const { element, button } = Figures;
    const missing = lacks();
    const said = element("p", { role: "status" });
    const [library, model] = files.map((file) => megabytes([file]));
    const about = element("p", { class: "live-small" },
      `The library that runs it (${library} MB) and the trained model (${model} MB) come `
      + "from this site. Nothing that you enter leaves your computer. ",
      element("a", { href: new URL("onnxruntime.txt", base) }, "ONNX Runtime Web, licence"));
    const begin = async () => {
      start.disabled = true;
      said.textContent = "Loading …";
      try {
        const began = performance.now();
        const loaded = await load(files);
        made.closest(".moving-figure-stage").style.minHeight = "0"; // the room it had
        made.remove();
        ready({ ...loaded, seconds: (performance.now() - began) / 1000 });
      } catch (error) {
        start.disabled = false;
        said.textContent = `The model could not be loaded: ${error.message} ${recorded}`;
      }
    };
    const start = button({ text: `Load the model, ${megabytes(files)} MB`, press: begin });
    start.classList.add("live-main-button");
    const made = element("div", { class: "live-offer" },
      missing ? [] : [start, about], said);
    if (missing)
      said.textContent = `This browser lacks ${missing}: the model cannot run here. `
        + recorded;
    return made;
  };

  /* A table of what the model thinks possible, each with its probability as a number and
     a bar; the figure fills the parts of its `rows`. */
  const candidates = (count, caption) => {
    const { element } = Figures;
    const rows = Array.from({ length: count }, () => {
      const name = element("th", { scope: "row" });
      const bar = element("span", { class: "live-bar" });
      const value = element("td");
      return { name, bar, value, row: element("tr", {}, name,
        element("td", { class: "live-bar-cell" }, bar), value) };
    });
    const table = element("table", { class: "live-bars" },
      element("caption", {}, caption), element("tbody", {}, rows.map(({ row }) => row)));
    return { rows, table };
  };

  return { lacks, receive, load, offer, candidates };
})();
