/** The rules of a ledger, driven from tests/vectors as the Python ledger is; books of version 1; files that are damaged. */

import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import type { Limits } from "../src/budget.js";
import type { Ratio } from "../src/epsilon.js";
import { bookFrom, emptyBook, Ledger, type State } from "../src/ledger.js";
import { similarFields } from "../src/naming.js";
import { FileShelf } from "../src/node.js";

// eslint-disable-next-line @typescript-eslint/no-explicit-any
type Case = any;

function cases(name: string): Case[] {
  return JSON.parse(readFileSync(new URL(`../../../tests/vectors/${name}.json`, import.meta.url), "utf-8")).cases;
}

function ratio(text: string): Ratio {
  const [num, den = "1"] = text.split("/") as [string, string?];
  const [whole, part = ""] = num.split(".") as [string, string?];
  return { num: BigInt(whole + part), den: BigInt(den) * 10n ** BigInt(part.length) };
}

function same(a: Ratio | null, text: string | null): boolean {
  if (a === null || text === null) return a === text;
  const b = ratio(text);
  return a.num * b.den === b.num * a.den;
}

const A = "a".repeat(64);
const PLACE = { wave: 1, group: "g", question: "0".repeat(64) };

function file(): string {
  return join(mkdtempSync(join(tmpdir(), "ledger-")), "ledger.json");
}

async function run(ledger: Ledger, { op, campaign, fields, epsilon, state }: Case, limits: Limits): Promise<boolean> {
  try {
    if (op === "reserve") await ledger.reserve({ campaign, title: "t", controller: "c" }, PLACE, fields, ratio(epsilon), limits);
    else if (op === "draw") await ledger.keepDrawn(campaign, PLACE.question, Uint8Array.of(1), 0);
    else if (op === "move") await ledger.move(campaign, state as State);
    else await { opt_out: () => ledger.optOut(), opt_in: () => ledger.optIn() }[op as "opt_out" | "opt_in"]();
    return true;
  } catch {
    return false;
  }
}

for (const c of cases("ledger"))
  test(`ledger: ${c.name}`, async () => {
    const path = file();
    const limits = { lifetime: ratio(c.lifetime), fields: new Map(Object.entries(c.limits as { [field: string]: string }).map(([field, text]) => [field, ratio(text)])) };
    for (const operation of c.operations) assert.equal(await run(new Ledger(new FileShelf(path)), operation, limits), !operation.refused, JSON.stringify(operation));
    const { statement } = await new Ledger(new FileShelf(path)).statement(limits);
    assert.ok(same(statement.spent, c.statement.spent) && same(statement.left, c.statement.left));
    assert.deepEqual(statement.lines.map(({ field }) => field), c.statement.lines.map(([field]: Case) => field));
    for (const [i, [, spent, limit, left, count]] of c.statement.lines.entries()) {
      const line = statement.lines[i];
      assert.ok(line && same(line.spent, spent) && same(line.limit, limit) && same(line.left, left));
      assert.equal(line.charges.length, count);
    }
  });

for (const c of cases("ledger_files"))
  test(`ledger file: ${c.name}`, async () => {
    const path = file();
    if (c.keep !== null) {
      await new Ledger(new FileShelf(path)).token(A);
      const whole = readFileSync(path);
      writeFileSync(path, whole.subarray(0, Math.floor(whole.length * c.keep)));
    } else if (c.bytes !== null) writeFileSync(path, Buffer.from(c.bytes, "hex"));
    const read = () => new Ledger(new FileShelf(path)).outbox();
    if (c.refused) await assert.rejects(read, /ledger/);
    else await read();
  });

for (const c of cases("naming")) test(`similar names: ${c.name}`, () => assert.deepEqual(similarFields(c.name, c.known), c.similar));

test("finding 10: a charge to a name of the prototype is kept", async () => {
  for (const name of ["constructor", "__proto__", "toString"]) {
    const path = file();
    const tries = [...Array(5).keys()].map((i) => ({ op: "reserve", campaign: String(i).repeat(64), fields: [name], epsilon: "1" }));
    const taken: boolean[] = [];
    for (const each of tries) taken.push(await run(new Ledger(new FileShelf(path)), each, { lifetime: ratio("20"), fields: new Map() }));
    assert.deepEqual(taken, [true, false, false, false, false]);
  }
});

test("no other text than a digest is a key of a book", async () => {
  const ledger = new Ledger(new FileShelf(file()));
  for (const name of ["constructor", "__proto__", "toString", "", "A".repeat(64)]) {
    await assert.rejects(() => ledger.entry(name), /digest/);
    await assert.rejects(() => ledger.token(name), /digest/);
    await assert.rejects(() => ledger.mapping(name), /digest/);
    await assert.rejects(() => ledger.reserve({ campaign: name, title: "", controller: "" }, PLACE, ["age"], ratio("1"), { lifetime: ratio("20"), fields: new Map() }), /digest/);
  }
});

test("a book of version 1 goes on, and what it lost counts against everything", () => {
  const entry = { state: "acknowledged", ...PLACE, batch: "00", notBefore: 0 };
  const old = { version: 1, views: {}, tokens: {}, groups: {}, charges: { age: { [A]: ["11", "10"] } }, reports: { [A]: entry, ["b".repeat(64)]: entry }, optedOut: false };
  const book = bookFrom(JSON.parse(JSON.stringify(old)));
  assert.equal(book.version, 2);
  assert.deepEqual(book.charges, [{ campaign: A, field: "age", epsilon: ["11", "10"] }, { campaign: "b".repeat(64), field: null, epsilon: ["4", "1"] }]);
  assert.deepEqual(Object.keys(book.reports), Object.keys(old.reports));
  assert.deepEqual([book.mappings, book.askers], [{}, {}]);
});

test("what is no book is damage, part by part", () => {
  for (const kept of [null, 7, "", [], {}, { version: 3 }]) assert.throws(() => bookFrom(kept), /ledger/);
  for (const part of Object.keys(emptyBook())) {
    assert.throws(() => bookFrom({ ...emptyBook(), [part]: null }), /ledger/);
    const { [part as "views"]: _, ...rest } = emptyBook();
    assert.throws(() => bookFrom(rest), /ledger/);
  }
});
