// A form made of a JSON Schema. Names and descriptions are texts of others: they are shown with their invisible characters as codes.
import { visible } from "../lib/format.js";
import { EMPTY_TEXT, REQUIRED, canBeEmpty, emptyDraft, limitsOf, titleOf } from "../lib/schema_form.js";
import { html, useId } from "../lib/ui.js";
import { Icon } from "./icons.js";

const LONG_CHARS = 120;

// node: of describeSchema; draft: a signal that emptyDraft filled; errors: Map of places to messages; place: where the value belongs.
export function SchemaForm({ node, draft, errors, place }) {
  const set = (value) => { draft.value = value; };
  return html`<div class="form-fields">
    ${node.kind === "object"
      ? html`<${ObjectFields} node=${node} value=${draft.value} set=${set} errors=${errors} place=${place} />`
      : html`<${Control} node=${node} name=${node.kind === "json" ? "Answer, as JSON" : "Answer"} value=${draft.value} set=${set} errors=${errors} place=${place} isRequired=${true} />`}
  </div>`;
}

function ObjectFields({ node, value, set, errors, place }) {
  return node.fields.map(({ name, node: field, isRequired }) => html`<${Control} key=${name} node=${field} name=${name} isRequired=${isRequired}
    value=${value[name]} set=${(each) => set({ ...value, [name]: each })} errors=${errors} place=${`${place}.${name.slice(0, 100)}`} />`);
}

function Control(props) {
  const { node } = props;
  if (node.kind === "object") return html`<${Group} ...${props}><${ObjectFields} ...${props} /><//>`;
  if (node.kind === "array") return html`<${List} ...${props} />`;
  return html`<${Simple} ...${props} />`;
}

// The heading of a field: its title, whether it may stay empty, and what it takes.
function Label({ node, name, isRequired }) {
  const limits = limitsOf(node);
  return html`<span class="field-label"><bdi>${visible(titleOf(node, name))}</bdi>${!isRequired && html` <span class="optional">optional</span>`}${limits && html` <span class="optional">${limits}</span>`}</span>`;
}

const FieldError = ({ id, text }) => html`<span id=${id} class="field-error"><${Icon} name="alert" />${visible(text)}</span>`;

function Group({ node, name, isRequired, errors, place, children }) {
  const id = useId();
  const problem = errors.get(place);
  return html`<fieldset class="form-group" aria-describedby=${problem ? `${id}-error` : null}>
    <legend><${Label} node=${node} name=${name} isRequired=${isRequired} /></legend>
    ${node.hint && html`<p class="field-hint">${visible(node.hint)}</p>`}
    ${problem && html`<${FieldError} id=${`${id}-error`} text=${problem} />`}
    ${children}
  </fieldset>`;
}

function List(props) {
  const { node, name, value, set, errors, place } = props;
  const { maxItems } = node.schema;
  const given = value ?? [];
  const add = () => set([...given, emptyDraft(node.item)]);
  const remove = (event, gone) => {
    event.currentTarget.closest("fieldset").querySelector(":scope > .form-buttons .button").focus(); // the button under the focus goes
    set(given.filter((_, at) => at !== gone));
  };
  // A list that has to be there may be empty, or null in its place.
  const other = props.isRequired && node.isNullable && given.length === 0 && (value === null ? [[], "Send an empty list"] : [null, "Send no list (null)"]);
  return html`<${Group} ...${props}>
    ${given.map((each, i) => html`<div class="form-item" key=${i}>
      <div class="form-item-value"><${Control} node=${node.item} name=${`${titleOf(node.item, titleOf(node, name))} ${i + 1}`} value=${each} isRequired=${true}
        set=${(changed) => set(given.map((old, at) => (at === i ? changed : old)))} errors=${errors} place=${`${place}[${i}]`} /></div>
      <button type="button" class="icon-button" aria-label=${`Remove entry ${i + 1} of ${visible(titleOf(node, name))}`}
        onClick=${(event) => remove(event, i)}><${Icon} name="close" /></button>
    </div>`)}
    ${other && html`<p class="field-hint">${value === null ? "No list (null) is sent." : "An empty list is sent."}</p>`}
    <div class="row form-buttons"><button type="button" class="button" aria-disabled=${String(maxItems !== undefined && given.length >= maxItems)}
        onClick=${() => { if (maxItems === undefined || given.length < maxItems) add(); }}><${Icon} name="plus" />Add an entry<span class="hidden"> of ${visible(titleOf(node, name))}</span></button>
      ${other && html`<button type="button" class="button quiet" onClick=${() => set(other[0])}>${other[1]}</button>`}</div>
  <//>`;
}

function Simple({ node, name, value, set, errors, place, isRequired }) {
  const id = useId();
  const isEmptyText = value === EMPTY_TEXT;
  const problem = isEmptyText ? undefined : errors.get(place);
  const described = [node.hint && `${id}-hint`, problem && `${id}-error`].filter(Boolean).join(" ") || null;
  const shared = { id, "aria-invalid": problem ? "true" : null, "aria-describedby": described, "aria-required": isRequired ? "true" : null };
  const leaveEmpty = (event) => {
    event.currentTarget.closest(".field").querySelector("input, textarea").focus();
    set(EMPTY_TEXT);
  };
  return html`<div class="field full">
    <label for=${id}><${Label} node=${node} name=${name} isRequired=${isRequired} /></label>
    ${input(node, isEmptyText ? "" : value, set, { ...shared, placeholder: isEmptyText ? "An empty text is sent" : null })}
    ${node.hint && html`<span id=${`${id}-hint`} class="field-hint">${visible(node.hint)}</span>`}
    ${problem && html`<${FieldError} id=${`${id}-error`} text=${problem} />`}
    ${problem === REQUIRED && canBeEmpty(node) && html`<button type="button" class="button quiet small" onClick=${leaveEmpty}>Send it empty</button>`}
  </div>`;
}

function input(node, value, set, shared) {
  const onInput = (event) => set(event.target.value);
  if (node.kind === "enum" || node.kind === "boolean") {
    const options = node.kind === "enum" ? node.options.map((each, i) => [String(i), each.text]) : [["true", "Yes"], ["false", "No"]];
    return html`<select ...${shared} value=${value} onChange=${onInput}><option value="">Choose…</option>
      ${options.map(([id, text]) => html`<option value=${id}>${visible(text.slice(0, 300))}</option>`)}</select>`;
  }
  if (node.kind === "json") return html`<textarea ...${shared} rows="5" spellcheck="false" value=${value} onInput=${onInput} />`;
  const { maxLength, format } = node.schema;
  if (node.kind === "string" && (maxLength === undefined ? format === undefined : maxLength > LONG_CHARS)) {
    return html`<textarea ...${shared} class="text" rows="1" value=${value} onInput=${onInput} />`;
  }
  return html`<input ...${shared} type="text" inputmode=${node.kind === "string" ? null : node.kind === "integer" ? "numeric" : "decimal"} autocomplete="off" value=${value} onInput=${onInput} />`;
}
