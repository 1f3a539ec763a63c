"""How a device gets its token and its group: from the issuer where there is one, else by its own draw."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Protocol

from ahead_ldp.device import tokens
from ahead_ldp.device.campaign import Campaign
from ahead_ldp.device.entries import LedgerRefused, Token
from ahead_ldp.device.ledger import Ledger
from ahead_ldp.device.refusals import QuestionRefused
from ahead_ldp.service.client.transport import JSON, Transport, Unreachable, as_transport
from ahead_ldp.service.client.views import read_json

Groups = Sequence[tuple[str, int]]


class Signer(Protocol):
    """Whoever signs one message for one enrolled person."""

    def sign(self, message: bytes) -> bytes:
        """The raw answer to a token's message or a blinded one; the same message may be sent again."""
        ...


class IssuerClient:
    """The issuer over HTTP, with the one-time secret that its operator gave to this person."""

    def __init__(self, way: str | Transport, secret: str) -> None:
        self._transport, self._secret = as_transport(way), secret

    def sign(self, message: bytes) -> bytes:
        """The issuer's answer, or ``TokenRefused`` if the secret is unknown or was used for another message."""
        body = json.dumps({"secret": self._secret, "message": message.hex()}).encode("ascii")
        answer = self._transport.request("POST", "/v1/signatures", body, JSON)
        if answer.status in (400, 403, 409, 422):
            raise tokens.TokenRefused("the issuer refused: the secret is unknown or was used before")
        if answer.status != 200:
            raise Unreachable(f"the issuer answered {answer.status}")
        try:
            return bytes.fromhex(read_json(answer)["signature"])
        except (KeyError, TypeError, ValueError):
            raise tokens.TokenRefused("expected a signature from the issuer") from None


def obtain_token(ledger: Ledger, campaign: Campaign, signer: Signer | None) -> Token:
    """The campaign's token, signed where the campaign asks for it; every step is kept before the next one is made."""
    token, key = ledger.token(campaign.digest), campaign.key
    if key is None:
        return token
    if token.signature is not None:
        tokens.check_signature(key, campaign.token_message(token.nonce), token.signature)
        return token
    if signer is None:
        raise QuestionRefused("expected an issuer: this campaign asks for a token")

    message = campaign.token_message(token.nonce)

    def blinding() -> tokens.Blinded:
        """The kept blinding if a crash came between the issuer and the ledger, else a new one."""
        if token.inverse is not None:
            return tokens.blind_with(key, message, token.inverse)
        blinded = tokens.blind(key, message)
        ledger.keep_inverse(campaign.digest, blinded.inverse)
        return blinded

    ledger.keep_signature(campaign.digest, sign_message(campaign, key, message, signer, blinding))
    return ledger.token(campaign.digest)


def sign_message(
    campaign: Campaign, key: tokens.PublicKey, message: bytes, signer: Signer, blinding: Callable[[], tokens.Blinded]
) -> bytes:
    """The issuer's signature on a token's message, checked; in the tier ``blind`` the issuer sees it blinded."""
    if campaign.tier == "signed":
        return tokens.check_signature(key, message, signer.sign(message))
    blinded = blinding()
    return tokens.unblind(key, message, signer.sign(blinded.message), blinded.inverse)


def choose_group(campaign: Campaign, wave: int, open_groups: Groups, signature: bytes | None) -> tuple[int, str]:
    """The wave for which a group is chosen (0 for a panel: all of them), and the group: by the token, else drawn."""
    if campaign.enrolment == "panel":
        wave, open_groups = tokens.PANEL_WAVE, campaign.groups
    if signature is None:
        return wave, tokens.draw_group(open_groups)
    return wave, tokens.token_group(signature, campaign.digest, wave, open_groups)


def own_group(ledger: Ledger, campaign: Campaign, wave: int, open_groups: Groups, token: Token) -> str:
    """The device's group: the first one ever chosen, which with a token is the only one."""
    chosen_for, group = choose_group(campaign, wave, open_groups, token.signature)
    kept = ledger.keep_group(campaign.digest, chosen_for, group)
    if token.signature is not None and kept != group:
        raise LedgerRefused("expected the group that follows from the token")
    return kept
