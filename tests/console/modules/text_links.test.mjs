import assert from "node:assert/strict";
import { test } from "node:test";
import { readableText } from "../../../service/console/source/lib/text_links.js";

test("characters that do not show are codes, but joiners stay", () => {
  assert.equal(readableText("a\u200bb\u00adc\u061cd\u2060e\u200ff"), "a\\u200bb\\u00adc\\u061cd\\u2060e\\u200ff");
  assert.equal(readableText("x\u{e0041}y"), "x\\ue0041y");
  assert.equal(readableText("\u{1f469}\u200d\u{1f373} \u0646\u200c\u0627"), "\u{1f469}\u200d\u{1f373} \u0646\u200c\u0627");
});
