/** The right control for an attribute, and how its value is read. Values live in the control and nowhere else. */

import { type Attribute, type Value } from "./codes.js";
import type { Texts } from "./languages/index.js";
import { figures, inWords, readNumber } from "./numbers.js";
import type { Wording } from "./wording.js";

/** A control on the page and the way to its value. `said` repeats a value to the person, in figures and words. */
export interface Control {
  element: HTMLElement;
  read(): Value;
  said(value: Value): string;
  clear(): void;
}

/** How to speak with the person: texts, and the language in which numbers and days are written. */
export interface Voice {
  texts: Texts;
  locale: string;
}

/** The person has to look again: what is wrong, in their words. Never the value. */
export class LookAgain extends Error {}

const SLIDER = 200; // more values than this are typed, not slid

/** An element with attributes and children. Texts become text nodes: nothing is ever parsed as HTML. */
export function make(tag: string, attributes: { [name: string]: string } = {}, ...children: (Node | string)[]): HTMLElement {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

/** The number behind a code of a date, time or moment, as the input of that kind wants it. */
function inputText(attribute: Attribute, number: number): string {
  if (attribute.kind === "date") return new Date(number * 864e5).toISOString().slice(0, 10);
  if (attribute.kind === "time") return new Date(number * 1000).toISOString().slice(11, 19);
  if (attribute.kind === "datetime") return new Date(number * 1000).toISOString().slice(0, 19);
  return String(number);
}

/** The control of one attribute, in the campaign's words where it has some. */
export function controlFor(attribute: Attribute, id: string, voice: Voice, wording?: Wording): Control {
  const inner = attribute.labels ? choice(attribute, id, voice, wording) : input(attribute, id, voice, wording);
  if (attribute.missing === "refused") return inner;
  const absent = make("input", { type: "checkbox", id: `${id}-none` }) as HTMLInputElement;
  const label = make("label", { for: `${id}-none`, class: "inline" }, absent, ` ${voice.texts.noValue}`);
  return {
    element: make("div", {}, inner.element, label),
    read: () => (absent.checked ? null : inner.read()),
    said: (value) => (value === null ? voice.texts.noValue : inner.said(value)),
    clear() {
      absent.checked = false;
      inner.clear();
    },
  };
}

function choice(attribute: Attribute, id: string, voice: Voice, wording?: Wording): Control {
  const labels = attribute.labels as readonly string[];
  const texts = wording?.choices.length ? wording.choices : labels;
  const group = make("fieldset", {}, make("legend", {}, wording?.question ?? attribute.name));
  if (wording?.help) group.append(make("p", { class: "note lines" }, wording.help));
  const buttons = texts.map((text, i) => {
    const button = make("input", { type: "radio", name: id, id: `${id}-${i}`, autocomplete: "off" }) as HTMLInputElement;
    group.append(make("label", { for: `${id}-${i}`, class: "choice" }, button, ` ${text}`));
    return button;
  });
  return {
    element: group,
    read() {
      const at = buttons.findIndex((button) => button.checked);
      if (at < 0) throw new LookAgain(voice.texts.unanswered(wording?.question ?? attribute.name));
      return labels[at] as string;
    },
    said: (value) => texts[labels.indexOf(value as string)] as string,
    clear: () => buttons.forEach((button) => (button.checked = false)),
  };
}

/** The question above a control, and below it unit, example, range and help. */
function described(attribute: Attribute, id: string, field: HTMLElement, range: string, voice: Voice, wording?: Wording): HTMLElement {
  const { texts } = voice;
  const line = make("div", { class: "with-unit" }, field, ...(wording?.unit ? [make("span", { id: `${id}-unit` }, wording.unit)] : []));
  const notes = [range, wording?.example ? texts.example(wording.example) : "", wording?.outside === "nearest" ? texts.nearest : ""];
  const about = make("div", { id: `${id}-range`, class: "note" }, ...notes.filter(Boolean).map((text) => make("div", {}, text)));
  const help = wording?.help ? [make("p", { class: "note lines" }, wording.help)] : [];
  field.setAttribute("aria-describedby", [`${id}-range`, ...(wording?.unit ? [`${id}-unit`] : [])].join(" "));
  return make("div", {}, make("label", { for: id, class: "question" }, wording?.question ?? attribute.name), ...help, line, about);
}

function input(attribute: Attribute, id: string, voice: Voice, wording?: Wording): Control {
  const kind = { date: "date", time: "time", datetime: "datetime-local" }[attribute.kind as string];
  return kind ? clock(attribute, kind, id, voice, wording) : number(attribute, id, voice, wording);
}

/** Days and times: the browser's own input shows and reads them as the person is used to. */
function clock(attribute: Attribute, type: string, id: string, voice: Voice, wording?: Wording): Control {
  const ends = [inputText(attribute, attribute.lo), inputText(attribute, attribute.hi)] as const;
  const field = make("input", { type, id, min: ends[0], max: ends[1], step: "1", autocomplete: "off" }) as HTMLInputElement;
  const said = (text: string): string => {
    const day = new Date(type === "time" ? `1970-01-01T${text}Z` : type === "date" ? `${text}T00:00Z` : `${text}Z`);
    const form = { date: { dateStyle: "long" }, time: { timeStyle: "medium" } }[type] ?? { dateStyle: "long", timeStyle: "medium" };
    return new Intl.DateTimeFormat(voice.locale, { ...(form as Intl.DateTimeFormatOptions), timeZone: "UTC" }).format(day);
  };
  return {
    element: described(attribute, id, field, voice.texts.range(said(ends[0]), said(ends[1])), voice, wording),
    read() {
      if (!field.value) throw new LookAgain(voice.texts.unanswered(wording?.question ?? attribute.name));
      const number = attribute.number(field.value);
      if (number >= attribute.lo && number <= attribute.hi) return field.value;
      if (wording?.outside !== "nearest") throw new LookAgain(voice.texts.outside(said(ends[0]), said(ends[1])));
      return number < attribute.lo ? ends[0] : ends[1];
    },
    said: (value) => said(String(value)),
    clear: () => void (field.value = ""),
  };
}

/** Numbers are typed as people write them where they are; what can be read in two ways is asked back. */
function number(attribute: Attribute, id: string, voice: Voice, wording?: Wording): Control {
  const { texts, locale } = voice;
  const whole = attribute.kind === "integer";
  const shown = (value: number): string => figures(value, locale);
  const field = make("input", { type: "text", inputmode: whole && attribute.lo >= 0 ? "numeric" : "text", id, autocomplete: "off", "data-number": "" }) as HTMLInputElement;
  const plain = /^-?\d{1,15}(\.\d+)?$/u.test(wording?.example ?? ""); // an example is written as the person writes numbers
  const worded = wording && plain ? { ...wording, example: shown(Number(wording.example)) } : wording;
  const element = described(attribute, id, field, texts.range(shown(attribute.lo), shown(attribute.hi)), voice, worded);
  const which = make("fieldset", { hidden: "", "aria-live": "polite" }, make("legend", {}, texts.whichNumber));
  element.append(which);
  let asked = "";
  const ask = (either: [number, number]): void => {
    asked = field.value;
    const choices = either.map((value, i) => {
      const button = make("input", { type: "radio", name: `${id}-which`, id: `${id}-which-${i}`, value: String(value), autocomplete: "off" });
      return make("label", { for: `${id}-which-${i}`, class: "choice" }, button, ` ${shown(value)} ${inWords(value, locale) && `(${inWords(value, locale)})`}`);
    });
    which.replaceChildren(make("legend", {}, texts.whichNumber), ...choices);
    which.hidden = false;
  };
  const forget = (): void => {
    which.replaceChildren();
    which.hidden = true;
  };
  field.addEventListener("input", forget);
  const empty = [forget, (): void => void (field.value = asked = "")];
  if (whole && attribute.hi - attribute.lo <= SLIDER) {
    const [lo, hi] = [String(attribute.lo), String(attribute.hi)];
    const slider = make("input", { type: "range", min: lo, max: hi, step: "1", autocomplete: "off", "aria-label": wording?.question ?? attribute.name }) as HTMLInputElement;
    slider.addEventListener("input", () => (field.value = slider.value));
    field.addEventListener("input", () => (slider.value = field.value));
    slider.value = lo; // not somewhere in between, as if that were usual
    field.parentElement?.after(slider);
    empty.push(() => void (slider.value = lo));
  }
  return {
    element,
    read() {
      if (!field.value.trim()) throw new LookAgain(texts.unanswered(wording?.question ?? attribute.name));
      const reading = readNumber(field.value, locale, wording?.unit);
      if (!reading) throw new LookAgain(texts.notNumber);
      const chosen = which.querySelector<HTMLInputElement>("input:checked");
      if ("either" in reading && !(chosen && asked === field.value)) {
        ask(reading.either);
        throw new LookAgain("");
      }
      const value = "either" in reading ? Number(chosen?.value) : reading.number;
      if (whole && Number.isFinite(value) && !Number.isInteger(value)) throw new LookAgain(texts.notWhole); // what is huge is outside
      const inside = Math.min(Math.max(value, attribute.lo), attribute.hi);
      if (inside !== value && wording?.outside !== "nearest") throw new LookAgain(texts.outside(shown(attribute.lo), shown(attribute.hi)));
      return inside;
    },
    said(value) {
      const words = inWords(value as number, locale);
      return `${shown(value as number)}${wording?.unit ? ` ${wording.unit}` : ""}${words && ` (${words})`}`;
    },
    clear: () => empty.forEach((one) => one()),
  };
}
