/** Random words: where a device's noise comes from, and how a uniform number is made from them. */

import { refuse } from "./canonical.js";

/** A source of independent uniform words. */
export interface Words {
  /** A uniform integer below 2**bits; bits is 32 or 64. */
  take(bits: number): bigint;
}

const CHUNK = 16_384; // bytes; the browser gives at most 65,536 at a time

/** Words from the platform's generator, big-endian. There is no seed and nothing to configure. */
export class SystemWords implements Words {
  #view = new DataView(new ArrayBuffer(0));
  #at = 0;

  take(bits: number): bigint {
    const size = bits / 8;
    if (this.#at + size > this.#view.byteLength) {
      this.#view = new DataView(randomBytes(CHUNK).buffer);
      this.#at = 0;
    }
    const word = bits === 32 ? BigInt(this.#view.getUint32(this.#at)) : this.#view.getBigUint64(this.#at);
    for (let i = 0; i < size; i++) this.#view.setUint8(this.#at + i, 0); // a used word is forgotten
    this.#at += size;
    return word;
  }
}

export function randomBytes(length: number): Uint8Array<ArrayBuffer> {
  return crypto.getRandomValues(new Uint8Array(length));
}

/** A uniform integer in 0..n-1: words at or above the largest multiple of n are drawn again; none for n = 1. */
export function below(n: bigint, words: Words, bits: number): bigint {
  if (n === 1n) return 0n;
  const limit = ((1n << BigInt(bits)) / n) * n;
  if (limit === 0n) refuse("n is too large");
  for (;;) {
    const word = words.take(bits);
    if (word < limit) return word % n;
  }
}
