// Requests to the service's own API. Every failure is a ProblemError with the fields of a problem document.
import { BASE } from "./base.js";
import { parseJson, writeJson } from "./json_text.js";
import { access, accessProblem, credential, image, key, spaceToken, tools } from "./session.js";

export { BASE };

export class ProblemError extends Error {
  // problem: {code, status, detail, request_id, retryable, errors}
  constructor(problem) {
    super(problem.detail);
    this.name = "ProblemError";
    Object.assign(this, { errors: [], retryable: false, request_id: "", ...problem });
  }
}

export function address(path, query = {}) {
  const url = new URL(path.replace(/^\//, ""), BASE);
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== null && value !== "") url.searchParams.set(name, value);
  }
  return url;
}

// Segments of a path, each encoded: path`v1/conversations/${id}/files`.
export function path(texts, ...values) {
  return texts.reduce((all, text, i) => all + encodeURIComponent(values[i - 1]) + text);
}

// Sends a request and returns the Response of a 2xx; other answers are a ProblemError.
export async function request(target, { method = "GET", query, json, body, headers = {}, signal } = {}) {
  const sent = new Headers(headers);
  if (credential.value) sent.set("Authorization", `Bearer ${credential.value}`);
  if (json !== undefined) sent.set("Content-Type", "application/json");
  let answer;
  try {
    answer = await fetch(address(target, query), {
      method, headers: sent, body: json === undefined ? body : writeJson(json), signal,
      credentials: "same-origin", cache: "no-store",
    });
  } catch (cause) {
    if (signal?.aborted) throw cause;
    throw lost(cause);
  }
  if (answer.ok) return answer;
  const problem = await problemOf(answer);
  // A link opens one space: who was removed from it has no other use of it.
  if (answer.status === 401 || (spaceToken.value && problem.code === "unknown_space")) refuse(problem);
  throw problem;
}

export function lost(cause) {
  const detail = "The service did not answer; check that it runs and that this machine is connected, then try again.";
  return new ProblemError({ code: "no_connection", status: 0, detail, retryable: true, cause });
}

async function problemOf(answer) {
  const request_id = answer.headers.get("X-Request-ID") ?? "";
  try {
    return new ProblemError({ request_id, ...(await answer.json()), status: answer.status });
  } catch {
    const detail = `The answer was HTTP ${answer.status} without a problem document; a proxy may have answered.`;
    return new ProblemError({ code: `http_${answer.status}`, status: answer.status, detail, request_id });
  }
}

function refuse(problem) {
  access.value = spaceToken.value ? "wrong_link" : key.value ? "wrong_key" : "no_key";
  accessProblem.value = problem;
}

export const get = async (target, query, options = {}) => parseJson(await text(target, query, options));
export const text = async (target, query, options = {}) => (await request(target, { query, ...options })).text();
export const blob = async (target, query, options = {}) => (await request(target, { query, ...options })).blob();
export const remove = (target, query) => request(target, { method: "DELETE", query });

export async function post(target, json, options = {}) {
  const answer = await request(target, { method: "POST", json, ...options });
  return answer.status === 204 ? null : parseJson(await answer.text());
}

// Asks for the catalogue, which every valid key may read, and so learns whether a key is needed and valid.
export async function checkAccess() {
  if (spaceToken.value) { // it opens one space and nothing else
    access.value = "guest";
    return;
  }
  access.value = "checking";
  accessProblem.value = null;
  try {
    const catalogue = await get("v1/tools");
    tools.value = catalogue.tools;
    image.value = catalogue.image;
    access.value = key.value ? "ready" : "open";
  } catch (problem) {
    if (problem.status === 401) return;
    access.value = problem.code === "no_connection" ? "offline" : "wrong_key";
    accessProblem.value = problem;
  }
}
