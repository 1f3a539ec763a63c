/** The shared test vectors (tests/vectors) drive this implementation as they drive Python's. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { canonicalBytes, digest, hex, parseCanonical, sha, unhex, type Json } from "../src/canonical.js";
import { Attribute, schemaFrom, type Value } from "../src/codes.js";
import { parseEpsilon } from "../src/epsilon.js";
import { lawFrom } from "../src/laws.js";
import { partitionFrom, type Axis } from "../src/partition.js";
import { campaignFrom } from "../src/campaign.js";
import { checkQuestion, checkWave, draw, encodeBatch } from "../src/question.js";
import { checkName, checkText, isPrintable } from "../src/text.js";
import { blindWith, checkSignature, encodePss, invert, tokenGroup, tokenMessage, unblind } from "../src/tokens.js";
import type { Words } from "../src/words.js";

// eslint-disable-next-line @typescript-eslint/no-explicit-any
type Case = any;

function cases(name: string): Case[] {
  return JSON.parse(readFileSync(new URL(`../../../tests/vectors/${name}.json`, import.meta.url), "utf-8")).cases;
}

class GivenWords implements Words {
  private at = 0;
  constructor(private readonly given: [number, string][]) {}
  take(bits: number): bigint {
    const next = this.given[this.at++];
    assert.ok(next, "more words were taken than the vector holds");
    assert.equal(bits, next[0]);
    return BigInt(next[1]);
  }
  done(): void {
    assert.equal(this.at, this.given.length, "words were left over");
  }
}

for (const c of cases("canonical"))
  test(`canonical: ${c.name}`, async () => {
    if (c.refused) return void assert.throws(() => parseCanonical(unhex(c.bytes)));
    const record = parseCanonical(unhex(c.bytes));
    assert.equal(hex(canonicalBytes(record)), c.bytes);
    assert.equal(await digest(record), c.digest);
  });

const TEXTS = cases("texts");

test(`texts: ${TEXTS[0].name}`, async () => {
  const printable = Array.from({ length: 0x110000 }, (_, code) => Number(isPrintable(String.fromCodePoint(code))));
  assert.equal(printable.reduce((a, b) => a + b, 0), TEXTS[0].printable);
  assert.equal(hex(await sha(256, new TextEncoder().encode(printable.join("")))), TEXTS[0].sha256);
});

for (const c of TEXTS.slice(1))
  test(`text: ${c.name}`, () => {
    for (const [check, refused] of [[checkName, c.name_refused], [checkText, c.text_refused]] as const) {
      if (refused) assert.throws(() => check(c.text, "it"));
      else assert.equal(check(c.text, "it"), c.text);
    }
  });

for (const c of cases("epsilons"))
  test(`epsilon: ${c.name}`, () => {
    if (c.refused) assert.throws(() => parseEpsilon(c.text));
    else parseEpsilon(c.text);
  });

for (const c of cases("codes"))
  test(`codes: ${c.name}`, () => {
    const attribute = new Attribute(c.attribute);
    assert.equal(attribute.size, c.size);
    for (const [given, code] of c.values) {
      const value: Value = attribute.kind === "real" && typeof given === "string" ? Number(given) : given;
      if (code === null) assert.throws(() => attribute.code(value));
      else assert.equal(attribute.code(value), code);
    }
  });

for (const c of cases("attributes_refused")) test(`attribute refused: ${c.name}`, () => void assert.throws(() => new Attribute(c.attribute)));

for (const c of cases("partitions"))
  test(`partition: ${c.name}`, () => {
    const make = () => partitionFrom(c.partition, c.axes as Axis[]);
    if (c.refused) return void assert.throws(make);
    const partition = make();
    assert.equal(partition.cells, c.cells);
    for (const [codes, cell] of c.cell_of) assert.equal(partition.cell(codes), cell);
  });

for (const c of cases("reports"))
  test(`report: ${c.name}`, () => {
    const law = lawFrom(c.oracle);
    const words = new GivenWords(c.words);
    const payload = law.draw(c.code, words);
    words.done();
    assert.equal(hex(payload), c.payload);
    assert.equal(payload.length, law.payloadLength);
  });

for (const c of cases("frames"))
  if (!c.refused)
    test(`frames: ${c.name}`, () => {
      const frames = c.reports.map(([id, payload]: [string, string]) => unhex(id + payload));
      assert.equal(hex(encodeBatch(c.campaign, c.question, frames)), c.batch);
    });

for (const c of cases("questions"))
  test(`question: ${c.name}`, async () => {
    const policy = { maxEpsilon: String(c.max_epsilon), maxCells: c.max_cells };
    const check = async () => checkQuestion(unhex(c.question), schemaFrom(c.schema), c.campaign, policy);
    if (c.refused) return void (await assert.rejects(check));
    const question = await check();
    assert.equal(question.digest, c.digest);
    for (const [given, cell, drawn, payload, replaced] of c.answers) {
      const words = new GivenWords(drawn);
      const values: { [name: string]: Value } = {};
      for (const [name, value] of Object.entries(given as { [name: string]: Json })) {
        const real = question.attributes.find((a) => a.name === name)?.kind === "real";
        values[name] = real && typeof value === "string" ? Number(value) : (value as Value);
      }
      const made = draw(question, values, words);
      words.done();
      assert.deepEqual([hex(made.payload), made.replaced], [payload, replaced]);
      const code = () => question.partition.cell(question.attributes.map((a) => a.code(values[a.name])));
      if (replaced.length) assert.throws(code);
      else assert.equal(code(), cell);
    }
  });

for (const c of cases("campaigns"))
  test(`campaign: ${c.name}`, async () => {
    const read = () => campaignFrom(unhex(c.campaign), c.digest);
    if (c.refused) return void (await assert.rejects(() => campaignFrom(unhex(c.campaign))));
    const campaign = await read();
    assert.deepEqual([campaign.digest, campaign.tier, campaign.minimum], [c.digest, c.tier, c.minimum]);
    assert.equal(hex(await tokenMessage(campaign, Uint8Array.from({ length: 32 }, (_, i) => i))), c.token_message);
    await assert.rejects(() => campaignFrom(unhex(c.campaign), "0".repeat(64)));
    const said = [...campaign.wording].map(([attribute, one]) => ({ attribute, ...Object.fromEntries(Object.entries(one).filter(([, x]) => x.length && x !== "ask")) }));
    assert.deepEqual(said, c.wording ?? []);
  });

for (const c of cases("waves"))
  test(`wave: ${c.name}`, async () => {
    const campaign = await campaignFrom(unhex(c.campaign));
    const check = () => checkWave(unhex(c.wave), campaign, c.number, { maxEpsilon: c.max_epsilon });
    if (c.refused) return void (await assert.rejects(check));
    const found = [...(await check())].map(([group, question]) => [group, question.digest]);
    assert.deepEqual(Object.fromEntries(found), c.questions);
  });

for (const c of cases("groups"))
  test(`group: ${c.name}`, async () => assert.equal(await tokenGroup(unhex(c.signature), c.campaign, c.wave, c.groups), c.group));

test("blind signatures are RFC 9474's", async () => {
  const v = JSON.parse(readFileSync(new URL("../../../tests/vectors/rfc9474.json", import.meta.url), "utf-8"));
  const n = BigInt(`0x${v.p}`) * BigInt(`0x${v.q}`);
  const key = { n, e: 65537n, length: v.sig.length / 2 };
  const message = unhex(v.msg);
  const inverse = BigInt(`0x${v.inv}`);
  assert.equal(await encodePss(message, n.toString(2).length - 1), BigInt(`0x${v.encoded_msg}`));
  assert.equal(hex(await blindWith(key, message, invert(inverse, key.n) as bigint)), v.blinded_msg);
  assert.equal(hex(await unblind(key, message, unhex(v.blind_sig), inverse)), v.sig);
  await assert.rejects(() => checkSignature(key, unhex("00" + v.msg), unhex(v.sig)));
});
