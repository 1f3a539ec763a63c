/** What a page with four charts of each library weighs: `npm install --ignore-scripts && node measure.mjs`, after `npm ci` in js/. */

import { mkdirSync, writeFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";

mkdirSync("dist", { recursive: true });
for (const name of ["uplot", "plot", "vega"]) {
  const made = await build({ entryPoints: [`src/${name}.js`], bundle: true, minify: true, format: "esm", target: "es2022", legalComments: "none", write: false });
  const [{ text }] = made.outputFiles;
  writeFileSync(`dist/${name}.js`, text);
  writeFileSync(`dist/${name}.html`, `<!doctype html><meta charset="utf-8"><body></body><script type="module" src="${name}.js"></script>`); // window.drawn: when the charts stood there
  console.log(name, gzipSync(text, { level: 9 }).length);
}
