/** Epsilon as an exact rational, and a rational lower bound of its exponential. */

import { refuse } from "./canonical.js";

const DECIMAL = /^[0-9]{1,12}(\.[0-9]{1,30})?$/;
const LARGEST = 64n;
const ONE = 1n << 320n; // the fixed point of the exponential

/** A non-negative rational number. */
export interface Ratio {
  num: bigint;
  den: bigint;
}

/** Epsilon from its wire form, a plain decimal string such as "1.1". */
export function parseEpsilon(text: unknown): Ratio {
  if (typeof text !== "string" || !DECIMAL.test(text)) refuse("epsilon is no plain decimal");
  const [whole, part = ""] = text.split(".") as [string, string?];
  if (/^0\d|\..*0$/.test(text) || (whole + part).replace(/^0+/, "").length > 28) refuse("epsilon is no plain decimal");
  const ratio = { num: BigInt(whole + part), den: 10n ** BigInt(part.length) };
  if (ratio.num <= 0n || ratio.num > LARGEST * ratio.den) refuse("epsilon is outside 0..64");
  return ratio;
}

export function atMost(a: Ratio, b: Ratio): boolean {
  return a.num * b.den <= b.num * a.den;
}

export function plus(a: Ratio, b: Ratio): Ratio {
  return { num: a.num * b.den + b.num * a.den, den: a.den * b.den };
}

/** A rational below exp(x), less than 1e-50 apart in ratio: every term of the series is rounded down. */
export function expBelow(x: Ratio): Ratio {
  let sum = 0n;
  let term = ONE;
  for (let i = 1n; term > 0n; i++) {
    sum += term;
    term = (term * x.num) / (x.den * i);
  }
  return { num: sum, den: ONE };
}
