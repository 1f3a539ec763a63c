/** A campaign as a device meets it: one immutable record, pinned by its digest. */

import { checkDigest, digest, fields, integer, isRecord, list, parseCanonical, refuse, type Fields } from "./canonical.js";
import { schemaFrom, type Attribute } from "./codes.js";
import { parseEpsilon, type Ratio } from "./epsilon.js";
import type { CampaignTerms } from "./question.js";

const FIELDS =
  "type version title purpose controller contact texts created schema method epsilon groups minimum closing enrolment token review retention_days";
const UNPRINTABLE = /[\p{C}\p{Z}]/u;

/** Who asks what of whom, and on what terms. */
export interface Campaign extends CampaignTerms {
  record: Fields;
  schema: Attribute[];
  epsilon: Ratio;
  groups: [string, number][];
  minimum: number;
  enrolment: "panel" | "walk_in";
  tier: "none" | "signed" | "blind";
  key: { n: bigint; e: bigint; length: number } | null;
}

/** The campaign behind canonical bytes; with `pinned` it must be the one of that digest. */
export async function campaignFrom(data: Uint8Array, pinned?: string): Promise<Campaign> {
  const record = parseCanonical(data);
  const found = fields(record, FIELDS, "the campaign");
  if (found["type"] !== "campaign" || found["version"] !== 2) refuse("expected a campaign of version 2");
  for (const name of ["title", "purpose", "controller", "contact"]) checkText(found[name], name);
  if (!isRecord(found["texts"])) refuse("expected texts to be a record of texts");
  for (const text of Object.values(found["texts"])) checkText(text, "texts");
  const day = found["created"];
  if (typeof day !== "string" || !/^\d{4}-\d\d-\d\d$/.test(day) || !isDay(day)) refuse("expected created to be a day, YYYY-MM-DD");
  checkClosing(found["closing"]);
  if (!isRecord(found["method"]) || typeof found["review"] !== "boolean") refuse("expected method to be a record and review to be true or false");
  const enrolment = found["enrolment"];
  if (enrolment !== "panel" && enrolment !== "walk_in") refuse("expected enrolment to be one of panel, walk_in");
  integer(found["retention_days"], "retention_days", 0, 36_500);
  const name = await digest(record);
  if (pinned !== undefined && name !== checkDigest(pinned, "pinned")) refuse("expected the pinned campaign");
  return {
    digest: name,
    record,
    schema: schemaFrom(found["schema"]),
    epsilon: parseEpsilon(found["epsilon"]),
    groups: groupsFrom(found["groups"]),
    minimum: integer(found["minimum"], "minimum", 1, 1e9),
    enrolment,
    ...token(found["token"]),
  };
}

/** The first group whose cumulated share is larger than the number, which is below the sum of the shares. */
export function pickGroup(groups: readonly (readonly [string, number])[], number: bigint): string {
  let border = 0n;
  for (const [group, share] of groups) if (number < (border += BigInt(share))) return group;
  return refuse("expected a number below the sum of the shares");
}

function isDay(day: string): boolean {
  const date = new Date(`${day}T00:00:00Z`);
  return !Number.isNaN(date.getTime()) && date.toISOString().slice(0, 10) === day && !day.startsWith("0000");
}

function checkText(value: unknown, name: string): string {
  const good = typeof value === "string" && value.length > 0 && [...value].length <= 10_000;
  if (!good || UNPRINTABLE.test(value.replaceAll(/[ \n]/g, ""))) refuse(`expected ${name} to be a text for people`);
  return value;
}

function checkClosing(closing: unknown): void {
  const kind = isRecord(closing) ? closing["kind"] : null;
  if (kind === "reports") integer(fields(closing, "kind reports", "closing")["reports"], "closing.reports", 1, 1e9);
  else if (kind === "deadline") integer(fields(closing, "kind seconds", "closing")["seconds"], "closing.seconds", 1, 1e9);
  else if (kind === "manual") fields(closing, "kind", "closing");
  else refuse("expected closing to be of kind reports, deadline or manual");
}

function groupsFrom(groups: unknown): [string, number][] {
  const made = list(groups, "groups").map((group): [string, number] => {
    const found = fields(group, "id share", "a group");
    return [checkText(found["id"], "a group's id"), integer(found["share"], "a share", 1, 1e6)];
  });
  if (made.length < 1 || made.length > 10_000) refuse("expected 1 to 10000 groups");
  if (new Set(made.map(([id]) => id)).size !== made.length) refuse("expected groups of different ids");
  return made;
}

function token(given: unknown): Pick<Campaign, "tier" | "key"> {
  const tier = isRecord(given) ? given["tier"] : null;
  if (tier === "none") {
    fields(given, "tier", "token");
    return { tier, key: null };
  }
  if (tier !== "signed" && tier !== "blind") refuse("expected the tier of token to be one of none, signed, blind");
  const found = fields(given, "tier n e", "token");
  const text = found["n"];
  if (typeof text !== "string" || !/^[89a-f][0-9a-f]*[13579bdf]$/.test(text) || text.length < 512 || text.length > 1024 || text.length % 2)
    refuse("expected token.n to be an RSA modulus of 2048 to 4096 bits in lower-case hexadecimal");
  integer(found["e"], "token.e", 65537, 65537);
  return { tier, key: { n: BigInt(`0x${text}`), e: 65537n, length: text.length / 2 } };
}
