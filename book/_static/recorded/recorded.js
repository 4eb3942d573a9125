/* Recorded answers below a check: choose one, see its code, what the check says, and
   which line is to be repaired. A chapter's answers are one script
   (tools/site/recorded_pages.py), loaded when the first box of the page is opened. */
const Recorded = (() => {
  "use strict";

  const base = new URL(".", document.currentScript.src);
  const chapters = new Map(); // name -> a promise of its answers
  const waiting = new Map(); // name -> what is done with them

  const make = (tag, attributes = {}, ...children) => {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.append(...children);
    return made;
  };

  const receive = (name, answers) => waiting.get(name)?.(answers);

  /* A chapter's answers; after a failure they are asked for anew. */
  const load = (name, version) => {
    if (!chapters.has(name)) {
      chapters.set(name, new Promise((resolve, reject) => {
        waiting.set(name, resolve);
        const script = make("script", { src: new URL(`${name}.js?v=${version}`, base) });
        script.onerror = () => {
          chapters.delete(name);
          reject(new Error(`The file ${name}.js did not come.`));
        };
        document.head.append(script);
      }));
    }
    return chapters.get(name);
  };

  // What is shown of one answer -------------------------------------------------------------

  const block = (lines, label) => {
    const pre = make("pre", { tabindex: "0", "aria-label": label });
    pre.innerHTML = lines.join("\n"); // made by tools/site/recorded_pages.py
    return make("div", { class: "highlight" }, pre);
  };

  const change = (sign, kind, lines) =>
    lines.map((line) => `<span class="${kind}">${sign} ${line}</span>`);

  /* The lines that are replaced, and by which. */
  const repair = ({ code, repair: parts }, label) => {
    const lines = parts.flatMap(([first, many, now]) => [
      ...change("−", "recorded-old", code.slice(first, first + many)),
      ...change("+", "recorded-new", now)]);
    return make("details", { class: "recorded-repair" },
      make("summary", {}, "The repair"), block(lines, `Repair of ${label}`));
  };

  const verdict = (answer, label) => {
    if (!answer.card) return [make("p", { class: "recorded-passed" }, "✓ The check passes.")];
    const told = make("div", { class: "on-page-result" });
    told.innerHTML = answer.card; // autograder's own
    if (answer.repair) return [told, repair(answer, label)];
    return [told];
  };

  // One box -----------------------------------------------------------------------------------

  const fill = (box, note, answers) => {
    const { number } = box.dataset;
    const shown = make("div", { class: "recorded-shown" });
    const buttons = make("div", { class: "recorded-buttons", role: "group",
      "aria-label": `Answers to exercise ${number}` });
    answers.forEach((answer, i) => {
      const label = `answer ${i + 1}`;
      const mark = make("span");
      const button = make("button", { type: "button", class: "recorded-button",
        "aria-pressed": "false" }, make("span", { class: "visually-hidden" }, "Answer "),
      `${i + 1}`, mark);
      button.addEventListener("click", () => {
        for (const each of buttons.children)
          each.setAttribute("aria-pressed", String(each === button));
        mark.textContent = answer.card ? " ✗" : " ✓";
        shown.replaceChildren(block(answer.code, `Code of ${label}`), ...verdict(answer, label));
        note.textContent = `Answer ${i + 1} of ${answers.length}: `
          + `${answer.card ? answer.title : "passed"}.`;
      });
      buttons.append(button);
    });
    note.before(buttons);
    note.after(shown);
    note.textContent = "PyTorch does not run in this page, so these answers were checked "
      + "beforehand. Choose one.";
  };

  const open = async (box) => {
    const note = box.querySelector(".recorded-note");
    const { chapter, exercise, version } = box.dataset;
    note.textContent = "Loading …";
    try {
      fill(box, note, (await load(chapter, version))[exercise]);
      return true;
    } catch (error) {
      note.textContent = `That did not work: ${error.message} Close and open the box to try `
        + "again.";
      return false;
    }
  };

  for (const box of document.querySelectorAll("details.recorded")) {
    let filled = false;
    box.addEventListener("toggle", async () => {
      if (!box.open || filled) return;
      filled = true;
      filled = await open(box);
    });
  }

  return { receive };
})();
