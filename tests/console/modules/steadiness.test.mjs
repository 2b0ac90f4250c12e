import assert from "node:assert/strict";
import { test } from "node:test";
import { Steadiness } from "../../../service/console/source/lib/steadiness.js";

const at = (screen, content, scrolls = 0) => ({ screen, content, scrolls });

function settled() {
  const seen = new Steadiness();
  seen.see(at(100, 900), 0);
  assert.equal(seen.see(at(100, 900), 700), true);
  return seen;
}

test("what has appeared is steady after a while", () => {
  const seen = new Steadiness();
  assert.equal(seen.see(at(100, 900), 5_000), false);
  assert.equal(seen.see(at(100, 900), 5_699), false);
  assert.equal(seen.see(at(100, 900), 5_700), true);
});

test("what the page has moved is steady after a while", () => {
  const byContent = settled();
  assert.equal(byContent.see(at(140, 940), 9_000), false);
  assert.equal(byContent.see(at(141, 941), 9_700), true);
  const byScroll = settled();
  assert.equal(byScroll.see(at(40, 900, 1), 9_000), false);
  assert.equal(byScroll.see(at(40, 900, 1), 9_700), true);
});

test("scrolling of the reader, and a change above that the browser makes good, are no moves", () => {
  assert.equal(settled().see(at(400, 900), 9_000), true);
  assert.equal(settled().see(at(100, 960), 9_000), true);
});
