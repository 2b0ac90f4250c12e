// Controls for the simple parameters of a tool, made from its JSON Schema.
import { html } from "../lib/ui.js";
import { Field } from "./basics.js";

const SUGGESTED = { theme: ["plain", "dark", "brand", "paper"], page_size: ["A4", "A3", "Letter"], slide_size: ["16:9", "16:10", "4:3", "A4"] };

const simpleOf = (schema) => {
  const options = schema.anyOf ?? [schema];
  return options.find((each) => each.enum || ["string", "number", "integer", "boolean"].includes(each.type)) ?? null;
};

// values: a signal {name: value}; names in `left` have controls elsewhere.
export function SchemaFields({ schema, values, left = [] }) {
  const set = (name, value) => { values.value = { ...values.value, [name]: value }; };
  const entries = Object.entries(schema.properties).filter(([name]) => !left.includes(name)).sort((a, b) => rank(a) - rank(b));
  const shown = entries.map(([name, given]) => [name, given, simpleOf(given)]).filter(([, , simple]) => simple);
  const flags = shown.filter(([, , simple]) => simple.type === "boolean");
  return html`<div class="fields">
    ${shown.filter(([, , simple]) => simple.type !== "boolean").map(([name, given, simple]) => html`<${Field} key=${name}
        label=${title(name)} hint=${plain(given.description)}>${control(name, simple, given, values.value[name] ?? "", (value) => set(name, value))}<//>`)}
    ${flags.length > 0 && html`<div class="full row">${flags.map(([name, given]) => html`<label class="check" key=${name} title=${plain(given.description)}>
        <input type="checkbox" checked=${values.value[name] ?? given.default ?? false} onChange=${(event) => set(name, event.target.checked)} />${title(name)}</label>`)}</div>`}
  </div>`;
}

function control(name, simple, given, value, set) {
  const usual = given.default ?? simple.default;
  if (simple.enum) {
    return html`<select value=${value} onChange=${(event) => set(event.target.value)}>
      <option value="">${usual ? `${usual} (default)` : "default"}</option>
      ${simple.enum.filter((each) => each !== usual).map((each) => html`<option>${each}</option>`)}</select>`;
  }
  const isNumber = simple.type !== "string";
  const suggested = SUGGESTED[name];
  const list = suggested && `suggested-${name}`;
  return html`${suggested && html`<datalist id=${list}>${suggested.map((each) => html`<option value=${each} />`)}</datalist>`}
    <input list=${list} value=${value} inputmode=${isNumber ? "decimal" : null} placeholder=${usual ?? ""} spellcheck="false"
    onInput=${(event) => set(isNumber && event.target.value !== "" ? Number(event.target.value) : event.target.value)} />`;
}

const TITLES = { toc: "Table of contents", css: "CSS", pdf_variant: "PDF variant", padding_px: "Padding, px", strict: "Missing pictures are errors" };
const FIRST = ["title", "subtitle", "theme", "author", "date", "page_size", "slide_size", "width"];
const rank = ([name]) => (FIRST.includes(name) ? FIRST.indexOf(name) : FIRST.length);
const title = (name) => TITLES[name] ?? name.replaceAll("_", " ").replace(/^./, (letter) => letter.toUpperCase());
const plain = (text) => text?.replaceAll("`", "");
