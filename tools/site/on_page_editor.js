/* What the editor of an exercise is made of; fetch_on_page.py makes one script of it. */
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { python } from "@codemirror/lang-python";
import { bracketMatching, HighlightStyle, indentOnInput, indentUnit, syntaxHighlighting }
  from "@codemirror/language";
import { EditorState } from "@codemirror/state";
import { drawSelection, EditorView, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";

/* The colours are in book/_static/on_page.css, for both themes of a page. */
const coloured = (named) => syntaxHighlighting(HighlightStyle.define([
  { tag: tags.comment, class: named("comment") },
  { tag: [tags.keyword, tags.operatorKeyword, tags.controlKeyword,
    tags.definitionKeyword, tags.moduleKeyword], class: named("keyword") },
  { tag: [tags.string, tags.docString], class: named("string") },
  { tag: [tags.number, tags.bool, tags.null], class: named("number") },
]));

const around = EditorView.theme({
  "&": { backgroundColor: "var(--pst-color-surface)", color: "var(--pst-color-text-base)" },
  "&.cm-focused": { outline: "none" },
  ".cm-content": { caretColor: "var(--pst-color-text-base)", padding: "0.5rem 0" },
  ".cm-cursor": { borderLeftColor: "var(--pst-color-text-base)" },
  ".cm-gutters": { backgroundColor: "var(--pst-color-surface)", border: "none",
    color: "var(--pst-color-text-muted)" },
  "&.cm-focused .cm-selectionBackground, .cm-selectionBackground": {
    backgroundColor:
      "color-mix(in srgb, var(--pst-color-primary) 25%, transparent) !important" },
});

/* An editor of Python: `changed` is told each new text, `check` on Control and Enter;
   `named` gives the class of a kind of words. */
const make = ({ parent, text, label, described, named, changed, check }) => {
  const extensions = [
    lineNumbers(), history(), drawSelection(), indentOnInput(), bracketMatching(),
    indentUnit.of("    "), EditorState.tabSize.of(4), python(), coloured(named),
    around,
    keymap.of([{ key: "Mod-Enter", run: () => { check(); return true; } },
      indentWithTab, ...defaultKeymap, ...historyKeymap]),
    EditorView.contentAttributes.of({ "aria-label": label, "aria-describedby": described,
      spellcheck: "false", autocorrect: "off", autocapitalize: "off" }),
    EditorView.updateListener.of((update) => {
      if (update.docChanged) changed(update.state.doc.toString());
    }),
  ];
  const view = new EditorView({ parent, state: EditorState.create({ doc: text, extensions }) });
  return {
    text: () => view.state.doc.toString(),
    focus: () => view.focus(),
    write: (next) => view.dispatch({
      changes: { from: 0, to: view.state.doc.length, insert: next } }),
  };
};

OnPage.receive("editor", make);
