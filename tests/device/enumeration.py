"""The exact law of a randomiser, by driving ``draw`` through all words of a small size."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache

from ahead_ldp.device import Law

Probabilities = dict[bytes, Fraction]
REST = Fraction(1, 1000)


class NeedWord(Exception):
    """The script is used up and the draw asks for another word."""


class Scripted:
    """Words from a list; words of 32 and 64 bits, where a small law's draw asks for them, from a list of their own."""

    def __init__(self, words: Sequence[int], wide: Sequence[int] = ()) -> None:
        self.words, self.wide = list(words), list(wide)

    def take(self, bits: int) -> int:
        queue = self.wide if bits >= 32 and self.wide else self.words
        if not queue:
            raise NeedWord
        word = queue.pop(0)
        assert 0 <= word < 1 << bits
        return word


@cache
def enumerated(law: Law, code: int, wide: tuple[int, ...] = ()) -> tuple[Probabilities, Fraction]:
    """For each payload the probability of the words that lead to it, and the probability not followed."""
    return enumerated_draw(lambda words: law.draw(code, words), law.bits, wide)


def enumerated_draw(
    draw: Callable[[Scripted], bytes], bits: int, wide: tuple[int, ...] = ()
) -> tuple[Probabilities, Fraction]:
    """The law of any draw on words of ``bits`` bits, given its wide words.

    Longer and longer sequences of words are tried. A draw that rejects words may go on for ever: it is given up
    when all open sequences together are less likely than ``REST``. So the true probability of a payload lies
    between the value here and that value plus the rest; without rejection the rest is 0.
    """
    found: Probabilities = {}
    open_ones: list[tuple[int, ...]] = [()]
    each = rest = Fraction(1)  # the probability of one sequence, and of all that are open
    while rest > REST:
        longer = []
        for path in open_ones:
            source = Scripted(path, wide)
            try:
                payload = draw(source)
            except NeedWord:
                longer += [(*path, word) for word in range(2**bits)]
                continue
            assert not source.words, "a sequence is only made longer when the draw asks for a word"
            assert not source.wide, "all wide words are used"
            found[payload] = found.get(payload, 0) + each
        open_ones = longer
        each /= 2**bits
        rest = each * len(open_ones)
    return found, rest
