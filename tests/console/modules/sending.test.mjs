import assert from "node:assert/strict";
import { test } from "node:test";
import { SendingKey, leftOf } from "../../../service/console/source/lib/sending.js";

function keys() {
  let made = 0;
  const sending = new SendingKey();
  return { sending, take: (...what) => sending.take(() => `key-${++made}`, ...what) };
}

test("a second attempt has the same key if the first may have succeeded", () => {
  for (const status of [undefined, 0, 408, 500, 502, 504]) {
    const { sending, take } = keys();
    take("pizza", undefined, "ann");
    sending.fail(status);
    assert.equal(take("pizza", undefined, "ann"), "key-1", String(status));
  }
});

test("a message that was refused or changed or sent has a new key", () => {
  for (const status of [400, 403, 409, 422, 429]) {
    const { sending, take } = keys();
    take("pizza");
    sending.fail(status);
    assert.equal(take("pizza"), "key-2", String(status));
  }
  for (const other of [["pasta", "m1", "ann"], ["pizza", "m2", "ann"], ["pizza", "m1", "ben"]]) {
    const { sending, take } = keys();
    take("pizza", "m1", "ann");
    sending.fail(504);
    assert.equal(take(...other), "key-2");
  }
  const { sending, take } = keys();
  take("pizza");
  sending.end();
  assert.equal(take("pizza"), "key-2");
});

test("what is written while a text is sent stays", () => {
  assert.equal(leftOf("one", "one"), "");
  assert.equal(leftOf("one and two", "one"), " and two");
  assert.equal(leftOf("instead", "one"), "instead");
});
