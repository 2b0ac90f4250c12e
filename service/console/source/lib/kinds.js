// Short names of media types for readers: an extension is clearer than a type of 60 characters.
const NAMES = {
  "text/plain": "Text", "text/markdown": "Markdown", "application/octet-stream": "Binary", "application/pdf": "PDF",
  "application/zip": "ZIP", "application/json": "JSON", "application/x-ndjson": "JSON lines", "image/svg+xml": "SVG",
};

export function kindName(mime, name = "") {
  if (NAMES[mime]) return NAMES[mime];
  const extension = /\.([A-Za-z0-9]{1,8})$/.exec(name)?.[1];
  if (extension) return extension.toUpperCase();
  const subtype = mime.slice(mime.indexOf("/") + 1);
  return subtype.length <= 20 ? subtype : "File";
}
