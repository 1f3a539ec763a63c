/** Builds: one file for pages, one with the file ledger for Node, and the tests. */

import { mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { build } from "esbuild";
import { minify } from "terser";

const common = { bundle: true, target: "es2022", legalComments: "none", logLevel: "warning" };
rmSync("build", { recursive: true, force: true });
rmSync("dist", { recursive: true, force: true });
const made = await build({ ...common, entryPoints: ["src/index.ts"], format: "esm", minify: true, write: false });
const small = await minify(made.outputFiles[0].text, { module: true, ecma: 2020, compress: { passes: 3 } });
mkdirSync("dist");
writeFileSync("dist/ahead.js", small.code + "\n");
await build({ ...common, entryPoints: ["src/node.ts"], format: "esm", platform: "node", outfile: "dist/node.js" });
const tests = readdirSync("test").filter((name) => name.endsWith(".test.ts"));
await build({ ...common, entryPoints: tests.map((name) => `test/${name}`), format: "esm", platform: "node", sourcemap: "inline", outdir: "build/test" });
