/** The client for pages and for Node: answer a campaign, randomised on this device. */

export { campaignFrom, type Campaign } from "./campaign.js";
export { Refused } from "./canonical.js";
export { Attribute, ValueRefused, type Value } from "./codes.js";
export { Client, Unreachable, type ClientOptions, type Offer, type Outcome, type OwnerPolicy, type Receipt, type Signer, type Status } from "./client.js";
export { BrowserShelf, emptyBook, Ledger, type Book, type Shelf } from "./ledger.js";
