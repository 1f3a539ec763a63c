"""Where a campaign stands, in words."""

import re

import pytest

from ahead_ldp.service.campaigns.campaign import draft
from ahead_ldp.service.dashboard.standing import rounds_of, standing
from tests.reading import flesch
from tests.test_reading import JARGON

DRAFT = {
    "title": "Ages", "purpose": "To plan.", "controller": "Town", "contact": "t@x.example", "created": "2026-01-31",
    "schema": ["age=integer,0,15"], "epsilon": "1", "method": {"name": "ahead"}, "minimum": 50,
    "closing": {"kind": "manual"},
}  # fmt: skip


def stand(reports=30, held=False, state="open", wave=1, closes_at=None, people=30, now=7_200, rounds=5, **more):
    terms = draft({**DRAFT, **more})
    group, *_ = (name for name, _ in terms.campaign.groups)
    groups = [{"group": group, "reports": reports, "minimum": 50, "state": "open"}] if wave else []
    progress = {
        "state": state,
        "wave": wave,
        "groups": groups,
        "reports": reports,
        "counting": False,
        "held": held,
        "closes_at": closes_at,
    }
    waves = {"waves": [{"number": wave, "opened_at": 3_600}] if wave else []}
    return standing(terms, waves, progress, people, now, rounds)


def test_an_open_round_says_how_many_came_how_many_are_needed_and_how_long():
    found = stand()
    assert found["headline"] == "Round 1 of 5"
    assert found["facts"] == [
        "30 people have answered so far.",
        "About 20 more should come: 1 group still needs answers.",
        "At this pace that takes about 40 minutes.",
    ]
    assert found["next"].startswith("Invite people")
    assert "1,030 people have answered so far. 30 of them in this round." in " ".join(
        stand(people=1030, wave=2)["facts"]
    )
    assert "closes by itself in 2 days" in " ".join(stand(closes_at=7_200 + 172_800)["facts"])
    assert not any("pace" in fact for fact in stand(reports=3, people=3)["facts"])  # too few to say


def test_every_state_says_what_to_do_next_without_jargon():
    said = [
        stand(reports=60), stand(held=True), stand(state="draft", wave=0), stand(state="review"), stand(state="void"),
        stand(state="finished"), stand(reports=90, closing={"kind": "reports", "reports": 80}), stand(rounds=None),
    ]  # fmt: skip
    texts = [" ".join([s["headline"], *s["facts"], s["next"]]) for s in said]
    assert len(set(texts)) == len(texts)
    assert "Close the round when you like" in texts[0]
    assert "on hold" in texts[1]
    assert "closes by itself now" in texts[6]
    for text in texts:
        assert [word for word in JARGON if re.search(word, text, re.I)] == []
    assert flesch(" ".join(texts)) >= 60


@pytest.mark.parametrize("method, rounds", [("ahead", 2), ("hdg", 1), ("hh", 1)])
def test_rounds_are_found_by_a_run_on_made_up_answers(method, rounds):
    schema = ["age=integer,0,15", "pay=integer,0,15"] if method == "hdg" else ["age=integer,0,15"]
    found = rounds_of(draft({**DRAFT, "schema": schema, "method": {"name": method}, "users": 1000}))
    assert found is not None
    assert found >= rounds
