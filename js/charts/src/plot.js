import { plot, rectY, ruleX, areaY, lineY, ruleY } from "@observablehq/plot";
const t0 = performance.now();
const n = 40, d = Array.from({length: n}, (_, i) => { const v = 2500 + 5000 * i, y = 100 * Math.exp(-((v - 60000) ** 2) / 2e9); return { x1: v - 2500, x2: v + 2500, x: v, y, lo: y * .8, hi: y * 1.2 }; });
for (let k = 0; k < 4; k++) document.body.append(plot({ width: 560, height: 280, x: { label: "salary (euro a year)" }, y: { label: "share of people" }, marks: [ruleY([0]), rectY(d, { x1: "x1", x2: "x2", y: "y" }), ruleX(d, { x: "x", y1: "lo", y2: "hi" }), areaY(d, { x: "x", y1: "lo", y2: "hi", fillOpacity: .2 }), lineY(d, { x: "x", y: "y" })] }));
window.drawn = performance.now(); window.took = window.drawn - t0;
