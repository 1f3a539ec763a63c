/** A campaign as a device meets it: one immutable record, pinned by its digest. */

import { checkDigest, digest, fields, integer, isRecord, list, parseCanonical, refuse, type Fields } from "./canonical.js";
import { days, schemaFrom, type Attribute } from "./codes.js";
import { parseEpsilon, type Ratio } from "./epsilon.js";
import type { CampaignTerms } from "./question.js";
import { checkText } from "./text.js";
import { wordingFrom, type Wording } from "./wording.js";

const FIELDS =
  "type version title purpose controller contact texts created schema method epsilon groups minimum closing enrolment token review retention_days";

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
  tokenVersion: 1 | 2;
  wording: Map<string, Wording>;
}

/** The campaign behind canonical bytes; with `pinned` it must be the one of that digest. */
export async function campaignFrom(data: Uint8Array, pinned?: string): Promise<Campaign> {
  const record = parseCanonical(data);
  const found = fields(record, Object.hasOwn(record, "wording") ? `${FIELDS} wording` : FIELDS, "the campaign");
  if (found["type"] !== "campaign" || found["version"] !== 2) refuse("not a campaign");
  for (const name of ["title", "purpose", "controller", "contact"]) checkText(found[name], name);
  if (!isRecord(found["texts"])) refuse("not a campaign");
  for (const text of Object.values(found["texts"])) checkText(text, "texts");
  if (typeof found["created"] !== "string" || Number.isNaN(days(found["created"]))) refuse("not a campaign");
  checkClosing(found["closing"]);
  if (!isRecord(found["method"]) || typeof found["review"] !== "boolean") refuse("not a campaign");
  const enrolment = found["enrolment"];
  if (enrolment !== "panel" && enrolment !== "walk_in") refuse("not a campaign");
  integer(found["retention_days"], "retention_days", 0, 36_500);
  const name = await digest(record);
  if (pinned !== undefined && name !== checkDigest(pinned, "pinned")) refuse("not the pinned campaign");
  const schema = schemaFrom(found["schema"]);
  return {
    digest: name,
    record,
    schema,
    wording: wordingFrom(found["wording"], schema),
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
  return refuse("not a campaign");
}

const CLOSING: [string, string[]][] = [["reports", ["reports"]], ["deadline", ["seconds"]], ["both", ["reports", "seconds"]], ["manual", []]];

function checkClosing(closing: unknown): void {
  const kind = isRecord(closing) ? closing["kind"] : null;
  const numbers = CLOSING.find(([name]) => name === kind)?.[1] ?? refuse("not a campaign");
  const found = fields(closing, ["kind", ...numbers].join(" "), "closing");
  for (const name of numbers) integer(found[name], `closing.${name}`, 1, 1e9);
}

function groupsFrom(groups: unknown): [string, number][] {
  const made = list(groups, "groups").map((group): [string, number] => {
    const found = fields(group, "id share", "a group");
    return [checkText(found["id"], "a group's id"), integer(found["share"], "a share", 1, 1e6)];
  });
  if (made.length < 1 || made.length > 10_000) refuse("not a campaign");
  if (new Set(made.map(([id]) => id)).size !== made.length) refuse("not a campaign");
  return made;
}

function token(given: unknown): Pick<Campaign, "tier" | "key" | "tokenVersion"> {
  const tier = isRecord(given) ? given["tier"] : null;
  if (tier === "none") {
    fields(given, "tier", "token");
    return { tier, key: null, tokenVersion: 2 };
  }
  if (tier !== "signed" && tier !== "blind") refuse("not a campaign");
  const old = isRecord(given) && !Object.hasOwn(given, "version");
  const found = fields(given, old ? "tier n e" : "tier version n e", "token");
  if (!old) integer(found["version"], "token.version", 2, 2);
  const text = found["n"];
  if (typeof text !== "string" || !/^[89a-f][0-9a-f]*[13579bdf]$/.test(text) || text.length < 512 || text.length > 1024 || text.length % 2)
    refuse("not a campaign");
  integer(found["e"], "token.e", 65537, 65537);
  return { tier, tokenVersion: old ? 1 : 2, key: { n: BigInt(`0x${text}`), e: 65537n, length: text.length / 2 } };
}
