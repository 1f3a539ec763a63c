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
  if (found["type"] !== "campaign" || found["version"] !== 2) refuse("not a campaign of version 2");
  for (const name of ["title", "purpose", "controller", "contact"]) checkText(found[name], name);
  if (!isRecord(found["texts"])) refuse("texts is no record");
  for (const text of Object.values(found["texts"])) checkText(text, "texts");
  const day = found["created"];
  if (typeof day !== "string" || !/^\d{4}-\d\d-\d\d$/.test(day) || !isDay(day)) refuse("created is no day");
  checkClosing(found["closing"]);
  if (!isRecord(found["method"]) || typeof found["review"] !== "boolean") refuse("method or review is of another type");
  const enrolment = found["enrolment"];
  if (enrolment !== "panel" && enrolment !== "walk_in") refuse("enrolment is not panel or walk_in");
  integer(found["retention_days"], "retention_days", 0, 36_500);
  const name = await digest(record);
  if (pinned !== undefined && name !== checkDigest(pinned, "pinned")) refuse("not the pinned campaign");
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
  return refuse("a number above the shares");
}

function isDay(day: string): boolean {
  const date = new Date(`${day}T00:00:00Z`);
  return !Number.isNaN(date.getTime()) && date.toISOString().slice(0, 10) === day && !day.startsWith("0000");
}

function checkText(value: unknown, name: string): string {
  const good = typeof value === "string" && value.length > 0 && [...value].length <= 10_000;
  if (!good || UNPRINTABLE.test(value.replaceAll(/[ \n]/g, ""))) refuse(`${name} is no text for people`);
  return value;
}

function checkClosing(closing: unknown): void {
  const kind = isRecord(closing) ? closing["kind"] : null;
  if (kind === "reports") integer(fields(closing, "kind reports", "closing")["reports"], "closing.reports", 1, 1e9);
  else if (kind === "deadline") integer(fields(closing, "kind seconds", "closing")["seconds"], "closing.seconds", 1, 1e9);
  else if (kind === "manual") fields(closing, "kind", "closing");
  else refuse("closing is of no known kind");
}

function groupsFrom(groups: unknown): [string, number][] {
  const made = list(groups, "groups").map((group): [string, number] => {
    const found = fields(group, "id share", "a group");
    return [checkText(found["id"], "a group's id"), integer(found["share"], "a share", 1, 1e6)];
  });
  if (made.length < 1 || made.length > 10_000) refuse("not 1 to 10000 groups");
  if (new Set(made.map(([id]) => id)).size !== made.length) refuse("two groups of one id");
  return made;
}

function token(given: unknown): Pick<Campaign, "tier" | "key"> {
  const tier = isRecord(given) ? given["tier"] : null;
  if (tier === "none") {
    fields(given, "tier", "token");
    return { tier, key: null };
  }
  if (tier !== "signed" && tier !== "blind") refuse("token is of no known tier");
  const found = fields(given, "tier n e", "token");
  const text = found["n"];
  if (typeof text !== "string" || !/^[89a-f][0-9a-f]*[13579bdf]$/.test(text) || text.length < 512 || text.length > 1024 || text.length % 2)
    refuse("token.n is no RSA modulus of 2048 to 4096 bits");
  integer(found["e"], "token.e", 65537, 65537);
  return { tier, key: { n: BigInt(`0x${text}`), e: 65537n, length: text.length / 2 } };
}
