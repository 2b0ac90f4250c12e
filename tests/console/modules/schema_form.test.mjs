import assert from "node:assert/strict";
import { test } from "node:test";
import { describeSchema, emptyDraft, readDraft } from "../../../service/console/source/lib/schema_form.js";

const nested = (depth, inner = { type: "string" }) => (depth === 0 ? inner : { type: "array", minItems: 20, items: nested(depth - 1, inner) });

test("lists within lists begin with one entry each", () => {
  const node = describeSchema(nested(4));
  assert.equal(node.kind, "array");
  assert.equal(emptyDraft(node).length, 20);
  assert.equal(emptyDraft(node).flat(Infinity).length, 20);
});

test("a form of more than 300 controls is one field for JSON", () => {
  const row = { type: "object", properties: Object.fromEntries(Array.from({ length: 16 }, (_, i) => [`p${i}`, { type: "string" }])) };
  assert.equal(describeSchema(nested(1, row)).kind, "json"); // 320
  assert.equal(describeSchema({ type: "array", minItems: 17, items: row }).kind, "array"); // 290 with their groups
  assert.equal(describeSchema({ type: "array", items: { type: "array", items: { type: "string" } }, default: Array(400).fill([]) }).kind, "json");
  const usual = { type: "array", items: { type: "string" }, default: Array(60_000).fill("x") };
  const node = describeSchema(usual);
  assert.equal(node.kind, "json");
  assert.equal(JSON.parse(emptyDraft(node)).length, 60_000);
});

test("the options of all drafted controls count", () => {
  const many = { enum: Array.from({ length: 400 }, (_, i) => `option ${i}`) };
  assert.equal(describeSchema(many).kind, "enum");
  assert.equal(describeSchema(nested(1, many)).kind, "json");
});

test("a number that the browser would round is refused", () => {
  const read = (schema, draft) => {
    const errors = new Map();
    readDraft(describeSchema(schema), draft, "result", true, errors);
    return errors.get("result") ?? "";
  };
  for (const schema of [{ type: "integer" }, { type: "number" }, {}]) assert.match(read(schema, "9007199254740993"), /would be changed/);
  assert.match(read({}, '{"a": [1, -9007199254740993]}'), /would be changed/);
  assert.equal(read({}, '{"a": "9007199254740993 \\" 9007199254740993"}'), "");
  for (const draft of ["9007199254740991", "0.12345678901234567890", "1e300"]) assert.equal(read({ type: "number" }, draft), "");
});

test("a required object that may be null is null while nothing is filled in", () => {
  const inner = { type: "object", required: ["b"], properties: { b: { type: "string" } } };
  const node = describeSchema({ type: "object", required: ["a"], properties: { a: { anyOf: [inner, { type: "null" }] } } });
  const errors = new Map();
  assert.deepEqual(readDraft(node, emptyDraft(node), "result", true, errors), { a: null });
  assert.equal(errors.size, 0);
});
