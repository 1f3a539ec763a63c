/** From a private value to its code: the number of declared edges at or below it, by comparison. */

import { fields, integer, isRecord, list, refuse, type Fields } from "./canonical.js";
import { checkName } from "./text.js";

export type Kind = "integer" | "real" | "date" | "time" | "datetime" | "ordered" | "nominal";
export type Value = number | string | null | undefined;

const KINDS: readonly string[] = ["integer", "real", "date", "time", "datetime", "ordered", "nominal"];
const MOST_CODES = 2 ** 31 - 2;

/** A private value does not fit the declared attribute. The message never holds the value. */
export class ValueRefused extends Error {}

function notThis(name: string, rule: string): never {
  throw new ValueRefused(`${name} ${rule}`);
}

/** One declared attribute, read from its canonical record. */
export class Attribute {
  readonly name: string;
  readonly kind: Kind;
  readonly lo: number = 0;
  readonly hi: number = 0;
  readonly edges: readonly number[] | null = null;
  readonly labels: readonly string[] | null = null;
  readonly missing: string;
  readonly missingCode: number | null;

  constructor(record: unknown) {
    const kind = isRecord(record) ? record["kind"] : null;
    if (typeof kind !== "string" || !KINDS.includes(kind)) refuse("not an attribute");
    this.kind = kind as Kind;
    const named = kind === "ordered" || kind === "nominal";
    const found = fields(record, `name kind missing missing_code ${named ? "labels" : "lo hi edges"}`, "the attribute");
    this.name = checkName(found["name"], "the name of an attribute");
    if (named) {
      this.labels = list(found["labels"], "labels").map((label) => checkName(label, "a category"));
      if (!this.labels.length || new Set(this.labels).size !== this.labels.length) refuse("not an attribute");
    } else {
      [this.lo, this.hi, this.edges] = bounds(found, kind === "real");
    }
    if (this.orderedSize > MOST_CODES) refuse("not an attribute");
    this.missing = found["missing"] as string;
    this.missingCode = this.#checkMissing(found["missing_code"]);
  }

  #checkMissing(code: unknown): number | null {
    if (this.missing === "value") return integer(code, "missing_code", 0, this.orderedSize - 1);
    if (this.missing !== "refused" && this.missing !== "cell") refuse("not an attribute");
    const expected = this.missing === "cell" ? this.orderedSize : null;
    if (code !== expected) refuse("not an attribute");
    return expected;
  }

  /** Codes without the cell for missing values. */
  get orderedSize(): number {
    return this.labels ? this.labels.length : this.edges ? this.edges.length + 1 : this.hi - this.lo + 1;
  }

  /** All codes. */
  get size(): number {
    return this.orderedSize + (this.missing === "cell" ? 1 : 0);
  }

  /** The code of one private value; null is a missing one. */
  code(value: Value): number {
    if (value === null || value === undefined) {
      if (this.missingCode === null) notThis(this.name, "is missing, and the declaration refuses that");
      return this.missingCode;
    }
    if (this.labels) {
      const found = this.labels.indexOf(value as string);
      return found < 0 ? notThis(this.name, "is none of the declared categories") : found;
    }
    const number = this.number(value);
    if (!(this.lo <= number && number <= this.hi)) notThis(this.name, "is outside the declared range");
    return this.edges ? this.edges.filter((edge) => edge <= number).length : number - this.lo;
  }

  /** For a value that has no code: the nearer end; where it has no place in the order the code of a missing one, or `spare`. */
  standIn(value: Value, spare: number): number {
    const place = this.labels ? NaN : this.#place(value);
    return place < this.lo ? 0 : place > this.hi ? this.orderedSize - 1 : (this.missingCode ?? spare);
  }

  /** The number behind a value: days for a date, seconds for a time, else itself. */
  number(value: number | string): number {
    const number = this.#place(value);
    const legal = this.kind === "real" ? Number.isFinite(number) : Number.isSafeInteger(number);
    return legal ? number : notThis(this.name, `is not a value of kind ${this.kind}`);
  }

  #place(value: Value): number {
    const read = READERS[this.kind];
    return read ? (typeof value === "string" ? read(value) : NaN) : typeof value === "number" ? value : NaN;
  }
}

function bounds(found: Fields, real: boolean): [number, number, number[] | null] {
  const read = (x: unknown): number => (real ? parseReal(x) : integer(x, "a bound", -Number.MAX_SAFE_INTEGER));
  const [lo, hi] = [read(found["lo"]), read(found["hi"])];
  const edges = found["edges"] === null ? null : list(found["edges"], "edges").map(read);
  if (lo > hi || (real && lo === hi)) refuse("not an attribute");
  if (real && !edges) refuse("not an attribute");
  let before = lo;
  for (const edge of edges ?? []) {
    if (!(before < edge && edge <= hi)) refuse("not an attribute");
    before = edge;
  }
  return [lo, hi, edges];
}

/** A double from the shortest decimal string that reads back as the same one, written as Python writes it. */
export function parseReal(text: unknown): number {
  const value = typeof text === "string" && text.trim() !== "" ? Number(text) : NaN;
  if (!Number.isFinite(value) || realText(value) !== text) refuse("not an attribute");
  return value;
}

export function realText(value: number): string {
  if (value === 0) return "0.0";
  const [, sign, first, rest = "", power] = /^(-?)(\d)(?:\.(\d+))?e([+-]\d+)$/.exec(value.toExponential()) as unknown as [string, string, string, string | undefined, string];
  const digits = first + rest;
  const e = Number(power);
  if (e < -4 || e >= 16) return `${sign}${first}${rest ? "." + rest : ""}e${e < 0 ? "-" : "+"}${String(Math.abs(e)).padStart(2, "0")}`;
  if (e < 0) return `${sign}0.${"0".repeat(-e - 1)}${digits}`;
  const whole = digits.padEnd(e + 1, "0");
  return `${sign}${whole.slice(0, e + 1)}.${whole.slice(e + 1) || "0"}`;
}

const DAY = "(\\d{4}-\\d\\d-\\d\\d)";
const CLOCK = "(\\d\\d):(\\d\\d)(?::(\\d\\d)(?:\\.\\d{1,6})?)?";
const DATE = new RegExp(`^${DAY}$`);
const TIME = new RegExp(`^${CLOCK}$`);
const MOMENT = new RegExp(`^${DAY}(?:[T ]${CLOCK}(Z|([+-])(\\d\\d):(\\d\\d))?)?$`);

/** Days since 1970-01-01 of YYYY-MM-DD; NaN for a day that does not exist. */
export function days(text: string): number {
  const time = Date.parse(`${text}T00:00Z`);
  return DATE.test(text) && text >= "0001" && new Date(time || 0).toISOString().startsWith(text) ? time / 864e5 : NaN;
}

function seconds(hour: string, minute: string, second = "0"): number {
  return Number(hour) < 24 && Number(minute) < 60 && Number(second) < 60 ? 3600 * Number(hour) + 60 * Number(minute) + Number(second) : NaN;
}

const READERS: { [kind: string]: (text: string) => number } = {
  date: days,
  time(text) {
    const m = TIME.exec(text);
    return m ? seconds(m[1] as string, m[2] as string, m[3]) : NaN;
  },
  datetime(text) {
    const m = MOMENT.exec(text);
    if (!m) return NaN;
    const shift = m[6] ? seconds(m[7] as string, m[8] as string) * (m[6] === "-" ? -1 : 1) : 0;
    return days(m[1] as string) * 86_400 + seconds(m[2] ?? "0", m[3] ?? "0", m[4]) - shift;
  },
};

/** The attributes of a collection, in order, with names that differ. */
export function schemaFrom(record: unknown): Attribute[] {
  const found = fields(record, "type version attributes", "the schema");
  if (found["type"] !== "schema" || found["version"] !== 1) refuse("not a schema");
  const attributes = list(found["attributes"], "attributes").map((a) => new Attribute(a));
  if (attributes.length < 1 || attributes.length > 1024) refuse("not a schema");
  if (new Set(attributes.map((a) => a.name)).size !== attributes.length) refuse("not a schema");
  return attributes;
}
