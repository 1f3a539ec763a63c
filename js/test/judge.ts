/** Reads lines of a kind and bytes in hexadecimal, and says what this client makes of each: for tests/attacks/test_canonical.py. */

import { createInterface } from "node:readline";

import { campaignFrom } from "../src/campaign.js";
import { digest, hex, parseCanonical, Refused, refuse, unhex } from "../src/canonical.js";
import { schemaFrom } from "../src/codes.js";
import { parseEpsilon, type Ratio } from "../src/epsilon.js";
import { checkQuestion } from "../src/question.js";
import { checkName, checkText } from "../src/text.js";
import { tokenMessage } from "../src/tokens.js";

const SCHEMA = schemaFrom(JSON.parse(process.argv[2] as string));
const CAMPAIGN = process.argv[3] as string;

function decoded(data: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(data);
  } catch {
    return refuse("not UTF-8");
  }
}

/** A ratio in lowest terms, as Python writes a fraction. */
function written({ num, den }: Ratio): string {
  let [a, b] = [num, den];
  while (b) [a, b] = [b, a % b];
  return den === a ? String(num / a) : `${num / a}/${den / a}`;
}

const JUDGES: { [kind: string]: (data: Uint8Array) => string | Promise<string> } = {
  record: (data) => digest(parseCanonical(data)),
  schema: (data) => schemaFrom(parseCanonical(data)).map((a) => `${a.kind} ${a.size} ${a.missingCode ?? "none"}`).join(", "),
  async campaign(data) {
    const found = await campaignFrom(data);
    const groups = found.groups.map(([id, share]) => `${hex(new TextEncoder().encode(id))}=${share}`).join(" ");
    return `${found.digest} ${found.tier} ${found.minimum} ${found.enrolment} ${written(found.epsilon)} ${hex(await tokenMessage(found, new Uint8Array(32)))} ${groups}`;
  },
  async question(data) {
    const found = await checkQuestion(data, SCHEMA, CAMPAIGN, { maxEpsilon: "2", maxCells: 1024 });
    return `${found.digest} ${found.wave} ${found.law.cells} ${found.law.payloadLength}`;
  },
  epsilon: (data) => written(parseEpsilon(decoded(data))),
  name: (data) => `${[...checkName(decoded(data), "it")].length}`,
  text: (data) => `${[...checkText(decoded(data), "it")].length}`,
};

for await (const line of createInterface({ input: process.stdin })) {
  const [kind, data = ""] = line.split(" ") as [string, string?];
  let said = "refused";
  try {
    said = await (JUDGES[kind] as (data: Uint8Array) => string | Promise<string>)(unhex(data));
  } catch (error) {
    if (!(error instanceof Refused)) said = `crashed: ${String(error)}`;
  }
  console.log(said);
}
