import assert from "node:assert/strict";
import { test } from "node:test";
import { jsonText } from "../../../service/console/source/lib/json_text.js";
import { readPartial } from "../../../service/console/source/lib/partial_json.js";

test("text that has more open brackets than a reader follows is not read", () => {
  assert.equal(readPartial("[".repeat(16_000)), undefined);
  assert.equal(readPartial(`{"a":${"[".repeat(64)}`), undefined);
  assert.deepEqual(readPartial("[".repeat(64)).flat(Infinity), []);
});

test("the value is read up to the last complete part", () => {
  assert.deepEqual(readPartial('{"a": [1, {"b": "x'), { a: [1, { b: "x" }] });
  assert.deepEqual(readPartial('{"a": [1, 2], "b": tr'), { a: [1, 2] });
  assert.deepEqual(readPartial('[[1, 2], [3, [4, fal'), [[1, 2], [3, [4]]]);
  assert.deepEqual(readPartial('{"a": "x\\'), { a: "x" });
});

test("a value that is nested too deeply for JSON.stringify is a note", () => {
  const deep = JSON.parse("[".repeat(16_000) + "]".repeat(16_000));
  assert.match(jsonText(deep, 2), /nested too deeply/);
  assert.match(jsonText({ a: 1, b: deep }), /nested too deeply/);
  assert.equal(jsonText({ a: [1, null] }), '{"a":[1,null]}');
  assert.equal(jsonText([1], 2), "[\n  1\n]");
});
