/** The client for pages and for Node: answer a campaign, randomised on this device. */

export { campaignFrom, type Campaign } from "./campaign.js";
export { Refused } from "./canonical.js";
export { Attribute, ValueRefused, type Value } from "./codes.js";
export { Client, Unreachable, type AskFields, type ClientOptions, type Fields, type Offer, type Outcome, type OwnerPolicy, type Receipt, type Signer, type Status } from "./client.js";
export { BrowserShelf, bookFrom, emptyBook, Ledger, type Asker, type Book, type Shelf } from "./ledger.js";
export type { Charge, Limits, Line, Statement } from "./budget.js";
