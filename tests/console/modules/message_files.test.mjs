import assert from "node:assert/strict";
import { test } from "node:test";
import { filesOf, frameStyle, isPicture } from "../../../service/console/source/parts/message_files.js";

const paths = (...given) => filesOf(given.map((artifact_path) => ({ artifact_path }))).map((each) => each.artifact_path);

test("only paths of artifacts are files", () => {
  const good = ["fi:turn_1.files/out.csv", "turn_1/files/a/b c.png", "fi:turn_1.files/..hidden", "fi:turn_1.user.attachments/x.pdf"];
  assert.deepEqual(paths(...good), good);
  const bad = ["../../../../entities", "fi:turn_1.files/../../x", "turn_1/files/./x", "turn_1//x", "turn_1/files/", "", "/etc/passwd", "entities"];
  assert.deepEqual(paths(...bad), []);
});

test("a file that was promised and not produced is none", () => {
  const promised = (verdict) => filesOf({ artifacts: [{ artifact_path: "turn_1/files/a.png", verdict }] }).length;
  assert.deepEqual(["produced", undefined, "missing_file", "artifact_invalid", "stale_file"].map(promised), [1, 1, 0, 0, 0]);
});

test("a picture states a size that may be shown", () => {
  assert.equal(isPicture({ mime: "image/png", size_bytes: 10 }), true);
  for (const size_bytes of [undefined, "many", 25_000_001]) assert.equal(isPicture({ mime: "image/png", size_bytes }), false);
});

test("a frame has the ratio of its picture, and no more than its size", () => {
  assert.deepEqual(frameStyle({ width: 60, height: 40 }), { aspectRatio: "60 / 40", width: "min(60px, var(--picture-height) * 1.5)" });
  assert.deepEqual(frameStyle({ width: 10, height: 10_000 }), { aspectRatio: "10 / 10000", width: "min(10px, var(--picture-height) * 0.001)" });
  for (const size of [{}, { width: 0, height: 5 }, { width: "60", height: 40 }, { width: 1.5, height: 2 }]) assert.deepEqual(frameStyle(size), { height: "240px" });
});
