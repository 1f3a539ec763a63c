/** The languages that are shipped, and which one a browser asks for. A new one is a file here and its name in the list. */

import { de } from "./de.js";
import { en, type Texts } from "./en.js";
import { es } from "./es.js";
import { fr } from "./fr.js";
import type { Language } from "./language.js";
import { zh } from "./zh.js";

export type { Language, Texts };

export const LANGUAGES: readonly Language[] = [en, de, fr, es, zh];

/** The first wanted language that is shipped, by the part before the hyphen; English if none is. */
export function pickLanguage(wanted: readonly string[]): Language {
  const tags = wanted.map((tag) => tag.toLowerCase().split(/[-_]/u)[0]);
  return tags.map((tag) => LANGUAGES.find((language) => language.tag === tag)).find((language) => language !== undefined) ?? en;
}

/** Why a device does not answer, in the words of the page. */
export function plainReason(reason: string, texts: Texts): string {
  const field = /^the field (.*) (was reported before|would exceed)/su.exec(reason);
  if (field) return texts.reported(field[1] ?? "");
  const least = /^groups may be smaller than (\d+)/u.exec(reason);
  if (least) return texts.smallGroups(least[1] ?? "");
  return Object.hasOwn(texts.refused, reason) ? (texts.refused[reason] as string) : texts.brokenRule(reason);
}
