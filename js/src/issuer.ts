/** The issuer of tokens over HTTP, with the code that its operator gave to this person. */

import { hex, isRecord, unhex } from "./canonical.js";
import { Unreachable } from "./client.js";

/** The person has to type their code: none is known yet, or the issuer refused it. */
export class SecretNeeded extends Error {
  constructor(readonly wrong: boolean) {
    super("a code is needed");
  }
}

/** The issuer's answer to a nonce or a blinded one. The same message may be sent again and gets the same answer. */
export async function askIssuer(issuer: string, secret: string, message: Uint8Array): Promise<Uint8Array> {
  if (!secret) throw new SecretNeeded(false);
  const body = JSON.stringify({ secret, message: hex(message) });
  const init: RequestInit = { method: "POST", body, headers: { "content-type": "application/json" }, credentials: "omit", referrerPolicy: "no-referrer", redirect: "error" };
  const answer = await fetch(`${issuer.replace(/\/$/u, "")}/v1/signatures`, init).catch(() => null);
  if (answer && [400, 403, 409, 422].includes(answer.status)) throw new SecretNeeded(true);
  const found: unknown = answer?.ok ? await answer.json().catch(() => null) : null;
  if (!isRecord(found) || typeof found["signature"] !== "string") throw new Unreachable("no signature from the issuer");
  return unhex(found["signature"]);
}
