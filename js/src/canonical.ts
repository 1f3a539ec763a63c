/** Canonical records: one byte string for one meaning, the same as in Python (`device/canonical.py`). */

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
export type Fields = { [key: string]: Json };

const KEY = /^[a-z][a-z0-9_]*$/;
const DIGEST = /^[0-9a-f]{64}$/;
const LARGEST = Number.MAX_SAFE_INTEGER;
const DEEPEST = 32; // levels, the record's own included
const encoder = new TextEncoder();

/** Raised for whatever does not keep a rule; the message names the rule and never a private value. */
export class Refused extends Error {}

export function refuse(message: string): never {
  throw new Refused(message);
}

/** The canonical UTF-8 JSON of a record: sorted keys, no spaces, no floats. */
export function canonicalBytes(record: Json): Uint8Array {
  return encoder.encode(write(record));
}

function write(value: Json, level = 1): string {
  if (value === null || typeof value === "boolean") return String(value);
  if (typeof value === "number") {
    if (!Number.isSafeInteger(value) || Object.is(value, -0)) refuse("not an integer below 2**53");
    return String(value);
  }
  if (typeof value === "string") {
    if (/[\ud800-\udfff]/u.test(value)) refuse("a lone surrogate");
    return JSON.stringify(value);
  }
  if (level > DEEPEST) refuse("too many levels");
  if (Array.isArray(value)) return `[${value.map((inner) => write(inner, level + 1)).join(",")}]`;
  const keys = Object.keys(value).sort();
  for (const key of keys) if (!KEY.test(key)) refuse("a key of other letters");
  return `{${keys.map((key) => `"${key}":${write(value[key] as Json, level + 1)}`).join(",")}}`;
}

/** The record behind canonical bytes; any other spelling of the same record is refused. */
export function parseCanonical(data: Uint8Array): Fields {
  let record: Json;
  try {
    record = JSON.parse(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(data)) as Json;
  } catch {
    refuse("not UTF-8 JSON");
  }
  if (!isRecord(record)) refuse("not a record");
  if (!sameBytes(canonicalBytes(record), data)) refuse("not canonical");
  return record;
}

/** SHA-256 of the canonical bytes, in hexadecimal. */
export async function digest(record: Json): Promise<string> {
  return hex(await sha(256, canonicalBytes(record)));
}

export async function sha(bits: 256 | 384, data: Uint8Array): Promise<Uint8Array> {
  return new Uint8Array(await crypto.subtle.digest(`SHA-${bits}`, data as BufferSource));
}

export function hex(data: Uint8Array): string {
  return Array.from(data, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

export function unhex(text: string): Uint8Array {
  if (!/^([0-9a-f]{2})*$/.test(text)) refuse("not hexadecimal");
  return Uint8Array.from(text.match(/../g) ?? [], (pair) => parseInt(pair, 16));
}

export function concat(...parts: Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

export function sameBytes(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, i) => byte === b[i]);
}

export function isRecord(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The record itself if it has exactly these fields. */
export function fields(record: unknown, names: string, argument: string): Fields {
  if (!isRecord(record)) refuse(`${argument} is no record`);
  const wanted = names.split(" ");
  if (Object.keys(record).some((key) => !wanted.includes(key))) refuse(`${argument} has other fields`);
  if (wanted.some((key) => !Object.hasOwn(record, key))) refuse(`${argument} has other fields`);
  return record;
}

/** The value itself if it is an integer in low..high. */
export function integer(value: unknown, argument: string, low: number, high: number = LARGEST): number {
  if (!Number.isSafeInteger(value) || (value as number) < low || (value as number) > high)
    refuse(`${argument} is no integer in ${low}..${high}`);
  return value as number;
}

export function checkDigest(value: unknown, argument: string): string {
  if (typeof value !== "string" || !DIGEST.test(value)) refuse(`${argument} is no digest`);
  return value;
}

export function list(value: unknown, argument: string): Json[] {
  if (!Array.isArray(value)) refuse(`${argument} is no list`);
  return value as Json[];
}
