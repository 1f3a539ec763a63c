/** Numbers as people write them where they are: "52.000" is fifty-two thousand in German and asked back elsewhere. */

/** What a text can mean: one number, two of which the person has to choose one, or none. */
export type Reading = { number: number } | { either: [number, number] } | null;

/** How people of a language write a number; `most` is how many digits after the point are kept. */
export function figures(number: number, language: string, most = 10): string {
  return new Intl.NumberFormat(language, { maximumFractionDigits: most }).format(number);
}

/** The number with a word for its size ("52 thousand"), where it has one; else nothing. */
export function inWords(number: number, language: string): string {
  if (Math.abs(number) < 1000) return "";
  return new Intl.NumberFormat(language, { notation: "compact", compactDisplay: "long", maximumSignificantDigits: 15 }).format(number);
}

/** The sign before the part below one, and the one between thousands, of a language. */
function signs(language: string): { point: string; comma: string } {
  const parts = new Intl.NumberFormat(language, { useGrouping: true }).formatToParts(1234567.5);
  const of = (type: string): string => parts.find((part) => part.type === type)?.value ?? "";
  return { point: of("decimal"), comma: of("group") };
}

/** The number behind a text if `point` is before the part below one and `comma` between thousands; NaN if it cannot be. */
function readAs(text: string, point: string, comma: string): number {
  const [whole = "", part, ...more] = text.split(point);
  if (more.length || (part !== undefined && !/^\d+$/u.test(part))) return NaN;
  const groups = whole.split(comma);
  const grouped = /^[1-9]\d{0,2}$/u.test(groups[0] as string) && groups.slice(1, -1).every((g) => /^\d{2,3}$/u.test(g)) && /^\d{3}$/u.test(groups.at(-1) as string);
  if (groups.length > 1 ? !grouped : !/^\d+$/u.test(whole)) return NaN;
  return Number(`${groups.join("")}.${part ?? "0"}`);
}

/**
 * What somebody wrote. Spaces and apostrophes between digits are between thousands everywhere. A text that two readings are left for is
 * the language's own if that takes the sign as one between thousands, where this browser's kind of it or its usual kind does; a point with three digits after it could be either, and is asked back.
 */
export function readNumber(given: string, language: string, unit = ""): Reading {
  let text = given.normalize("NFKC").trim();
  if (unit && text.endsWith(unit)) text = text.slice(0, -unit.length);
  text = text.replace(/^[$€£¥]|[$€£¥%]$/gu, "").replace(/−/gu, "-").trim();
  const sign = text.startsWith("-") ? -1 : 1;
  text = text.replace(/^[-+]\s*/u, "").replace(/(?<=\d)[\s'’](?=\d{3}(?!\d))/gu, "");
  if (!/^[\d.,]+$/u.test(text)) return null;
  const readings = new Set([readAs(text, ".", ","), readAs(text, ",", ".")].filter((x) => !Number.isNaN(x)));
  const [first, second] = [...readings];
  if (first === undefined) return null;
  if (second === undefined) return { number: sign * first };
  const here = signs(language);
  for (const { point, comma } of [here, signs(language.split("-")[0] as string)]) {
    const own = readAs(text, point, comma);
    if (point === here.point && text.includes(comma) && readings.has(own)) return { number: sign * own };
  }
  return { either: [sign * Math.max(first, second), sign * Math.min(first, second)] };
}
