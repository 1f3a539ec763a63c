/** The client against a server in memory: once, the same bytes again, and refusals before the value is asked for. */

import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { hex, unhex } from "../src/canonical.js";
import type { Limits } from "../src/budget.js";
import { Attribute, type Value } from "../src/codes.js";
import type { Ratio } from "../src/epsilon.js";
import { Client, type Offer, type OwnerPolicy } from "../src/client.js";
import { emptyBook, Ledger, type Book, type Shelf } from "../src/ledger.js";
import { FileShelf } from "../src/node.js";

// eslint-disable-next-line @typescript-eslint/no-explicit-any
type Case = any;

function vector(file: string, name: string): Case {
  const found = JSON.parse(readFileSync(new URL(`../../../tests/vectors/${file}.json`, import.meta.url), "utf-8"));
  return found.cases.find((c: Case) => c.name === name);
}

const CAMPAIGN = vector("campaigns", "walk-in");
const WAVE = vector("waves", "two groups");
const POLICY: OwnerPolicy = { maxEpsilon: "2", fields: { [CAMPAIGN.digest]: { age: "age" } } };
const ONE = { num: 1n, den: 1n };

function limits(fields: { [field: string]: Ratio } = {}): Limits {
  return { lifetime: { num: 20n, den: 1n }, fields: new Map(Object.entries(fields)) };
}

class MemoryShelf implements Shelf {
  book: Book = emptyBook();
  #queue: Promise<unknown> = Promise.resolve();

  async update<T>(change: (book: Book) => T): Promise<T> {
    const copy = structuredClone(this.book);
    const result = change(copy); // a change that throws leaves no trace
    this.book = copy;
    return result;
  }

  alone<T>(work: () => Promise<T>): Promise<T> {
    const next = this.#queue.then(work, work);
    this.#queue = next.catch(() => undefined);
    return next;
  }
}

class FakeServer {
  wave: Uint8Array = unhex(WAVE.wave);
  campaign: Uint8Array = unhex(CAMPAIGN.campaign);
  state: object = { state: "open", wave: 1, waves: [{ number: 1, state: "open", opened_at: 0, closes_at: null }] };
  verdict: object = { accepted: 1, refused: [] };
  received: string[] = [];
  failures = 0;
  withdrawals: string[] = [];

  fetch = async (url: string | URL | Request, init?: RequestInit): Promise<Response> => {
    const path = String(url);
    if (path.endsWith("/reports")) {
      this.received.push(hex(new Uint8Array(init?.body as Uint8Array)));
      if (this.failures-- > 0) throw new TypeError("network");
      return Response.json(this.verdict);
    }
    if (path.endsWith("/withdrawals")) {
      this.withdrawals.push(JSON.parse(String(init?.body)).nonce);
      return Response.json({ withdrawn: true });
    }
    if (path.endsWith("/state")) return Response.json(this.state);
    return new Response((path.endsWith("/waves/1") ? this.wave : this.campaign) as BodyInit);
  };
}

function set(shelf: Shelf = new MemoryShelf(), policy: OwnerPolicy = POLICY): { client: Client; server: FakeServer; asked: Offer[]; shelf: Shelf } {
  const server = new FakeServer();
  const client = new Client({ ledger: new Ledger(shelf), policy, fetch: server.fetch as typeof fetch });
  return { client, server, asked: [], shelf };
}

const yes = (): boolean => true;
const age = (): { age: number } => ({ age: 20 });

test("a report is sent once and its receipt withdraws it", async () => {
  const { client, server } = set();
  const outcome = await client.answer(CAMPAIGN.digest, yes, age);
  assert.equal(outcome.status, "acknowledged");
  assert.equal(server.received.length, 1);
  const body = server.received[0] as string;
  assert.equal(body.slice(2, 66), CAMPAIGN.digest);
  assert.ok(Object.values(WAVE.questions).includes(body.slice(66, 130)));
  assert.equal(body.slice(130, 162), outcome.receipt?.reportId);
  assert.equal(body.slice(162), outcome.receipt?.payload);
  const again = await client.answer(CAMPAIGN.digest, yes, () => assert.fail("the value is asked for once"));
  assert.equal(again.status, "acknowledged");
  assert.equal(server.received.length, 1);
  await client.withdraw(CAMPAIGN.digest);
  assert.deepEqual(server.withdrawals, [outcome.receipt?.nonce]);
  assert.equal((await client.status(CAMPAIGN.digest))?.status, "withdrawn");
  await assert.rejects(() => client.withdraw(CAMPAIGN.digest));
});

test("a report whose answer was lost is sent again before it is withdrawn", async () => {
  const { client, server } = set();
  server.failures = 1;
  assert.equal((await client.answer(CAMPAIGN.digest, yes, age)).status, "queued");
  await client.withdraw(CAMPAIGN.digest);
  assert.equal(server.received.length, 2);
  assert.equal(server.received[0], server.received[1]);
  assert.equal(server.withdrawals.length, 1);
  assert.equal((await client.status(CAMPAIGN.digest))?.status, "withdrawn");
});

test("a lost answer is followed by the same bytes", async () => {
  const { client, server } = set();
  server.failures = 2;
  assert.equal((await client.answer(CAMPAIGN.digest, yes, age)).status, "queued");
  await client.flush();
  assert.equal((await client.answer(CAMPAIGN.digest, yes, age)).status, "acknowledged");
  assert.equal(server.received.length, 3);
  assert.equal(new Set(server.received).size, 1);
});

test("no means no value", async () => {
  const { client, server } = set();
  const outcome = await client.answer(CAMPAIGN.digest, () => false, () => assert.fail("asked without consent"));
  assert.equal(outcome.status, "declined");
  assert.equal(server.received.length, 0);
});

test("two tabs answer once", async () => {
  const shelf = new MemoryShelf();
  const [one, two] = [set(shelf), set(shelf)];
  two.server.received = one.server.received;
  await Promise.all([one.client.answer(CAMPAIGN.digest, yes, age), two.client.answer(CAMPAIGN.digest, yes, () => ({ age: 33 }))]);
  assert.equal(new Set(one.server.received).size, 1);
});

for (const name of ["another order", "a group twice", "a group that is none", "another wave", "a question of another wave", "another price", "another campaign", "no question", "unknown field"])
  test(`a hostile wave is refused before the value: ${name}`, async () => {
    const { client, server } = set();
    server.wave = unhex(vector("waves", name).wave);
    await assert.rejects(() => client.answer(CAMPAIGN.digest, () => assert.fail("asked for consent"), () => assert.fail("asked for the value")));
    assert.equal(server.received.length, 0);
  });

test("another campaign under the pinned name is refused", async () => {
  const { client, server } = set();
  server.campaign = unhex(vector("campaigns", "by hand").campaign);
  await assert.rejects(() => client.offer(CAMPAIGN.digest), /pinned/);
});

test("a wave that changes between two looks is refused", async () => {
  const { client, server } = set();
  assert.ok("question" in (await client.offer(CAMPAIGN.digest)));
  server.wave = unhex(vector("waves", "one group").wave);
  await assert.rejects(() => client.offer(CAMPAIGN.digest), /other questions before/);
});

test("policy: epsilon, group size, unnamed fields", async () => {
  for (const policy of [{ ...POLICY, maxEpsilon: "1" }, { ...POLICY, leastGroup: 21 }, { maxEpsilon: "2" }, { maxEpsilon: "2", fields: {} }, { ...POLICY, fields: { ["0".repeat(64)]: { age: "age" } } }])
    await assert.rejects(() => set(new MemoryShelf(), policy).client.answer(CAMPAIGN.digest, yes, () => assert.fail("asked")));
});

test("a field is reported once in a lifetime unless a limit allows more", async () => {
  const shelf = new MemoryShelf();
  await set(shelf).client.answer(CAMPAIGN.digest, yes, age);
  const ledger = new Ledger(shelf);
  const epsilon = { num: 11n, den: 10n };
  await assert.rejects(() => ledger.checkBudget("f".repeat(64), ["age"], epsilon, limits()), /before/);
  await assert.rejects(() => ledger.checkBudget("f".repeat(64), ["age"], epsilon, limits({ age: { num: 2n, den: 1n } })), /lifetime/);
  await ledger.checkBudget("f".repeat(64), ["age"], epsilon, limits({ age: { num: 11n, den: 5n } }));
  await ledger.checkBudget("f".repeat(64), ["town"], epsilon, limits());
});

test("closed and refused reports end as such", async () => {
  const late = set();
  late.server.verdict = { accepted: 0, refused: [{ index: 0, reason: "wave_closed" }] };
  assert.equal((await late.client.answer(CAMPAIGN.digest, yes, age)).status, "late");
  const bad = set();
  bad.server.verdict = { accepted: 0, refused: [{ index: 0, reason: "report_withdrawn" }] };
  assert.equal((await bad.client.answer(CAMPAIGN.digest, yes, age)).status, "rejected");
});

test("a value that does not fit is answered like any other, and its owner told", async () => {
  const lengths = new Set<number>();
  for (const value of [20, 99, -1, 1e300, NaN, 7.5, "20", "", null, undefined]) {
    const { client, server } = set();
    const outcome = await client.answer(CAMPAIGN.digest, yes, () => ({ age: value }));
    assert.equal(outcome.status, "acknowledged");
    assert.deepEqual(outcome.replaced, value === 20 ? [] : ["age"]);
    assert.equal(server.received.length, 1);
    lengths.add((server.received[0] as string).length);
  }
  assert.ok(lengths.size <= Object.keys(WAVE.questions).length); // one for each group's question
});

test("beyond the ends counts as the nearer one, what has no place as missing or as a drawn code", () => {
  const plain = { name: "a", kind: "integer", missing: "refused", missing_code: null, lo: 18, hi: 99, edges: null };
  const age = new Attribute(plain);
  for (const [value, code] of [[17, 0], [100, 81], [1e300, 81], [-Infinity, 0], [34.5, 7], ["34", 7], [null, 7]] as [Value, number][]) assert.equal(age.standIn(value, 7), code);
  const pay = new Attribute({ ...plain, kind: "real", lo: "0.0", hi: "100.0", edges: ["50.0"], missing: "cell", missing_code: 2 });
  for (const [value, code] of [[-0.5, 0], [100.5, 1], [Infinity, 1], [NaN, 2], ["50", 2]] as [Value, number][]) assert.equal(pay.standIn(value, 7), code);
  const born = new Attribute({ ...plain, kind: "date", lo: 0, hi: 364 });
  for (const [value, code] of [["1969-12-31", 0], ["2026-01-01", 364], ["yesterday", 7], [400, 7]] as [Value, number][]) assert.equal(born.standIn(value, 7), code);
  const { lo, hi, edges, ...named } = plain;
  assert.equal(new Attribute({ ...named, kind: "ordered", labels: ["S", "M"] }).standIn(5 as Value, 1), 1);
});

test("opting out wipes the outbox, keeps the charges, and answers nothing more", async () => {
  const shelf = new MemoryShelf();
  const { client, server } = set(shelf);
  server.failures = 1;
  await client.answer(CAMPAIGN.digest, yes, age);
  await new Ledger(shelf).optOut();
  await client.flush();
  assert.equal(server.received.length, 1);
  assert.deepEqual(shelf.book.charges.map(({ field }) => field), ["age"]);
  await assert.rejects(() => new Ledger(shelf).checkBudget("f".repeat(64), ["town"], ONE, limits()), /opted out/);
});

test("a file keeps the ledger: private, and held by one process at a time", async () => {
  const path = join(mkdtempSync(join(tmpdir(), "ledger-")), "ledger.json");
  assert.equal((await set(new FileShelf(path)).client.answer(CAMPAIGN.digest, yes, age)).status, "acknowledged");
  assert.equal(statSync(path).mode & 0o777, 0o600);
  const again = await set(new FileShelf(path)).client.answer(CAMPAIGN.digest, yes, () => assert.fail("asked twice"));
  assert.equal(again.status, "acknowledged");
  writeFileSync(`${path}.lock`, String(process.pid));
  await assert.rejects(() => new Ledger(new FileShelf(path)).outbox(), /another process/);
  writeFileSync(`${path}.lock`, "999999999"); // a process that crashed
  assert.deepEqual(await new Ledger(new FileShelf(path)).outbox(), []);
});

test("finding 10: the value is read after the reservation, and every group's attributes have their field before it", async () => {
  const shelf = new MemoryShelf();
  const { client } = set(shelf);
  const states: (string | undefined)[] = [];
  const look = (): { age: number } => {
    states.push(shelf.book.reports[CAMPAIGN.digest]?.state);
    return { age: 20 };
  };
  assert.equal((await client.answer(CAMPAIGN.digest, yes, look)).status, "acknowledged");
  assert.deepEqual(states, ["reserved"]);
});

test("finding 10: a name that is not the owner's is asked about, and a renamed attribute gets no second report", async () => {
  const shelf = new MemoryShelf();
  const asked: string[][] = [];
  const first = set(shelf, { maxEpsilon: "2" });
  const fields = (_: Offer, names: string[]): { age: string } => {
    asked.push(names);
    return { age: "my age" };
  };
  assert.equal((await first.client.answer(CAMPAIGN.digest, () => false, () => assert.fail("asked"), fields)).status, "declined");
  assert.deepEqual(asked, []);
  assert.equal((await first.client.answer(CAMPAIGN.digest, yes, age, fields)).status, "acknowledged");
  assert.deepEqual(asked, [["age"]]);
  assert.deepEqual(shelf.book.mappings[CAMPAIGN.digest], [["age", "my age"]]);
  await assert.rejects(() => new Ledger(shelf).checkBudget("f".repeat(64), ["my age"], ONE, limits()), /before/);
  const { statement, askers } = await first.client.statement();
  assert.deepEqual(statement.lines.map(({ field }) => field), ["my age"]);
  assert.equal(askers[CAMPAIGN.digest]?.controller, "The town of Ulm");
});

test("what was only promised was not given away, and stays charged", async () => {
  const shelf = new MemoryShelf();
  const { client } = set(shelf);
  const left = client.answer(CAMPAIGN.digest, yes, () => Promise.reject(new Error("left the page")));
  await assert.rejects(left, /left the page/);
  assert.equal(shelf.book.reports[CAMPAIGN.digest]?.state, "reserved");
  const lines: number[] = [];
  const look = (offer: Offer): boolean => {
    lines.push(offer.statement.lines.length);
    return true;
  };
  assert.equal((await client.statement()).statement.lines.length, 1); // no other survey may have it meanwhile
  assert.equal((await client.answer(CAMPAIGN.digest, look, age)).status, "acknowledged");
  assert.deepEqual(lines, [0]);
  assert.equal((await client.statement()).statement.lines.length, 1);
});

test("finding 11: no value stops a device that has promised its report", async () => {
  const thrower = new Proxy({}, { getOwnPropertyDescriptor: () => { throw new Error("no"); } });
  const odd: unknown[] = [Symbol("x"), 10n ** 400n, {}, [], () => 1, true, "9".repeat(400), Number("9".repeat(400)), new Date(NaN), new Proxy({}, { get: () => { throw new Error("no"); } })];
  for (const values of [null, undefined, 7, "age", thrower, ...odd.map((value) => ({ age: value }))]) {
    const { client, server } = set();
    assert.equal((await client.answer(CAMPAIGN.digest, yes, () => values as { age: number })).status, "acknowledged");
    assert.equal(server.received.length, 1);
  }
});
