// Bundles the console: node build.mjs MODULES OUT, where MODULES is the node_modules folder of the lock file.
import { copyFile, mkdir, readFile, readdir, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const [modules, out] = process.argv.slice(2).map((path) => resolve(path));
const source = dirname(fileURLToPath(import.meta.url));
const { build } = createRequire(join(modules, "x.js"))("esbuild");

await mkdir(out, { recursive: true });
const shared = {
  bundle: true,
  minify: true,
  charset: "utf8",
  legalComments: "none", // licences.txt has all of them
  nodePaths: [modules],
  absWorkingDir: source,
  logLevel: "warning",
};
const { metafile } = await build({
  ...shared, entryPoints: ["main.js"], outfile: join(out, "console.js"), format: "esm", target: "es2022", metafile: true,
});
// light-dark() stays: the target names the browsers that have it.
await build({ ...shared, entryPoints: ["style.css"], outfile: join(out, "console.css"), target: ["chrome123", "firefox120", "safari17.5"] });
for (const name of ["page.html", "icon.svg"]) await copyFile(join(source, name), join(out, name));
await writeFile(join(out, "licences.txt"), await licences(metafile));

// The licence of each package that is in the bundle.
async function licences(found) {
  const names = new Set();
  for (const input of Object.keys(found.inputs)) {
    const match = input.match(/node_modules\/((?:@[^/]+\/)?[^/]+)\//);
    if (match) names.add(match[1]);
  }
  const texts = [];
  for (const name of [...names].sort()) {
    const folder = join(modules, name);
    const { version, license } = JSON.parse(await readFile(join(folder, "package.json"), "utf8"));
    const file = (await readdir(folder)).find((each) => /^licen[cs]e/i.test(each));
    const text = file ? await readFile(join(folder, file), "utf8") : "";
    texts.push(`${name} ${version} (${license})\n\n${text.replaceAll("\r\n", "\n").trim()}\n`);
  }
  return `The console contains these packages.\n\n${texts.join("\n----\n\n")}`;
}
