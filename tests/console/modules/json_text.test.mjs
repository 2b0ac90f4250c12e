import assert from "node:assert/strict";
import { test } from "node:test";
import { ExactNumber, exactAt, jsonText, merged, parseIn, parseJson, textAt, writeJson } from "../../../service/console/source/lib/json_text.js";

const NUMBERS = ["9007199254740993", "-9007199254740993", "1.0", "-0.0", "1e+16", "1e-07", "0.12345678901234567890123", "123456789012345678901234567890"];

test("numbers are written as they were read", () => {
  for (const number of NUMBERS) {
    assert.equal(jsonText(parseJson(`[${number}]`)), `[${number}]`);
    assert.equal(jsonText(parseJson(`{"a":{"b":[1,"x",${number}]}}`)), `{"a":{"b":[1,"x",${number}]}}`);
    assert.equal(textAt(parseIn(number), 0), number);
    assert.equal(parseJson(`{"__proto__":${number}}`).__proto__, Number(number));
  }
});

test("values are those of JSON.parse", () => {
  const text = '{"a": 9007199254740993, "b": [1.0, {"c": "9007199254740993 \\" 1.0", "__proto__": 2.0}], "d\\u0031": "\\\\", "e": null}';
  assert.deepEqual(parseJson(text), JSON.parse(text));
  for (const wrong of ["", "{", "1,2", "1],[2", "01", "1.", "[1 2]", '"a']) assert.throws(() => parseJson(wrong), SyntaxError);
});

test("text is written as JSON.stringify writes it", () => {
  const values = [null, true, 1, "a\n\u2028", [], {}, [[], {}], { a: { b: [1, { c: "d" }] }, e: undefined }, [undefined, 1], { "1": 2, "x y": [null] }];
  for (const value of values) for (const indent of [0, 2]) assert.equal(writeJson(value, indent), JSON.stringify(value, null, indent));
});

test("nobody can pass a text off as a number", () => {
  const before = jsonText(parseJson('[1.0, "1.0"]'));
  assert.equal(before, '[1.0,"1.0"]');
  assert.equal(typeof parseJson('[1.0, "0-0-0-0:7"]')[1], "string");
});

test("a changed value has its own text", () => {
  const value = parseJson('{"a": 1.0, "b": 2.0}');
  value.a = 5;
  assert.equal(jsonText(value), '{"a":5,"b":2.0}');
  assert.equal(jsonText(merged(value, { c: exactAt(value, "b"), a: new ExactNumber("7.0") })), '{"a":7.0,"b":2.0,"c":2.0}');
});

test("a value of more than 200 levels is not written for readers", () => {
  assert.match(jsonText(parseJson(`${"[".repeat(9_000)}1.0${"]".repeat(9_000)}`)), /nested too deeply/);
  const long = parseJson(`{"a": "${"x\\n".repeat(2_000_000)}", "b": 1.0}`);
  assert.equal(textAt(long, "b"), "1.0");
});
