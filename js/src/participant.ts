/** The participant's element: `<ahead-participant campaign="DIGEST" origin="" issuer="">`, for our page and for others. */

import { Refused } from "./canonical.js";
import { Client, Unreachable, type Fields, type Offer, type Outcome, type Values } from "./client.js";
import { ValueRefused } from "./codes.js";
import { controlFor, LookAgain, make, type Control } from "./controls.js";
import { givenAway, heading, leak, moment, picture, sentBits, status } from "./drawing.js";
import { askIssuer, SecretNeeded } from "./issuer.js";
import { BrowserShelf, Ledger } from "./ledger.js";
import { mappingForm } from "./mapping.js";
import { LANGUAGES, pickLanguage, plainReason, type Language, type Texts } from "./languages/index.js";
import { STYLE } from "./style.js";
import { calendarLink, whenToReturn } from "./returning.js";

/** Shows a campaign, asks for consent, then for the value; sends one noisy answer and shows exactly what was sent. */
export class Participant extends HTMLElement {
  #language: Language = pickLanguage(navigator.languages);
  #own: Texts | null = null;
  readonly #root = this.attachShadow({ mode: "open" });
  #client: Client | null = null;
  #shelf: BrowserShelf | null = null;
  #offer: Offer | undefined;
  #secret = "";
  #invited = "";
  #engaged = false;

  connectedCallback(): void {
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(STYLE);
    this.#root.adoptedStyleSheets = [sheet];
    this.#root.addEventListener("click", () => (this.#engaged = true));
    this.#invited = /^#([\w-]{16,200})$/u.exec(location.hash)?.[1] ?? "";
    if (this.#invited) history.replaceState(null, "", location.pathname + location.search);
    void this.#guard(() => this.#start());
  }

  /** The texts of the language, unless a page has set its own. */
  get texts(): Texts {
    return this.#own ?? this.#language.texts;
  }

  set texts(texts: Texts) {
    this.#own = texts;
  }

  /** How numbers and days are written: as the browser says, if that is a kind of the language of the texts. */
  get #locale(): string {
    const { tag } = this.#language;
    return navigator.languages.find((wanted) => wanted.toLowerCase().split("-")[0] === tag) ?? tag;
  }

  get #campaign(): string {
    return this.getAttribute("campaign") ?? "";
  }

  get #origin(): string {
    return (this.getAttribute("origin") ?? "").replace(/\/$/u, "");
  }

  async #start(): Promise<void> {
    this.#show(make("p", { role: "status" }, this.texts.loading));
    const linked = /\/c\/([0-9a-f]{32,64})$/u.exec(location.pathname)?.[1] ?? "";
    if (!this.#campaign.startsWith(linked)) throw new Refused("the link belongs to another campaign");
    this.#shelf = await BrowserShelf.open();
    const ledger = new Ledger(this.#shelf);
    const policy = { maxEpsilon: this.getAttribute("max-epsilon") ?? "4", leastGroup: Number(this.getAttribute("least-group") ?? 10) };
    const issuer = this.getAttribute("issuer");
    const options = { ledger, policy, origin: this.#origin };
    this.#client = new Client(issuer ? { ...options, signer: (message) => askIssuer(issuer, this.#secret, message) } : options);
    const known = await this.#client.status(this.#campaign);
    this.#outcome(known ?? (await this.#answer(this.#client, ledger)));
  }

  /** The steps are the client's, in its order: this page shows one card for each that needs the person. */
  #answer(client: Client, ledger: Ledger): Promise<Outcome> {
    const consent = (offer: Offer): Promise<boolean> => new Promise((done) => this.#introduce((this.#offer = offer), done));
    const values = (offer: Offer): Promise<Values> => new Promise((done) => this.#ask(offer, done));
    const fields = async (offer: Offer, names: string[]): Promise<Fields> => {
      const known = await ledger.names();
      return new Promise((done) => this.#map(offer, names, known, done));
    };
    return client.answer(this.#campaign, consent, values, fields);
  }

  /** The code of an invited person. It goes to the issuer, not to whoever asks, and is not kept. */
  async #enrol(wrong: boolean): Promise<void> {
    const { texts } = this;
    const { record, tier, tokenVersion } = await (this.#client as Client).campaign(this.#campaign);
    const field = make("input", { type: "password", id: "secret", autocomplete: "off", required: "" }) as HTMLInputElement;
    field.value = wrong ? "" : this.#invited;
    this.#invited = "";
    const problem = make("p", { role: "alert", class: "problem" }, wrong ? texts.secretWrong : "");
    const form = make("form", {}, make("label", { for: "secret" }, texts.secret), field, problem, make("p", { class: "row" }, make("button", { type: "submit" }, texts.secretGo)));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#secret = field.value.trim();
      field.value = "";
      void this.#guard(() => this.#start()).finally(() => (this.#secret = ""));
    });
    const linked = tier === "blind" ? texts.secretBlind : tokenVersion === 2 ? texts.secretSigned : texts.secretBefore;
    const facts = make("p", {}, `${String(record["controller"])}: ${String(record["purpose"])}`);
    this.#show(heading(String(record["title"])), facts, make("h2", {}, texts.secretTitle), make("p", {}, texts.secretNote, " ", linked), form);
  }

  /** Who asks, why, until when, and what it gives away. Nothing private has been read. */
  #introduce(offer: Offer, done: (yes: boolean) => void): void {
    const { texts } = this;
    const text = (name: string): string => String(offer.campaign.record[name]);
    const factor = leak(offer, this.#locale);
    const consent = make("input", { type: "checkbox", id: "consent" }) as HTMLInputElement;
    const go = make("button", { type: "submit", disabled: "" }, texts.go) as HTMLButtonElement;
    const no = make("button", { type: "button", class: "plain" }, texts.decline);
    const form = make("form", {}, make("label", { for: "consent", class: "inline" }, consent, ` ${texts.consent}`), make("p", { class: "row" }, go, no));
    consent.addEventListener("change", () => (go.disabled = !consent.checked));
    no.addEventListener("click", () => done(false));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      if (consent.checked) done(true);
    });
    const { wording, schema } = offer.campaign;
    const { attributes } = offer.question;
    const names = attributes.map((a) => wording.get(a.name)?.question ?? a.name).join("\n");
    const closing = (offer.campaign.record["closing"] as { kind?: string } | undefined)?.kind;
    const closes = offer.closesAt === null ? (closing === "reports" ? texts.untilEnough : texts.untilSaid) : moment(offer.closesAt, this.#locale);
    const facts: [string, string][] = [[texts.asks, text("controller")], [texts.why, text("purpose")], [texts.contact, text("contact")], [texts.until, closes], [texts.asked, names]];
    const list = make("dl", {}, ...facts.flatMap(([term, said]) => [make("dt", {}, term), make("dd", {}, said)]));
    const own = offer.campaign.record["texts"] as { [key: string]: string };
    this.#show(
      heading(text("title")),
      list,
      ...(attributes.length < schema.length ? [make("p", { class: "note" }, texts.onlySome(attributes.length, schema.length))] : []),
      ...Object.values(own["consent"] ? { consent: own["consent"] } : {}).map((t) => make("p", {}, t)),
      make("h2", {}, texts.price),
      make("p", {}, texts.priceSentence(factor), ` (ε = ${text("epsilon")})`),
      make("p", { class: "note" }, texts.pictureTitle),
      picture(offer, texts, factor),
      make("h2", {}, texts.kept),
      make("p", {}, texts.keptSentence(text("retention_days"))),
      givenAway(offer, texts),
      form,
      make("p", { class: "note" }, texts.trust),
      ...(this.#origin && this.#origin !== location.origin ? [make("p", { class: "note" }, texts.embedded(location.host))] : []),
      ...this.#languages(() => this.#introduce(offer, done)),
    );
  }

  /** The choice of a language, and that nobody who grew up with it has read it yet. */
  #languages(again: () => void): Node[] {
    if (this.#own) return [];
    const list = make("select", { id: "language" }, ...LANGUAGES.map(({ tag, name }) => make("option", { value: tag, lang: tag }, name))) as HTMLSelectElement;
    list.value = this.#language.tag;
    list.addEventListener("change", () => {
      this.#language = pickLanguage([list.value]);
      again();
    });
    const unread = this.#language.read ? [] : [make("p", { class: "note", id: "unread" }, this.texts.unread)];
    return [make("p", { class: "language" }, make("label", { for: "language" }, this.texts.language), list), ...unread];
  }

  /** What of theirs the attributes are, after consent and before the report is promised. */
  #map(offer: Offer, names: string[], known: Map<string, string>, done: (fields: Fields) => void): void {
    const { texts } = this;
    this.#show(heading(texts.mapTitle), make("p", { class: "note" }, texts.mapNote), mappingForm(names, offer.campaign.wording, known, texts, done));
  }

  /** The value, once the report is promised. What does not fit is said here; what fits is repeated once; then the controls are emptied. */
  #ask(offer: Offer, done: (values: Values) => void): void {
    const { texts } = this;
    const { wording } = offer.campaign;
    const voice = { texts, locale: this.#locale };
    const controls = new Map<string, Control>(offer.question.attributes.map((a, i) => [a.name, controlFor(a, `value-${i}`, voice, wording.get(a.name))]));
    const problem = make("p", { role: "alert", class: "problem" });
    const button = make("button", { type: "submit" }, texts.answer) as HTMLButtonElement;
    const form = make("form", { novalidate: "" }, ...[...controls.values()].map((c) => c.element), problem, make("p", { class: "row" }, button), make("p", { class: "note" }, texts.again));
    const card = [heading(texts.valueTitle), make("p", { class: "note" }, texts.valueNote), form];
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      problem.textContent = "";
      const values = Object.create(null) as Values;
      for (const attribute of offer.question.attributes) {
        try {
          attribute.code((values[attribute.name] = controls.get(attribute.name)?.read()));
        } catch (error) {
          if (!(error instanceof ValueRefused || error instanceof LookAgain)) throw error;
          problem.textContent = error instanceof LookAgain ? error.message : texts.outOfRange(wording.get(attribute.name)?.question ?? attribute.name);
          return;
        }
      }
      const said = [...controls].map(([name, control]): [string, string] => [wording.get(name)?.question ?? name, control.said(values[name])]);
      const yes = (): void => {
        for (const control of controls.values()) control.clear();
        done(values);
      };
      this.#confirm(said, yes, () => this.#show(...card));
    });
    this.#show(...card);
  }

  /** The value once more, before the one draw: the way back is open until here. */
  #confirm(said: [string, string][], yes: () => void, back: () => void): void {
    const { texts } = this;
    const [go, change] = [make("button", { type: "button" }, texts.confirm) as HTMLButtonElement, make("button", { type: "button", class: "plain" }, texts.change)];
    go.addEventListener("click", () => {
      go.disabled = true;
      this.#root.querySelectorAll(".repeated").forEach((shown) => shown.replaceChildren());
      yes();
    });
    change.addEventListener("click", back);
    const list = said.flatMap(([question, value]) => [make("p", { class: "note" }, question), make("p", { class: "repeated" }, value)]);
    this.#show(heading(texts.confirmTitle), ...list, make("p", {}, texts.confirmNote), make("p", { class: "row" }, go, change));
  }

  /** How it stands, exactly what was sent, and the receipt. */
  #outcome(outcome: Outcome): void {
    const { texts } = this;
    const said = { acknowledged: texts.sent, queued: texts.queued, waiting: texts.waiting, declined: texts.declined, late: texts.late, rejected: texts.rejected, withdrawn: texts.withdrawn, wiped: texts.wiped, over: texts.over }[outcome.status];
    const parts: Node[] = [heading(outcome.receipt ? texts.outcomeTitle : texts.campaignTitle), status(said)];
    if (outcome.status === "acknowledged") parts.push(make("p", {}, texts.finished));
    if (outcome.status === "waiting") parts.push(this.#waiting());
    if (outcome.status === "queued") parts.push(this.#button(texts.retry, async () => this.#outcome(await (this.#client as Client).answer(this.#campaign, () => false, () => ({})))));
    const { receipt } = outcome;
    if (receipt && outcome.status !== "withdrawn") {
      parts.push(make("h2", {}, outcome.status === "queued" ? texts.whatQueued : texts.whatSent), sentBits(receipt.payload, this.#offer, texts), make("p", {}, texts.couldBe));
      parts.push(make("h2", {}, texts.receipt), make("code", { class: "code" }, receipt.nonce), make("p", { class: "note" }, texts.receiptNote));
      if (outcome.status === "acknowledged") parts.push(this.#button(texts.withdraw, () => this.#withdraw(), "plain"));
    }
    const given = make("div");
    void this.#client?.statement().then((found) => given.replaceChildren(givenAway(found, texts)));
    this.#show(...parts, given);
    this.#tell(outcome.status);
  }

  /** When to come back, as far as anybody knows. */
  #waiting(): HTMLElement {
    const when = make("div", {}, make("p", {}, this.texts.loading));
    const shelf = this.#shelf as BrowserShelf;
    void whenToReturn(shelf, this.#origin, this.#campaign, this.texts, this.#locale).then(async ({ said, after }) => {
      when.replaceChildren(make("p", {}, said));
      const { record } = await (this.#client as Client).campaign(this.#campaign);
      if (after !== null) when.append(make("p", {}, calendarLink(this.texts.calendar, String(record["title"]), after)));
    });
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
      if (error instanceof Unreachable) this.#show(heading(texts.campaignTitle), make("p", { role: "alert", class: "problem" }, texts.unreachable), this.#button(texts.tryAgain, () => this.#start()));
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
    const card = make("div", { class: "card", tabindex: "-1", ...(this.#own ? {} : { lang: this.#language.tag }) }, ...parts);
    this.#root.replaceChildren(card);
    if (this.#engaged) card.focus(); // where the keyboard was is gone: go on at the new card, and let it be read out
  }
}

customElements.define("ahead-participant", Participant);
