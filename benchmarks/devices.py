"""What one person costs: a report on the device, a token at the issuer, its check at the server."""

from __future__ import annotations

import tempfile
from fractions import Fraction
from pathlib import Path

from ahead_ldp.device.budget import Limits
from ahead_ldp.device.entries import Asker, Place, State
from ahead_ldp.device.laws import LAWS
from ahead_ldp.device.ledger import Ledger
from ahead_ldp.device.tokens import blind, check_signature, group_number, new_nonce, unblind
from ahead_ldp.device.words import SystemWords
from ahead_ldp.service.issuer import SigningKey
from ahead_ldp.service.server.tokens import verify
from benchmarks.measuring import Section, Sizes, at_most, cpu_s
from benchmarks.rendering import seconds

_BITS = (2048, 3072)


def run(sizes: Sizes) -> Section:
    """CPU time of every step, the best of several."""
    spent = _reports(sizes) | _ledger(sizes)
    for bits in _BITS:
        spent |= _tokens(sizes, bits)
    rows = tuple((name, seconds(value)) for name, value in spent.items())
    target = at_most(f"an OUE report on {sizes.cells:,} cells", spent[_report("oue", sizes)], 100e-6, "s")
    notes = (
        "The device and its side of a token are standard library alone; the server checks with `cryptography`.",
        "The ledger's six synced commits are one answer, from the reservation to the acknowledgement; waiting for the "
        "disk is not CPU time.",
        "The issuer computes in Python, the input blinded anew for every signature.",
    )
    return Section("One person", ("what", "CPU time"), rows, notes, (target,), spent)


def _report(name: str, sizes: Sizes) -> str:
    return f"device: {name} report on {sizes.cells:,} cells"


def _reports(sizes: Sizes) -> dict[str, float]:
    words = SystemWords()
    laws = {name: LAWS[name].make("1", sizes.cells) for name in ("grr", "oue", "olh", "ss")}
    return {_report(n, sizes): _each(lambda law=law: law.draw(3, words), 200, sizes) for n, law in laws.items()}


def _ledger(sizes: Sizes) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder, Ledger(Path(folder) / "ledger.db") as ledger:
        number = iter(range(10**6))

        def answer() -> None:
            name = f"{next(number):064x}"
            ledger.token(name)
            ledger.check_view(name, 1, name)
            ledger.reserve(Asker(name, "", ""), Place(1, "g", "q"), [name], Fraction(1), Limits(Fraction(10**6)))
            ledger.keep_drawn(name, "q", bytes(209), 0)
            ledger.move(name, State.SENT)
            ledger.move(name, State.ACKNOWLEDGED)

        return {"device: ledger of one answer": _each(answer, 3, sizes)}


def _tokens(sizes: Sizes, bits: int) -> dict[str, float]:
    key, nonce, many = SigningKey.generate(bits), new_nonce(), 200
    signature = key.sign(key.number(nonce, "signed"))
    blinded = blind(key.public, nonce)
    answer = key.sign(key.number(blinded.message, "blind"))
    public = (key.public.n, key.public.e)
    return {
        f"device: blind, RSA-{bits}": _each(lambda: blind(key.public, nonce), 3, sizes),
        f"device: unblind and check, RSA-{bits}": _each(
            lambda: unblind(key.public, nonce, answer, blinded.inverse), 10, sizes
        ),
        f"device: check a signature, RSA-{bits}": _each(
            lambda: check_signature(key.public, nonce, signature), 10, sizes
        ),
        f"issuer: sign, RSA-{bits}": _each(lambda: key.sign(key.number(blinded.message, "blind")), 3, sizes),
        f"server: check a signature, RSA-{bits}": cpu_s(
            lambda: verify(public, [nonce] * many, [signature] * many), sizes.repeats
        )
        / many,
        f"server: derive a group, RSA-{bits}": _each(lambda: group_number(signature, "ab" * 32, 1, 6), 100, sizes),
    }


def _each(run: object, times: int, sizes: Sizes) -> float:
    assert callable(run)

    def many() -> None:
        for _ in range(times):
            run()

    return cpu_s(many, sizes.repeats) / times
