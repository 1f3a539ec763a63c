/** The words in which a campaign asks: part of its record, bound by its digest (`device/wording.py`). */

import { isRecord, refuse } from "./canonical.js";
import type { Attribute } from "./codes.js";
import { isPrintable } from "./text.js";

/** How one attribute is asked about. `choices` has a text for each category, in their order. */
export interface Wording {
  question: string;
  unit: string;
  help: string;
  example: string;
  choices: readonly string[];
  outside: "ask" | "nearest";
}

const LONGEST: [keyof Wording & ("question" | "unit" | "help" | "example"), number][] = [["question", 300], ["unit", 40], ["help", 1000], ["example", 60]];
const LONGEST_CHOICE = 200;

/** The words of each attribute that has some, in their order; none for a campaign from before there were words. */
export function wordingFrom(records: unknown, schema: readonly Attribute[]): Map<string, Wording> {
  if (records === undefined) return new Map();
  if (!Array.isArray(records) || !records.length || !records.every(isRecord)) refuse("not a campaign");
  let next = 0;
  return new Map(
    records.map((given) => {
      const at = schema.findIndex((attribute, i) => i >= next && attribute.name === given["attribute"]);
      if (at < 0) refuse("not a campaign");
      next = at + 1;
      return [given["attribute"] as string, oneFrom(given, schema[at] as Attribute)];
    }),
  );
}

function oneFrom(given: { [key: string]: unknown }, attribute: Attribute): Wording {
  if (!Object.hasOwn(given, "question")) refuse("not a campaign");
  const known = [...LONGEST.map(([name]) => name as string), "attribute", "choices", "outside"];
  if (Object.keys(given).some((name) => !known.includes(name))) refuse("not a campaign");
  const words: Wording = { question: "", unit: "", help: "", example: "", choices: [], outside: "ask" };
  for (const [name, most] of LONGEST) if (Object.hasOwn(given, name)) words[name] = text(given[name], most, name === "help");
  if (Object.hasOwn(given, "choices")) words.choices = choices(given["choices"], attribute);
  if (Object.hasOwn(given, "outside")) {
    if (given["outside"] !== "nearest" || attribute.labels) refuse("not a campaign");
    words.outside = "nearest";
  }
  return words;
}

function choices(given: unknown, attribute: Attribute): string[] {
  if (!Array.isArray(given) || !attribute.labels || given.length !== attribute.labels.length) refuse("not a campaign");
  const texts = given.map((each) => text(each, LONGEST_CHOICE, false));
  return new Set(texts).size === texts.length ? texts : refuse("not a campaign");
}

function text(value: unknown, most: number, lines: boolean): string {
  const fits = typeof value === "string" && value !== "" && [...value].length <= most && !/^[ \n]|[ \n]$/.test(value);
  return fits && isPrintable(lines ? value.replaceAll("\n", "") : value) ? value : refuse("wording is no printable text");
}
