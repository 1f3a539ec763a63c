/** The form in which a person says which thing of theirs an attribute is: asked after consent, offered what looks similar, never guessed. */

import { Refused } from "./canonical.js";
import type { Fields } from "./client.js";
import { make } from "./controls.js";
import { similarFields } from "./naming.js";
import { checkName } from "./text.js";
import type { Texts } from "./languages/index.js";
import type { Wording } from "./wording.js";

interface Choice {
  element: HTMLElement;
  read(earlier: Fields): string | null;
}

/** A form for some names, each below its question, given the owner's fields by their names; `done` gets the owner's word on all of them. */
export function mappingForm(names: string[], wording: Map<string, Wording>, known: Map<string, string>, texts: Texts, done: (fields: Fields) => void): HTMLElement {
  const choices = names.map((name, i) => choiceFor(name, i, names.slice(0, i), wording.get(name), known, texts));
  const problem = make("p", { role: "alert", class: "problem" });
  const button = make("button", { type: "submit" }, texts.go);
  const form = make("form", { novalidate: "" }, ...choices.map(({ element }) => element), problem, make("p", { class: "row" }, button));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const fields = Object.create(null) as Fields;
    for (const [i, choice] of choices.entries()) {
      const name = names[i] as string;
      try {
        fields[name] = choice.read(fields);
      } catch (error) {
        if (!(error instanceof Refused)) throw error;
        problem.textContent = texts.outOfRange(name);
        return;
      }
    }
    (button as HTMLButtonElement).disabled = true;
    done(fields);
  });
  return form;
}

/** One name: a list of the owner's fields, those that look similar first, earlier names of the same form, a new thing, or not sure. */
function choiceFor(name: string, i: number, earlier: string[], words: Wording | undefined, known: Map<string, string>, texts: Texts): Choice {
  const similar = similarFields(name, [...known.keys()]).map((other) => known.get(other) as string);
  const fields = [...new Set([...similar, ...known.values()])];
  const same = similarFields(name, earlier);
  const list = make("select", { id: `field-${i}`, required: "" }) as HTMLSelectElement;
  const own = make("input", { id: `own-${i}`, value: name, maxlength: "200", autocomplete: "off" }) as HTMLInputElement;
  const add = (value: string, text: string): void => list.append(make("option", { value }, text));
  add("", texts.choose);
  fields.forEach((field, at) => add(`field ${at}`, field));
  earlier.forEach((other, at) => add(`same ${at}`, texts.sameAs(other)));
  add("new", texts.newField);
  add("unsure", texts.unsure);
  list.value = similar.length ? "field 0" : same.length ? `same ${earlier.indexOf(same[0] as string)}` : fields.length ? "" : "new";
  const named = make("div", {}, make("label", { for: own.id }, texts.ownName), own);
  const show = (): boolean => (named.hidden = list.value !== "new");
  list.addEventListener("change", show);
  show();
  return {
    element: make("div", {}, ...(words ? [make("p", { class: "asked" }, words.question)] : []), make("label", { for: list.id }, texts.whatIs(name)), list, named),
    read(before) {
      const [kind, at] = list.value.split(" ") as [string, string?];
      if (kind === "unsure") return null;
      if (kind === "field") return fields[Number(at)] as string;
      if (kind === "same") return before[earlier[Number(at)] as string] as string | null;
      return checkName(kind === "new" ? own.value.trim() : "", name);
    },
  };
}
