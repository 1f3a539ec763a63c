import uPlot from "uplot";
const t0 = performance.now();
const n = 40, x = Array.from({length: n}, (_, i) => 2500 + 5000 * i), y = x.map((v) => 100 * Math.exp(-((v - 60000) ** 2) / 2e9)), lo = y.map((v) => v * .8), hi = y.map((v) => v * 1.2);
for (let k = 0; k < 4; k++) new uPlot({ width: 560, height: 280, scales: { x: { time: false } }, series: [{}, { label: "share", paths: uPlot.paths.bars({ size: [0.9] }) }, { label: "high" }, { label: "low" }], bands: [{ series: [2, 3], fill: "#0072b244" }], axes: [{ label: "salary (euro a year)" }, { label: "share of people" }] }, [x, y, hi, lo], document.body);
window.drawn = performance.now(); window.took = window.drawn - t0;
