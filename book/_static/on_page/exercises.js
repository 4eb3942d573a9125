/* Exercises that are done in the page: an editor below the answer cell, and the course's
   own check, which Python runs in a worker beside the page (tools/site/on_page_worker.js).
   Nothing is loaded before the reader asks, nothing leaves the browser, and what is
   written is kept in it. */
const OnPage = (() => {
  "use strict";

  const places = [...document.querySelectorAll(".on-page")];
  const base = new URL(".", document.currentScript.src);
  const SECONDS = 10; // after which a check is ended
  const KEY = "course-answer:";
  const UNTRIED = "Whoever published this site has added PyTorch for the browser, with "
    + "which the course has not been tried: the notebook decides. ";

  const make = (tag, attributes = {}, ...children) => {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes))
      if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
      else if (value !== false) made.setAttribute(name, value === true ? "" : value);
    made.append(...children);
    return made;
  };

  /* What is made once; after a failure it is tried anew. */
  const once = (work) => {
    let made = null;
    return () => {
      made ??= work().catch((error) => {
        made = null;
        throw error;
      });
      return made;
    };
  };

  // Memory --------------------------------------------------------------------------------

  const memory = new Map(); // while the page is open, where nothing is kept

  /* A browser may refuse to remember, and what it remembers may be anybody's. */
  const recall = (name) => {
    if (memory.has(name)) return memory.get(name);
    try {
      const { text, passed } = JSON.parse(localStorage.getItem(KEY + name)) ?? {};
      if (typeof text === "string") return { text, passed: passed === true };
    } catch {
      // as if there were nothing
    }
    return null;
  };

  /* Give what went wrong in words, or an empty text. */
  const remember = (name, answer) => {
    try {
      const { chapter } = places[0].dataset;
      if (answer === null) localStorage.removeItem(KEY + name);
      else localStorage.setItem(KEY + name, JSON.stringify({ ...answer, chapter }));
      memory.delete(name);
      return "";
    } catch (error) {
      memory.set(name, answer);
      const why = error?.name === "QuotaExceededError" ? "its storage is full"
        : "it does not allow that";
      return `This browser does not keep what you write: ${why}. Download the notebook `
        + "before you leave.";
    }
  };

  // What is loaded --------------------------------------------------------------------------

  const script = (address) => new Promise((resolve, reject) => {
    const element = make("script", { src: address, onload: resolve,
      onerror: () => reject(new Error(`The file ${address.pathname} did not come.`)) });
    document.head.append(element);
  });

  const shared = once(() => script(new URL("../live/live.js", base)));

  /* One of tools/site/on_page.py's scripts: the chapter's has all that is known of others. */
  const bring = async (file, come = () => {}) => {
    await shared();
    return Live.fetched({ ...file, name: `../on_page/${file.name}` }, come);
  };

  const receive = (name, ...content) => Live.receive(`../on_page/${name}`, ...content);

  const chapter = once(async () => {
    const { chapter: name, version } = places[0].dataset;
    const [data] = await bring({ name, version, length: 1, bytes: 0 });
    return data;
  });

  const editor = once(async () => (await bring((await chapter()).files.editor))[0]);

  /* The wheels of PyTorch that a publisher may have added, each by its checksum. */
  const wheels = once(async () => {
    const { wheels: listed } = await chapter();
    const came = await Promise.all(listed.map(async ({ name, integrity }) => {
      const response = await fetch(new URL(`wheels/${name}`, base), { integrity })
        .catch(() => ({ ok: false }));
      if (!response.ok)
        throw new Error(`The file ${name} did not come from a server, or is damaged.`);
      return [name, await response.arrayBuffer()];
    }));
    return Object.fromEntries(came);
  });

  // Python ----------------------------------------------------------------------------------

  const python = (() => {
    let worker = null;
    let ready = null;
    let torch = false; // whether it has PyTorch
    let turn = 0; // of the starts: one that is overtaken gives way
    let settle = null; // of what the worker was asked
    let count = 0;

    const packed = once(async () => {
      const { python: runtime, course } = (await chapter()).files;
      const travelled = [0, 0];
      const all = runtime.bytes + course.bytes;
      const [[files, source], [modules]] = await Promise.all([runtime, course].map(
        (file, i) => bring(file, (bytes) => {
          travelled[i] = bytes;
          tell(travelled[0] + travelled[1], all);
        })));
      return { source, given: { python: files, course: modules } };
    });

    const listeners = new Set();
    const tell = (bytes, all) => listeners.forEach((listen) => listen(bytes, all));

    const ask = (call, given) => new Promise((resolve, reject) => {
      settle = { resolve, reject };
      count += 1;
      worker.postMessage({ request: count, call, given });
    });

    const end = (error) => {
      worker?.terminate();
      worker = null;
      ready = null;
      settle?.reject(error);
      settle = null;
    };

    const start = async (mine) => {
      const { source, given } = await packed();
      const added = torch ? await wheels() : {};
      if (mine !== turn) throw new Error("It starts anew, with PyTorch.");
      const address = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
      worker = new Worker(address);
      worker.onmessage = ({ data: { error, result } }) => {
        const { resolve, reject } = settle;
        settle = null;
        if (error === undefined) resolve(result);
        else reject(new Error(error));
      };
      worker.onerror = (event) => {
        event.preventDefault();
        end(new Error(event.message || "Python did not start."));
      };
      await ask("begin", { ...given, wheels: added });
      URL.revokeObjectURL(address);
    };

    /* With PyTorch it starts anew, where it has started without. */
    const begin = (needed = torch) => {
      if (needed && !torch) {
        end(new Error("Python starts anew, with PyTorch."));
        torch = true;
      }
      if (ready === null) {
        turn += 1;
        const mine = turn;
        ready = start(mine).catch((error) => {
          if (mine === turn) {
            end(error);
            torch = false;
          }
          throw error;
        });
      }
      return ready;
    };

    const judge = async (asked) => {
      await begin(asked.exercise.torch);
      try {
        return await ask("judge", asked);
      } catch (error) {
        end(error); // what Python is worth after that, nobody knows
        throw error;
      }
    };

    return { begin, judge, end, listeners };
  })();

  class Stopped extends Error {}

  // One exercise ------------------------------------------------------------------------------

  const all = []; // that are open
  let running = null; // the one that is checked

  const cards = {
    endless: [`It had not returned after ${SECONDS} seconds`,
      "Does a loop never end? Look at what its condition tests, and whether the body "
      + "changes it. Or does it make something very large? Python has been started anew; "
      + "what you wrote is still here."],
    stopped: ["You stopped it", "Python has been started anew; what you wrote is still here."],
  };

  const card = (title, text) => make("div", { class: "on-page-card" },
    make("p", { class: "on-page-card-title" }, title), make("p", {}, text));

  const broken = (error) => card("Python came to an end",
    `${error.message.trim().split("\n").pop()} It starts anew with the next check. `
    + "Does something grow without end?");

  const exercise = (place) => {
    const { exercise: name, number, megabytes } = place.dataset;
    const torch = "torch" in place.dataset;
    const cell = place.previousElementSibling;
    const stub = cell.querySelector("pre").textContent.replace(/\n$/, "");
    const said = make("p", { class: "on-page-said", role: "status" });
    const elsewhere = make("p", { class: "on-page-help", role: "status" });
    const mark = make("span", { class: "on-page-mark", hidden: true }, "✓ passed");
    let kept = recall(name);
    let view = null;
    let heard = "";

    const say = (text) => { said.textContent = text; };
    const sayOfPython = (text) => say(heard ? `${heard} ${text}` : text); // trouble stays

    const showMark = () => {
      mark.hidden = !kept?.passed;
      place.dataset.state = kept?.passed ? "passed" : "open";
      count();
    };

    const keep = (answer) => {
      kept = answer;
      const trouble = remember(name, answer);
      if (trouble && trouble !== heard) say(trouble);
      heard = trouble;
      showMark();
    };

    const changed = (text) => {
      if (text === stub) keep(null);
      else if (text !== kept?.text) keep({ text, passed: kept?.passed ?? false });
    };

    // Opening it

    const loading = (bytes, whole) => {
      if (bytes < whole) sayOfPython(`Python is loading, ${(bytes / 1e6).toFixed(1)} of `
        + `${(whole / 1e6).toFixed(1)} MB. You can write already.`);
      else sayOfPython("Python is starting. You can write already.");
    };

    const startPython = async () => {
      python.listeners.add(loading);
      try {
        await python.begin(torch);
        if (running === null) sayOfPython("Python is ready.");
      } catch (error) {
        say(`Python could not be started: ${error.message} Check tries again.`);
      }
      python.listeners.delete(loading);
    };

    const open = async () => {
      begin.disabled = true;
      say("The editor is loading …");
      try {
        await shared();
        const lacking = Live.lacks();
        if (lacking) throw new Error(`This browser lacks ${lacking}.`);
        await showEditor(await editor());
      } catch (error) {
        begin.disabled = false;
        say(`That did not work: ${error.message} Download the notebook instead, or try `
          + "again.");
        return;
      }
      startPython();
    };

    const showEditor = async (makeEditor) => {
      const parent = make("div", { class: "on-page-editor" });
      const help = make("p", { class: "on-page-help", id: `on-page-help-${name}` },
        "Control and Enter check. Tab indents; Escape, then Tab, leaves the editor.");
      offer.replaceWith(parent, help, buttons, elsewhere, said, result);
      view = makeEditor({
        parent, text: kept?.text ?? stub, label: `Your answer to exercise ${number}`,
        described: help.id, named: (kind) => `on-page-${kind}`, changed, check: () => { if (!check.disabled) judge(); },
      });
      cell.hidden = true;
      all.push({ check });
      check.disabled = running !== null;
      showMark();
      view.focus();
    };

    // Checking it

    const result = make("div", { class: "on-page-result" });

    const judge = async () => {
      running = name;
      for (const each of all) each.check.disabled = true;
      stop.hidden = false;
      result.replaceChildren();
      say("Checked as soon as Python is here …");
      python.listeners.add(loading);
      let timer = null;
      try {
        const { exercises } = await chapter();
        const asked = exercises.find((each) => each.name === name);
        const before = asked.earlier.map(([earlier]) => [earlier, recall(earlier)?.text]);
        const written = Object.fromEntries(before.filter(([, text]) => text !== undefined));
        written[name] = view.text();
        await python.begin(torch);
        say("Checking …");
        timer = setTimeout(() => python.end(new Stopped("endless")), SECONDS * 1000);
        showVerdict(await python.judge({ exercise: asked, written, site: "../../book" }),
          written[name]);
      } catch (error) {
        showTrouble(error);
      }
      clearTimeout(timer);
      python.listeners.delete(loading);
      running = null;
      stop.hidden = true;
      for (const each of all) each.check.disabled = false;
    };

    const showVerdict = ({ passed, card: told, printed, words }, text) => {
      result.innerHTML = told; // Python has escaped what is a student's
      for (const heading of result.querySelectorAll("h4"))
        heading.replaceWith(make("p", { style: heading.getAttribute("style") },
          ...heading.childNodes));
      if (printed) result.append(make("pre", { class: "on-page-printed", tabindex: "0",
        "aria-label": "Printed" }, printed));
      const now = view.text(); // which may have changed meanwhile
      keep({ text: now, passed: passed && now === text });
      const [title] = words.split("\n"); // "vocabulary: tokens in alphabetical order"
      say(`Exercise ${number}: ${passed ? "passed"
        : `not yet right, ${title.slice(title.indexOf(":") + 2)}`}.`);
    };

    const showTrouble = (error) => {
      if (error instanceof Stopped) {
        result.replaceChildren(card(...cards[error.message]));
        say(`Exercise ${number}: ended.`);
        python.begin().catch(() => {}); // for the next check
      } else {
        result.replaceChildren(broken(error));
        say(`Exercise ${number}: not checked.`);
      }
    };

    const reset = () => {
      view.write(stub);
      view.focus();
      say("The cell is as it was. Control and Z bring back what you wrote.");
    };

    // What it looks like

    const button = (text, press, kind) =>
      make("button", { type: "button", class: kind, onclick: press }, text);
    const begin = button("", open, "on-page-main");
    const check = button("Check", judge, "on-page-main");
    const stop = button("Stop", () => python.end(new Stopped("stopped")), "on-page-button");
    stop.hidden = true;
    const buttons = make("div", { class: "on-page-buttons" }, check, stop,
      button("Reset", reset, "on-page-button"),
      button("Download the notebook", download, "on-page-button"), mark);
    const about = make("p", { class: "on-page-help" }, kept
      ? "What you wrote is kept in this browser."
      : `Python and an editor come from this site, ${megabytes} MB. What you write stays `
        + "in this browser. ", torch ? UNTRIED : "", make("a", { href: new URL("notices.txt", base) }, "Licences"));
    begin.textContent = kept ? `Go on with ${number} here` : `Do ${number} here`;
    const offer = make("div", { class: "on-page-offer" },
      make("div", { class: "on-page-buttons" }, begin, mark.cloneNode(true)), about);
    offer.querySelector(".on-page-mark").hidden = !kept?.passed;
    place.append(offer, said);
    place.dataset.state = kept?.passed ? "passed" : "open";

    addEventListener("storage", ({ key }) => {
      if (key !== KEY + name || view === null) return;
      const other = recall(name);
      if (other === null || other.text === view.text()) return;
      elsewhere.replaceChildren("Another tab has changed this answer. ",
        button("Take its text", () => {
          view.write(other.text);
          elsewhere.replaceChildren();
        }, "on-page-button"));
    });
  };

  // The page ------------------------------------------------------------------------------------

  /* The notebook with what was written in it. */
  const download = async () => {
    const { notebook } = await chapter();
    const filled = structuredClone(notebook);
    for (const { cell_type: type, metadata, ...cell } of filled.cells) {
      const graded = metadata.nbgrader;
      const kept = type === "code" && graded?.solution ? recall(graded.grade_id) : null;
      if (kept) cell.source.splice(0, Infinity, ...kept.text.split(/(?<=\n)/));
    }
    const blob = new Blob([JSON.stringify(filled, null, 1), "\n"],
      { type: "application/x-ipynb+json" });
    const address = URL.createObjectURL(blob);
    make("a", { href: address, download: `${places[0].dataset.chapter}.ipynb` }).click();
    setTimeout(() => URL.revokeObjectURL(address), 60_000);
  };

  let counted = null;

  /* How many have passed stands at the top of the page. */
  const count = () => {
    const passed = places.filter((place) => recall(place.dataset.exercise)?.passed).length;
    if (passed === counted) return;
    counted = passed;
    document.querySelector(".on-page-sum span").textContent = passed === 0 ? ""
      : `Passed in this browser: ${passed} of ${places.length}.`;
    dispatchEvent(new Event("course-answer")); // reading.js marks the sidebar
  };

  if (places.length) {
    places.forEach(exercise);
    count();
  }

  return { receive };
})();
