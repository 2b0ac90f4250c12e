// A text that arrives in parts. Offsets count Unicode code points, as the service does; strings of JavaScript count UTF-16 units.
const lengthOf = (text) => {
  let pairs = 0;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code >= 0xd800 && code < 0xdc00) pairs += 1;
  }
  return text.length - pairs;
};

const startFrom = (text, skipped) => (skipped === 0 ? text : [...text].slice(skipped).join(""));

// The streamed text {text, length} with the part at an offset: what was there before is not doubled. null: a part between is missing.
export function addPart(streamed, offset, delta) {
  const { text, length } = streamed;
  if (offset > length) return null;
  const added = startFrom(delta, length - offset);
  return added ? { text: text + added, length: length + lengthOf(added) } : streamed;
}

export const streamedText = (text = "") => ({ text, length: lengthOf(text) });
