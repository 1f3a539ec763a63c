/** What a device remembers: every report it ever promised, charged to the owner's fields, written before it is sent. */

import { hex, refuse, unhex } from "./canonical.js";
import { atMost, type Ratio } from "./epsilon.js";
import { newNonce } from "./tokens.js";

export type State = "reserved" | "drawn" | "sent" | "acknowledged" | "late" | "rejected" | "withdrawn" | "wiped";

const MOVES: { [from: string]: State[] } = {
  reserved: ["drawn", "wiped"],
  drawn: ["sent", "wiped"],
  sent: ["sent", "acknowledged", "late", "rejected", "withdrawn", "wiped"],
  acknowledged: ["withdrawn"],
};

/** One report as the ledger holds it. `batch` is the body to send, byte for byte, once it is drawn. */
export interface Entry {
  state: State;
  wave: number;
  group: string;
  question: string;
  batch: string | null;
  notBefore: number;
}

export interface Token {
  nonce: string;
  inverse: string | null;
  signature: string | null;
}

/** Everything a ledger holds: plain JSON, hexadecimal for bytes. */
export interface Book {
  version: 1;
  views: { [wave: string]: string };
  tokens: { [campaign: string]: Token };
  groups: { [wave: string]: string };
  charges: { [field: string]: { [campaign: string]: [string, string] } }; // epsilon as numerator and denominator
  reports: { [campaign: string]: Entry };
  optedOut: boolean;
}

/** Durable storage of one book: `update` reads, changes and writes it in one transaction that is on disk when it returns. */
export interface Shelf {
  update<T>(change: (book: Book) => T): Promise<T>;
  /** Runs alone: no other tab or process answers meanwhile. */
  alone<T>(work: () => Promise<T>): Promise<T>;
}

export function emptyBook(): Book {
  return { version: 1, views: {}, tokens: {}, groups: {}, charges: {}, reports: {}, optedOut: false };
}

/** The rules of a ledger over some shelf. */
export class Ledger {
  readonly #shelf: Shelf;

  constructor(shelf: Shelf) {
    this.#shelf = shelf;
  }

  alone<T>(work: () => Promise<T>): Promise<T> {
    return this.#shelf.alone(work);
  }

  /** Remember what was seen of a wave; refuse if an earlier look showed something else. */
  checkView(campaign: string, wave: number, digest: string): Promise<void> {
    return this.#shelf.update((book) => {
      if ((book.views[`${campaign}/${wave}`] ??= digest) !== digest) refuse("this wave was shown with other questions before");
    });
  }

  /** The campaign's nonce, drawn at the first call. */
  token(campaign: string): Promise<Token> {
    return this.#shelf.update((book) => ({ ...(book.tokens[campaign] ??= { nonce: hex(newNonce()), inverse: null, signature: null }) }));
  }

  keepToken(campaign: string, change: Partial<Token>): Promise<void> {
    return this.#shelf.update((book) => void Object.assign(book.tokens[campaign] ?? refuse("no nonce"), change));
  }

  /** The group of a wave (0: of a panel): the first one ever drawn, whatever is drawn later. */
  keepGroup(campaign: string, wave: number, drawn: string): Promise<string> {
    return this.#shelf.update((book) => (book.groups[`${campaign}/${wave}`] ??= drawn));
  }

  /** Refuse a report that would charge a field more than once, or beyond its explicit lifetime limit. */
  checkBudget(campaign: string, fields: readonly string[], epsilon: Ratio, limits: { [field: string]: Ratio }): Promise<void> {
    return this.#shelf.update((book) => checkBudget(book, campaign, fields, epsilon, limits));
  }

  /** Charge the fields and promise the one report of a campaign; what is drawn already cannot be promised again. */
  reserve(campaign: string, entry: Pick<Entry, "wave" | "group" | "question">, fields: readonly string[], epsilon: Ratio, limits: { [field: string]: Ratio }): Promise<void> {
    return this.#shelf.update((book) => {
      checkBudget(book, campaign, fields, epsilon, limits);
      const found = book.reports[campaign];
      if (found && found.state !== "reserved") refuse("this campaign has its report already");
      for (const field of fields) (book.charges[field] ??= {})[campaign] ??= [String(epsilon.num), String(epsilon.den)];
      book.reports[campaign] = { ...entry, state: "reserved", batch: null, notBefore: 0 };
    });
  }

  /** Put the exact bytes into the outbox: from here on they are this campaign's report, and no others. */
  keepDrawn(campaign: string, question: string, batch: Uint8Array, notBefore: number): Promise<void> {
    return this.#shelf.update((book) => {
      const found = book.reports[campaign];
      if (!found || found.state !== "reserved" || found.question !== question) refuse("no report is promised");
      Object.assign(found, { state: "drawn", batch: hex(batch), notBefore });
    });
  }

  /** Take the report to its next state; a move that the protocol does not have is refused. */
  move(campaign: string, state: State): Promise<void> {
    return this.#shelf.update((book) => {
      const found = book.reports[campaign];
      if (!found || !MOVES[found.state]?.includes(state)) refuse(`the report cannot become ${state}`);
      found.state = state;
    });
  }

  entry(campaign: string): Promise<Entry | null> {
    return this.#shelf.update((book) => (book.reports[campaign] ? { ...book.reports[campaign] } : null));
  }

  /** Campaigns whose report is drawn and not acknowledged. */
  outbox(): Promise<string[]> {
    return this.#shelf.update((book) => Object.keys(book.reports).filter((c) => isUnsent(book.reports[c] as Entry)));
  }

  /** How often, and with which sum of epsilon, every field was reported, for its owner to see. */
  spent(): Promise<{ [field: string]: { reports: number; epsilon: number } }> {
    return this.#shelf.update((book) =>
      Object.fromEntries(
        Object.entries(book.charges).map(([field, all]) => {
          const each = Object.values(all).map(([num, den]) => Number(num) / Number(den));
          return [field, { reports: each.length, epsilon: each.reduce((a, b) => a + b, 0) }];
        }),
      ),
    );
  }

  /** Stop: nothing is answered any more and the outbox is wiped. What was charged stays written. */
  optOut(): Promise<void> {
    return this.#shelf.update((book) => {
      book.optedOut = true;
      book.tokens = {};
      for (const entry of Object.values(book.reports)) {
        if (["reserved", "drawn", "sent"].includes(entry.state)) entry.state = "wiped";
        entry.batch = null;
      }
    });
  }

  optIn(): Promise<void> {
    return this.#shelf.update((book) => void (book.optedOut = false));
  }
}

function checkBudget(book: Book, campaign: string, fields: readonly string[], epsilon: Ratio, limits: { [field: string]: Ratio }): void {
  if (book.optedOut) refuse("opted out");
  for (const field of fields) {
    const before = Object.entries(book.charges[field] ?? {}).filter(([other]) => other !== campaign);
    const limit = Object.hasOwn(limits, field) ? limits[field] : undefined;
    if (!limit && before.length) refuse(`the field ${field} was reported before, and no lifetime limit allows more`);
    let total = epsilon;
    for (const [, [num, den]] of before) total = { num: total.num * BigInt(den) + BigInt(num) * total.den, den: total.den * BigInt(den) };
    if (limit && !atMost(total, limit)) refuse(`the field ${field} would exceed its lifetime limit`);
  }
}

/** Whether a report is drawn and its arrival not known. */
export function isUnsent({ state }: Entry): boolean {
  return state === "drawn" || state === "sent";
}

/** The bytes of an entry in the outbox. */
export function batchOf(entry: Entry): Uint8Array {
  return unhex(entry.batch ?? refuse("no report is drawn"));
}

const DATABASE = "ahead-ldp";

/** A ledger in the browser's database, one strict transaction for each change, under a lock that all tabs share. */
export class BrowserShelf implements Shelf {
  readonly #database: IDBDatabase;

  private constructor(database: IDBDatabase) {
    this.#database = database;
  }

  /** Open it, or refuse: without durable storage and locks there is no promise to keep. */
  static async open(): Promise<BrowserShelf> {
    if (!globalThis.isSecureContext || !globalThis.crypto?.subtle) refuse("this page is not a secure context");
    if (!globalThis.indexedDB || !navigator.locks) refuse("this browser offers no durable storage");
    const request = indexedDB.open(DATABASE, 1);
    request.onupgradeneeded = () => request.result.createObjectStore("book");
    try {
      return new BrowserShelf(await done(request));
    } catch {
      return refuse("this browser offers no durable storage");
    }
  }

  async update<T>(change: (book: Book) => T): Promise<T> {
    const transaction = this.#database.transaction("book", "readwrite", { durability: "strict" });
    const store = transaction.objectStore("book");
    const finished = new Promise<void>((resolve, reject) => {
      transaction.oncomplete = () => resolve();
      transaction.onerror = transaction.onabort = () => reject(transaction.error ?? new Error("the ledger failed"));
    });
    finished.catch(() => undefined); // looked at below, after the change
    const book = ((await done(store.get("book"))) as Book | undefined) ?? emptyBook();
    let result: T;
    try {
      result = change(book);
    } catch (error) {
      transaction.abort();
      throw error;
    }
    store.put(book, "book");
    await finished;
    return result;
  }

  alone<T>(work: () => Promise<T>): Promise<T> {
    return navigator.locks.request(DATABASE, work) as Promise<T>;
  }
}

function done<T>(request: IDBRequest<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error ?? new Error("the ledger failed"));
  });
}
