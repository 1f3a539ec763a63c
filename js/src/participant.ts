/** The participant's element: `<ahead-participant campaign="DIGEST" origin="" issuer="">`, for our page and for others. */

import { Refused } from "./canonical.js";
import { Client, Unreachable, type Offer, type Outcome } from "./client.js";
import { ValueRefused, type Value } from "./codes.js";
import { controlFor, make, type Control } from "./controls.js";
import { heading, leak, moment, picture, sentBits, status } from "./drawing.js";
import { askIssuer, SecretNeeded } from "./issuer.js";
import { BrowserShelf, Ledger } from "./ledger.js";
import { plainReason, TEXTS, type Texts } from "./texts.js";
import { STYLE } from "./style.js";
import { whenToReturn } from "./returning.js";

/** Shows a campaign, asks for consent, then for the value; sends one noisy answer and shows exactly what was sent. */
export class Participant extends HTMLElement {
  texts: Texts = TEXTS;
  readonly #root = this.attachShadow({ mode: "open" });
  #client: Client | null = null;
  #shelf: BrowserShelf | null = null;
  #secret = "";
  #engaged = false;

  connectedCallback(): void {
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(STYLE);
    this.#root.adoptedStyleSheets = [sheet];
    this.#root.addEventListener("click", () => (this.#engaged = true));
    void this.#guard(() => this.#start());
  }

  get #campaign(): string {
    return this.getAttribute("campaign") ?? "";
  }

  get #origin(): string {
    return (this.getAttribute("origin") ?? "").replace(/\/$/u, "");
  }

  async #start(): Promise<void> {
    this.#show(make("p", { role: "status" }, this.texts.loading));
    this.#shelf = await BrowserShelf.open();
    const ledger = new Ledger(this.#shelf);
    const policy = { maxEpsilon: this.getAttribute("max-epsilon") ?? "4", leastGroup: Number(this.getAttribute("least-group") ?? 10) };
    const issuer = this.getAttribute("issuer");
    const options = { ledger, policy, origin: this.#origin };
    this.#client = new Client(issuer ? { ...options, signer: (message) => askIssuer(issuer, this.#secret, message) } : options);
    const known = await this.#client.status(this.#campaign);
    if (known) return this.#outcome(known);
    const offer = await this.#client.offer(this.#campaign);
    if ("status" in offer) return this.#outcome(offer);
    this.#introduce(offer, await ledger.spent());
  }

  /** The code of an invited person. It goes to the issuer, not to whoever asks, and is not kept. */
  async #enrol(wrong: boolean): Promise<void> {
    const { texts } = this;
    const { record, tier } = await (this.#client as Client).campaign(this.#campaign);
    const field = make("input", { type: "password", id: "secret", autocomplete: "off", required: "" }) as HTMLInputElement;
    const problem = make("p", { role: "alert", class: "problem" }, wrong ? texts.secretWrong : "");
    const form = make("form", {}, make("label", { for: "secret" }, texts.secret), field, problem, make("p", { class: "row" }, make("button", { type: "submit" }, texts.secretGo)));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#secret = field.value.trim();
      field.value = "";
      void this.#guard(() => this.#start()).finally(() => (this.#secret = ""));
    });
    const facts = make("p", {}, `${String(record["controller"])}: ${String(record["purpose"])}`);
    this.#show(heading(String(record["title"])), facts, make("h2", {}, texts.secretTitle), make("p", {}, texts.secretNote, " ", tier === "blind" ? texts.secretBlind : texts.secretSigned), form);
  }

  /** Who asks, why, until when, and what it gives away. Nothing private has been read. */
  #introduce(offer: Offer, spent: { [field: string]: { reports: number; epsilon: number } }): void {
    const { texts } = this;
    const text = (name: string): string => String(offer.campaign.record[name]);
    const factor = leak(offer);
    const consent = make("input", { type: "checkbox", id: "consent" }) as HTMLInputElement;
    const go = make("button", { type: "submit", disabled: "" }, texts.go) as HTMLButtonElement;
    const no = make("button", { type: "button", class: "plain" }, texts.decline);
    const form = make("form", {}, make("label", { for: "consent", class: "inline" }, consent, ` ${texts.consent}`), make("p", { class: "row" }, go, no));
    consent.addEventListener("change", () => (go.disabled = !consent.checked));
    no.addEventListener("click", () => {
      this.#show(heading(text("title")), status(texts.declined));
      this.#tell("declined");
    });
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      if (consent.checked) this.#ask(offer);
    });
    const names = offer.question.attributes.map((a) => a.name).join(", ");
    const closing = (offer.campaign.record["closing"] as { kind?: string } | undefined)?.kind;
    const closes = offer.closesAt === null ? (closing === "reports" ? texts.untilEnough : texts.untilSaid) : moment(offer.closesAt);
    const facts: [string, string][] = [[texts.asks, text("controller")], [texts.why, text("purpose")], [texts.contact, text("contact")], [texts.until, closes], [texts.asked, names]];
    const list = make("dl", {}, ...facts.flatMap(([term, said]) => [make("dt", {}, term), make("dd", {}, said)]));
    const own = offer.campaign.record["texts"] as { [key: string]: string };
    const before = offer.fields.filter((f) => spent[f]).map((f) => make("p", {}, texts.spentBefore(f, spent[f]?.reports ?? 0, (spent[f]?.epsilon ?? 0).toFixed(2))));
    this.#show(
      heading(text("title")),
      list,
      ...Object.values(own["consent"] ? { consent: own["consent"] } : {}).map((t) => make("p", {}, t)),
      make("h2", {}, texts.price),
      make("p", {}, texts.priceSentence(factor), ` (ε = ${text("epsilon")})`),
      make("p", { class: "note" }, texts.pictureTitle),
      picture(offer, texts, factor),
      make("h2", {}, texts.kept),
      make("p", {}, texts.keptSentence(text("retention_days"))),
      ...before,
      form,
      make("p", { class: "note" }, texts.trust),
      ...(this.#origin && this.#origin !== location.origin ? [make("p", { class: "note" }, texts.embedded(location.host))] : []),
    );
  }

  /** The value, after consent. It is read from the controls, coded, and the controls are emptied. */
  #ask(offer: Offer): void {
    const { texts } = this;
    const controls = new Map<string, Control>(offer.question.attributes.map((a, i) => [a.name, controlFor(a, `value-${i}`, texts)]));
    const problem = make("p", { role: "alert", class: "problem" });
    const button = make("button", { type: "submit" }, texts.answer) as HTMLButtonElement;
    const form = make("form", { novalidate: "" }, ...[...controls.values()].map((c) => c.element), problem, make("p", { class: "row" }, button), make("p", { class: "note" }, texts.again));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      problem.textContent = "";
      const values: { [name: string]: Value } = {};
      try {
        for (const attribute of offer.question.attributes) {
          values[attribute.name] = controls.get(attribute.name)?.read();
          attribute.code(values[attribute.name]); // says now what would not fit, before the ledger is charged
        }
      } catch (error) {
        if (!(error instanceof ValueRefused)) throw error;
        const name = offer.question.attributes.find((a) => error.message.startsWith(a.name))?.name ?? "";
        problem.textContent = texts.outOfRange(name);
        return;
      }
      button.disabled = true;
      for (const control of controls.values()) control.clear();
      void this.#guard(async () => this.#outcome(await (this.#client as Client).answer(this.#campaign, () => true, () => values), offer));
    });
    this.#show(heading(texts.valueTitle), make("p", { class: "note" }, texts.valueNote), form);
  }

  /** How it stands, exactly what was sent, and the receipt. */
  #outcome(outcome: Outcome, offer?: Offer): void {
    const { texts } = this;
    const said = { acknowledged: texts.sent, queued: texts.queued, waiting: texts.waiting, declined: texts.declined, late: texts.late, rejected: texts.rejected, withdrawn: texts.withdrawn, wiped: texts.wiped, over: texts.over }[outcome.status];
    const parts: Node[] = [heading(outcome.receipt ? texts.outcomeTitle : texts.campaignTitle), status(said)];
    if (outcome.status === "acknowledged") parts.push(make("p", {}, texts.finished));
    if (outcome.status === "waiting") parts.push(this.#waiting());
    if (outcome.status === "queued") parts.push(this.#button(texts.retry, async () => this.#outcome(await (this.#client as Client).answer(this.#campaign, () => false, () => ({})), offer)));
    const { receipt } = outcome;
    if (receipt && outcome.status !== "withdrawn") {
      parts.push(make("h2", {}, texts.whatSent), sentBits(receipt.payload, offer, texts), make("p", {}, texts.couldBe));
      parts.push(make("h2", {}, texts.receipt), make("code", { class: "code" }, receipt.nonce), make("p", { class: "note" }, texts.receiptNote));
      if (outcome.status === "acknowledged") parts.push(this.#button(texts.withdraw, () => this.#withdraw(), "plain"));
    }
    this.#show(...parts);
    this.#tell(outcome.status);
  }

  /** When to come back, as far as anybody knows. */
  #waiting(): HTMLElement {
    const when = make("p", {}, this.texts.loading);
    const shelf = this.#shelf as BrowserShelf;
    void whenToReturn(shelf, this.#origin, this.#campaign, this.texts).then((said) => when.replaceChildren(said));
    return make("div", {}, when, this.#button(this.texts.look, () => this.#start()));
  }

  async #withdraw(): Promise<void> {
    try {
      await (this.#client as Client).withdraw(this.#campaign);
      this.#outcome({ status: "withdrawn" });
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      this.#root.querySelector("[role=status]")?.replaceChildren(this.texts.withdrawLate);
    }
  }

  #button(label: string, work: () => Promise<void>, look = ""): HTMLElement {
    const button = make("button", { type: "button", class: look }, label) as HTMLButtonElement;
    button.addEventListener("click", () => {
      button.disabled = true;
      void this.#guard(work).finally(() => (button.disabled = false));
    });
    return make("p", { class: "row" }, button);
  }

  /** Run a step; a refusal is said in words, and so is a server that is away. */
  async #guard(work: () => Promise<void> | void): Promise<void> {
    try {
      await work();
    } catch (error) {
      if (error instanceof SecretNeeded) return this.#guard(() => this.#enrol(error.wrong));
      const { texts } = this;
      if (error instanceof Unreachable) this.#show(make("p", { role: "alert", class: "problem" }, texts.unreachable), this.#button(texts.tryAgain, () => this.#start()));
      else {
        const reason = error instanceof Refused || error instanceof ValueRefused ? plainReason(error.message, texts) : texts.broken;
        this.#show(heading(texts.refusedTitle), make("p", { role: "alert", class: "problem" }, reason), make("p", {}, texts.refusedNote));
        this.#tell("refused");
      }
    }
  }

  #tell(detail: string): void {
    this.dispatchEvent(new CustomEvent("ahead-status", { detail, bubbles: true, composed: true }));
  }

  #show(...parts: Node[]): void {
    const card = make("div", { class: "card", tabindex: "-1" }, ...parts);
    this.#root.replaceChildren(card);
    if (this.#engaged) card.focus(); // where the keyboard was is gone: go on at the new card, and let it be read out
  }
}

customElements.define("ahead-participant", Participant);
