/** Builds: one ESM file and one classic script for pages, types, and the tests for Node. */

import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, rmSync } from "node:fs";
import { build } from "esbuild";

const common = { bundle: true, target: "es2022", legalComments: "none", logLevel: "warning" };
rmSync("build", { recursive: true, force: true });
if (existsSync("src/index.ts")) {
  rmSync("dist", { recursive: true, force: true });
  await build({ ...common, entryPoints: ["src/index.ts"], format: "esm", minify: true, outfile: "dist/ahead.js" });
  execFileSync("node", ["node_modules/typescript/bin/tsc", "--noEmit", "false", "--emitDeclarationOnly", "--declaration", "--outDir", "dist/types", "--rootDir", "src", "src/index.ts", "--target", "ES2022", "--module", "ESNext", "--moduleResolution", "Bundler", "--lib", "ES2023,DOM,DOM.Iterable", "--strict", "--types", "node"], { stdio: "inherit" });
}
const tests = readdirSync("test").filter((name) => name.endsWith(".test.ts"));
await build({ ...common, entryPoints: tests.map((name) => `test/${name}`), format: "esm", platform: "node", sourcemap: "inline", outdir: "build/test" });
