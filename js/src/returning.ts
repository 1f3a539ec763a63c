/** When a person for whom there is no question now should come back. Only public facts are read. */

import { isRecord } from "./canonical.js";
import { make } from "./controls.js";
import { moment } from "./drawing.js";
import type { BrowserShelf } from "./ledger.js";
import type { Texts } from "./languages/index.js";

/** What is said, and the second after which it is worth coming back, if one is set. */
interface Return {
  said: string;
  after: number | null;
}

/** The sentence: after the present round, some other day, or not at all because their group was asked before. */
export async function whenToReturn(shelf: BrowserShelf, origin: string, campaign: string, texts: Texts, locale?: string): Promise<Return> {
  const path = `${origin}/v1/campaigns/${campaign}`;
  const state = await read(`${path}/state`);
  const waves = (isRecord(state) && Array.isArray(state["waves"]) ? state["waves"] : []).filter(isRecord);
  const group = await shelf.update((book) => book.groups[`${campaign}/0`]);
  const open = waves.find((wave) => wave["state"] === "open");
  for (const wave of waves) {
    if (group === undefined || wave === open) continue;
    const shown = await read(`${path}/waves/${String(wave["number"])}`);
    const questions = isRecord(shown) && Array.isArray(shown["questions"]) ? shown["questions"] : [];
    if (questions.some((question) => isRecord(question) && question["group"] === group)) return { said: texts.missed, after: null };
  }
  if (!open) return { said: texts.notOpen, after: null };
  const closes = open["closes_at"];
  return typeof closes === "number" ? { said: texts.comeBack(moment(closes, locale)), after: closes } : { said: texts.comeBackSoon, after: null };
}

/** A link to an entry for the person's calendar. It is made here: nobody is told, and it names no group. */
export function calendarLink(label: string, title: string, after: number): HTMLElement {
  const file = new Blob([calendarEntry(title, after, location.origin + location.pathname)], { type: "text/calendar" });
  return make("a", { href: URL.createObjectURL(file), download: "reminder.ics", class: "calendar" }, label);
}

/** The entry (RFC 5545): a quarter of an hour, from ten minutes after the round has closed. */
export function calendarEntry(title: string, after: number, link: string): string {
  const at = (second: number): string => `${new Date(1000 * second).toISOString().replace(/[-:]|\.\d+/gu, "")}`;
  const plain = (text: string): string => text.replace(/[\\;,]/gu, "\\$&").replace(/\s+/gu, " ");
  const start = after + 600;
  const lines = [
    ["BEGIN", "VCALENDAR"], ["VERSION", "2.0"], ["PRODID", "-//ahead-ldp//EN"], ["BEGIN", "VEVENT"],
    ["UID", `${crypto.randomUUID()}@ahead-ldp`], ["DTSTAMP", at(Math.floor(Date.now() / 1000))], ["DTSTART", at(start)],
    ["DTEND", at(start + 900)], ["SUMMARY", plain(title)], ["URL", link], ["END", "VEVENT"], ["END", "VCALENDAR"],
  ];
  return lines.map(([name, value]) => `${fold(`${name}:${value}`)}\r\n`).join("");
}

/** Lines of at most 75 bytes; what is longer goes on after a space. */
function fold(line: string): string {
  const bytes = new TextEncoder();
  const parts = [""];
  for (const letter of line) {
    const last = parts.length - 1;
    if (bytes.encode(parts[last] + letter).length > 74) parts.push(letter);
    else parts[last] += letter;
  }
  return parts.join("\r\n ");
}

async function read(url: string): Promise<unknown> {
  const init: RequestInit = { credentials: "omit", referrerPolicy: "no-referrer", redirect: "error" };
  const answer = await fetch(url, init).catch(() => null);
  return answer?.ok ? answer.json().catch(() => null) : null;
}
