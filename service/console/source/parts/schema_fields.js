// Controls for the simple parameters of a tool, made from its JSON Schema.
import { html } from "../lib/ui.js";
import { Field } from "./basics.js";

const simpleOf = (schema) => {
  const options = schema.anyOf ?? [schema];
  return options.find((each) => each.enum || ["string", "number", "integer", "boolean"].includes(each.type)) ?? null;
};

// values: a signal {name: value}; names in `left` have controls elsewhere.
export function SchemaFields({ schema, values, left = [] }) {
  const set = (name, value) => { values.value = { ...values.value, [name]: value }; };
  const entries = Object.entries(schema.properties).filter(([name]) => !left.includes(name));
  const shown = entries.map(([name, given]) => [name, given, simpleOf(given)]).filter(([, , simple]) => simple);
  const flags = shown.filter(([, , simple]) => simple.type === "boolean");
  return html`<div class="fields">
    ${shown.filter(([, , simple]) => simple.type !== "boolean").map(([name, given, simple]) => html`<${Field} key=${name}
        label=${title(name)} hint=${plain(given.description)}>${control(simple, given, values.value[name] ?? "", (value) => set(name, value))}<//>`)}
    ${flags.length > 0 && html`<div class="full row">${flags.map(([name, given]) => html`<label class="check" key=${name} title=${plain(given.description)}>
        <input type="checkbox" checked=${values.value[name] ?? given.default ?? false} onChange=${(event) => set(name, event.target.checked)} />${title(name)}</label>`)}</div>`}
  </div>`;
}

function control(simple, given, value, set) {
  const usual = given.default ?? simple.default;
  if (simple.enum) {
    return html`<select value=${value} onChange=${(event) => set(event.target.value)}>
      <option value="">${usual ? `${usual} (default)` : "default"}</option>
      ${simple.enum.filter((each) => each !== usual).map((each) => html`<option>${each}</option>`)}</select>`;
  }
  const isNumber = simple.type !== "string";
  return html`<input value=${value} inputmode=${isNumber ? "decimal" : null} placeholder=${usual ?? ""} spellcheck="false"
    onInput=${(event) => set(isNumber && event.target.value !== "" ? Number(event.target.value) : event.target.value)} />`;
}

const title = (name) => name.replaceAll("_", " ").replace(/^./, (letter) => letter.toUpperCase());
const plain = (text) => text?.replaceAll("`", "");
