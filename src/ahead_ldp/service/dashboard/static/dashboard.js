/** The little script of the dashboard: live progress, a plan while typing, and queries by dragging. */

const csrf = document.querySelector('meta[name="csrf"]')?.content ?? "";
const $ = (id) => document.getElementById(id);

async function post(path, fields) {
  const answer = await fetch(path, { method: "POST", body: new URLSearchParams({ ...fields, csrf }), redirect: "error" });
  return answer.json();
}

// The link that `ahead serve --init` prints has the token behind the #, which browsers send nowhere.
const fillToken = () => {
  if (!$("token") || location.hash.length < 2) return;
  $("token").value = location.hash.slice(1);
  history.replaceState(null, "", location.pathname);
};
fillToken();
addEventListener("hashchange", fillToken); // the link was pasted where this page stood already: it is not loaded again

// A form is sent once, also by whoever clicks twice. A page that the browser brings back has not been sent.
const sent = new Map();
document.addEventListener("submit", (event) => {
  if (event.defaultPrevented || event.target.getAttribute("method") !== "post") return;
  const by = event.submitter ?? event.target;
  const pause = by.formTarget ? 2_000 : 10_000; // what opens beside the page may be asked for again
  if (performance.now() - (sent.get(by) ?? -Infinity) < pause) event.preventDefault();
  else sent.set(by, performance.now());
});
addEventListener("pageshow", () => sent.clear());

// Progress of the open wave.
const progress = $("progress");
if (progress?.dataset.live) {
  const refresh = async () => {
    if (document.hidden) return;
    const answer = await fetch(progress.dataset.live, { redirect: "error" }).catch(() => null);
    if (!answer?.ok) return;
    const { progress: now, target, standing } = await answer.json();
    const shown = Object.fromEntries([...progress.querySelectorAll("progress")].map((p) => [p.dataset.group, p]));
    const known = now.groups.every((g) => shown[g.group]) && now.groups.length === Object.keys(shown).length;
    if (!known || standing.state !== $("state").textContent) return location.reload(); // there is something else to do now
    $("headline").textContent = standing.headline;
    $("facts").textContent = standing.facts.join(" ");
    $("next").textContent = standing.next;
    for (const g of now.groups) {
      shown[g.group].value = Math.min(g.reports, target);
      const more = g.state === "open" ? `of ${target.toLocaleString("en")}` : `(${g.state === "void" ? "given up" : g.state})`;
      progress.querySelector(`[data-count="${CSS.escape(g.group)}"]`).textContent = `${g.reports.toLocaleString("en")} ${more}`;
    }
    if ($("reached")) $("reached").textContent = now.groups.filter((g) => g.reports >= target).length;
    if ($("reports")) $("reports").textContent = now.reports.toLocaleString("en");
    const refused = Object.entries(now.refused).map(([reason, count]) => {
      const item = document.createElement("li");
      item.textContent = `${reason.replaceAll("_", " ").replace("wave", "round")}: ${count.toLocaleString("en")}`;
      return item;
    });
    if (refused.length) $("refused").replaceChildren(...refused);
  };
  setInterval(refresh, 2000);
}

// A rehearsal: how far it is, and then its results.
const rehearsing = $("rehearsing");
if ($("said")) {
  const look = async () => {
    const answer = await fetch(rehearsing.dataset.live, { redirect: "error" }).catch(() => null);
    const found = answer?.ok ? await answer.json() : null;
    if (found?.done) return location.reload();
    if (found) $("said").textContent = found.said;
    setTimeout(look, 700);
  };
  setTimeout(look, 700);
}

// Copy a link, and say so.
for (const button of document.querySelectorAll("[data-copy]")) {
  button.addEventListener("click", async () => {
    const said = button.closest(".row").querySelector("[role=status]");
    const done = await navigator.clipboard?.writeText($(button.dataset.copy).textContent).then(() => true, () => false);
    said.textContent = done ? "Copied." : "Please mark the link and copy it.";
  });
}

// What stands in the form of a new campaign stays in this tab until the campaign is kept: a reload, the way back,
// and a visit that ended meanwhile, lose nothing of it.
const typed = {
  name: "new-campaign",
  read: () => JSON.parse(sessionStorage.getItem(typed.name) ?? "null"),
  keep: (kept) => sessionStorage.setItem(typed.name, JSON.stringify(kept)),
  drop: () => sessionStorage.removeItem(typed.name),
};
if ($("state") && typed.read()?.sent) typed.drop(); // the page of the campaign that was made of it
document.querySelector('form[action="/logout"]')?.addEventListener("submit", typed.drop);

// A new campaign: questions are added and removed, and the plan follows what stands in the form.
const form = $("new-campaign");
if (form) {
  let timer = 0;
  let asked = "";
  const plan = async () => {
    const fields = Object.fromEntries(new FormData(form));
    const text = JSON.stringify(fields);
    if (text === asked) return;
    asked = text;
    $("plan-text").replaceChildren(item("Working it out …"));
    const found = await post("/new/plan", fields).catch(() => ({ wrong: "The plan could not be made." }));
    if (text !== asked) return;
    $("plan-text").replaceChildren(...(found.wrong ? [found.wrong] : found.sentences).map(item));
    buys(found.error);
  };
  // Epsilon: what it costs people is worked out here, what it buys comes with the plan.
  const tradeoff = () => {
    const epsilon = Number(form.elements.epsilon.value);
    $("tradeoff").hidden = !(epsilon > 0);
    const sure = 1 / (1 + Math.exp(-epsilon));
    $("tradeoff").querySelector(".cost").setAttribute("width", 300 * (2 * sure - 1));
    const percent = `${(100 * sure).toFixed(sure > 0.99 ? 1 : 0)} %`;
    $("tradeoff").querySelector(".sure").textContent = `${percent} sure`;
    $("costs").textContent = `Suppose that somebody wavers between two answers of yours. Your noisy answer can make them ${percent} sure, and no surer. A toss of a coin is right in 50 %.`;
    for (const one of form.querySelectorAll("[data-epsilon]")) one.setAttribute("aria-pressed", String(Number(one.dataset.epsilon) === epsilon));
  };
  const buys = (error) => {
    $("tradeoff").querySelector(".bar").setAttribute("width", error ? Math.min(300, 12 * Number(error)) : 0);
    $("tradeoff").querySelector(".off").textContent = error ? `${error} points` : "";
    $("buys").textContent = error ? `19 of 20 of your answers will be at most ${error} points off.` : "";
  };
  form.addEventListener("click", (event) => {
    const value = event.target.dataset.epsilon;
    if (!value) return;
    form.elements.epsilon.value = value;
    settle();
  });
  const settle = () => {
    tradeoff();
    const close = form.elements.close.value;
    $("for-enough").hidden = !["enough", "both"].includes(close);
    $("for-time").hidden = !["time", "both"].includes(close);
    const all = [...form.querySelectorAll(".question")];
    for (const one of all) {
      const listed = ["scale", "choice"].includes(one.querySelector("select").value);
      one.querySelector(".ranged").hidden = listed;
      one.querySelector(".listed").hidden = !listed;
      const day = one.querySelector("select").value === "day";
      const labels = day ? ["First day", "Last day", "Days in a step"] : ["Smallest answer", "Largest answer", "Counted in steps of"];
      one.querySelectorAll(".triple label").forEach((label, i) => (label.textContent = labels[i]));
      for (const end of [...one.querySelectorAll(".triple input")].slice(0, 2)) if ((end.type === "date") !== day) end.type = day ? "date" : "text";
      one.querySelector('[name$="_unit"]').closest("div").hidden = day; // a day has none
      one.querySelector(".remove").hidden = all.length < 2;
      const bordered = Boolean(one.querySelector(".borders textarea").value.trim());
      for (const field of one.querySelectorAll(".triple input")) field.disabled = bordered;
    }
    clearTimeout(timer);
    timer = setTimeout(plan, 600);
  };
  const addQuestion = (next) => {
    const made = $("one-more").content.cloneNode(true);
    for (const element of made.querySelectorAll("*"))
      for (const name of ["id", "name", "for", "aria-describedby"]) {
        const value = element.getAttribute(name);
        if (value?.startsWith("q0_")) element.setAttribute(name, value.replace("q0_", `q${next}_`));
      }
    made.querySelector(".question").dataset.question = String(next);
    made.querySelector("legend").textContent = `Question ${next}`;
    $("questions").append(made);
  };
  $("add-question").addEventListener("click", () => {
    const next = 1 + Math.max(...[...form.querySelectorAll(".question")].map((one) => Number(one.dataset.question)), 0);
    addQuestion(next);
    form.elements[`q${next}_question`].focus();
    settle();
    keep();
  });
  form.addEventListener("click", (event) => {
    if (!event.target.classList.contains("remove")) return;
    event.target.closest(".question").remove();
    settle();
    keep();
  });
  form.addEventListener("input", settle);
  form.addEventListener("change", (event) => {
    if (!event.target.name?.endsWith("_kind")) return;
    for (const field of ["unit", "example"]) { // what the form began with belongs to another kind of answer
      const input = event.target.closest(".question").querySelector(`[name$="_${field}"]`);
      if (input.value === input.defaultValue) input.value = "";
    }
  });
  // After "change" above, which may empty a field.
  const keep = () => {
    const { csrf, ...fields } = Object.fromEntries(new FormData(form));
    typed.keep({ fields, like: location.search, sent: false });
  };
  for (const name of ["input", "change"]) form.addEventListener(name, keep);
  form.addEventListener("click", (event) => event.target.dataset.epsilon && keep());
  form.addEventListener("submit", (event) => {
    if (!event.submitter?.formTarget) typed.keep({ ...typed.read(), sent: true });
  });
  const restore = ({ fields }) => {
    const numbers = new Set(Object.keys(fields).flatMap((name) => name.match(/^q(\d+)_/)?.[1] ?? []));
    for (const one of form.querySelectorAll(".question")) if (!numbers.has(one.dataset.question)) one.remove();
    for (const n of numbers) if (!form.elements[`q${n}_question`]) addQuestion(Number(n));
    for (const field of form.querySelectorAll("[name]")) {
      if (field.name === "csrf") continue;
      if (field.type === "checkbox") field.checked = field.name in fields;
      else if (field.name in fields) field.value = fields[field.name];
    }
    $("restored").hidden = false;
  };
  $("afresh").addEventListener("click", () => {
    typed.drop();
    location.assign(location.pathname + location.search);
  });
  const before = typed.read();
  const answered = document.querySelector(".problem"); // the server has sent back what was typed, and what is wrong with it
  if (before && answered) typed.keep({ ...before, sent: false });
  else if (before && ["", before.like].includes(location.search)) restore(before);
  settle();
}

// Queries.
function item(text) {
  const line = document.createElement("li");
  line.textContent = text;
  return line;
}
const asking = $("asking");
async function ask(fields) {
  $("answer").textContent = "…";
  const found = await post(asking.dataset.ask, fields).catch(() => ({ wrong: "The server cannot be reached." }));
  if (found.wrong) {
    $("answer").textContent = found.wrong;
    $("command").textContent = "";
    $("remarks").replaceChildren();
    return;
  }
  $("query").value = found.query;
  const picked = found.picked && `; ${found.picked} if you picked it by looking at the pictures`;
  const truth = found.truth && ` In truth ${found.truth}.`;
  const [share, true_] = [document.createElement("strong"), document.createElement("span")];
  share.textContent = found.text;
  true_.className = "true";
  true_.textContent = truth;
  $("answer").replaceChildren(share, ` (95 % interval: ${found.interval}${picked})`, true_);
  $("command").textContent = found.command;
  $("remarks").replaceChildren(...found.notes.map(item));
  $("history").prepend(item(`${found.query}: ${found.text} (${found.interval}${picked})${truth}`));
}
if (asking) {
  $("ask").addEventListener("submit", (event) => {
    event.preventDefault();
    ask({ query: $("query").value });
  });
  for (const chart of document.querySelectorAll(".chart[data-attribute]")) drag(chart);
}

// Parts of the page that take a while: attributes when somebody opens them, and pictures one after the other.
async function fetched(path) {
  const ask = () => fetch(path, { redirect: "error" }).catch(() => null);
  let answer = await ask();
  for (let again = 0; answer?.status === 429 && again < 30; again++) {
    await new Promise((go) => setTimeout(go, 1000 * (1 + Math.random()))); // others are looking, too
    answer = await ask();
  }
  if (!answer?.ok) return null;
  const made = new DOMParser().parseFromString(await answer.text(), "text/html"); // our own page: everything in it is escaped
  for (const chart of made.querySelectorAll(".chart[data-attribute]")) drag(chart);
  return [...made.body.children];
}
async function fill(within) {
  for (const part of [...within.querySelectorAll(".part")]) {
    const made = await fetched(part.dataset.part);
    if (made) part.replaceWith(...made);
    else part.textContent = "This could not be loaded. Load the page again to try.";
  }
}
for (const part of document.querySelectorAll("details.lazy")) {
  part.addEventListener("toggle", async () => {
    if (!part.open || part.dataset.done) return;
    part.dataset.done = "1";
    const place = part.lastElementChild;
    const made = await fetched(part.dataset.part);
    if (!made) {
      part.dataset.done = "";
      place.textContent = "This could not be loaded. Close and open it to try again.";
      return;
    }
    place.replaceChildren(...made);
    fill(place);
  });
}
fill(document);
document.addEventListener("click", async (event) => {
  const link = event.target.closest?.("[data-swap]");
  if (!link) return;
  event.preventDefault();
  const made = await fetched(link.href);
  if (made) link.closest("figure").replaceWith(...made);
});

function drag(chart) {
  if (!asking) return; // whoever reads by a link asks nothing
  const d = chart.dataset;
  const [left, right, top, bottom] = [d.left, d.right, d.top, d.bottom].map(Number);
  const place = (event) => {
    const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(chart.getScreenCTM().inverse());
    const within = (x, lo, hi) => Math.min(Math.max((x - lo) / (hi - lo), 0), 1);
    return [within(point.x, left, right), 1 - within(point.y, top, bottom)];
  };
  const code = (share, codes) => Math.min(Math.floor(share * codes), codes - 1);
  let start = null;
  let box = null;
  chart.addEventListener("pointerdown", (event) => {
    start = place(event);
    chart.setPointerCapture(event.pointerId);
    chart.querySelector(".picked")?.remove();
    box = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    box.setAttribute("class", "picked");
    chart.append(box);
  });
  chart.addEventListener("pointermove", (event) => {
    if (!start) return;
    const now = place(event);
    const [x0, x1] = [start[0], now[0]].sort((a, b) => a - b);
    const [y0, y1] = d.down ? [start[1], now[1]].sort((a, b) => a - b) : [0, 1];
    box.setAttribute("x", left + (right - left) * x0);
    box.setAttribute("width", (right - left) * (x1 - x0));
    box.setAttribute("y", bottom - (bottom - top) * y1);
    box.setAttribute("height", (bottom - top) * (y1 - y0));
  });
  chart.addEventListener("pointerup", (event) => {
    if (!start) return;
    const now = place(event);
    const ends = (axis, codes) => [start[axis], now[axis]].map((share) => code(share, codes)).sort((a, b) => a - b);
    const picked = { [d.attribute]: ends(0, Number(d.codes)) };
    if (d.down) picked[d.down] = ends(1, Number(d.downCodes));
    start = null;
    asking.scrollIntoView({ block: "nearest" });
    ask({ drag: JSON.stringify(picked) });
  });
  chart.addEventListener("pointercancel", () => (start = null));
}
