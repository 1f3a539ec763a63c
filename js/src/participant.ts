/** The participant's element: `<ahead-participant campaign="DIGEST" origin="">`, for our page and for others. */

import { Refused } from "./canonical.js";
import { Client, Unreachable, type Offer, type Outcome } from "./client.js";
import { ValueRefused, type Value } from "./codes.js";
import { controlFor, make, type Control } from "./controls.js";
import { BrowserShelf, Ledger } from "./ledger.js";
import { TEXTS, type Texts } from "./texts.js";
import { STYLE } from "./style.js";

const SVG = "http://www.w3.org/2000/svg";

/** Shows a campaign, asks for consent, then for the value; sends one noisy answer and shows exactly what was sent. */
export class Participant extends HTMLElement {
  texts: Texts = TEXTS;
  readonly #root = this.attachShadow({ mode: "open" });
  #client: Client | null = null;

  connectedCallback(): void {
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(STYLE);
    this.#root.adoptedStyleSheets = [sheet];
    void this.#guard(() => this.#start());
  }

  get #campaign(): string {
    return this.getAttribute("campaign") ?? "";
  }

  async #start(): Promise<void> {
    this.#show(make("p", { role: "status" }, this.texts.loading));
    const ledger = new Ledger(await BrowserShelf.open());
    const policy = { maxEpsilon: this.getAttribute("max-epsilon") ?? "8", leastGroup: Number(this.getAttribute("least-group") ?? 10) };
    this.#client = new Client({ ledger, policy, origin: this.getAttribute("origin") ?? "" });
    const known = await this.#client.status(this.#campaign);
    if (known) return this.#outcome(known);
    const offer = await this.#client.offer(this.#campaign);
    if ("status" in offer) return this.#outcome(offer);
    this.#introduce(offer, await ledger.spent());
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
    no.addEventListener("click", () => this.#show(heading(text("title")), status(texts.declined)));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      if (consent.checked) this.#ask(offer);
    });
    const names = offer.question.attributes.map((a) => a.name).join(", ");
    const closes = offer.closesAt === null ? texts.untilOpen : new Date(offer.closesAt * 1000).toLocaleString();
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
      ...before,
      form,
      make("p", { class: "note" }, texts.trust),
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
    const parts: Node[] = [status(said)];
    if (outcome.status === "queued") parts.push(this.#button(texts.retry, async () => this.#outcome(await (this.#client as Client).answer(this.#campaign, () => false, () => ({})), offer)));
    const { receipt } = outcome;
    if (receipt && outcome.status !== "withdrawn") {
      parts.push(make("h2", {}, texts.whatSent), sentBits(receipt.payload, offer, texts), make("p", {}, texts.couldBe));
      parts.push(make("h2", {}, texts.receipt), make("code", { class: "code" }, receipt.nonce), make("p", { class: "note" }, texts.receiptNote));
      if (outcome.status === "acknowledged") parts.push(this.#button(texts.withdraw, () => this.#withdraw()));
    }
    this.#show(...parts);
    this.dispatchEvent(new CustomEvent("ahead-status", { detail: outcome.status, bubbles: true, composed: true }));
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

  #button(label: string, work: () => Promise<void>): HTMLElement {
    const button = make("button", { type: "button" }, label) as HTMLButtonElement;
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
      if (error instanceof Unreachable) this.#show(make("p", { role: "alert", class: "problem" }, this.texts.unreachable), this.#button(this.texts.retry, () => this.#start()));
      else {
        const reason = error instanceof Refused || error instanceof ValueRefused ? error.message : "an error on this device";
        this.#show(make("h1", {}, this.texts.refusedTitle), make("p", { role: "alert", class: "problem" }, reason), make("p", {}, this.texts.refusedNote));
      }
    }
  }

  #show(...parts: Node[]): void {
    this.#root.replaceChildren(make("div", { class: "card", tabindex: "-1" }, ...parts));
  }
}

function heading(text: string): HTMLElement {
  return make("h1", {}, text);
}

function status(text: string): HTMLElement {
  return make("p", { role: "status", class: "status" }, text);
}

/** e to the epsilon, as people read it. */
function leak(offer: Offer): string {
  const value = Math.exp(Number(offer.campaign.record["epsilon"]));
  return value < 10 ? value.toFixed(1) : value.toFixed(0);
}

/** Two bars for made-up values: the same noisy answer, with one value and with another. */
function picture(offer: Offer, texts: Texts, factor: string): Element {
  const width = 100 / Math.exp(Number(offer.campaign.record["epsilon"]));
  const drawing = document.createElementNS(SVG, "svg");
  for (const [name, value] of Object.entries({ viewBox: "0 0 260 48", role: "img", "aria-label": texts.pictureLabel(factor) })) drawing.setAttribute(name, value);
  const put = (tag: string, attributes: { [name: string]: string | number }, text = ""): void => {
    const element = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
    element.textContent = text;
    drawing.append(element);
  };
  [[100, texts.pictureA], [width, texts.pictureB]].forEach(([size, label], i) => {
    put("rect", { x: 0, y: 2 + 24 * i, width: Math.max(Number(size), 1), height: 16, class: i ? "bar other" : "bar" });
    put("text", { x: 108, y: 14 + 24 * i, class: "small" }, String(label));
  });
  return drawing;
}

/** The payload: as marks where a bit is a cell, else as digits. */
function sentBits(payload: string, offer: Offer | undefined, texts: Texts): HTMLElement {
  const law = offer?.question.law;
  if (!law || !["oue", "sue", "ss"].includes(law.name) || law.cells > 512) return make("code", { class: "code" }, payload);
  const row = make("div", { class: "bits", role: "img", "aria-label": `${texts.whatSent}: ${payload}` });
  for (let i = 0; i < law.cells; i++) row.append(make("span", { class: parseInt(payload.slice(2 * (i >> 3), 2 * (i >> 3) + 2), 16) & (1 << (i & 7)) ? "on" : "" }));
  return make("div", {}, row, make("p", { class: "note" }, texts.cells), make("code", { class: "code" }, payload));
}

customElements.define("ahead-participant", Participant);
