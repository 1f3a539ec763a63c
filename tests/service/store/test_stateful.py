"""Long random lives of a store beside a model: uploads, replays, changed bytes, withdrawals, closers, crashes.

Every report has a value of its own, so what is stored shows at once whether one is lost, doubled or exchanged.
"""

import os
import shutil
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from ahead_ldp.service.store import CampaignState, KeyMissing, StateChanged, WaveState, known_ids, open_store, restore
from tests.service.store.model import Model
from tests.service.store.support import (
    CAMPAIGN,
    GROUPS,
    KNOWN,
    NEW,
    batch,
    count,
    frames,
    new_wave,
    open_campaign,
    report,
    stored,
)

NAMES = st.lists(st.integers(0, 60).map(str), min_size=1, max_size=6)
CHANGES = st.integers(0, 1)
GROUP = st.sampled_from(GROUPS)
BACK = st.integers(0, 2)  # how many waves back, or ahead of the last


class StoreLife(RuleBasedStateMachine):
    """One campaign in one store; subclasses say where it lives and how it crashes."""

    def new_url(self):
        raise NotImplementedError

    def crashed_url(self):
        raise NotImplementedError

    @initialize()
    def begin(self):
        self.folder = Path(tempfile.mkdtemp())
        self.url = self.new_url()
        self.store = open_store(self.url)
        self.model = Model()
        self.saved = None
        self.backups = 0
        self.destroyed = set()  # waves whose key is gone, which no backup brings back
        open_campaign(self.store)

    def teardown(self):
        if hasattr(self, "store"):
            self.store.close()
            shutil.rmtree(self.folder, ignore_errors=True)

    # Reports

    @rule(parts=st.lists(st.tuples(NAMES, CHANGES, GROUP, BACK, st.booleans()), min_size=1, max_size=4))
    def upload(self, parts):
        batches = [
            batch(names, group, max(1, self.model.wave + 1 - back), change=change, insert=insert)
            for names, change, group, back, insert in parts
        ]
        expected = {}
        takes = [self.model.takes(b.wave, b.group) and b.insert for b in batches]
        for i in sorted(range(len(parts)), key=lambda i: not takes[i]):  # those that cannot enter come last
            names, change, group, _, insert = parts[i]
            expected[i] = bytes(self.model.upload(n, change, batches[i].wave, group, insert) for n in names)
        assert self.store.add_reports(batches) == [expected[i] for i in range(len(parts))]

    @rule(names=NAMES, group=GROUP)
    def upload_changed_bytes_at_once(self, names, group):
        """Two devices claim the same ids with other bytes: per id one of them wins."""
        names = sorted(set(names))
        wave = self.model.wave
        before = {name: self.model.copy().upload(name, 0, wave, group) for name in names}
        with ThreadPoolExecutor(2) as pool:
            calls = [pool.submit(self.store.add_reports, [batch(names, group, wave, change=c)]) for c in (0, 1)]
            outcomes = [call.result()[0] for call in calls]
        for i, name in enumerate(names):
            pair = (outcomes[0][i], outcomes[1][i])
            if before[name] == NEW:
                assert pair in ((NEW, KNOWN), (KNOWN, NEW))
                self.model.upload(name, pair.index(NEW), wave, group)
            else:
                assert pair == tuple(self.model.upload(name, c, wave, group) for c in (0, 1))

    @rule(names=NAMES, group=GROUP, change=CHANGES)
    def upload_the_same_at_once(self, names, group, change):
        """A device that lost patience sends twice: one NEW an id."""
        names = sorted(set(names))
        wave = self.model.wave
        with ThreadPoolExecutor(2) as pool:
            calls = [pool.submit(self.store.add_reports, [batch(names, group, wave, change=change)]) for _ in range(2)]
            outcomes = [call.result()[0] for call in calls]
        for i, name in enumerate(names):
            first, second = (self.model.upload(name, change, wave, group) for _ in range(2))
            assert sorted((outcomes[0][i], outcomes[1][i])) == sorted((first, second))
            assert first != NEW or second == KNOWN

    @rule(name=st.integers(0, 70).map(str))
    def withdraw(self, name):
        assert self.store.withdraw(CAMPAIGN, report(name)[0], 150) == self.model.withdraw(name)

    # Waves

    @rule(move=st.sampled_from([("open", "held"), ("held", "open")]))
    def move(self, move):
        expected, new = map(WaveState, move)
        if self.model.waves[self.model.wave] == expected:
            self.store.set_wave_state(CAMPAIGN, self.model.wave, expected, new, 200)
            self.model.waves[self.model.wave] = move[1]
        else:
            with pytest.raises(StateChanged):
                self.store.set_wave_state(CAMPAIGN, self.model.wave, expected, new, 200)

    @rule(group=GROUP)
    def void_group(self, group):
        wave = self.model.wave
        if self.model.waves[wave] in ("open", "held"):
            self.store.void_group(CAMPAIGN, wave, group, 200)
            self.model.void.add((wave, group))
            self.model.delete(wave, group)
            if {(wave, group) for group in GROUPS} <= self.model.void:
                self.destroyed.add(wave)

    @precondition(lambda self: self.model.waves[self.model.wave] == "held" and not self.model.ended)
    @rule(last=st.booleans(), closers=st.integers(1, 3))
    def freeze(self, last, closers):
        """Several closers at once, all with the same count: one of them freezes."""
        last = last and self.model.wave > 2
        wave = self.model.wave
        counted = count(self.store, wave)
        assert {g.group: g.n for g in counted} == self.model.counts(wave)
        asked = (CampaignState.FINISHED, None) if last else (CampaignState.OPEN, new_wave(wave + 1))
        with ThreadPoolExecutor(closers) as pool:
            calls = [pool.submit(self.store.freeze_wave, CAMPAIGN, wave, counted, 300, *asked) for _ in range(closers)]
            assert sorted(call.result() for call in calls) == [False] * (closers - 1) + [True]
        self.model.frozen[wave] = self.model.counts(wave)
        self.model.waves[wave] = "closed"
        self.model.ended = last
        if not last:
            self.model.waves[wave + 1] = "open"

    @precondition(lambda self: self.model.frozen)
    @rule()
    def freeze_again(self):
        """A job that runs again changes nothing; one with other counts is refused."""
        wave = max(self.model.frozen)
        if self.store.delete_reports(CAMPAIGN, 400) if self.model.ended else False:
            for number in self.model.waves:
                for group in GROUPS:
                    self.model.delete(number, group)
                self.destroyed.add(number)
            return
        if any(entry.place == "deleted" and entry.wave == wave for entry in self.model.entries.values()):
            return
        counted = count(self.store, wave)
        assert not self.store.freeze_wave(CAMPAIGN, wave, counted, 500, CampaignState.FINISHED)

    # The machine

    @rule()
    def crash(self):
        """Everything in memory is gone; what is on disk is opened."""
        url = self.crashed_url()
        self.store.close()
        self.url, self.store = url, open_store(url)

    @rule()
    def second_process(self):
        """Another process stores behind our back; nothing of it may be missed afterwards."""
        other = open_store(self.url)
        wave = self.model.wave
        name = str(len(self.model.entries) % 61)
        assert other.add_reports([batch([name], wave=wave)])[0][0] == self.model.upload(name, 0, wave, GROUPS[0])
        assert other.withdraw(CAMPAIGN, report("70")[0], 150) == self.model.withdraw("70")
        other.close()

    @rule()
    def back_up(self):
        self.backups += 1
        path = self.folder / f"backup {self.backups}"
        self.store.backup(str(path))
        self.saved = (path, self.model.copy())

    @precondition(lambda self: self.saved is not None)
    @rule()
    def restore(self):
        (path, model), self.saved = self.saved, None
        epoch, url = self.store.epoch(), self.new_url()
        counted = model.waves[model.wave] == "closed" or all((model.wave, group) in model.void for group in GROUPS)
        if model.wave in self.destroyed and not counted:  # the backup is older than the end of its open wave
            with pytest.raises(KeyMissing):
                restore(path, url, 600, keep=[CAMPAIGN], epoch=epoch + 1)
            return
        restore(path, url, 600, keep=[CAMPAIGN], epoch=epoch + 1)
        self.store.close()
        self.url, self.model, self.store = url, model, open_store(url)
        for wave in self.destroyed:
            for group in GROUPS:
                model.delete(wave, group)
        self.destroyed &= set(model.waves)
        assert self.store.epoch() == epoch + 1

    @invariant()
    def stored_is_what_the_model_says(self):
        if not hasattr(self, "store"):
            return
        assert {w.number: w.state for w in self.store.waves(CAMPAIGN)} == self.model.waves
        for wave in self.model.waves:
            assert self.store.counts(CAMPAIGN, wave) == self.model.counts(wave)
            for group in GROUPS:
                names = self.model.names(wave, group)
                wanted = set().union(*(frames([name], change) for name, change in names.items()))
                assert stored(self.store, group, wave) == wanted
        tallies = {wave: {q.group: q.n for q in self.store.questions(CAMPAIGN, wave)} for wave in self.model.frozen}
        assert tallies == self.model.frozen


class SQLiteLife(StoreLife):
    """A crash is the files as the operating system has them, elsewhere."""

    made = 0

    def new_url(self):
        self.made += 1
        (self.folder / str(self.made)).mkdir()
        return f"sqlite:{self.folder / str(self.made) / 'store.db'}"

    def crashed_url(self):
        old = Path(self.url.removeprefix("sqlite:"))
        url = self.new_url()
        new = Path(url.removeprefix("sqlite:"))
        for suffix in ("", "-wal"):
            if Path(f"{old}{suffix}").exists():
                shutil.copyfile(f"{old}{suffix}", f"{new}{suffix}")
        return url


def lives(examples, steps):
    """Settings; `make soak` looks at twenty times as many lives, and shortens one that failed."""
    soak = os.environ.get("HYPOTHESIS_PROFILE") == "explore"
    return settings(
        max_examples=20 * examples if soak else examples,
        stateful_step_count=steps,
        suppress_health_check=list(HealthCheck),
        phases=[phase for phase in Phase if soak or phase != Phase.shrink],
        deadline=None,
    )


def test_lives_of_a_file(monkeypatch):
    monkeypatch.setattr(known_ids, "_RECENT", 3)  # so that small lives fill the levels of the index
    monkeypatch.setattr(known_ids, "_SIZES", (10,))
    run_state_machine_as_test(SQLiteLife, settings=lives(20, 50))


def test_lives_of_a_postgres(postgres):
    class PostgresLife(StoreLife):
        """A crash ends all connections at once."""

        def new_url(self):
            return postgres.new_database()

        def crashed_url(self):
            with psycopg.connect(self.url, autocommit=True) as connection:
                sql = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()"
                connection.execute(f"{sql} AND pid <> pg_backend_pid()")
            return self.url

    run_state_machine_as_test(PostgresLife, settings=lives(6, 50))
