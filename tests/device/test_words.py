from fractions import Fraction

import pytest

from ahead_ldp.device.words import SystemWords, below, take_many
from tests.device.enumeration import NeedWord, Scripted


@pytest.mark.parametrize("bits", [1, 2, 3, 4, 5])
def test_below_is_exactly_uniform(bits):
    words = 1 << bits
    for n in range(2, words + 1):
        counts, rejected = [0] * n, 0
        for word in range(words):
            try:
                counts[below(n, Scripted([word]), bits)] += 1
            except NeedWord:  # asks for another word and so starts again: the law given acceptance is the law
                rejected += 1
        assert len(set(counts)) == 1, "every result comes from the same number of words"
        assert Fraction(rejected, words) < Fraction(1, 2), "less than half of the words are drawn again"
        assert sum(counts) + rejected == words


def test_below_forgets_a_rejected_word():
    for first in (15, 14, 13):
        source = Scripted([first, 15, 7])
        assert below(5, source, 4) == (7 % 5 if first == 15 else first % 5)


def test_below_one_takes_no_word():
    assert below(1, Scripted([]), 32) == 0


def test_below_more_than_the_words_can_tell_is_refused():
    assert below(8, Scripted([7]), 3) == 7
    with pytest.raises(ValueError, match="expected n <= 2\\*\\*3, got 9"):
        below(9, Scripted([0]), 3)


@pytest.mark.parametrize("bits", [32, 64])
def test_system_words_fill_their_range(bits):
    source = SystemWords()
    for drawn in ([source.take(bits) for _ in range(400)], source.take_many(bits, 400)):
        assert all(0 <= word < 1 << bits for word in drawn)
        # Each bit is seen as 0 and as 1: a bit that is stuck by chance has probability 2 * 2**-400.
        assert all({word >> i & 1 for word in drawn} == {0, 1} for i in range(bits))
        assert len(set(drawn)) > 390


@pytest.mark.parametrize("bits", [0, 1, 4, 8, 31, 33, 128])
def test_system_words_refuse_other_sizes(bits):
    """Fewer random bits than asked for would turn a randomiser into the plain truth."""
    with pytest.raises(ValueError, match=f"got {bits}"):
        SystemWords().take(bits)
    with pytest.raises(ValueError, match=f"got {bits}"):
        SystemWords().take_many(bits, 3)


def test_take_many_is_many_takes():
    assert take_many(Scripted([3, 1, 2]), 4, 3) == [3, 1, 2]
