/** The right control for an attribute, and how its value is read. Values live in the control and nowhere else. */

import { ValueRefused, type Attribute, type Value } from "./codes.js";
import type { Texts } from "./texts.js";

/** A control on the page and the way to its value. */
export interface Control {
  element: HTMLElement;
  read(): Value;
  clear(): void;
}

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

/** The control of one attribute. */
export function controlFor(attribute: Attribute, id: string, texts: Texts): Control {
  const inner = attribute.labels ? choice(attribute, id) : input(attribute, id, texts);
  if (attribute.missing === "refused") return inner;
  const absent = make("input", { type: "checkbox", id: `${id}-none` }) as HTMLInputElement;
  const label = make("label", { for: `${id}-none`, class: "inline" }, absent, ` ${texts.noValue}`);
  return {
    element: make("div", {}, inner.element, label),
    read: () => (absent.checked ? null : inner.read()),
    clear() {
      absent.checked = false;
      inner.clear();
    },
  };
}

function choice(attribute: Attribute, id: string): Control {
  const group = make("fieldset", {}, make("legend", {}, attribute.name));
  const buttons = (attribute.labels ?? []).map((label, i) => {
    const button = make("input", { type: "radio", name: id, id: `${id}-${i}`, autocomplete: "off" }) as HTMLInputElement;
    group.append(make("label", { for: `${id}-${i}`, class: "choice" }, button, ` ${label}`));
    return button;
  });
  return {
    element: group,
    read() {
      const at = buttons.findIndex((button) => button.checked);
      if (at < 0) throw new ValueRefused(attribute.name);
      return (attribute.labels as string[])[at] as string;
    },
    clear: () => buttons.forEach((button) => (button.checked = false)),
  };
}

function input(attribute: Attribute, id: string, texts: Texts): Control {
  const type = { date: "date", time: "time", datetime: "datetime-local" }[attribute.kind as string] ?? "number";
  const [lo, hi] = [inputText(attribute, attribute.lo), inputText(attribute, attribute.hi)];
  const step = attribute.kind === "real" ? "any" : "1";
  const field = make("input", { type, id, min: lo, max: hi, step, autocomplete: "off", "aria-describedby": `${id}-range` }) as HTMLInputElement;
  const box = make("div", {}, make("label", { for: id }, attribute.name), field, make("span", { id: `${id}-range`, class: "note" }, texts.range(lo, hi)));
  const empty = [(): void => void (field.value = "")];
  if (attribute.kind === "integer" && attribute.hi - attribute.lo <= SLIDER) {
    const slider = make("input", { type: "range", min: lo, max: hi, step: "1", autocomplete: "off", "aria-label": attribute.name }) as HTMLInputElement;
    slider.addEventListener("input", () => (field.value = slider.value));
    field.addEventListener("input", () => (slider.value = field.value));
    field.after(slider);
    empty.push(() => void (slider.value = lo));
  }
  return {
    element: box,
    read() {
      if (!field.value) throw new ValueRefused(attribute.name);
      return type === "number" ? Number(field.value) : field.value;
    },
    clear: () => empty.forEach((one) => one()),
  };
}
