/** Numbers as people write them, and languages: what is read, what is asked back, what is shipped. */

import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { test } from "node:test";
import { LANGUAGES, pickLanguage } from "../src/languages/index.js";
import { figures, inWords, readNumber } from "../src/numbers.js";

const READ: [string, string, number | [number, number] | null][] = [
  ["52.000", "de", 52000],
  ["52.000", "de-AT", 52000],
  ["52.000", "de-CH", [52000, 52]],
  ["52.000", "es", 52000],
  ["52,000", "en", 52000],
  ["52,000", "zh", 52000],
  ["52.000", "en", [52000, 52]],
  ["52,000", "de", [52000, 52]],
  ["52.000", "fr", [52000, 52]],
  ["52,000", "fr", [52000, 52]],
  ["-52.000", "en", [-52000, -52]],
  ["52 000", "fr", 52000],
  ["52\u202f000,5", "fr", 52000.5],
  ["52'000", "de-CH", 52000],
  ["52’000.50", "en", 52000.5],
  ["1.234.567", "en", 1234567],
  ["1,234.5", "de", 1234.5],
  ["1.234,5", "en", 1234.5],
  ["5,20,000", "en-IN", 520000],
  ["52.5", "de", 52.5],
  ["52,5", "en", 52.5],
  ["0.125", "de", 0.125],
  ["0,125", "en", 0.125],
  ["52000", "en", 52000],
  ["52000.", "en", null],
  ["５２，０００", "zh", 52000],
  ["€52,000", "en", 52000],
  ["52.000 €", "de", 52000],
  ["52.000 Euro", "de", 52000],
  ["−7", "en", -7],
  ["+7", "en", 7],
  ["", "en", null],
  [".", "en", null],
  ["52k", "en", null],
  ["1,2,3", "en", null],
  ["1e5", "en", null],
  ["0x10", "en", null],
  ["1.2.3", "de", null],
  ["52 0000", "en", null],
  ["NaN", "en", null],
];
for (const [text, language, expected] of READ)
  test(`"${text}" in ${language}`, () => {
    const found = readNumber(text, language, "Euro");
    assert.deepEqual(found, expected === null ? null : Array.isArray(expected) ? { either: expected } : { number: expected });
  });

test("a number is repeated in figures and words", () => {
  assert.equal(figures(52000, "de"), "52.000");
  assert.equal(figures(0.1, "fr"), "0,1");
  assert.equal(inWords(52000, "en"), "52 thousand");
  assert.equal(inWords(52000, "de"), "52 Tausend");
  assert.equal(inWords(52350, "en"), "52.35 thousand");
  assert.equal(inWords(42, "en"), "");
});

test("what was written as shown is read as the same number, in every language", () => {
  for (const { tag } of LANGUAGES)
    for (const number of [7, 999, 52000, 1234567, -52000, 0.5, 1234.25]) assert.deepEqual(readNumber(figures(number, tag), tag), { number }, `${number} in ${tag}`);
});

test("every language has every text, and all but English await a reader", () => {
  const keys = Object.keys(LANGUAGES[0]!.texts).sort();
  for (const { tag, read, texts } of LANGUAGES) {
    assert.deepEqual(Object.keys(texts).sort(), keys);
    assert.deepEqual(Object.keys(texts.refused).sort(), Object.keys(LANGUAGES[0]!.texts.refused).sort());
    assert.equal(read, tag === "en");
    assert.equal(texts.unread !== "", tag !== "en");
    for (const [name, text] of Object.entries(texts)) if (typeof text === "string" && text.length > 12 && tag !== "en") assert.notEqual(text, LANGUAGES[0]!.texts[name as "go"], `${tag}.${name}`);
  }
});

test("a language is one file", () => {
  const files = readdirSync("src/languages").filter((name) => !["index.ts", "language.ts"].includes(name));
  assert.deepEqual(files.sort(), LANGUAGES.map(({ tag }) => `${tag}.ts`).sort());
});

test("the browser chooses, and whatever it says nothing else can be chosen", () => {
  const tag = (...wanted: string[]) => pickLanguage(wanted).tag;
  assert.equal(tag("de-CH", "en"), "de");
  assert.equal(tag("nl", "FR-ca"), "fr");
  assert.equal(tag("zh_Hant"), "zh");
  for (const strange of ["", "__proto__", "constructor", "<script>", "../en", "de<b>", "toString"]) assert.equal(tag(strange), "en");
  assert.equal(tag(), "en");
});
