// CodeMirror 6 as a part: the text is in a signal.
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { html as htmlLanguage } from "@codemirror/lang-html";
import { javascript } from "@codemirror/lang-javascript";
import { json } from "@codemirror/lang-json";
import { markdown } from "@codemirror/lang-markdown";
import { python } from "@codemirror/lang-python";
import { HighlightStyle, StreamLanguage, bracketMatching, indentOnInput, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { shell } from "@codemirror/legacy-modes/mode/shell";
import { Compartment, EditorState } from "@codemirror/state";
import { EditorView, drawSelection, highlightActiveLine, highlightActiveLineGutter, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { html, useEffect, useRef } from "../lib/ui.js";

const LANGUAGES = {
  python: () => python(),
  bash: () => StreamLanguage.define(shell),
  node: () => javascript(),
  markdown: () => markdown(),
  html: () => htmlLanguage(),
  json: () => json(),
};
const INDENTS = { python: "    " };

// The policy of the page allows style elements with this nonce only.
const NONCE = document.querySelector("script[nonce]")?.nonce ?? "";

const THEME = EditorView.theme({
  "&": { backgroundColor: "var(--surface)", color: "var(--text)", fontSize: "13px" },
  "&.cm-focused": { outline: "none", boxShadow: "inset 0 0 0 2px var(--accent)" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.55" },
  ".cm-content": { caretColor: "var(--text)", padding: "8px 0" },
  ".cm-cursor": { borderLeftColor: "var(--text)" },
  ".cm-gutters": { backgroundColor: "transparent", color: "var(--faint)", border: "0", paddingLeft: "4px" },
  ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "color-mix(in srgb, var(--raised) 60%, transparent)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": { background: "var(--accent-soft) !important" },
  ".cm-matchingBracket": { backgroundColor: "var(--accent-soft)", outline: "1px solid var(--accent)" },
});
const COLOURS = HighlightStyle.define([
  { tag: [tags.keyword, tags.modifier, tags.operatorKeyword, tags.tagName, tags.heading], color: "var(--code-keyword)" },
  { tag: [tags.string, tags.special(tags.string), tags.attributeValue, tags.url], color: "var(--code-string)" },
  { tag: [tags.number, tags.bool, tags.null, tags.atom], color: "var(--code-number)" },
  { tag: [tags.function(tags.variableName), tags.definition(tags.variableName), tags.className, tags.propertyName, tags.attributeName, tags.link], color: "var(--code-name)" },
  { tag: [tags.comment, tags.meta, tags.quote], color: "var(--faint)" },
  { tag: tags.heading, fontWeight: "600" },
  { tag: tags.strong, fontWeight: "700" },
  { tag: tags.emphasis, fontStyle: "italic" },
]);

// value: a signal with the text; onRun is called for Mod-Enter.
export function Editor({ value, language, label, onRun }) {
  const host = useRef(null);
  const view = useRef(null);
  const part = useRef(new Compartment());
  const run = useRef(onRun);
  run.current = onRun;
  useEffect(() => {
    const editor = new EditorView({
      parent: host.current,
      state: EditorState.create({
        doc: value.peek(),
        extensions: [
          EditorView.cspNonce.of(NONCE),
          lineNumbers(), highlightActiveLineGutter(), highlightActiveLine(), history(), drawSelection(), indentOnInput(), bracketMatching(),
          keymap.of([{ key: "Mod-Enter", run: () => { run.current?.(); return true; } }, indentWithTab, ...defaultKeymap, ...historyKeymap]),
          part.current.of(languageOf(language)),
          syntaxHighlighting(COLOURS), THEME, EditorView.lineWrapping,
          EditorView.contentAttributes.of({ tabindex: "0", "aria-label": label, "aria-description": "Press Escape and then Tab to leave the editor." }),
          EditorView.updateListener.of((update) => { if (update.docChanged) value.value = update.state.doc.toString(); }),
        ],
      }),
    });
    view.current = editor;
    const stop = value.subscribe((text) => {
      if (text !== editor.state.doc.toString()) editor.dispatch({ changes: { from: 0, to: editor.state.doc.length, insert: text } });
    });
    return () => { stop(); editor.destroy(); };
  }, []);
  useEffect(() => { view.current?.dispatch({ effects: part.current.reconfigure(languageOf(language)) }); }, [language]);
  return html`<div class="cm-host" ref=${host} />`;
}

function languageOf(name) {
  return [LANGUAGES[name]?.() ?? [], indentUnit.of(INDENTS[name] ?? "  ")];
}
