/** Builds: one file for pages, one with the file ledger for Node, and the tests. */

import { copyFileSync, mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { build } from "esbuild";
import { minify } from "terser";

const common = { bundle: true, target: "es2022", legalComments: "none", logLevel: "warning" };
rmSync("build", { recursive: true, force: true });
rmSync("dist", { recursive: true, force: true });
mkdirSync("dist");
for (const [source, target] of Object.entries({ "src/index.ts": "dist/ahead.js", "src/participant.ts": "dist/participant.js" })) {
  const made = await build({ ...common, entryPoints: [source], format: "esm", minify: true, write: false });
  const small = await minify(made.outputFiles[0].text, { module: true, ecma: 2020, compress: { passes: 3 } });
  writeFileSync(target, small.code + "\n");
}
// What the server serves is what was built here, byte for byte; a test compares.
copyFileSync("dist/participant.js", "../src/ahead_ldp/service/dashboard/static/participant.js");
await build({ ...common, entryPoints: ["src/node.ts", "src/laws.ts", "src/words.ts"], format: "esm", platform: "node", outdir: "dist" });
const tests = readdirSync("test").filter((name) => name.endsWith(".test.ts"));
await build({ ...common, entryPoints: tests.map((name) => `test/${name}`), format: "esm", platform: "node", sourcemap: "inline", outdir: "build/test" });
