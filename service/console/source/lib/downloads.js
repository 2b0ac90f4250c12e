// Saving of bytes under a file name. Files come with the key in a header, so a plain link would not work.
import { blob } from "./api.js";
import { report } from "./toasts.js";

const REVOKED_AFTER_MS = 60_000;

export function saveBlob(content, name) {
  const url = URL.createObjectURL(content);
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), REVOKED_AFTER_MS);
}

export async function download(target, query, name) {
  try {
    saveBlob(await blob(target, query), name);
  } catch (problem) {
    report(problem);
  }
}

const filePath = (kind) => (conversation, logicalPath) =>
  `v1/conversations/${encodeURIComponent(conversation)}/${kind}/${logicalPath.split("/").map(encodeURIComponent).join("/")}`;

export const artifactPath = filePath("artifacts");
export const previewPath = filePath("previews");
export const versionsPath = filePath("versions");
export const differencesPath = filePath("differences");
export const archivePath = (conversation) => `v1/conversations/${encodeURIComponent(conversation)}/archive`;
