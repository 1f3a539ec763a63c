"""Tokens: the RFC's vector, signatures against a compiled library, and groups that nobody chooses."""

import hashlib
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from ahead_ldp.device.tokens import (
    PublicKey,
    TokenRefused,
    blind,
    blind_with,
    check_signature,
    draw_group,
    encode_pss,
    group_number,
    new_nonce,
    pick_group,
    report_id,
    token_group,
    unblind,
)
from ahead_ldp.service.issuer import SigningKey
from ahead_ldp.service.server.tokens import verify

RFC = json.loads((Path(__file__).parent.parent / "vectors" / "rfc9474.json").read_text("utf-8"))
P, Q = int(RFC["p"], 16), int(RFC["q"], 16)
KEY = PublicKey(P * Q, 65537)
MESSAGE = bytes.fromhex(RFC["msg"])
SECRET = SigningKey(P, Q, pow(65537, -1, (P - 1) * (Q - 1)))
CAMPAIGN = "5c" * 32
SMALL = SigningKey.generate(2048)


def test_the_rfcs_vector_step_by_step():
    """RFC 9474, Appendix A.4: encoding, blinded message, blind signature, signature, all byte by byte."""
    assert encode_pss(MESSAGE, KEY.n.bit_length() - 1).hex() == RFC["encoded_msg"]
    inverse = int(RFC["inv"], 16)
    blinded = blind_with(KEY, MESSAGE, inverse)
    assert blinded.message.hex() == RFC["blinded_msg"]
    assert SECRET.sign(SECRET.number(blinded.message, "blind")).hex() == RFC["blind_sig"]
    signature = unblind(KEY, MESSAGE, bytes.fromhex(RFC["blind_sig"]), inverse)
    assert signature.hex() == RFC["sig"]


def test_a_blind_signature_is_the_plain_one_and_the_library_agrees():
    """One nonce has one signature, however it was blinded; ``cryptography`` makes and accepts the same bytes."""
    nonce = new_nonce()
    plain = SMALL.sign(SMALL.number(nonce, "signed"))
    for _ in range(3):
        blinded = blind(SMALL.public, nonce)
        answer = SMALL.sign(SMALL.number(blinded.message, "blind"))
        assert unblind(SMALL.public, nonce, answer, blinded.inverse) == plain
    public = rsa.RSAPublicNumbers(65537, SMALL.public.n).public_key()
    pss = padding.PSS(mgf=padding.MGF1(hashes.SHA384()), salt_length=0)
    public.verify(plain, nonce, pss, hashes.SHA384())
    assert verify((SMALL.public.n, 65537), [nonce], [plain]) == [True]


def test_blinded_messages_of_one_nonce_differ():
    nonce = new_nonce()
    assert len({blind(SMALL.public, nonce).message for _ in range(5)}) == 5


def tampered(signature: bytes) -> dict[str, bytes]:
    n = SMALL.public.n
    number = int.from_bytes(signature, "big")
    return {
        "one bit": bytes([signature[0] ^ 1]) + signature[1:],
        "last bit": signature[:-1] + bytes([signature[-1] ^ 1]),
        "short": signature[1:],
        "long": b"\x00" + signature,
        "empty": b"",
        "zero": bytes(len(signature)),
        "one": (1).to_bytes(256, "big"),
        "modulus": n.to_bytes(256, "big"),
        "plus the modulus": ((number + n) % 2**2048).to_bytes(256, "big"),
        "negated": (n - number).to_bytes(256, "big"),
        "ones": b"\xff" * 256,
    }


@pytest.mark.parametrize("how", tampered(bytes(256)))
def test_tampered_signatures_are_refused_by_device_and_server_alike(how):
    nonce = new_nonce()
    good = SMALL.sign(SMALL.number(nonce, "signed"))
    bad = tampered(good)[how]
    assert check_signature(SMALL.public, nonce, good) == good
    with pytest.raises(TokenRefused):
        check_signature(SMALL.public, nonce, bad)
    assert verify((SMALL.public.n, 65537), [nonce, nonce], [bad, good]) == [False, True]


def test_a_signature_of_another_nonce_or_key_is_refused():
    a, b = new_nonce(), new_nonce()
    signature = SMALL.sign(SMALL.number(a, "signed"))
    with pytest.raises(TokenRefused):
        check_signature(SMALL.public, b, signature)
    with pytest.raises(TokenRefused):
        check_signature(KEY, a, signature)
    assert verify((SMALL.public.n, 65537), [a, b], [signature, signature]) == [True, False]


def test_a_signature_with_a_salt_is_refused():
    """A salted PSS signature verifies under a laxer rule, and would let its owner choose a group by trying salts."""
    crt = (SMALL.d % (SMALL.p - 1), SMALL.d % (SMALL.q - 1), pow(SMALL.q, -1, SMALL.p))
    numbers = rsa.RSAPrivateNumbers(SMALL.p, SMALL.q, SMALL.d, *crt, rsa.RSAPublicNumbers(65537, SMALL.public.n))
    nonce = new_nonce()
    salted = numbers.private_key().sign(
        nonce, padding.PSS(mgf=padding.MGF1(hashes.SHA384()), salt_length=48), hashes.SHA384()
    )
    with pytest.raises(TokenRefused):
        check_signature(SMALL.public, nonce, salted)
    assert verify((SMALL.public.n, 65537), [nonce], [salted]) == [False]


@pytest.mark.parametrize("answer", [b"", bytes(256), b"\xff" * 256, bytes(255)], ids=["none", "zero", "ones", "short"])
def test_a_lying_blind_issuer_is_found(answer):
    nonce = new_nonce()
    blinded = blind(SMALL.public, nonce)
    with pytest.raises(TokenRefused):
        unblind(SMALL.public, nonce, answer, blinded.inverse)


FORKS = """
import os
from ahead_ldp.device import LAWS, SystemWords
from ahead_ldp.device.tokens import draw_group, new_nonce
law, words = LAWS["oue"].make("1", 256), SystemWords()
law.draw(3, words), new_nonce()
for _ in range(3):
    if os.fork() == 0:
        print(law.draw(3, words).hex(), new_nonce().hex(), flush=True)
        os._exit(0)
    os.wait()
"""


def test_forks_of_a_program_draw_different_noise():
    """Nothing is buffered: a copy of the process, as of a virtual machine, does not repeat its parent's chance."""
    done = subprocess.run([sys.executable, "-c", FORKS], capture_output=True, text=True, check=True)
    words = done.stdout.split()
    assert len(words) == 6
    assert len(set(words)) == 6


def test_report_id_is_the_nonces_hash():
    nonce = bytes(range(32))
    assert report_id(nonce) == hashlib.sha256(nonce).digest()[:16]
    with pytest.raises(ValueError, match="32 bytes"):
        report_id(b"short")


@pytest.mark.parametrize("total", [1, 2, 3, 7, 100, 10**10])
@pytest.mark.parametrize("wave", [0, 1, 17])
def test_group_number_is_hkdf_as_the_wire_says(total, wave):
    """Recomputed with ``cryptography``'s HKDF, straight from docs/wire.md."""
    signature = os.urandom(256)
    info = b"ahead-ldp group 1 " + str(wave).encode()
    data = HKDF(hashes.SHA256(), 64, bytes.fromhex(CAMPAIGN), info).derive(signature)
    words = [int.from_bytes(data[i : i + 8], "big") for i in range(0, 64, 8)]
    limit = 2**64 // total * total
    assert group_number(signature, CAMPAIGN, wave, total) == next(w for w in words if w < limit) % total


def test_group_number_goes_on_when_all_words_fail():
    """With a total just above 2**63 about half of all words fail; among many signatures some need the next 64 bytes."""
    total = 2**63 + 1
    again = 0
    for i in range(2000):
        signature = i.to_bytes(256, "big")
        data = HKDF(hashes.SHA256(), 64, bytes.fromhex(CAMPAIGN), b"ahead-ldp group 1 3").derive(signature)
        if all(int.from_bytes(data[j : j + 8], "big") >= total for j in range(0, 64, 8)):
            again += 1
            more = HKDF(hashes.SHA256(), 64, bytes.fromhex(CAMPAIGN), b"ahead-ldp group 1 3 again").derive(signature)
            words = [int.from_bytes(more[j : j + 8], "big") for j in range(0, 64, 8)]
            assert group_number(signature, CAMPAIGN, 3, total) == next(w for w in words if w < total)
    assert again > 0


def chi_square(drawn: Counter[str], groups: list[tuple[str, int]]) -> float:
    n, total = sum(drawn.values()), sum(share for _, share in groups)
    return sum((drawn[g] - n * share / total) ** 2 / (n * share / total) for g, share in groups)


@pytest.mark.parametrize("how", ["token", "drawn"])
def test_groups_have_their_shares(how):
    """Chi-square with 3 degrees of freedom over 20,000 draws; a group that gets a tenth more is seen."""
    groups = [("a", 1), ("b", 2), ("c", 3), ("d", 4)]
    rng = np.random.default_rng(7)
    if how == "token":
        found = Counter(token_group(rng.bytes(32), CAMPAIGN, 1, groups) for _ in range(20_000))
    else:
        found = Counter(draw_group(groups) for _ in range(20_000))
    assert chi_square(found, groups) < 30  # p < 2e-6
    found["a"] += 400
    assert chi_square(found, groups) > 30


def test_groups_of_campaigns_and_waves_are_independent():
    groups = [("a", 1), ("b", 1)]
    signatures = [i.to_bytes(32, "big") for i in range(4000)]
    for other in ((CAMPAIGN, 2), ("00" * 32, 1)):
        same = sum(token_group(s, CAMPAIGN, 1, groups) == token_group(s, *other, groups) for s in signatures)
        assert abs(same - 2000) < 5 * np.sqrt(1000)


def test_pick_group_is_the_first_with_a_larger_cumulated_share():
    groups = [("a", 2), ("b", 1), ("c", 3)]
    assert [pick_group(groups, i) for i in range(6)] == ["a", "a", "b", "c", "c", "c"]
