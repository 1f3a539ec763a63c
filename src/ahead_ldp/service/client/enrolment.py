"""How a device gets its token and its group: from the issuer where there is one, else by its own draw."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Protocol

from ahead_ldp.device.campaign import Campaign
from ahead_ldp.device.entries import LedgerRefused, Token
from ahead_ldp.device.ledger import Ledger
from ahead_ldp.device.refusals import QuestionRefused
from ahead_ldp.device.tokens import (
    PANEL_WAVE,
    PublicKey,
    TokenRefused,
    blind,
    blind_with,
    check_signature,
    draw_group,
    token_group,
    unblind,
)
from ahead_ldp.service.client.transport import JSON, Transport, Unreachable, as_transport
from ahead_ldp.service.client.views import read_json

Groups = Sequence[tuple[str, int]]


class Signer(Protocol):
    """Whoever signs one message for one enrolled person."""

    def sign(self, message: bytes) -> bytes:
        """The raw answer to a nonce or a blinded nonce; the same message may be sent again."""
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
            raise TokenRefused("the issuer refused: the secret is unknown or was used before")
        if answer.status != 200:
            raise Unreachable(f"the issuer answered {answer.status}")
        try:
            return bytes.fromhex(read_json(answer)["signature"])
        except (KeyError, TypeError, ValueError):
            raise TokenRefused("expected a signature from the issuer") from None


def issuer_key(campaign: Campaign) -> PublicKey | None:
    """The issuer's key that the campaign pins, if it has tokens."""
    return None if campaign.key is None else PublicKey(*campaign.key)


def obtain_token(ledger: Ledger, campaign: Campaign, signer: Signer | None) -> Token:
    """The campaign's token, signed where the campaign asks for it; every step is kept before the next one is made."""
    token, key = ledger.token(campaign.digest), issuer_key(campaign)
    if key is None:
        return token
    if token.signature is None:
        if signer is None:
            raise QuestionRefused("expected an issuer: this campaign asks for a token")
        if campaign.tier == "signed":
            signature = check_signature(key, token.nonce, signer.sign(token.nonce))
        else:
            signature = _blind_signature(ledger, campaign, key, token, signer)
        ledger.keep_signature(campaign.digest, signature)
    else:
        check_signature(key, token.nonce, token.signature)
    return ledger.token(campaign.digest)


def own_group(ledger: Ledger, campaign: Campaign, wave: int, groups: Groups, token: Token) -> str:
    """The device's group among ``groups``: derived from the token, else drawn once and kept."""
    if campaign.enrolment == "panel":
        wave, groups = PANEL_WAVE, campaign.groups
    if token.signature is None:
        drawn = draw_group(groups)
        return ledger.keep_group(campaign.digest, wave, drawn)
    derived = token_group(token.signature, campaign.digest, wave, groups)
    if ledger.keep_group(campaign.digest, wave, derived) != derived:
        raise LedgerRefused("expected the group that follows from the token")
    return derived


def _blind_signature(ledger: Ledger, campaign: Campaign, key: PublicKey, token: Token, signer: Signer) -> bytes:
    if token.inverse is None:
        blinded = blind(key, token.nonce)
        ledger.keep_inverse(campaign.digest, blinded.inverse)
    else:
        blinded = blind_with(key, token.nonce, token.inverse)  # a crash came between the issuer and the ledger
    return unblind(key, token.nonce, signer.sign(blinded.message), blinded.inverse)
