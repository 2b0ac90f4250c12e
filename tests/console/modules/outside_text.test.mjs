import assert from "node:assert/strict";
import { test } from "node:test";
import { parseJson } from "../../../service/console/source/lib/json_text.js";
import { isSmall } from "../../../service/console/source/parts/outside_text.js";

const nested = (depth) => parseJson(`${"[".repeat(depth)}1${"]".repeat(depth)}`);

test("an object is shown as pairs when it is small", () => {
  assert.equal(isSmall({ city: "Oslo", celsius: 14.5, tags: ["dry", "mild"] }), true);
  assert.equal(isSmall({ text: "long ".repeat(10_000) }), true); // a text can be opened
  const large = [{}, ["a"], { rows: Array(200).fill(1) }, { ["n".repeat(201)]: 1 }, Object.fromEntries(Array.from({ length: 17 }, (_, i) => [i, i]))];
  for (const value of large) assert.equal(isSmall(value), false);
});

test("an object with a value that cannot be shown is not small", () => {
  assert.equal(isSmall({ a: nested(100) }), true);
  for (const depth of [200, 201, 9_000]) assert.equal(isSmall({ a: nested(depth), b: 1 }), false);
});
