// Loaded before a program of the Node.js tool: a program, or a file that it imports, may be TypeScript.
//
// Types become blanks, so that lines and columns stay as they are. What has to become code (enum, namespace, parameter properties)
// is transformed, and an embedded source map tells Node.js the lines. A program that is JavaScript is never touched.
'use strict';
const { readFileSync, writeFileSync } = require('fs');
const Module = require('module');
const vm = require('vm');

const AMARO = '/opt/proofbox/venv/lib/node_modules/amaro';

function javascriptOf(source, filename) {
  const { transformSync } = require(AMARO);
  try {
    return transformSync(source, { mode: 'strip-only', filename }).code;
  } catch (error) {
    if (error.code !== 'UnsupportedSyntax') throw error;
  }
  const { code, map } = transformSync(source, { mode: 'transform', sourceMap: true, filename });
  const named = JSON.stringify({ ...JSON.parse(map), sources: [filename], sourcesContent: [source] });
  return `${code}\n//# sourceMappingURL=data:application/json;base64,${Buffer.from(named).toString('base64')}\n`;
}

// Whether it is JavaScript, in any of its forms: what a syntax error alone does not say of code with import or await.
function isJavaScript(source) {
  const text = source.replace(/^#!.*/, '');
  const asFunction = text.replace(/^(\s*)(?:import\s*(?:[\w$*{][^'"`;]*?\bfrom\s*)?(['"]).*?\2\s*;?|export\s+default\b|export\b)/gm, '$1;');
  for (const wrap of [(code) => code, (code) => `(async () => {${code}\n})`]) {
    for (const candidate of [text, asFunction]) {
      try {
        new vm.Script(wrap(candidate));
        return true;
      } catch {}
    }
  }
  return false;
}

const main = process.argv[1];
if (require('worker_threads').isMainThread && main && /^\/job\/.*\.js$/.test(main)) {
  const source = readFileSync(main, 'utf8');
  if (!isJavaScript(source)) {
    try {
      writeFileSync(main, javascriptOf(source, main));
    } catch {
      // Neither: Node.js says what is wrong with it.
    }
  }
}

for (const suffix of ['.ts', '.cts']) {
  Module._extensions[suffix] = (module, filename) => {
    module._compile(javascriptOf(readFileSync(filename, 'utf8'), filename), filename);
  };
}
