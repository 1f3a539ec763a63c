/** Tokens of participation: the nonce, the report's name, blind RSA signatures, and the group that follows. */

import { concat, refuse, sha, unhex } from "./canonical.js";
import { pickGroup, type Campaign } from "./campaign.js";
import { below, randomBytes, SystemWords } from "./words.js";

type Key = NonNullable<Campaign["key"]>;
type Groups = readonly (readonly [string, number])[];

const HASH = 48;
export const NONCE_LENGTH = 32;
export const ID_LENGTH = 16;
const encoder = new TextEncoder();

/** Thirty-two bytes from the platform: the receipt of a report, and what a token is made for. */
export function newNonce(): Uint8Array {
  return randomBytes(NONCE_LENGTH);
}

/** The report's name on the wire, from which nobody finds the nonce. */
export async function reportId(nonce: Uint8Array): Promise<Uint8Array> {
  return (await sha(256, nonce)).slice(0, ID_LENGTH);
}

/** What the issuer signs for one report of one campaign, and all that it sees of the nonce; in version 1 it was the nonce itself. */
export async function tokenMessage({ digest, tokenVersion }: Pick<Campaign, "digest" | "tokenVersion">, nonce: Uint8Array): Promise<Uint8Array> {
  return tokenVersion === 1 ? nonce : sha(256, concat(encoder.encode("ahead-ldp token 2\n"), unhex(digest), nonce));
}

/** EMSA-PSS-ENCODE (RFC 8017) with SHA-384, MGF1 with SHA-384 and an empty salt, as a number. */
export async function encodePss(message: Uint8Array, bits: number): Promise<bigint> {
  const length = Math.ceil(bits / 8);
  const tail = await sha(384, concat(new Uint8Array(8), await sha(384, message)));
  const width = length - HASH - 1;
  const blocks: Uint8Array[] = [];
  for (let i = 0; i * HASH < width; i++) blocks.push(await sha(384, concat(tail, Uint8Array.of(0, 0, 0, i))));
  const masked = (1n ^ number(concat(...blocks).slice(0, width))) & ((1n << BigInt(8 * width - (8 * length - bits))) - 1n);
  return (masked << BigInt(8 * (HASH + 1))) | (number(tail) << 8n) | 0xbcn;
}

/** The message as an issuer may see it, and the secret with which its answer becomes a signature (RFC 9474): a new one, or the one kept. */
export async function blind(key: Key, message: Uint8Array, kept?: bigint): Promise<{ message: Uint8Array; inverse: bigint }> {
  for (; ; kept = undefined) {
    const inverse = kept ?? number(randomBytes(key.length));
    const factor = inverse > 1n && inverse < key.n ? invert(inverse, key.n) : null;
    if (factor !== null) return { message: await blindWith(key, message, factor), inverse };
  }
}

/** Blinding with a given factor: for test vectors. A device calls `blind`. */
export async function blindWith(key: Key, message: Uint8Array, factor: bigint): Promise<Uint8Array> {
  return bytes(((await encoded(key, message)) * power(factor, key.e, key.n)) % key.n, key.length);
}

/** The signature behind a blind issuer's answer, if it is one. */
export async function unblind(key: Key, message: Uint8Array, answer: Uint8Array, inverse: bigint): Promise<Uint8Array> {
  if (answer.length !== key.length) refuse("not the issuer's signature");
  return checkSignature(key, message, bytes((number(answer) * inverse) % key.n, key.length));
}

/** The signature itself if it is the issuer's one signature on the message. */
export async function checkSignature(key: Key, message: Uint8Array, signature: Uint8Array): Promise<Uint8Array> {
  const value = number(signature);
  if (signature.length !== key.length || value >= key.n || power(value, key.e, key.n) !== (await encoded(key, message)))
    refuse("not the issuer's signature");
  return signature;
}

/** The group of a signature among groups of the campaign; wave 0 for a panel (docs/wire.md, "Groups"). */
export async function tokenGroup(signature: Uint8Array, campaign: string, wave: number, groups: Groups): Promise<string> {
  const total = shares(groups);
  const limit = ((1n << 64n) / total) * total;
  const key = await crypto.subtle.importKey("raw", signature as BufferSource, "HKDF", false, ["deriveBits"]);
  for (let info = `ahead-ldp group 1 ${wave}`; ; info += " again") {
    const salt = unhex(campaign) as BufferSource;
    const data = await crypto.subtle.deriveBits({ name: "HKDF", hash: "SHA-256", salt, info: encoder.encode(info) }, key, 512);
    const view = new DataView(data);
    for (let i = 0; i < 64; i += 8) if (view.getBigUint64(i) < limit) return pickGroup(groups, view.getBigUint64(i) % total);
  }
}

/** A group by share from the platform's randomness: for campaigns without tokens. */
export function drawGroup(groups: Groups): string {
  return pickGroup(groups, below(shares(groups), new SystemWords(), 64));
}

function shares(groups: Groups): bigint {
  return groups.reduce((sum, [, share]) => sum + BigInt(share), 0n);
}

function encoded(key: Key, message: Uint8Array): Promise<bigint> {
  return encodePss(message, key.n.toString(2).length - 1);
}

function number(data: Uint8Array): bigint {
  let value = 0n;
  for (const byte of data) value = (value << 8n) | BigInt(byte);
  return value;
}

function bytes(value: bigint, length: number): Uint8Array {
  return unhex(value.toString(16).padStart(2 * length, "0"));
}

function power(base: bigint, exponent: bigint, modulus: bigint): bigint {
  let result = 1n;
  for (base %= modulus; exponent > 0n; exponent >>= 1n, base = (base * base) % modulus) if (exponent & 1n) result = (result * base) % modulus;
  return result;
}

/** The inverse modulo n, or null if there is none. */
export function invert(value: bigint, n: bigint): bigint | null {
  let [a, b, x, y] = [value % n, n, 1n, 0n];
  while (b) [a, b, x, y] = [b, a % b, y, x - (a / b) * y];
  return a === 1n ? ((x % n) + n) % n : null;
}
