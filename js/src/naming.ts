/** Which of the owner's fields a campaign may mean, by names that look alike: only to be offered (`device/naming.py`). */

/** Those of the known fields that look like a name, the most similar first. */
export function similarFields(name: string, known: readonly string[]): string[] {
  const wanted = letters(name);
  const scores = known.map((field, place) => {
    const other = letters(field);
    const [common, total] = shared(wanted, other);
    const holds = wanted !== "" && other !== "" && (wanted.includes(other) || other.includes(wanted));
    const alike = field === name || holds || (common > 0 && 4 * common >= total);
    return { field, alike, order: [Number(field !== name), Number(!holds), Math.floor((-2000 * common) / Math.max(total, 1)), place] };
  });
  return scores.filter(({ alike }) => alike).sort((a, b) => compare(a.order, b.order)).map(({ field }) => field);
}

function compare(a: number[], b: number[]): number {
  const i = a.findIndex((x, at) => x !== b[at]);
  return i < 0 ? 0 : (a[i] as number) - (b[i] as number);
}

/** Letters count, in either case; digits, spaces and ASCII punctuation do not. */
function letters(name: string): string {
  return name.replace(/[\0-@[-`{-\x7f]/g, "").replace(/[A-Z]/g, (c) => c.toLowerCase());
}

/** Pairs of neighbouring letters that two words share, and how many they have together. */
function shared(a: string, b: string): [number, number] {
  const [one, two] = [a, b].map((word) => {
    const each = [...word];
    return new Set(each.slice(1).map((c, i) => `${each[i]}${c}`));
  }) as [Set<string>, Set<string>];
  return [[...one].filter((pair) => two.has(pair)).length, one.size + two.size];
}
