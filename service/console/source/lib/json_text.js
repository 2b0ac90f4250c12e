// JSON text of a value of others. JSON.parse reads any depth, but JSON.stringify calls itself for each level.
const DEPTH_MAX = 200;
const TOO_DEEP = `(This value is nested too deeply to be shown: more than ${DEPTH_MAX} levels.)`;

export const jsonText = (value, indent) => (isDeep(value) ? TOO_DEEP : JSON.stringify(value, null, indent));

function isDeep(value) {
  let level = [value];
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > DEPTH_MAX) return true;
    const inner = [];
    for (const each of level) {
      if (typeof each === "object" && each !== null) for (const one of Object.values(each)) if (typeof one === "object" && one !== null) inner.push(one);
    }
    level = inner;
  }
  return false;
}
