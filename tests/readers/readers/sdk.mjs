// node sdk.mjs FILE...: a line of JSON for each file, [file, [error, …]], by the Open XML SDK's validator.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const resolve = createRequire("/opt/readers/").resolve;
const { default: validate, getFileFormatFromName } = await import(pathToFileURL(resolve("@ooxml-tools/validate")));

for (const file of process.argv.slice(2)) {
  let errors;
  try {
    const found = await validate(new Uint8Array(readFileSync(file)), getFileFormatFromName(file), "Microsoft365");
    errors = found.map((error) => `${error.path.partUri}${error.path.xpath ?? ""}: ${error.description} (${error.id})`);
  } catch (error) {
    errors = [`cannot be opened: ${error}`];
  }
  process.stdout.write(JSON.stringify([file, errors]) + "\n");
}
