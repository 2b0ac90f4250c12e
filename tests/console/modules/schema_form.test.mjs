import assert from "node:assert/strict";
import { test } from "node:test";
import { parseJson, writeJson } from "../../../service/console/source/lib/json_text.js";
import { EMPTY_TEXT, REQUIRED, canBeEmpty, describeSchema, emptyDraft, readDraft } from "../../../service/console/source/lib/schema_form.js";

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

const read = (schema, draft) => {
  const errors = new Map();
  const value = readDraft(describeSchema(schema), draft, "result", true, errors);
  return errors.get("result") ?? writeJson(value);
};

test("a whole number of any size is sent as it was written", () => {
  for (const schema of [{ type: "integer" }, { type: "number" }, {}]) assert.equal(read(schema, "9007199254740993"), "9007199254740993");
  assert.equal(read({ type: "integer" }, " -0900719925474099300 "), "-900719925474099300");
  assert.equal(read({ type: "integer" }, "+9007199254740993"), "9007199254740993");
  assert.equal(read({ type: "integer", multipleOf: 3, maximum: 9007199254740992 }, "9007199254740993"), "9007199254740993"); // left to the service
  assert.equal(read({}, '{"a": [1, -9007199254740993, 1.0]}'), '{"a":[1,-9007199254740993,1.0]}');
  assert.equal(read({ type: "number" }, "0.5"), "0.5");
  assert.equal(read({ type: "integer" }, "3.5"), "Write a whole number");
  for (const [written, sent] of [["3.0", "3"], ["3e2", "300"], ["30e-1", "3"], ["-0", "0"], ["9007199254740993.0", "9007199254740993.0"]]) assert.equal(read({ type: "integer" }, written), sent);
  for (const written of ["3.0000000000000000001", "1e-400", "35e-1"]) assert.equal(read({ type: "integer" }, written), "Write a whole number");
});

test("a decimal number is sent digit for digit", () => {
  const number = { type: "number" };
  const kept = ["0.12345678901234567890123", "99.50", "1.0", "-0.0", "-0", "1e-400", "2.5E+3", "9007199254740993.5", "1e22"];
  for (const written of kept) for (const schema of [number, {}]) assert.equal(read(schema, written), written);
  for (const [written, sent] of [["+1.50", "1.50"], [".50", "0.50"], ["5.", "5"], ["007.10", "7.10"], [" 0.1 ", "0.1"], ["00", "0"]]) assert.equal(read(number, written), sent);
  for (const wrong of [".", "-", "e5", "1,5", "0x10", "1e", "1e999", "Infinity"]) assert.match(read(number, wrong), /Write a number/);
});

test("limits are checked here only for a number that is not rounded", () => {
  const limited = { type: "number", minimum: 0.1, exclusiveMaximum: 0.3 };
  assert.equal(read(limited, "0.09"), "The smallest value is 0.1");
  assert.equal(read(limited, "0.30"), "The value has to be below 0.3");
  assert.equal(read(limited, "0.2999999999999999999999"), "0.2999999999999999999999"); // a double has 0.3
  assert.equal(read({ type: "number", exclusiveMinimum: 0 }, "1e-400"), "1e-400");
});

test("options and usual values keep their numbers", () => {
  const schema = parseJson('{"enum": [9007199254740993, 9007199254740992, "9007199254740993"], "default": 9007199254740993}');
  const node = describeSchema(schema);
  assert.deepEqual(node.options.map((each) => each.text), ["9007199254740993", "9007199254740992", "9007199254740993"]);
  assert.equal(emptyDraft(node), "0");
  assert.deepEqual(["0", "1", "2"].map((draft) => read(schema, draft)), ["9007199254740993", "9007199254740992", '"9007199254740993"']);
  assert.equal(emptyDraft(describeSchema(parseJson('{"type": ["integer", "null"], "default": 9007199254740993}'))), "9007199254740993");
  assert.equal(read(parseJson('{"const": 9007199254740993}'), "0"), "9007199254740993");
});

test("a text that has to be there is empty only if that was chosen", () => {
  assert.equal(read({ type: "string" }, ""), REQUIRED);
  assert.equal(read({ type: "string" }, EMPTY_TEXT), '""');
  assert.equal(emptyDraft(describeSchema({ type: "string", default: "" })), EMPTY_TEXT);
  for (const more of [{ minLength: 1 }, { pattern: "^a" }, { format: "email" }]) assert.equal(canBeEmpty({ kind: "string", schema: more }), false);
});

test("a list that may be null is null until it is begun", () => {
  const list = { type: ["array", "null"], items: { type: "string" } };
  const node = describeSchema({ type: "object", required: ["a"], properties: { a: list, b: list } });
  const draft = emptyDraft(node);
  assert.equal(writeJson(readDraft(node, draft, "result", true, new Map())), '{"a":null}');
  assert.equal(writeJson(readDraft(node, { ...draft, a: [] }, "result", true, new Map())), '{"a":[]}');
  assert.equal(writeJson(readDraft(node, { a: ["x"], b: ["y"] }, "result", true, new Map())), '{"a":["x"],"b":["y"]}');
  assert.deepEqual(emptyDraft(describeSchema({ ...list, default: [] })), []);
});

test("a required object that may be null is null while nothing is filled in", () => {
  const inner = { type: "object", required: ["b"], properties: { b: { type: "string" } } };
  const node = describeSchema({ type: "object", required: ["a"], properties: { a: { anyOf: [inner, { type: "null" }] } } });
  const errors = new Map();
  assert.deepEqual(readDraft(node, emptyDraft(node), "result", true, errors), { a: null });
  assert.equal(errors.size, 0);
});
