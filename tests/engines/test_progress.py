"""The bar is silent for short work and tells how far long work is."""

import io

import pytest

from ahead_ldp.engines.progress import Bar


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize("stream", [io.StringIO(), Terminal()], ids=["file", "terminal"])
def test_short_work_leaves_no_trace(stream):
    clock = Clock()
    with Bar("counting", stream, clock=clock) as bar:
        for done in range(100):
            clock.now = done * 0.0199
            bar(done, 100)
    assert stream.getvalue() == ""


def test_long_work_shows_a_line_that_is_gone_at_the_end():
    stream, clock = Terminal(), Clock()
    with Bar("counting", stream, clock=clock) as bar:
        clock.now = 2.5
        bar(50, 200)
        assert "counting" in stream.getvalue()
        assert " 25% (50 of 200, 8 s left)" in stream.getvalue()
        clock.now = 2.55
        bar(60, 200)
        assert "60 of" not in stream.getvalue()
    assert stream.getvalue().endswith("\r\033[K")


def test_outside_a_terminal_lines_are_rare():
    stream, clock = io.StringIO(), Clock()
    with Bar("counting", stream, clock=clock) as bar:
        for second in range(21):
            clock.now = float(second)
            bar(second, 20)
    lines = stream.getvalue().splitlines()
    assert len(lines) == 4  # at 2, 7, 12 and 17 seconds
    assert all("\r" not in line for line in lines)


def test_nothing_done_yet_has_no_time_left():
    stream, clock = io.StringIO(), Clock()
    bar = Bar("counting", stream, clock=clock)
    clock.now = 3.0
    bar(0, 10)
    assert "left" not in stream.getvalue()
