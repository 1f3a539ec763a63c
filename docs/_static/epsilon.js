// The figure of explanation/epsilon.html: drag epsilon and the number of people, see the band. It loads nothing and
// sends nothing. Without script the page shows a picture instead.
"use strict";

/** Half the 95 % interval of a cell's share when n people answer one question with OUE (p = 1/2, q = 1/(e^epsilon + 1)). */
function halfWidth(epsilon, n, share) {
  const p = 0.5;
  const q = 1 / (Math.exp(epsilon) + 1);
  const variance = (q * (1 - q)) / (n * (p - q) ** 2) + (share * (1 - p - q)) / (n * (p - q));
  return 1.96 * Math.sqrt(variance);
}

/** What one report can do to the odds between two values, as words. */
function oddsText(epsilon) {
  const factor = Math.exp(epsilon);
  return `One report can shift the odds between two values by a factor of at most ${factor.toPrecision(3)}.`;
}

function slider(label, min, max, step, value) {
  const box = document.createElement("label"); // holds the text and the slider, so the text names it
  const input = document.createElement("input");
  const text = document.createElement("span");
  Object.assign(input, { type: "range", min, max, step, value });
  text.textContent = label;
  box.append(text, input);
  box.className = "epsilon-slider";
  return { box, input, text };
}

function draw(canvas, shares, epsilon, n) {
  const width = 680, height = 240, top = 12, bar = width / shares.length;
  const most = 0.4; // the share at the top of the figure; wider bands are cut off there
  const scale = (height - top) / most;
  const clip = (y) => Math.min(Math.max(y, 0), most);
  const parts = shares.map((share, i) => {
    const half = halfWidth(epsilon, n, share);
    const x = i * bar, mid = x + bar / 2;
    const low = height - clip(share - half) * scale, high = height - clip(share + half) * scale;
    return `<rect class="bar" x="${x + 1}" y="${height - share * scale}" width="${bar - 2}" height="${share * scale}"/>` +
      `<rect class="band" x="${mid - 3}" y="${high}" width="6" height="${low - high}"/>`;
  });
  canvas.innerHTML = `<svg viewBox="0 0 ${width} ${height}" role="img" aria-label="Shares of sixteen cells with their bands">` +
    `${parts.join("")}<line x1="0" x2="${width}" y1="${height}" y2="${height}"/></svg>`;
}

function start(place) {
  const shares = place.dataset.shares.split(",").map(Number);
  const epsilon = slider("", 0.1, 5, 0.1, 1);
  const people = slider("", 2, 6, 0.1, 4);
  const canvas = document.createElement("div");
  const said = document.createElement("p");
  said.setAttribute("aria-live", "polite");
  const update = () => {
    const e = Number(epsilon.input.value), n = Math.round(10 ** Number(people.input.value));
    epsilon.text.textContent = `epsilon: ${e.toFixed(1)}`;
    people.text.textContent = `people: ${n.toLocaleString("en")}`;
    epsilon.input.setAttribute("aria-valuetext", `epsilon ${e.toFixed(1)}`); // as a screen reader says it
    people.input.setAttribute("aria-valuetext", `${n.toLocaleString("en")} people`);
    draw(canvas, shares, e, n);
    const points = 100 * halfWidth(e, n, 0.1);
    said.textContent = `${oddsText(e)} With ${n.toLocaleString("en")} people, a share of 10 % is known within ` +
      `${points.toPrecision(2)} points (95 % interval).`;
  };
  for (const control of [epsilon, people]) control.input.addEventListener("input", update);
  place.append(epsilon.box, people.box, canvas, said);
  update();
}

if (typeof document === "undefined") {
  module.exports = { halfWidth, oddsText };
} else {
  const place = document.getElementById("epsilon-figure");
  if (place) start(place);
}
