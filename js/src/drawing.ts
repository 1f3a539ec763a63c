/** Pieces of the participant's card: headings, the picture of what is given away, and the bits that were sent. */

import type { Offer } from "./client.js";
import { make } from "./controls.js";
import type { Ratio } from "./epsilon.js";
import type { Texts } from "./languages/index.js";

const SVG = "http://www.w3.org/2000/svg";

/** The heading of a card. */
export function heading(text: string): HTMLElement {
  return make("h1", {}, text);
}

/** A sentence that screen readers say when it appears. */
export function status(text: string): HTMLElement {
  return make("p", { role: "status", class: "status" }, text);
}

/** A point in time as people write it where they are. */
export function moment(seconds: number, locale?: string): string {
  return new Date(seconds * 1000).toLocaleString(locale, { dateStyle: "long", timeStyle: "short" });
}

/** e to the epsilon, as people read it. */
export function leak(offer: Offer, locale?: string): string {
  const value = Math.exp(Number(offer.campaign.record["epsilon"]));
  return new Intl.NumberFormat(locale, { maximumFractionDigits: value < 10 ? 1 : 0, minimumFractionDigits: value < 10 ? 1 : 0 }).format(value);
}

/** Two bars for made-up values: the same noisy answer, with one value and with another. */
export function picture(offer: Offer, texts: Texts, factor: string): Element {
  const width = 100 / Math.exp(Number(offer.campaign.record["epsilon"]));
  const drawing = document.createElementNS(SVG, "svg");
  for (const [name, value] of Object.entries({ viewBox: "0 0 260 48", role: "img", "aria-label": texts.pictureLabel(factor) })) drawing.setAttribute(name, value);
  const put = (tag: string, attributes: { [name: string]: string | number }, text = ""): void => {
    const element = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
    element.textContent = text;
    drawing.append(element);
  };
  [[100, texts.pictureA], [width, texts.pictureB]].forEach(([size, label], i) => {
    put("rect", { x: 0, y: 2 + 24 * i, width: Math.max(Number(size), 1), height: 16, class: i ? "bar other" : "bar" });
    put("text", { x: 108, y: 14 + 24 * i }, String(label));
  });
  return drawing;
}

/** What was given away so far, on what, to whom, and what is left; nothing before the first answer. */
export function givenAway({ statement, askers }: Pick<Offer, "statement" | "askers">, texts: Texts): HTMLElement {
  const number = ({ num, den }: Ratio): string => String(Math.round((Number(num) / Number(den)) * 100) / 100);
  const box = make("div", {});
  if (!statement.lines.length) return box;
  const items = statement.lines.map((line) => {
    const each = line.charges.map(({ campaign, epsilon: [num, den] }) => {
      const [asker, cost] = [askers[campaign], number({ num: BigInt(num), den: BigInt(den) })];
      return make("li", {}, asker ? texts.givenTo(cost, asker.controller, asker.title) : texts.givenEarlier(cost));
    });
    return make("li", {}, texts.givenField(line.field, number(line.spent)), make("ul", {}, ...each));
  });
  box.append(make("h2", {}, texts.givenTitle), make("p", {}, texts.givenInAll(number(statement.spent), number(statement.lifetime), number(statement.left))), make("ul", { class: "given" }, ...items));
  return box;
}

/** The choice that a noisy answer names, where it names one: of one question with choices, by a law that sends one of them. */
function sentChoice(payload: string, { campaign, question }: Offer, texts: Texts): string {
  const [attribute, ...more] = question.attributes;
  if (question.law.name !== "grr" || more.length || !attribute?.labels || payload.length !== 2) return "";
  const words = campaign.wording.get(attribute.name)?.choices ?? [];
  const names = attribute.labels.map((label, code) => words[code] ?? label);
  if (attribute.missing === "cell") names.push(texts.noValue);
  return names.filter((_, code) => question.partition.cell([code]) === parseInt(payload, 16)).join(" / ");
}

/** The payload: as marks where a bit is a cell, as the choice it names, else as digits. */
export function sentBits(payload: string, offer: Offer | undefined, texts: Texts): HTMLElement {
  const law = offer?.question.law;
  const chosen = offer ? sentChoice(payload, offer, texts) : "";
  if (chosen) return make("div", {}, make("p", {}, texts.sentChoice(chosen)), make("code", { class: "code" }, payload));
  if (!law || !["oue", "sue", "ss"].includes(law.name) || law.cells > 512) return make("code", { class: "code" }, payload);
  const row = make("div", { class: "bits", role: "img", "aria-label": `${texts.whatSent}: ${payload}` });
  for (let i = 0; i < law.cells; i++) row.append(make("span", { class: parseInt(payload.slice(2 * (i >> 3), 2 * (i >> 3) + 2), 16) & (1 << (i & 7)) ? "on" : "" }));
  return make("div", {}, row, make("p", { class: "note" }, texts.cells), make("code", { class: "code" }, payload));
}
