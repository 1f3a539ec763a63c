/** What a device may still give away: the rules of every ledger, as in Python (`device/budget.py`); tests/vectors/ledger.json pins them. */

import { refuse } from "./canonical.js";
import { atMost, plus, type Ratio } from "./epsilon.js";

/** Epsilon that a campaign's report costs one field; null is a field that the owner was not sure about, and counts against all. */
export interface Charge {
  campaign: string;
  field: string | null;
  epsilon: [string, string]; // numerator and denominator
}

/** What the owner allows in a lifetime: over all fields, and for single fields that may be reported again. */
export interface Limits {
  lifetime: Ratio;
  fields: ReadonlyMap<string, Ratio>;
}

/** One field of a statement: what counts against it, its own limit if it has one, and what is left of it. */
export interface Line {
  field: string | null;
  charges: Charge[];
  spent: Ratio;
  limit: Ratio | null;
  left: Ratio;
}

export interface Statement {
  lines: Line[];
  spent: Ratio;
  lifetime: Ratio;
  left: Ratio;
}

const NOTHING: Ratio = { num: 0n, den: 1n };

/** Refuse a report that would charge a field, or a lifetime, more than the owner allows. */
export function checkCharge(charges: readonly Charge[], campaign: string, fields: readonly (string | null)[], epsilon: Ratio, limits: Limits): void {
  const others = charges.filter((charge) => charge.campaign !== campaign);
  if (!atMost(plus(sum(others), epsilon), limits.lifetime)) refuse("the lifetime limit over all fields would be exceeded");
  const concerned = new Set(fields);
  if (concerned.has(null)) for (const name of known(others, limits)) concerned.add(name);
  for (const name of concerned) {
    const before = against(others, name);
    const limit = name === null ? undefined : limits.fields.get(name);
    if (limit && !atMost(plus(sum(before), epsilon), limit)) refuse(`the field ${name} would exceed its lifetime limit`);
    if (!limit && before.length) refuse(`the field ${name ?? "that is not named"} was reported before, and no lifetime limit allows more`);
  }
}

/** What the charges amount to, for the owner to see. */
export function makeStatement(charges: readonly Charge[], limits: Limits): Statement {
  const spent = sum(charges);
  const left = minus(limits.lifetime, spent);
  const names: (string | null)[] = known(charges, limits);
  if (charges.some(({ field }) => field === null)) names.push(null);
  const lines = names.map((field): Line => {
    const own = [...new Map(against(charges, field).map((charge) => [charge.campaign, charge])).values()]; // one a report
    const limit = (field !== null && limits.fields.get(field)) || null;
    const rest = limit ? minus(limit, sum(own)) : NOTHING;
    return { field, charges: own, spent: sum(own), limit, left: atMost(rest, left) ? rest : left };
  });
  return { lines, spent, lifetime: limits.lifetime, left };
}

/** Every field that was charged or has a limit, in order. */
function known(charges: readonly Charge[], limits: Limits): string[] {
  return [...new Set([...charges.flatMap(({ field }) => field ?? []), ...limits.fields.keys()])].sort();
}

/** The charges that count against a field: its own, and those of which nobody knows the field. */
function against(charges: readonly Charge[], name: string | null): Charge[] {
  return charges.filter(({ field }) => field === null || field === name);
}

/** Epsilon of all campaigns, each once: a report about two fields is still one report. */
function sum(charges: readonly Charge[]): Ratio {
  const largest = new Map<string, Ratio>();
  for (const { campaign, epsilon } of charges) {
    const one = { num: BigInt(epsilon[0]), den: BigInt(epsilon[1]) };
    const before = largest.get(campaign);
    if (!before || atMost(before, one)) largest.set(campaign, one);
  }
  return [...largest.values()].reduce(plus, NOTHING);
}

function minus(a: Ratio, b: Ratio): Ratio {
  return atMost(a, b) ? NOTHING : { num: a.num * b.den - b.num * a.den, den: a.den * b.den };
}
