/** The order of steps, driven from tests/vectors/steps.json as the Python client is. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { unhex } from "../src/canonical.js";
import { Client, type Fields } from "../src/client.js";
import { parseEpsilon } from "../src/epsilon.js";
import { emptyBook, Ledger, type Book, type Shelf } from "../src/ledger.js";

// eslint-disable-next-line @typescript-eslint/no-explicit-any
type Case = any;

const CASES: Case[] = JSON.parse(readFileSync(new URL("../../../tests/vectors/steps.json", import.meta.url), "utf-8")).cases;
const STATE = { state: "open", wave: 1, waves: [{ number: 1, state: "open", opened_at: 0, closes_at: null }] };

const NO_LIMITS = { lifetime: { num: 20n, den: 1n }, fields: new Map() };

class MemoryShelf implements Shelf {
  book: Book = emptyBook();

  async update<T>(change: (book: Book) => T): Promise<T> {
    const copy = structuredClone(this.book);
    const result = change(copy);
    this.book = copy;
    return result;
  }

  alone<T>(work: () => Promise<T>): Promise<T> {
    return work();
  }
}

class RecordedLedger extends Ledger {
  constructor(
    shelf: Shelf,
    private readonly step: (name: string) => void,
  ) {
    super(shelf);
  }

  override async reserve(...given: Parameters<Ledger["reserve"]>): Promise<void> {
    this.step("reserve");
    return super.reserve(...given);
  }

  override async keepDrawn(...given: Parameters<Ledger["keepDrawn"]>): Promise<void> {
    this.step("commit");
    return super.keepDrawn(...given);
  }
}

/** A server, an owner and a ledger that write down what is asked of them, and fail on demand. */
class Recorder {
  readonly shelf = new MemoryShelf();
  readonly steps: string[] = [];
  readonly client: Client;
  fails: string | null;

  constructor(private readonly given: Case) {
    this.fails = given.fails;
    const fields = new Proxy({ [given.digest]: given.fields } as { [campaign: string]: Fields }, {
      getOwnPropertyDescriptor: (target, name) => {
        if (this.steps.at(-1) === "consent") this.step("map"); // the first look after consent
        return Reflect.getOwnPropertyDescriptor(target, name);
      },
    });
    const ledger = new RecordedLedger(this.shelf, (name) => this.step(name));
    const policy = { maxEpsilon: given.max_epsilon, fields, limits: given.limits, lifetime: given.lifetime };
    this.client = new Client({ ledger, policy, fetch: this.fetch as typeof fetch });
  }

  step(name: string): void {
    this.steps.push(name);
    if (this.fails === name) throw new Error("it fails");
  }

  async charge(charges: { campaign: string; field: string | null; epsilon: string }[]): Promise<void> {
    for (const { campaign, field, epsilon } of charges)
      await new Ledger(this.shelf).reserve({ campaign, title: "t", controller: "c" }, { wave: 1, group: "a", question: "0".repeat(64) }, [field], parseEpsilon(epsilon), NO_LIMITS);
  }

  fetch = async (url: string | URL | Request): Promise<Response> => {
    const path = String(url);
    if (path.endsWith("/state")) return Response.json(STATE);
    if (path.endsWith("/reports")) {
      this.step("send");
      return Response.json({ accepted: 1, refused: [] });
    }
    if (!path.endsWith("/waves/1")) return new Response(unhex(this.given.campaign) as BodyInit);
    this.step("check");
    return new Response(unhex(this.given.wave) as BodyInit);
  };

  /** The steps taken, how they ended, and the attributes whose value was replaced. */
  async answer(): Promise<[{ steps: string[]; outcome: string }, string[]]> {
    this.steps.length = 0;
    const platform = crypto.getRandomValues;
    crypto.getRandomValues = ((array: Uint8Array) => {
      if (this.steps.at(-1) === "read") this.step("draw");
      return platform.call(crypto, array);
    }) as typeof platform;
    const consent = async (): Promise<boolean> => {
      this.step("consent");
      await this.charge(this.given.spent_while_asked);
      return this.given.consent;
    };
    const values = (): Case => {
      this.step("read");
      return this.given.values;
    };
    try {
      const fields = this.given.told && ((): Case => this.given.told);
      const outcome = await this.client.answer(this.given.digest, consent, values, fields ?? undefined);
      return [{ steps: [...this.steps], outcome: outcome.status }, outcome.replaced ?? []];
    } catch {
      return [{ steps: [...this.steps], outcome: "refused" }, []];
    } finally {
      crypto.getRandomValues = platform;
    }
  }
}

for (const c of CASES)
  test(`steps: ${c.name}`, async () => {
    const device = new Recorder(c);
    await device.charge(c.spent);
    if (c.opted_out) await new Ledger(device.shelf).optOut();
    const [taken, replaced] = await device.answer();
    assert.deepEqual(taken, { steps: c.steps, outcome: c.outcome });
    assert.deepEqual(replaced, c.replaced);
    const ledger = new Ledger(device.shelf);
    assert.equal((await ledger.entry(c.digest))?.state ?? null, c.state);
    assert.deepEqual([...new Set(device.shelf.book.charges.map(({ field }) => field))].sort(), [...c.charged].sort());
    device.fails = null;
    assert.deepEqual((await device.answer())[0], c.again);
  });
