/** A person's side of a campaign: checks first, then consent, then the value; drawn once, kept, and only then sent. */

import { campaignFrom, type Campaign } from "./campaign.js";
import { checkDigest, concat, hex, isRecord, refuse, sha, unhex } from "./canonical.js";
import type { Value } from "./codes.js";
import { atMost, parseEpsilon, type Ratio } from "./epsilon.js";
import { batchOf, type Entry, type Ledger, type State } from "./ledger.js";
import { checkWave, drawAny, encodeBatch, type Policy, type Question } from "./question.js";
import { blind, blindWith, checkSignature, drawGroup, invert, reportId, tokenGroup, unblind } from "./tokens.js";
import { below, SystemWords } from "./words.js";

/** What the owner allows. `fields` maps an attribute to the owner's field; left out, the attribute's own name. */
export interface OwnerPolicy extends Policy {
  leastGroup?: number;
  fields?: { [attribute: string]: string };
  limits?: { [field: string]: string };
}

/** One question that passed every check. Nothing private has been read yet. */
export interface Offer {
  campaign: Campaign;
  wave: number;
  question: Question;
  fields: string[];
  closesAt: number | null;
}

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

/** Who signs a nonce, or a blinded one, for this person. */
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

/** The server could not be reached, or said something that is no answer: try again later with the same bytes. */
export class Unreachable extends Error {}

/** Answers campaigns for the owner of one ledger; the guarantees are those of the Python client. */
export class Client {
  readonly #options: ClientOptions;

  constructor(options: ClientOptions) {
    this.#options = options;
  }

  /** The pinned campaign, within the owner's policy. */
  async campaign(digest: string): Promise<Campaign> {
    const campaign = await campaignFrom(await this.#bytes(`/v1/campaigns/${checkDigest(digest, "campaign")}`), digest);
    const { policy } = this.#options;
    if (!atMost(campaign.epsilon, parseEpsilon(policy.maxEpsilon))) refuse("epsilon is above the device's limit");
    if (campaign.minimum < (policy.leastGroup ?? 10)) refuse(`groups may be smaller than ${policy.leastGroup ?? 10} people`);
    return campaign;
  }

  /** The question that this device would answer now, every check passed; or why there is none. */
  async offer(digest: string): Promise<Offer | Outcome> {
    const campaign = await this.campaign(digest);
    const state = await this.#state(digest);
    if (state.wave === null) return { status: state.over ? "over" : "waiting" };
    const data = await this.#bytes(`/v1/campaigns/${digest}/waves/${state.wave}`);
    const questions = await checkWave(data, campaign, state.wave, this.#options.policy);
    await this.#options.ledger.checkView(digest, state.wave, hex(await sha(256, data)));
    const signature = await this.#signature(campaign);
    const group = await this.#group(campaign, state.wave, [...questions.keys()], signature);
    const question = questions.get(group);
    if (!question) return { status: "waiting" };
    const fields = this.#fieldsOf(question);
    await this.#options.ledger.checkBudget(digest, fields, campaign.epsilon, this.#limits());
    return { campaign, wave: state.wave, question, fields, closesAt: state.closesAt };
  }

  /** Answer once: `consent` sees the offer, and only after a yes is `values` asked. Called again it never draws again. */
  async answer(
    digest: string,
    consent: (offer: Offer) => boolean | Promise<boolean>,
    values: (offer: Offer) => { [name: string]: Value } | Promise<{ [name: string]: Value }>,
  ): Promise<Outcome> {
    const { ledger } = this.#options;
    const entry = await ledger.entry(digest);
    if (entry && entry.state !== "reserved") return ledger.alone(() => this.#sendDue(digest));
    const offer = await this.offer(digest);
    if ("status" in offer) return offer;
    if (!(await consent(offer))) return { status: "declined" };
    const record = await values(offer);
    return ledger.alone(async () => {
      const now = await ledger.entry(digest); // another tab may have been faster
      const replaced = !now || now.state === "reserved" ? await this.#draw(offer, record) : [];
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

  /** Take the report back; possible until its wave closes. What was charged stays charged. */
  async withdraw(digest: string): Promise<void> {
    const { ledger } = this.#options;
    const entry = await ledger.entry(digest);
    if (!entry || !["sent", "acknowledged"].includes(entry.state)) refuse("there is no report to withdraw");
    const nonce = (await ledger.token(digest)).nonce;
    const answer = await this.#request(`/v1/campaigns/${digest}/withdrawals`, JSON.stringify({ nonce }), "application/json");
    if ([404, 409, 410].includes(answer.status)) refuse("the wave is closed: the report was counted");
    if (!answer.ok) throw new Unreachable("not withdrawn");
    await ledger.move(digest, "withdrawn");
  }

  #fieldsOf(question: Question): string[] {
    const { fields } = this.#options.policy;
    const named = question.attributes.map((a) => (fields ? (Object.hasOwn(fields, a.name) ? (fields[a.name] as string) : refuse("an unnamed field")) : a.name));
    return [...new Set(named)];
  }

  #limits(): { [field: string]: Ratio } {
    return Object.fromEntries(Object.entries(this.#options.policy.limits ?? {}).map(([field, text]) => [field, parseEpsilon(text)]));
  }

  async #signature(campaign: Campaign): Promise<Uint8Array | null> {
    const { ledger, signer } = this.#options;
    const token = await ledger.token(campaign.digest);
    if (!campaign.key) return null;
    const nonce = unhex(token.nonce);
    if (token.signature) return checkSignature(campaign.key, nonce, unhex(token.signature));
    if (!signer) refuse("a token is needed");
    let signature: Uint8Array;
    if (campaign.tier === "signed") signature = await checkSignature(campaign.key, nonce, await signer(nonce));
    else {
      const { n } = campaign.key;
      let blinded: Uint8Array;
      let inverse: bigint;
      if (token.inverse) {
        inverse = BigInt(`0x${token.inverse}`); // a crash came between the issuer and the ledger
        blinded = await blindWith(campaign.key, nonce, invert(inverse, n) ?? refuse("not a blinding"));
      } else {
        ({ message: blinded, inverse } = await blind(campaign.key, nonce));
        await ledger.keepToken(campaign.digest, { inverse: inverse.toString(16) });
      }
      signature = await unblind(campaign.key, nonce, await signer(blinded), inverse);
    }
    await ledger.keepToken(campaign.digest, { signature: hex(signature), inverse: null });
    return signature;
  }

  async #group(campaign: Campaign, wave: number, open: string[], signature: Uint8Array | null): Promise<string> {
    const panel = campaign.enrolment === "panel";
    const groups = panel ? campaign.groups : campaign.groups.filter(([group]) => open.includes(group));
    const of = panel ? 0 : wave;
    const drawn = signature ? await tokenGroup(signature, campaign.digest, of, groups) : drawGroup(groups);
    const kept = await this.#options.ledger.keepGroup(campaign.digest, of, drawn);
    if (signature && kept !== drawn) refuse("not the group of the token");
    return kept;
  }

  async #draw(offer: Offer, values: { [name: string]: Value }): Promise<string[]> {
    const { ledger } = this.#options;
    const { digest } = offer.campaign;
    const { question } = offer;
    await ledger.reserve(digest, { wave: offer.wave, group: question.group, question: question.digest }, offer.fields, question.epsilon, this.#limits());
    const token = await ledger.token(digest);
    const nonce = unhex(token.nonce);
    const replaced: string[] = [];
    const payload = drawAny(question, values, new SystemWords(), replaced);
    const parts = [await reportId(nonce), payload];
    if (offer.campaign.key) parts.push(nonce, unhex(token.signature ?? refuse("the token is not signed")));
    await ledger.keepDrawn(digest, question.digest, encodeBatch(digest, question.digest, [concat(...parts)]), this.#notBefore(offer));
    return replaced;
  }

  /** A random moment soon, so that the time of arrival says little about when the person was there. */
  #notBefore(offer: Offer): number {
    const now = this.#now();
    const jitter = this.#options.jitterSeconds ?? 0;
    const room = offer.closesAt === null ? jitter : Math.min(jitter, Math.floor((offer.closesAt - now) / 2));
    return now + Number(below(BigInt(Math.max(room, 0) + 1), new SystemWords(), 32));
  }

  #now(): number {
    return Math.floor((this.#options.now ?? Date.now)() / 1000);
  }

  async #sendDue(digest: string): Promise<Outcome> {
    const { ledger } = this.#options;
    let entry = await ledger.entry(digest);
    if (!entry || entry.state === "reserved") return { status: "waiting" };
    if (["drawn", "sent"].includes(entry.state) && entry.notBefore <= this.#now()) {
      await ledger.move(digest, "sent");
      const state = await this.#send(digest, entry).catch((error: unknown) => {
        if (error instanceof Unreachable) return null; // queued: the same bytes go out again
        throw error;
      });
      if (state) await ledger.move(digest, state);
      entry = (await ledger.entry(digest)) ?? entry;
    }
    return this.#outcome(digest, entry);
  }

  async #outcome(digest: string, entry: Entry): Promise<Outcome> {
    const status: Status = entry.state === "drawn" || entry.state === "sent" ? "queued" : (entry.state as Status);
    if (!entry.batch) return { status };
    const token = await this.#options.ledger.token(digest);
    const batch = batchOf(entry);
    const trailer = token.signature ? 32 + token.signature.length / 2 : 0;
    const payload = hex(batch.slice(65 + 16, batch.length - trailer));
    const id = hex(batch.slice(65, 65 + 16));
    return { status, receipt: { campaign: digest, wave: entry.wave, group: entry.group, reportId: id, nonce: token.nonce, payload } };
  }

  /** What the server says moves the ledger, and never makes new bytes. */
  async #send(digest: string, entry: Entry): Promise<State | null> {
    const answer = await this.#request(`/v1/campaigns/${digest}/reports`, batchOf(entry), "application/octet-stream");
    if (!answer.ok) return answer.status < 500 && (await this.#state(digest)).over ? "late" : null;
    const found: unknown = await answer.json().catch(() => null);
    const refused = isRecord(found) ? found["refused"] : null;
    if (isRecord(found) && found["accepted"] === 1 && Array.isArray(refused) && !refused.length) return "acknowledged";
    if (Array.isArray(refused) && refused.length === 1 && isRecord(refused[0])) return refused[0]["reason"] === "wave_closed" ? "late" : "rejected";
    throw new Unreachable("no answer from the server");
  }

  async #state(digest: string): Promise<CampaignState> {
    const answer = await this.#request(`/v1/campaigns/${digest}/state`);
    const found: unknown = answer.ok ? await answer.json().catch(() => null) : null;
    if (!isRecord(found) || typeof found["state"] !== "string") throw new Unreachable("no answer from the server");
    const waves = Array.isArray(found["waves"]) ? found["waves"] : [];
    const open = waves.filter(isRecord).find((wave) => wave["state"] === "open" && wave["number"] === found["wave"]);
    const closes = open?.["closes_at"];
    return {
      over: found["state"] === "finished" || found["state"] === "void",
      wave: found["state"] === "open" && open && Number.isSafeInteger(open["number"]) ? (open["number"] as number) : null,
      closesAt: typeof closes === "number" ? closes : null,
    };
  }

  async #bytes(path: string): Promise<Uint8Array> {
    const answer = await this.#request(path);
    if (answer.status === 404) refuse("the server does not know this campaign");
    if (!answer.ok) throw new Unreachable(`the server answered ${answer.status}`);
    return new Uint8Array(await answer.arrayBuffer());
  }

  async #request(path: string, body?: BodyInit | Uint8Array, type?: string): Promise<Response> {
    const url = (this.#options.origin ?? "") + path;
    const init: RequestInit = { credentials: "omit", referrerPolicy: "no-referrer", redirect: "error" };
    if (body !== undefined) Object.assign(init, { method: "POST", body, headers: { "content-type": type } });
    try {
      return await (this.#options.fetch ?? fetch)(url, init);
    } catch {
      throw new Unreachable("the server cannot be reached");
    }
  }
}
