/**
 * A person's side of a campaign: checks first, then consent, then the value; drawn once, kept, and only then sent.
 *
 * The order of steps is the same in every language and pinned by tests/vectors/steps.json: check the question, ask for consent,
 * map the attributes to the owner's fields, reserve in the ledger, read the value, draw, commit; then send.
 */

import { campaignFrom, type Campaign } from "./campaign.js";
import { checkDigest, concat, hex, isRecord, refuse, sha, unhex } from "./canonical.js";
import type { Value } from "./codes.js";
import type { Limits, Statement } from "./budget.js";
import { atMost, parseEpsilon } from "./epsilon.js";
import { batchOf, isUnsent, type Asker, type Entry, type Ledger, type State } from "./ledger.js";
import { checkWave, draw, encodeBatch, HEADER_LENGTH, type Policy, type Question } from "./question.js";
import { blind, checkSignature, drawGroup, ID_LENGTH, NONCE_LENGTH, reportId, tokenGroup, tokenMessage, unblind } from "./tokens.js";
import { below, SystemWords } from "./words.js";

/** The owner's field of each attribute of a campaign; null where the owner is not sure. */
export type Fields = { [attribute: string]: string | null };

/**
 * What the owner allows. `fields` has, by the digest of a campaign, the owner's field of each of its attributes: a program that answers
 * without a person beside it brings this with it. `limits` are for single fields, `lifetime` is for all together.
 */
export interface OwnerPolicy extends Policy {
  leastGroup?: number;
  fields?: { [campaign: string]: Fields };
  limits?: { [field: string]: string };
  lifetime?: string;
}

/**
 * One question that passed every check. Nothing private has been read yet. `fields` are the owner's names of what would be read, as far
 * as they are known before consent; `asked` are the questions of all groups; `statement` and `askers` what was given away so far, to whom.
 */
export interface Offer {
  campaign: Campaign;
  wave: number;
  question: Question;
  fields: (string | null)[];
  asked: Question[];
  closesAt: number | null;
  statement: Statement;
  askers: { [campaign: string]: Asker };
}

export type Values = { [name: string]: Value };

/** Which fields of theirs some attributes are: the owner's word, asked for after consent. */
export type AskFields = (offer: Offer, names: string[]) => Fields | Promise<Fields>;

export type Status = "acknowledged" | "queued" | "waiting" | "declined" | "late" | "rejected" | "withdrawn" | "wiped" | "over";

/** What the person holds afterwards: with the nonce the report can be withdrawn until its wave closes. */
export interface Receipt {
  campaign: string;
  wave: number;
  group: string;
  reportId: string;
  nonce: string;
  payload: string;
}

/** `replaced` names attributes whose value did not fit, after the draw; it is told here, and kept and sent nowhere. */
export interface Outcome {
  status: Status;
  receipt?: Receipt;
  replaced?: string[];
}

/** How long a report may wait before a deadline shortens the wait. */
const USUAL_JITTER_SECONDS = 30;

/** Who signs a token's message, or a blinded one, for this person. */
export type Signer = (message: Uint8Array) => Promise<Uint8Array>;

export interface ClientOptions {
  ledger: Ledger;
  policy: OwnerPolicy;
  origin?: string;
  signer?: Signer;
  jitterSeconds?: number;
  fetch?: typeof fetch;
  now?: () => number;
}

interface CampaignState {
  over: boolean;
  wave: number | null;
  closesAt: number | null;
}

const LIFETIME = "20"; // over all fields, unless the owner says otherwise: decision 017

/** The server could not be reached, or said something that is no answer: try again later with the same bytes. */
export class Unreachable extends Error {}

function unanswered(): never {
  throw new Unreachable("no answer from the server");
}

/** Answers campaigns for the owner of one ledger; the guarantees are those of the Python client. */
export class Client {
  readonly #options: ClientOptions;
  #known: Campaign | null = null;

  constructor(options: ClientOptions) {
    this.#options = options;
  }

  /** The pinned campaign, within the owner's policy; fetched once. */
  async campaign(digest: string): Promise<Campaign> {
    if (this.#known?.digest === digest) return this.#known;
    const campaign = await campaignFrom(await this.#bytes(`/v1/campaigns/${checkDigest(digest, "campaign")}`), digest);
    const { policy } = this.#options;
    if (!atMost(campaign.epsilon, parseEpsilon(policy.maxEpsilon))) refuse("epsilon is above the device's limit");
    if (campaign.minimum < (policy.leastGroup ?? 10)) refuse(`groups may be smaller than ${policy.leastGroup ?? 10} people`);
    return (this.#known = campaign);
  }

  /** The question that this device would answer now, every check passed; or why there is none. */
  async offer(digest: string): Promise<Offer | Outcome> {
    const campaign = await this.campaign(digest);
    const state = await this.#state(digest);
    if (state.wave === null) return { status: state.over ? "over" : "waiting" };
    const data = await this.#bytes(`/v1/campaigns/${digest}/waves/${state.wave}`);
    const questions = await checkWave(data, campaign, state.wave, this.#options.policy);
    await this.#options.ledger.checkView(digest, state.wave, hex(await sha(256, data)));
    const question = questions.get(await this.#group(campaign, state.wave, questions, await this.#signature(campaign)));
    if (!question) return { status: "waiting" };
    const known = await this.#mapped(digest);
    const fields = fieldsOf(question.attributes.map(({ name }) => name).filter((name) => known.has(name)), known);
    await this.#options.ledger.checkBudget(digest, fields, campaign.epsilon, this.#limits());
    const given = await this.#options.ledger.statement(this.#limits(), digest);
    return { campaign, wave: state.wave, question, fields, asked: [...questions.values()], closesAt: state.closesAt, ...given };
  }

  /** What was given away so far and what is left, and to whom it went. */
  statement(): Promise<{ statement: Statement; askers: { [campaign: string]: Asker } }> {
    return this.#options.ledger.statement(this.#limits());
  }

  /**
   * Answer once: `consent` sees the offer; after a yes `fields` is asked for the owner's word on attributes that have no field in this
   * campaign; the report is reserved; only then is `values` asked. Called again it never draws again.
   */
  async answer(digest: string, consent: (offer: Offer) => boolean | Promise<boolean>, values: (offer: Offer) => Values | Promise<Values>, fields?: AskFields): Promise<Outcome> {
    const { ledger } = this.#options;
    const entry = await ledger.entry(digest);
    if (entry && entry.state !== "reserved") return ledger.alone(() => this.#sendDue(digest));
    const offer = await this.offer(digest);
    if ("status" in offer) return offer;
    if (!(await consent(offer))) return { status: "declined" };
    const own = await this.#map(offer, fields);
    const promised = await ledger.alone(() => this.#reserve(offer, own));
    const held = promised ? await values(offer) : {}; // without the lock: a person may take their time
    return ledger.alone(async () => {
      const replaced = (await this.#isReserved(digest)) ? await this.#draw(offer, held) : [];
      return { ...(await this.#sendDue(digest)), replaced };
    });
  }

  /** Send what is in the outbox and due, the same bytes again. */
  async flush(): Promise<void> {
    const { ledger } = this.#options;
    for (const digest of await ledger.outbox()) await ledger.alone(() => this.#sendDue(digest));
  }

  /** How a campaign's report stands, without sending anything. */
  async status(digest: string): Promise<Outcome | null> {
    const entry = await this.#options.ledger.entry(digest);
    return entry && entry.state !== "reserved" ? this.#outcome(digest, entry) : null;
  }

  /** Take the report back; possible until its wave closes. What was charged stays charged. One whose answer was lost is sent again first: only what the server knows can be withdrawn. */
  async withdraw(digest: string): Promise<void> {
    const { ledger } = this.#options;
    if ((await ledger.entry(digest))?.state === "sent") await ledger.alone(() => this.#sendDue(digest));
    const entry = await ledger.entry(digest);
    if (!entry || !["sent", "acknowledged"].includes(entry.state)) refuse("there is no report to withdraw");
    const nonce = (await ledger.token(digest)).nonce;
    const answer = await this.#request(`/v1/campaigns/${digest}/withdrawals`, JSON.stringify({ nonce }), "application/json");
    if ([404, 409, 410].includes(answer.status)) refuse("the wave is closed: the report was counted");
    if (!answer.ok) unanswered();
    await ledger.move(digest, "withdrawn");
  }

  /** What the owner has said about this campaign, to the ledger or in the policy; never two things. */
  async #mapped(digest: string): Promise<Map<string, string | null>> {
    const { fields } = this.#options.policy;
    const brought = new Map(Object.entries((fields && Object.hasOwn(fields, digest) && fields[digest]) || {}));
    const kept = await this.#options.ledger.mapping(digest);
    for (const [name, field] of kept) if (brought.has(name) && brought.get(name) !== field) refuse("the ledger has another field for an attribute");
    return new Map([...brought, ...kept]);
  }

  /** The owner's fields that the question reads; every attribute that any group is asked has the owner's word: no refusal may tell the group. */
  async #map(offer: Offer, ask?: AskFields): Promise<(string | null)[]> {
    const digest = offer.campaign.digest;
    const known = await this.#mapped(digest);
    const names = [...new Set(offer.asked.flatMap(({ attributes }) => attributes.map(({ name }) => name)))];
    const open = names.filter((name) => !known.has(name));
    const told = open.length && ask ? await ask(offer, open) : {};
    for (const name of open) known.set(name, Object.hasOwn(told, name) ? (told[name] as string | null) : refuse("an unnamed field"));
    await this.#options.ledger.keepMapping(digest, new Map(names.map((name) => [name, known.get(name) as string | null])));
    return fieldsOf(offer.question.attributes.map(({ name }) => name), known);
  }

  #limits(): Limits {
    const { limits, lifetime } = this.#options.policy;
    return { lifetime: parseEpsilon(lifetime ?? LIFETIME), fields: new Map(Object.entries(limits ?? {}).map(([field, text]) => [field, parseEpsilon(text)])) };
  }

  async #signature(campaign: Campaign): Promise<Uint8Array | null> {
    const { ledger, signer } = this.#options;
    const token = await ledger.token(campaign.digest);
    if (!campaign.key) return null;
    const message = await tokenMessage(campaign, unhex(token.nonce));
    if (token.signature) return checkSignature(campaign.key, message, unhex(token.signature));
    if (!signer) refuse("a token is needed");
    let signature: Uint8Array;
    if (campaign.tier === "signed") signature = await checkSignature(campaign.key, message, await signer(message));
    else {
      const kept = token.inverse ? BigInt(`0x${token.inverse}`) : undefined; // a crash came between the issuer and the ledger
      const blinded = await blind(campaign.key, message, kept);
      await ledger.keepToken(campaign.digest, { inverse: blinded.inverse.toString(16) });
      signature = await unblind(campaign.key, message, await signer(blinded.message), blinded.inverse);
    }
    await ledger.keepToken(campaign.digest, { signature: hex(signature), inverse: null });
    return signature;
  }

  async #group(campaign: Campaign, wave: number, open: Map<string, Question>, signature: Uint8Array | null): Promise<string> {
    const panel = campaign.enrolment === "panel";
    const groups = campaign.groups.filter(([group]) => panel || open.has(group));
    const of = panel ? 0 : wave;
    const drawn = signature ? await tokenGroup(signature, campaign.digest, of, groups) : drawGroup(groups);
    const kept = await this.#options.ledger.keepGroup(campaign.digest, of, drawn);
    if (signature && kept !== drawn) refuse("not the group of the token");
    return kept;
  }

  /** Whether the report may still be drawn; another tab may have been faster. */
  async #isReserved(digest: string): Promise<boolean> {
    return (await this.#options.ledger.entry(digest))?.state === "reserved";
  }

  /** Charge the fields and promise the report, before the value is asked for; false if it has been drawn meanwhile. */
  async #reserve({ campaign, question, wave }: Offer, fields: (string | null)[]): Promise<boolean> {
    const { ledger } = this.#options;
    const { digest, record } = campaign;
    if ((await ledger.entry(digest)) && !(await this.#isReserved(digest))) return false;
    const asker = { campaign: digest, title: String(record["title"]), controller: String(record["controller"]) };
    await ledger.reserve(asker, { wave, group: question.group, question: question.digest }, fields, question.epsilon, this.#limits());
    return true;
  }

  /** Draw and commit; the attributes whose value did not fit. */
  async #draw(offer: Offer, values: Values): Promise<string[]> {
    const { ledger } = this.#options;
    const { question, campaign } = offer;
    const digest = question.campaign;
    const { payload, replaced } = draw(question, values, new SystemWords());
    const token = await ledger.token(digest);
    const nonce = unhex(token.nonce);
    const parts = [await reportId(nonce), payload];
    if (campaign.key) parts.push(nonce, unhex(token.signature ?? refuse("a token is needed")));
    await ledger.keepDrawn(digest, question.digest, encodeBatch(digest, question.digest, [concat(...parts)]), this.#notBefore(offer));
    return replaced;
  }

  /** A random moment soon, so that the time of arrival says little about when the person was there. */
  #notBefore(offer: Offer): number {
    const now = this.#now();
    const half = ((offer.closesAt ?? Infinity) - now) / 2; // a deadline that the server made up must not end the wait
    const room = Math.min(this.#options.jitterSeconds ?? 0, Math.max(half, USUAL_JITTER_SECONDS));
    return now + Number(below(BigInt(Math.floor(room) + 1), new SystemWords(), 32));
  }

  #now(): number {
    return Math.floor((this.#options.now ?? Date.now)() / 1000);
  }

  async #sendDue(digest: string): Promise<Outcome> {
    const { ledger } = this.#options;
    let entry = await ledger.entry(digest);
    if (!entry || entry.state === "reserved") return { status: "waiting" };
    if (isUnsent(entry) && entry.notBefore <= this.#now()) {
      await ledger.move(digest, "sent");
      const state = await this.#send(digest, entry).catch((error: unknown) => {
        if (!(error instanceof Unreachable)) throw error;
      }); // without an answer the same bytes go out again
      if (state) await ledger.move(digest, state);
      entry = (await ledger.entry(digest)) ?? entry;
    }
    return this.#outcome(digest, entry);
  }

  async #outcome(digest: string, entry: Entry): Promise<Outcome> {
    const status: Status = isUnsent(entry) ? "queued" : (entry.state as Status);
    if (!entry.batch) return { status };
    const token = await this.#options.ledger.token(digest);
    const start = 2 * (HEADER_LENGTH + ID_LENGTH); // two digits a byte
    const payload = entry.batch.slice(start, token.signature ? -2 * NONCE_LENGTH - token.signature.length : undefined);
    const id = entry.batch.slice(2 * HEADER_LENGTH, start);
    return { status, receipt: { campaign: digest, wave: entry.wave, group: entry.group, reportId: id, nonce: token.nonce, payload } };
  }

  /** What the server says moves the ledger, and never makes new bytes. */
  async #send(digest: string, entry: Entry): Promise<State | null> {
    const answer = await this.#request(`/v1/campaigns/${digest}/reports`, batchOf(entry), "application/octet-stream");
    if (!answer.ok) return answer.status < 500 && (await this.#state(digest)).over ? "late" : null;
    const { accepted, refused } = await record(answer);
    if (Array.isArray(refused)) {
      if (accepted === 1 && !refused.length) return "acknowledged";
      if (refused.length === 1 && isRecord(refused[0])) return refused[0]["reason"] === "wave_closed" ? "late" : "rejected";
    }
    unanswered();
  }

  async #state(digest: string): Promise<CampaignState> {
    const { state, wave, waves } = await record(await this.#request(`/v1/campaigns/${digest}/state`));
    if (typeof state !== "string") unanswered();
    const open = (Array.isArray(waves) ? waves : []).filter(isRecord).find((each) => each["state"] === "open" && each["number"] === wave);
    const closes = open?.["closes_at"];
    return {
      over: state === "finished" || state === "void",
      wave: state === "open" && open && Number.isSafeInteger(wave) ? (wave as number) : null,
      closesAt: typeof closes === "number" ? closes : null,
    };
  }

  async #bytes(path: string): Promise<Uint8Array> {
    const answer = await this.#request(path);
    if (answer.status === 404) refuse("the server does not know this campaign");
    if (!answer.ok) unanswered();
    return new Uint8Array(await answer.arrayBuffer());
  }

  async #request(path: string, body?: BodyInit | Uint8Array, type?: string): Promise<Response> {
    const post = body === undefined ? {} : { method: "POST", body: body as BodyInit, headers: { "content-type": type as string } };
    try {
      return await (this.#options.fetch ?? fetch)((this.#options.origin ?? "") + path, { credentials: "omit", referrerPolicy: "no-referrer", redirect: "error", ...post });
    } catch {
      unanswered();
    }
  }
}

/** The fields behind some names, each once. */
function fieldsOf(names: string[], known: Map<string, string | null>): (string | null)[] {
  return [...new Set(names.map((name) => known.get(name) as string | null))];
}

/** The record in an answer's body; an empty one if there is none. */
async function record(answer: Response): Promise<{ [key: string]: unknown }> {
  const body: unknown = answer.ok ? await answer.json().catch(() => null) : null;
  return isRecord(body) ? body : {};
}
