/** When a person for whom there is no question now should come back. Only public facts are read. */

import { isRecord } from "./canonical.js";
import { moment } from "./drawing.js";
import type { BrowserShelf } from "./ledger.js";
import type { Texts } from "./languages/index.js";

/** The sentence: after the present round, some other day, or not at all because their group was asked before. */
export async function whenToReturn(shelf: BrowserShelf, origin: string, campaign: string, texts: Texts, locale?: string): Promise<string> {
  const path = `${origin}/v1/campaigns/${campaign}`;
  const state = await read(`${path}/state`);
  const waves = (isRecord(state) && Array.isArray(state["waves"]) ? state["waves"] : []).filter(isRecord);
  const group = await shelf.update((book) => book.groups[`${campaign}/0`]);
  const open = waves.find((wave) => wave["state"] === "open");
  for (const wave of waves) {
    if (group === undefined || wave === open) continue;
    const shown = await read(`${path}/waves/${String(wave["number"])}`);
    const questions = isRecord(shown) && Array.isArray(shown["questions"]) ? shown["questions"] : [];
    if (questions.some((question) => isRecord(question) && question["group"] === group)) return texts.missed;
  }
  if (!open) return texts.notOpen;
  const closes = open["closes_at"];
  return typeof closes === "number" ? texts.comeBack(moment(closes, locale)) : texts.comeBackSoon;
}

async function read(url: string): Promise<unknown> {
  const init: RequestInit = { credentials: "omit", referrerPolicy: "no-referrer", redirect: "error" };
  const answer = await fetch(url, init).catch(() => null);
  return answer?.ok ? answer.json().catch(() => null) : null;
}
