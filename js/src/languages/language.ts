/** What a language file holds. */

import type { Texts } from "./en.js";

/** `tag` is what browsers call the language, `name` what its speakers do; `read` says whether a native reader has read it. */
export interface Language {
  tag: string;
  name: string;
  read: boolean;
  texts: Texts;
}
