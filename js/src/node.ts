/** A ledger in a file, for Node: written beside, synced, renamed; readable by its owner alone. */

import { closeSync, fsyncSync, mkdirSync, openSync, readFileSync, renameSync, unlinkSync, writeFileSync, writeSync } from "node:fs";
import { dirname } from "node:path";

import { Refused, refuse } from "./canonical.js";
import { bookFrom, emptyBook, type Book, type Shelf } from "./ledger.js";

/** One process at a time holds the lock; the book is on disk when `update` returns. */
export class FileShelf implements Shelf {
  readonly #path: string;
  #held = false;

  constructor(path: string) {
    this.#path = path;
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  }

  async update<T>(change: (book: Book) => T): Promise<T> {
    return this.#held ? this.#change(change) : this.alone(async () => this.#change(change));
  }

  async alone<T>(work: () => Promise<T>): Promise<T> {
    if (this.#held) return work();
    const lock = `${this.#path}.lock`;
    const holder = Number(read(lock));
    if (holder && !isRunning(holder)) unlinkSync(lock); // its process ended without a chance to
    try {
      writeFileSync(lock, String(process.pid), { flag: "wx", mode: 0o600 });
    } catch {
      return refuse("another process is answering with this ledger");
    }
    this.#held = true;
    try {
      return await work();
    } finally {
      this.#held = false;
      unlinkSync(lock);
    }
  }

  #change<T>(change: (book: Book) => T): T {
    const before = read(this.#path);
    const book = before === null ? emptyBook() : bookFrom(parse(before));
    const result = change(book);
    const after = JSON.stringify(book);
    if (after !== before) write(this.#path, after);
    return result;
  }
}

function isRunning(id: number): boolean {
  try {
    return process.kill(id, 0);
  } catch (error) {
    return (error as { code?: string }).code === "EPERM";
  }
}

function read(path: string): string | null {
  try {
    return readFileSync(path, "utf-8");
  } catch (error) {
    if ((error as { code?: string }).code === "ENOENT") return null;
    throw new Refused("the ledger cannot be read");
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return refuse("the ledger is damaged");
  }
}

function write(path: string, text: string): void {
  const beside = `${path}.new`;
  const file = openSync(beside, "w", 0o600);
  writeSync(file, text);
  fsyncSync(file);
  closeSync(file);
  renameSync(beside, path);
  const folder = openSync(dirname(path), "r");
  fsyncSync(folder);
  closeSync(folder);
}
