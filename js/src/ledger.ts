/** What a device remembers: every report it ever promised, charged to the owner's fields, written before it is sent. */

import { checkCharge, makeStatement, type Charge, type Limits, type Statement } from "./budget.js";
import { checkDigest, hex, isRecord, refuse, unhex } from "./canonical.js";
import type { Ratio } from "./epsilon.js";
import { checkName } from "./text.js";
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

/** Whom a report is for, in the campaign's own words. */
export interface Asker {
  campaign: string;
  title: string;
  controller: string;
}

/** Attribute of a campaign to field of the owner; null: the owner is not sure. */
export type Mapping = [attribute: string, field: string | null][];

/**
 * Everything a ledger holds: plain JSON, hexadecimal for bytes. Records have digests for keys, and nothing else: a name that somebody
 * chose stands in a list, where `__proto__` is a name like any other.
 */
export interface Book {
  version: 2;
  views: { [wave: string]: string };
  tokens: { [campaign: string]: Token };
  groups: { [wave: string]: string };
  charges: Charge[];
  askers: { [campaign: string]: Asker };
  mappings: { [campaign: string]: Mapping };
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
  return { version: 2, views: {}, tokens: {}, groups: {}, charges: [], askers: {}, mappings: {}, reports: {}, optedOut: false };
}

/** The book that was kept, brought to the present version; what is no book is damage, never a new one. */
export function bookFrom(kept: unknown): Book {
  if (!isRecord(kept)) refuse("the ledger is damaged");
  if (kept["version"] !== 1 && kept["version"] !== 2) refuse("the ledger is of another version");
  const [found, empty] = [kept as unknown as Book, emptyBook()];
  const book = kept["version"] === 1 ? { ...empty, ...found, version: 2 as const, charges: oldCharges(kept) } : found;
  for (const [name, part] of Object.entries(empty)) {
    const own: unknown = Object.hasOwn(book, name) ? book[name as keyof Book] : undefined;
    if (typeof own !== typeof part || Array.isArray(own) !== Array.isArray(part) || own === null) refuse("the ledger is damaged");
  }
  return book;
}

/** Charges of version 1, by field. It lost those to names such as `__proto__`: their reports count against all, at the most the page gave. */
function oldCharges(kept: { [name: string]: unknown }): Charge[] {
  const { charges, reports } = kept;
  if (!isRecord(charges) || !isRecord(reports)) refuse("the ledger is damaged");
  const made: Charge[] = [];
  for (const [field, all] of Object.entries(charges))
    for (const [campaign, epsilon] of Object.entries(all as unknown as { [campaign: string]: [string, string] })) made.push({ campaign, field, epsilon });
  for (const campaign of Object.keys(reports)) if (!made.some((charge) => charge.campaign === campaign)) made.push({ campaign, field: null, epsilon: ["4", "1"] });
  return made;
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

  /** A change that concerns one campaign, by its digest: no other text is ever a key of a book. */
  #change<T>(campaign: string, change: (book: Book) => T): Promise<T> {
    return this.#shelf.update((book) => {
      checkDigest(campaign, "campaign");
      return change(book);
    });
  }

  /** Remember what was seen of a wave; refuse if an earlier look showed something else. */
  checkView(campaign: string, wave: number, digest: string): Promise<void> {
    return this.#change(campaign, (book) => {
      if ((book.views[`${campaign}/${wave}`] ??= digest) !== digest) refuse("this wave was shown with other questions before");
    });
  }

  /** The campaign's nonce, drawn at the first call. */
  token(campaign: string): Promise<Token> {
    return this.#change(campaign, (book) => ({ ...(book.tokens[campaign] ??= { nonce: hex(newNonce()), inverse: null, signature: null }) }));
  }

  keepToken(campaign: string, change: Partial<Token>): Promise<void> {
    return this.#change(campaign, (book) => void Object.assign(book.tokens[campaign] ?? refuse("no nonce"), change));
  }

  /** The group of a wave (0: of a panel): the first one ever drawn, whatever is drawn later. */
  keepGroup(campaign: string, wave: number, drawn: string): Promise<string> {
    return this.#change(campaign, (book) => (book.groups[`${campaign}/${wave}`] ??= drawn));
  }

  /** Refuse a report that would charge a field, or a lifetime, more than the owner allows. */
  checkBudget(campaign: string, fields: readonly (string | null)[], epsilon: Ratio, limits: Limits): Promise<void> {
    return this.#change(campaign, (book) => checkBudget(book, campaign, fields, epsilon, limits));
  }

  /** Charge the fields and promise the one report of a campaign; what is drawn already cannot be promised again. */
  reserve(asker: Asker, entry: Pick<Entry, "wave" | "group" | "question">, fields: readonly (string | null)[], epsilon: Ratio, limits: Limits): Promise<void> {
    const { campaign } = asker;
    return this.#change(campaign, (book) => {
      if (!fields.length) refuse("a report about nothing");
      checkBudget(book, campaign, fields, epsilon, limits);
      const found = book.reports[campaign];
      if (found && found.state !== "reserved") refuse("this campaign has its report already");
      book.askers[campaign] = asker;
      for (const field of new Set(fields.map(checkField)))
        if (!book.charges.some((charge) => charge.campaign === campaign && charge.field === field))
          book.charges.push({ campaign, field, epsilon: [String(epsilon.num), String(epsilon.den)] });
      book.reports[campaign] = { ...entry, state: "reserved", batch: null, notBefore: 0 };
    });
  }

  /** Put the exact bytes into the outbox: from here on they are this campaign's report, and no others. */
  keepDrawn(campaign: string, question: string, batch: Uint8Array, notBefore: number): Promise<void> {
    return this.#change(campaign, (book) => {
      const found = book.reports[campaign];
      if (!found || found.state !== "reserved" || found.question !== question) refuse("no report is promised");
      Object.assign(found, { state: "drawn", batch: hex(batch), notBefore });
    });
  }

  /** Take the report to its next state; a move that the protocol does not have is refused. */
  move(campaign: string, state: State): Promise<void> {
    return this.#change(campaign, (book) => {
      const found = book.reports[campaign];
      if (!found || !MOVES[found.state]?.includes(state)) refuse(`the report cannot become ${state}`);
      found.state = state;
    });
  }

  entry(campaign: string): Promise<Entry | null> {
    return this.#change(campaign, (book) => (book.reports[campaign] ? { ...book.reports[campaign] } : null));
  }

  /** Campaigns whose report is drawn and not acknowledged. */
  outbox(): Promise<string[]> {
    return this.#shelf.update((book) => Object.keys(book.reports).filter((c) => isUnsent(book.reports[c] as Entry)));
  }

  /**
   * What was given away so far and what is left, and to whom it went, for its owner to see. A report is charged when it is promised,
   * before the value is asked; of the campaign that is `offered` again, what is only promised was not given away.
   */
  statement(limits: Limits, offered?: string): Promise<{ statement: Statement; askers: { [campaign: string]: Asker } }> {
    return this.#shelf.update((book) => {
      const promised = offered !== undefined && book.reports[offered]?.state === "reserved";
      const charges = book.charges.filter(({ campaign }) => !promised || campaign !== offered);
      return { statement: makeStatement(charges, limits), askers: { ...book.askers } };
    });
  }

  /** The owner's word on the attributes of one campaign. */
  mapping(campaign: string): Promise<Map<string, string | null>> {
    return this.#change(campaign, (book) => new Map(book.mappings[campaign]));
  }

  /** Remember the owner's word on the attributes of one campaign; the first word on each stays. */
  keepMapping(campaign: string, fields: ReadonlyMap<string, string | null>): Promise<void> {
    return this.#change(campaign, (book) => {
      const kept = (book.mappings[campaign] ??= []);
      for (const [attribute, field] of fields) if (!kept.some(([name]) => name === attribute)) kept.push([attribute, checkField(field)]);
    });
  }

  /** Every field by its own name, and by the names that campaigns had for it; only to be offered. */
  names(): Promise<Map<string, string>> {
    return this.#shelf.update((book) => {
      const said = Object.values(book.mappings).flat();
      const own = [...book.charges.map(({ field }) => field), ...said.map(([, field]) => field)].flatMap((field) => field ?? []);
      const others = said.filter((pair): pair is [string, string] => pair[1] !== null && !own.includes(pair[0]));
      return new Map([...own.sort().map((field): [string, string] => [field, field]), ...others]);
    });
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

function checkBudget(book: Book, campaign: string, fields: readonly (string | null)[], epsilon: Ratio, limits: Limits): void {
  if (book.optedOut) refuse("opted out");
  checkCharge(book.charges, campaign, fields, epsilon, limits);
}

function checkField(field: string | null): string | null {
  return field === null ? null : checkName(field, "the name of a field");
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
    const kept: unknown = await done(store.get("book"));
    let [book, result]: [Book, T | undefined] = [emptyBook(), undefined];
    try {
      if (kept !== undefined) book = bookFrom(kept);
      result = change(book);
    } catch (error) {
      transaction.abort();
      throw error;
    }
    store.put(book, "book");
    await finished;
    return result as T;
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
