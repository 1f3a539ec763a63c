"""Campaigns and waves: states move by compare and swap, each once, with their event or not at all."""

import pytest

from ahead_ldp.service.store import (
    CampaignState,
    Lease,
    LeaseLost,
    NotFound,
    QuestionState,
    StateChanged,
    WaveState,
    open_store,
)
from tests.service.store.support import (
    CAMPAIGN,
    CLOSED,
    GROUPS,
    OTHER,
    batch,
    close,
    count,
    hold,
    new_wave,
    open_campaign,
    stored,
)


def test_a_campaign_is_kept_once(store):
    assert store.create_campaign(CAMPAIGN, b"record", 5, b"created")
    assert not store.create_campaign(CAMPAIGN, b"record", 6, b"created")
    assert store.create_campaign(OTHER, b"other", 7)
    row = store.campaign(CAMPAIGN)
    assert (row.record, row.state, row.created_at, row.ended_at, row.epoch) == (b"record", "draft", 5, None, 1)
    assert [c.digest for c in store.campaigns()] == [CAMPAIGN, OTHER]
    assert len(store.events()) == 1


def test_unknown_things_are_not_found(store):
    for call in (
        lambda: store.campaign(CAMPAIGN),
        lambda: store.counts(CAMPAIGN, 1),
        lambda: store.reports(CAMPAIGN, 1, "coarse"),
        lambda: store.job(1),
        lambda: store.set_campaign_state(CAMPAIGN, CampaignState.DRAFT, CampaignState.OPEN, 1),
        lambda: store.open_wave(CAMPAIGN, new_wave(), 1, CampaignState.DRAFT),
        lambda: hold(store),
        lambda: store.freeze_wave(CAMPAIGN, 1, [], 1, CampaignState.FINISHED),
    ):
        with pytest.raises(NotFound):
            call()
    assert store.waves(CAMPAIGN) == store.questions(CAMPAIGN) == []


def test_state_changes_name_the_state_they_start_from(store):
    store.create_campaign(CAMPAIGN, b"record", 5)
    with pytest.raises(StateChanged, match="open, got draft"):
        store.set_campaign_state(CAMPAIGN, CampaignState.OPEN, CampaignState.VOID, 6, b"void")
    assert store.events() == []  # the event goes with the change
    store.set_campaign_state(CAMPAIGN, CampaignState.DRAFT, CampaignState.VOID, 7, b"void")
    assert (store.campaign(CAMPAIGN).state, store.campaign(CAMPAIGN).ended_at) == (CampaignState.VOID, 7)
    assert [e.body for e in store.events()] == [b"void"]
    with pytest.raises(StateChanged):
        store.set_campaign_state(CAMPAIGN, CampaignState.VOID, CampaignState.OPEN, 8)


def test_a_wave_opens_once_with_its_questions_in_order(store):
    store.create_campaign(CAMPAIGN, b"record", 5)
    wave = new_wave(1, ("z", "a", "m"), closes_at=99)
    for _ in range(2):
        store.open_wave(CAMPAIGN, wave, 10, CampaignState.DRAFT, b"opened")
    (row,) = store.waves(CAMPAIGN)
    assert (row.number, row.state, row.opened_at, row.closes_at, row.extensions) == (1, "open", 10, 99, 0)
    assert [q.group for q in store.questions(CAMPAIGN, 1)] == ["z", "a", "m"]
    assert [q.record for q in store.questions(CAMPAIGN)] == [q.record for q in wave.questions]
    assert {q.state for q in store.questions(CAMPAIGN)} == {QuestionState.OPEN}
    assert store.campaign(CAMPAIGN).state == CampaignState.OPEN
    assert len(store.events()) == 1


@pytest.mark.parametrize("wave", [new_wave(1, ("a",)), new_wave(2), new_wave(3)], ids=["other", "early", "gap"])
def test_no_other_wave_opens_while_one_is_open(store, wave):
    open_campaign(store)
    with pytest.raises(StateChanged):
        store.open_wave(CAMPAIGN, wave, 10, CampaignState.OPEN)
    assert len(store.waves(CAMPAIGN)) == 1


def test_a_campaign_ends_only_with_its_waves(store):
    open_campaign(store)
    with pytest.raises(StateChanged, match="wave 1"):
        store.set_campaign_state(CAMPAIGN, CampaignState.OPEN, CampaignState.FINISHED, 9)
    store.set_wave_state(CAMPAIGN, 1, WaveState.OPEN, WaveState.VOID, 9)
    store.set_campaign_state(CAMPAIGN, CampaignState.OPEN, CampaignState.FINISHED, 9)


def test_extension_counts_and_swaps(store):
    open_campaign(store)
    store.extend_wave(CAMPAIGN, 1, 500, 0, 300, b"extended")
    with pytest.raises(StateChanged):  # the second of two at once
        store.extend_wave(CAMPAIGN, 1, 900, 0, 300, b"extended")
    assert (store.waves(CAMPAIGN)[0].closes_at, store.waves(CAMPAIGN)[0].extensions) == (500, 1)
    hold(store)
    with pytest.raises(StateChanged):
        store.extend_wave(CAMPAIGN, 1, 900, 1, 300)
    assert len(store.events()) == 1


def test_held_waves_take_nothing_and_open_again(store):
    open_campaign(store)
    hold(store)
    assert store.waves(CAMPAIGN)[0].note == "closing"
    assert store.add_reports([batch("ab")]) == [bytes([CLOSED] * 2)]
    store.set_wave_state(CAMPAIGN, 1, WaveState.HELD, WaveState.OPEN, 201)
    assert store.add_reports([batch("ab")]) == [bytes(2)]


def test_only_the_holder_of_a_lease_stops_a_wave(store):
    open_campaign(store)
    store.add_job("close 1", "close", b"", 10)
    first = store.lease_job(20, 30)
    second = store.lease_job(50, 30)
    stop = (CAMPAIGN, 1, WaveState.OPEN, WaveState.HELD, 51, "closing")
    with pytest.raises(LeaseLost):
        store.set_wave_state(*stop, lease=Lease(first.number, first.lease, 900))
    assert store.waves(CAMPAIGN)[0].state is WaveState.OPEN
    assert store.job(first.number).lease_until == 80
    store.set_wave_state(*stop, lease=Lease(second.number, second.lease, 900))
    assert store.waves(CAMPAIGN)[0].state is WaveState.HELD
    assert store.job(first.number).lease_until == 900


def test_what_was_found_in_one_hold_is_not_done_in_another(store):
    open_campaign(store)
    store.add_reports([batch("abc")])
    for note in ("first", "second"):
        store.set_wave_state(CAMPAIGN, 1, WaveState.OPEN, WaveState.HELD, 200, note)
        if note == "first":
            store.set_wave_state(CAMPAIGN, 1, WaveState.HELD, WaveState.OPEN, 201, hold="first")
            with pytest.raises(StateChanged):
                store.void_group(CAMPAIGN, 1, GROUPS[0], 202, hold="")  # it is open, and held by nobody
    with pytest.raises(StateChanged):
        store.void_group(CAMPAIGN, 1, GROUPS[0], 202, hold="first")
    with pytest.raises(StateChanged):
        store.set_wave_state(CAMPAIGN, 1, WaveState.HELD, WaveState.OPEN, 202, hold="first")
    assert (store.waves(CAMPAIGN)[0].note, store.counts(CAMPAIGN, 1)[GROUPS[0]]) == ("second", 3)
    store.void_group(CAMPAIGN, 1, GROUPS[0], 203, hold="second")
    assert store.counts(CAMPAIGN, 1)[GROUPS[0]] == 0


def test_moves_that_are_none_are_mistakes(store):
    open_campaign(store)
    for new in (WaveState.CLOSED, WaveState.OPEN):
        with pytest.raises(ValueError, match="a move"):
            store.set_wave_state(CAMPAIGN, 1, WaveState.OPEN, new, 5)


def test_void_group_deletes_its_reports_and_takes_no_more(store):
    open_campaign(store)
    store.add_reports([batch("abc"), batch("xy", GROUPS[1])])
    for _ in range(2):
        store.void_group(CAMPAIGN, 1, GROUPS[0], 150, b"void")
    assert store.counts(CAMPAIGN, 1) == {GROUPS[0]: 0, GROUPS[1]: 2}
    assert stored(store) == set()
    assert store.add_reports([batch("d")]) == [bytes([CLOSED])]
    assert [q.state for q in store.questions(CAMPAIGN, 1)] == [QuestionState.VOID, QuestionState.OPEN]
    assert len(store.events()) == 1
    assert close(store)
    assert [(q.state, q.n) for q in store.questions(CAMPAIGN, 1)] == [("void", 0), ("counted", 2)]
    with pytest.raises(StateChanged):
        store.void_group(CAMPAIGN, 1, GROUPS[1], 150)
    with pytest.raises(NotFound):
        store.void_group(CAMPAIGN, 1, "nobody", 150)


def test_void_wave_deletes_everything(store):
    open_campaign(store)
    store.add_reports([batch("abc"), batch("xy", GROUPS[1])])
    store.set_wave_state(CAMPAIGN, 1, WaveState.OPEN, WaveState.VOID, 150, "by hand")
    assert store.counts(CAMPAIGN, 1) == dict.fromkeys(GROUPS, 0)
    (row,) = store.waves(CAMPAIGN)
    assert (row.state, row.note, row.closed_at) == ("void", "by hand", 150)


def test_freezing_is_one_step_and_happens_once(store):
    open_campaign(store)
    store.add_reports([batch("abc"), batch("xy", GROUPS[1])])
    hold(store)
    counted = count(store)
    asked = (CAMPAIGN, 1, counted, 201, CampaignState.OPEN, new_wave(2), b"frozen")
    assert store.freeze_wave(*asked)
    assert not store.freeze_wave(*asked)  # a job that runs again
    assert not store.freeze_wave(CAMPAIGN, 1, counted, 300, CampaignState.FINISHED)  # whatever comes next
    first, second = store.waves(CAMPAIGN)
    assert (first.state, first.closed_at, second.state, second.opened_at) == ("closed", 201, "open", 201)
    for question, group in zip(store.questions(CAMPAIGN, 1), counted, strict=True):
        assert (question.group, question.n, question.tally) == (group.group, group.n, group.tally)
        assert (question.reports_digest, question.state) == (group.reports_digest, "counted")
    assert len(store.events()) == 1


def test_freezing_wants_a_held_wave_all_groups_and_the_stored_numbers(store):
    open_campaign(store)
    store.add_reports([batch("abc")])
    counted = count(store)
    with pytest.raises(StateChanged, match="held"):
        store.freeze_wave(CAMPAIGN, 1, counted, 201, CampaignState.FINISHED)
    store.add_reports([batch("d")])
    hold(store)
    with pytest.raises(StateChanged, match="number of stored reports"):
        store.freeze_wave(CAMPAIGN, 1, counted, 201, CampaignState.FINISHED)
    with pytest.raises(ValueError, match="each group"):
        store.freeze_wave(CAMPAIGN, 1, counted[:1], 201, CampaignState.FINISHED)
    with pytest.raises(ValueError, match="next wave"):
        store.freeze_wave(CAMPAIGN, 1, count(store), 201, CampaignState.OPEN)
    assert store.waves(CAMPAIGN)[0].state == WaveState.HELD
    assert store.freeze_wave(CAMPAIGN, 1, count(store), 201, CampaignState.FINISHED)
    with pytest.raises(StateChanged):  # other counts for a frozen wave
        store.freeze_wave(CAMPAIGN, 1, counted, 202, CampaignState.FINISHED)


def test_a_failed_next_wave_undoes_the_freeze(store):
    open_campaign(store)
    hold(store)
    with pytest.raises(StateChanged):
        store.freeze_wave(CAMPAIGN, 1, count(store), 201, CampaignState.OPEN, new_wave(3), b"frozen")
    assert store.waves(CAMPAIGN)[0].state == WaveState.HELD
    assert store.questions(CAMPAIGN, 1)[0].tally is None
    assert store.events() == []


def test_review_then_open(store):
    open_campaign(store)
    hold(store)
    assert store.freeze_wave(CAMPAIGN, 1, count(store), 201, CampaignState.REVIEW)
    with pytest.raises(StateChanged):
        store.open_wave(CAMPAIGN, new_wave(2), 205, CampaignState.OPEN)
    store.open_wave(CAMPAIGN, new_wave(2), 205, CampaignState.REVIEW)
    assert [w.state for w in store.waves(CAMPAIGN)] == ["closed", "open"]


def test_everything_is_there_after_reopening(store, url):
    open_campaign(store)
    store.add_reports([batch("abc")])
    close(store)
    before = (store.campaigns(), store.waves(CAMPAIGN), store.questions(CAMPAIGN), stored(store))
    store.close()
    again = open_store(url)
    assert (again.campaigns(), again.waves(CAMPAIGN), again.questions(CAMPAIGN), stored(again)) == before
    again.close()
