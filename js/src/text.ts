/** What a text may hold: the table of `device/texts.py`, so that no browser's version of Unicode decides. */

import { refuse } from "./canonical.js";

// First and last of every range that does not print, as hexadecimal: controls, spaces but for U+0020, format characters, surrogates,
// private use, noncharacters, and what Unicode reserves for characters without a shape.
const RANGES =
  "0-1f 7f-a0 ad 600-605 61c 6dd 70f 890-891 8e2 1680 180e 2000-200f 2028-202f 205f-206f 3000 d800-f8ff fdd0-fdef feff fff0-fffb fffe-ffff " +
  "110bd 110cd 13430-1343f 1bca0-1bca3 1d173-1d17a e0000-e00ff e01f0-e0fff f0000-10ffff";
const PLANES = Array.from({ length: 14 }, (_, i) => `${(i + 1).toString(16)}fffe-${(i + 1).toString(16)}ffff`);
const TABLE = [...RANGES.split(" "), ...PLANES].map((range) => range.split("-").map((end) => `\\u{${end}}`).join("-"));
const UNPRINTABLE = new RegExp(`[${TABLE.join("")}]`, "u");

/** Whether every character of a text can be seen, or is U+0020. */
export function isPrintable(text: string): boolean {
  return !UNPRINTABLE.test(text);
}

/** The name itself if it is short and printable, without spaces around. */
export function checkName(name: unknown, what: string): string {
  return isShort(name, 200) && isPrintable(name) && !/^ | $/.test(name) ? name : refuse(`${what} is no short printable text`);
}

/** The value itself if it is a text for people: not empty, not endless, printable but for the ends of lines. */
export function checkText(value: unknown, what: string): string {
  return isShort(value, 10_000) && isPrintable(value.replaceAll("\n", "")) ? value : refuse(`${what} is no printable text`);
}

function isShort(value: unknown, most: number): value is string {
  return typeof value === "string" && value !== "" && [...value].length <= most;
}
