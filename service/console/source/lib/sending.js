// A message that is being sent: its key for a second attempt, and what is left of the field afterwards.

// Whether an attempt may have succeeded although its answer is a failure: then the next one has to have the same key.
const mayHaveSucceeded = (status) => status === 0 || status === 408 || status >= 500;

export class SendingKey {
  #of = null; // {key, what}

  // The key for this message; another one as soon as anything of it has changed.
  take(newKey, ...what) {
    const text = JSON.stringify(what);
    if (this.#of?.what !== text) this.#of = { key: newKey(), what: text };
    return this.#of.key;
  }

  // After a failure; without a status it may have succeeded.
  fail(status = 0) {
    if (!mayHaveSucceeded(status)) this.#of = null;
  }

  end() {
    this.#of = null;
  }
}

// What stays in the field when a text was sent: what was written behind it meanwhile; all of it if it does not begin with that text.
export const leftOf = (text, sent) => (text.startsWith(sent) ? text.slice(sent.length) : text);
