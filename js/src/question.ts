/** A question as a device meets it: checked in full before the private value is read. */

import { canonicalBytes, checkDigest, concat, digest, fields, integer, isRecord, list, parseCanonical, refuse, unhex, type Fields } from "./canonical.js";
import type { Attribute, Value } from "./codes.js";
import { atMost, parseEpsilon, type Ratio } from "./epsilon.js";
import { lawFrom, type Law } from "./laws.js";
import { axisOf, partitionFrom, type Partition } from "./partition.js";
import { below, type Words } from "./words.js";

const VERSION = 1;
export const HEADER_LENGTH = 65; // version, campaign digest, question digest

/** What this device is willing to answer, whatever a server says. */
export interface Policy {
  maxEpsilon: string;
  maxCells?: number;
  minGroup?: number;
}

/** A question that passed every check: its partition tiles the domain and its law is epsilon-LDP. */
export interface Question {
  campaign: string;
  digest: string;
  wave: number;
  group: string;
  epsilon: Ratio;
  attributes: readonly Attribute[];
  partition: Partition;
  law: Law;
}

/** The question behind canonical bytes; nothing here looks at a private value. */
export async function checkQuestion(data: Uint8Array, schema: readonly Attribute[], campaign: string, policy: Policy): Promise<Question> {
  const record = parseCanonical(data);
  const found = fields(record, "type version campaign wave group tallies epsilon attributes partition oracle", "the question");
  if (found["type"] !== "question" || found["version"] !== 1) refuse("not a question");
  if (checkDigest(found["campaign"], "campaign") !== campaign) refuse("not the pinned campaign");
  checkDigest(found["tallies"], "tallies");
  if (typeof found["group"] !== "string" || !found["group"]) refuse("not a question");
  const names = list(found["attributes"], "attributes");
  if (!names.length || new Set(names).size !== names.length) refuse("not a question");
  const attributes = names.map((name) => schema.find((a) => a.name === name) ?? refuse("not a question"));
  const epsilon = parseEpsilon(found["epsilon"]);
  if (!atMost(epsilon, parseEpsilon(policy.maxEpsilon))) refuse("epsilon is above the device's limit");
  const law = lawFrom(found["oracle"]);
  const partition = partitionFrom(found["partition"], attributes.map(axisOf));
  if (law.cells > (policy.maxCells ?? 65536)) refuse("too many cells");
  if (partition.cells !== law.cells) refuse("oracle and partition differ in cells");
  if (!law.isPrivate(epsilon)) refuse("the oracle does not keep the declared epsilon");
  const wave = integer(found["wave"], "wave", 1, 10_000);
  return { campaign, digest: await digest(record), wave, group: found["group"], epsilon, attributes, partition, law };
}

/** The questions of a wave by group, every one of them checked: what one device would refuse, all refuse. */
export async function checkWave(data: Uint8Array, campaign: CampaignTerms, number: number, policy: Policy): Promise<Map<string, Question>> {
  const found = fields(parseCanonical(data), "type version campaign number questions", "the wave");
  if (found["type"] !== "wave" || found["version"] !== 1 || found["campaign"] !== campaign.digest || found["number"] !== number)
    refuse("not the wave of the pinned campaign");
  const made = new Map<string, Question>();
  const questions = list(found["questions"], "questions");
  const frozen = new Set(questions.map((inner) => (isRecord(inner) ? inner["tallies"] : null)));
  if (frozen.size !== 1 || (number === 1) !== frozen.has("0".repeat(64))) refuse("not the wave of the pinned campaign");
  for (const inner of questions) {
    const question = await checkQuestion(canonicalBytes(inner as Fields), campaign.schema, campaign.digest, policy);
    const { num, den } = campaign.epsilon;
    if (question.wave !== number || question.epsilon.num * den !== num * question.epsilon.den)
      refuse("not the wave of the pinned campaign");
    made.set(question.group, question);
  }
  const order = campaign.groups.filter(([group]) => made.has(group)).map(([group]) => group);
  if (!made.size || made.size !== questions.length || [...made.keys()].join("\n") !== order.join("\n"))
    refuse("not the wave of the pinned campaign");
  return made;
}

/** What a wave is checked against. */
export interface CampaignTerms {
  digest: string;
  schema: readonly Attribute[];
  epsilon: Ratio;
  groups: readonly (readonly [string, number])[];
}

/**
 * The payload for a private record, and the names of the attributes whose value did not fit: the one draw, which the vectors pin.
 * Call it once; resend its bytes, never redraw. Every record gives a payload, with the same amount of chance (decision 010).
 */
export function draw(question: Question, values: { [name: string]: Value }, words: Words): { payload: Uint8Array; replaced: string[] } {
  const replaced: string[] = [];
  const codes = question.attributes.map((a) => {
    const value = valueOf(values, a.name);
    const spare = Number(below(BigInt(a.size), words, 64));
    try {
      return a.code(value);
    } catch {
      replaced.push(a.name);
      return a.standIn(value, spare);
    }
  });
  return { payload: question.law.draw(question.partition.cell(codes), words), replaced };
}

/** The value of a record, missing where the record does not give one: reading it never fails. */
function valueOf(values: { [name: string]: Value }, name: string): Value {
  try {
    return Object.hasOwn(values, name) ? values[name] : null;
  } catch {
    return null; // no record, or one whose parts throw
  }
}

/** Header and frames of a batch. */
export function encodeBatch(campaign: string, question: string, frames: Uint8Array[]): Uint8Array {
  return concat(Uint8Array.of(VERSION), unhex(checkDigest(campaign, "campaign")), unhex(checkDigest(question, "question")), ...frames);
}
