import { compile } from "vega-lite";
import { parse, View } from "vega";
const t0 = performance.now();
const n = 40, values = Array.from({length: n}, (_, i) => { const v = 2500 + 5000 * i, y = 100 * Math.exp(-((v - 60000) ** 2) / 2e9); return { x1: v - 2500, x2: v + 2500, x: v, y, lo: y * .8, hi: y * 1.2 }; });
const q = (field, title) => ({ field, type: "quantitative", title });
const spec = { width: 500, height: 240, data: { values }, layer: [{ mark: "rect", encoding: { x: q("x1", "salary (euro a year)"), x2: { field: "x2" }, y: q("y", "share of people"), y2: { datum: 0 } } }, { mark: "rule", encoding: { x: q("x", ""), y: q("lo", ""), y2: { field: "hi" } } }] };
const all = [];
for (let k = 0; k < 4; k++) { const div = document.createElement("div"); document.body.append(div); all.push(new View(parse(compile(spec).spec), { renderer: "svg", container: div }).runAsync()); }
Promise.all(all).then(() => { window.drawn = performance.now(); window.took = window.drawn - t0; });
