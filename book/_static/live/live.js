/* Trained models in the page. Nothing is loaded before load() is called.

     const model = await Live.load(files);     // facts() of tools/site/live_models.py
     await model.ask("translate", { ids }, (step) => { … });

   What is loaded are scripts that call Live.receive: a page opened from a disk may load
   nothing else. The model runs in a worker (tools/site/live_worker.js), beside the page. */
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

  /* A server's file, counted while it comes; the address under which the page has it. */
  const counted = async ({ length, bytes }, address, come) => {
    const response = await fetch(address);
    if (!response.ok) throw new Error(response.statusText);
    const parts = [];
    const reader = response.body.getReader();
    let read = 0;
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      parts.push(value);
      read += value.length;
      come(Math.min(1, read / length) * bytes);
    }
    return URL.createObjectURL(new Blob(parts, { type: "text/javascript" }));
  };

  /* Load one script; the page keeps no copy of what it brings. come(bytes) is told how
     much has travelled: from a disk, all at once. */
  const fetched = async (file, come) => {
    const { name, version, bytes } = file;
    const address = new URL(`${name}.js?v=${version}`, base);
    if (!address.protocol.startsWith("http")) {
      const content = await run(name, address);
      come(bytes);
      return content;
    }
    const copy = await counted(file, address, come).catch(() => {
      throw missing(name);
    });
    return run(name, copy).finally(() => URL.revokeObjectURL(copy));
  };

  const missing = (name) => new Error(`The file ${name}.js did not come.`);

  const run = (name, address) => new Promise((resolve, reject) => {
    const script = document.createElement("script");
    const settle = (how, value) => {
      delete waiting[name];
      script.remove();
      how(value);
    };
    waiting[name] = (content) => settle(resolve, content);
    script.onerror = () => settle(reject, missing(name));
    script.src = address;
    document.head.append(script);
  });

  /* The first of the files is the runtime, the second a model. come(bytes) is told how
     much of both has travelled. */
  const load = async (files, come = () => {}) => {
    const travelled = files.map(() => 0);
    const [[runtime, source], [content]] = await Promise.all(files.map((file, i) =>
      fetched(file, (bytes) => {
        travelled[i] = bytes;
        come(travelled.reduce((sum, each) => sum + each));
      })));
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
    const lacking = lacks();
    const said = element("p", { role: "status" });
    const [library, model] = files.map((file) => megabytes([file]));
    const about = element("p", { class: "live-small" },
      `The library that runs it (${library} MB) and the trained model (${model} MB) come `
      + "from this site. Nothing that you enter leaves your computer. ",
      element("a", { href: new URL("onnxruntime.txt", base) }, "ONNX Runtime Web, licence"));
    const all = files.reduce((sum, file) => sum + file.bytes, 0);
    const bar = element("progress", { max: all, value: 0, "aria-label": "Loaded" });
    const amount = element("span");
    const progress = element("p", { class: "live-progress", hidden: true }, bar, amount);
    const come = (bytes) => {
      bar.value = bytes;
      amount.textContent = bytes < all
        ? `${(bytes / 1e6).toFixed(1)} of ${megabytes(files)} MB`
        : "All is here; the library starts.";
    };
    const begin = async () => {
      start.disabled = true;
      said.textContent = "Loading …";
      come(0);
      progress.hidden = false;
      try {
        const began = performance.now();
        const loaded = await load(files, come);
        made.closest(".moving-figure-stage").style.minHeight = "0"; // the room it had
        made.remove();
        ready({ ...loaded, seconds: (performance.now() - began) / 1000 });
      } catch (error) {
        start.disabled = false;
        progress.hidden = true;
        said.textContent = `The model could not be loaded: ${error.message} ${recorded}`;
      }
    };
    const start = button({ text: `Load the model, ${megabytes(files)} MB`, press: begin });
    start.classList.add("live-main-button");
    const made = element("div", { class: "live-offer" },
      lacking ? [] : [start, progress, about], said);
    if (lacking)
      said.textContent = `This browser lacks ${lacking}: the model cannot run here. `
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

  return { lacks, megabytes, receive, fetched, load, offer, candidates };
})();
