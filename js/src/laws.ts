/** The integer laws of the randomisers (`device/laws/` in Python): the same integers, the same order of words. */

import { fields, integer, isRecord, refuse } from "./canonical.js";
import { atMost, expBelow, type Ratio } from "./epsilon.js";
import { below, type Words } from "./words.js";

const MOST_CELLS = 2 ** 31 - 2;
const PRIME = 2n ** 31n - 1n;

interface Shape {
  cells: number;
  bits: number;
  one: bigint; // 2**bits
  get(name: string): bigint;
}

/** What is a law's own; its parameters begin with the threshold of its coin. */
interface Kind {
  parameters: string;
  check?: ((law: Shape) => void) | undefined;
  ratio(law: Shape): Ratio;
  length(law: Shape): number;
  draw(law: Shape, code: number, words: Words): Uint8Array;
}

/** A law: how a cell becomes a payload, and how much that gives away. */
export interface Law {
  name: string;
  cells: number;
  payloadLength: number;
  isPrivate(epsilon: Ratio): boolean;
  draw(code: number, words: Words): Uint8Array;
}

const inside = (value: bigint, low: bigint, high: bigint): void => {
  if (value < low || value > high) refuse("not a law");
};
const big = (n: number): bigint => BigInt(n);
const bytesFor = (largest: bigint): number => Math.max(1, Math.ceil(largest.toString(2).length / 8));

function pack(value: bigint, length: number): Uint8Array {
  const data = new Uint8Array(length);
  for (let i = length - 1; i >= 0; i--, value >>= 8n) data[i] = Number(value & 255n);
  return data;
}

/** How many outcomes a value favours, and how many others there are. */
type Sides = (law: Shape) => [bigint, bigint];

/** keep / inside over (2**bits - keep) / outside, or its inverse, whichever is larger. */
function ratioOf(sides: Sides): (law: Shape) => Ratio {
  return (law) => {
    const [inner, outer] = sides(law);
    const [num, den] = [law.get("keep") * outer, (law.one - law.get("keep")) * inner];
    return num >= den ? { num, den } : { num: den, den: num };
  };
}

/** A law that falls with probability keep / 2**bits on an outcome that the value favours; the payload is the outcome's number. */
function twoLevel(
  parameters: string,
  sides: Sides,
  outcome: (law: Shape, code: bigint, words: Words) => bigint,
  check?: (law: Shape) => void,
  length = (law: Shape): number => bytesFor(sides(law)[0] + sides(law)[1] - 1n),
): Kind {
  return { parameters, check, length, ratio: ratioOf(sides), draw: (law, code, words) => pack(outcome(law, big(code), words), length(law)) };
}

function respond(law: Shape, cells: bigint, code: bigint, words: Words): bigint {
  if (words.take(law.bits) < law.get("keep")) return code;
  const other = below(cells - 1n, words, law.bits);
  return other >= code ? other + 1n : other;
}

function bits(cells: number): Uint8Array {
  return new Uint8Array(Math.ceil(cells / 8));
}

function set(data: Uint8Array, i: number): void {
  data[i >> 3] = (data[i >> 3] as number) | (1 << (i & 7));
}

function unary(parameters: string, own: (law: Shape) => bigint, other: (law: Shape) => bigint): Kind {
  return {
    parameters,
    check(law) {
      if (own(law) <= other(law)) refuse("not a law");
    },
    ratio: (law) => ({ num: own(law) * (law.one - other(law)), den: other(law) * (law.one - own(law)) }),
    length: (law) => Math.ceil(law.cells / 8),
    draw(law, code, words) {
      const data = bits(law.cells);
      const [mine, theirs] = [own(law), other(law)];
      for (let i = 0; i < law.cells; i++) if (words.take(law.bits) < (i === code ? mine : theirs)) set(data, i);
      return data;
    },
  };
}

function parity(x: number): number {
  let odd = 0;
  for (; x > 0; x = Math.floor(x / 2)) odd ^= x & 1;
  return odd;
}

function signs(order: (cells: number) => number, sign: (row: number, code: number) => number): Kind {
  return twoLevel(
    "keep",
    () => [1n, 1n],
    (law, code, words) => {
      const row = below(big(order(law.cells)), words, 32);
      const flip = words.take(law.bits) >= law.get("keep") ? 1 : 0;
      return 2n * row + big(sign(Number(row), Number(code)) ^ flip);
    },
    undefined,
    (law) => bytesFor(2n * big(order(law.cells)) - 1n),
  );
}

const power = (n: number): number => 2 ** (n === 0 ? 0 : n.toString(2).length); // the smallest power of two above n

const KINDS: { [name: string]: Kind } = {
  grr: twoLevel(
    "keep",
    (law) => [1n, big(law.cells - 1)],
    (law, code, words) => respond(law, big(law.cells), code, words),
  ),
  oue: unary(
    "q_num",
    (law) => law.one / 2n,
    (law) => law.get("q_num"),
  ),
  sue: unary(
    "p_num",
    (law) => law.get("p_num"),
    (law) => law.one - law.get("p_num"),
  ),
  olh: twoLevel(
    "keep g",
    (law) => [1n, law.get("g") - 1n],
    (law, code, words) => {
      const [a, b, c] = [below(PRIME, words, 32), below(PRIME, words, 32), below(PRIME, words, 32)];
      const g = law.get("g");
      const y = respond(law, g, (g * (((a * code + b) * code + c) % PRIME)) / PRIME, words);
      return (((((a << 32n) | b) << 32n) | c) << big(8 * bytesFor(g - 1n))) | y;
    },
    (law) => inside(law.get("g"), 2n, 65536n),
    (law) => 12 + bytesFor(law.get("g") - 1n),
  ),
  ss: {
    parameters: "keep w",
    check: (law) => inside(law.get("w"), 1n, big(law.cells - 1)),
    ratio: ratioOf((law) => [law.get("w"), big(law.cells) - law.get("w")]),
    length: (law) => Math.ceil(law.cells / 8),
    draw(law, code, words) {
      const own = words.take(law.bits) < law.get("keep");
      const size = Number(law.get("w")) - (own ? 1 : 0);
      const others = new Set<number>();
      while (others.size < size) others.add(Number(below(big(law.cells - 1), words, law.bits)));
      const data = bits(law.cells);
      if (own) set(data, code);
      for (const other of others) set(data, other >= code ? other + 1 : other);
      return data;
    },
  },
  hrr: signs((cells) => power(cells - 1), (row, code) => parity(row & code)),
  haar: signs((cells) => power(Math.floor((cells - 1) / 2)), (row, code) => (parity(row & (code >> 1)) + code) & 1),
  sw: twoLevel(
    "keep b",
    (law) => [2n * law.get("b") + 1n, big(law.cells - 1)],
    (law, code, words) => {
      const near = 2n * law.get("b") + 1n;
      if (words.take(law.bits) < law.get("keep")) return code + below(near, words, law.bits);
      const other = below(big(law.cells - 1), words, law.bits);
      return other >= code ? other + near : other;
    },
    (law) => inside(law.get("b"), 0n, big(law.cells)),
  ),
};

function decimal(text: unknown): bigint {
  if (typeof text !== "string" || !/^(0|[1-9][0-9]{0,19})$/.test(text) || BigInt(text) >= 1n << 64n)
    refuse("not a law");
  return BigInt(text);
}

/** The law that a question names, with its integers checked. */
export function lawFrom(record: unknown): Law {
  const name = isRecord(record) ? record["name"] : null;
  if (typeof name !== "string" || !Object.hasOwn(KINDS, name)) refuse("not a law");
  const kind = KINDS[name] as Kind;
  const found = fields(record, `name cells bits ${kind.parameters}`, `the oracle ${name}`);
  if (found["bits"] !== 32 && found["bits"] !== 64) refuse("not a law");
  const cells = integer(found["cells"], "cells", 2, MOST_CELLS);
  const names = kind.parameters.split(" ");
  const values = new Map(names.map((key) => [key, decimal(found[key])]));
  const shape: Shape = { cells, bits: found["bits"], one: 1n << big(found["bits"]), get: (key) => values.get(key) as bigint };
  inside(shape.get(names[0] as string), 1n, shape.one - 1n);
  kind.check?.(shape);
  return {
    name,
    cells,
    payloadLength: kind.length(shape),
    isPrivate: (epsilon) => atMost(kind.ratio(shape), expBelow(epsilon)),
    draw: (code, words) => kind.draw(shape, code, words),
  };
}
