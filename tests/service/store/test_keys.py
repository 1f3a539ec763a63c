"""Keys of waves: made before the wave, found by every process, missed aloud, and destroyed with what they sealed."""

import os
import shutil
import sqlite3
import stat
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from ahead_ldp.service.store import (
    CampaignState,
    KeyMissing,
    Keys,
    SQLiteStore,
    StoreUnavailable,
    WaveState,
    Withdrawal,
    open_store,
    restore,
    uploads,
)
from ahead_ldp.service.store import keys as keys_module
from tests.service.store.postgres_server import PostgresServer, quick_folder
from tests.service.store.support import (
    CAMPAIGN,
    GROUPS,
    KNOWN,
    NEW,
    batch,
    close,
    count,
    frames,
    hold,
    new_wave,
    open_campaign,
    report,
    stored,
)


@pytest.fixture
def keys(tmp_path):
    return Keys(tmp_path / "keys")


@pytest.fixture
def sealed(url, keys):
    """A store with a key directory of its own, and reports in its open wave."""
    with closing(open_store(url, keys=keys.folder)) as store:
        open_campaign(store)
        store.add_reports([batch(range(40)), batch("xyz", GROUPS[1])])
        yield store


def names(keys):
    return sorted(path.name for path in keys.folder.iterdir())


# The directory


def test_a_key_is_private_synced_and_different_every_time(keys, monkeypatch):
    synced = []
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append(stat.S_ISDIR(os.fstat(handle).st_mode)))
    made = {keys.create() for _ in range(3)}
    assert synced[:3] == [False, True, True]  # the key, its name, the name of the directory
    assert len({(keys.folder / f"{name}.key").read_bytes() for name in made}) == 3
    assert stat.S_IMODE(keys.folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in keys.folder.iterdir()} == {0o600}


def test_every_folder_that_is_made_on_the_way_is_there_for_good(tmp_path, monkeypatch):
    """A power loss could take the upper of several new folders, and with it the key of acknowledged reports."""
    synced = []
    monkeypatch.setattr(keys_module, "sync_file", synced.append)
    made = Keys(tmp_path / "a" / "b" / "keys")
    made.create()
    assert synced == [made.folder, tmp_path / "a" / "b", tmp_path / "a", tmp_path]
    synced.clear()
    made.create()
    assert synced == [made.folder, tmp_path / "a" / "b"]


def test_a_destroyed_key_is_overwritten_before_it_is_removed(keys, monkeypatch):
    name = keys.create()
    with open(keys.folder / f"{name}.key", "rb") as file:  # as a file system that keeps old names would see it
        keys.destroy(name)
        assert file.read() == bytes(32)
    assert names(keys) == []
    keys.destroy(name)  # again: nothing
    with pytest.raises(KeyMissing):
        keys.cipher(name)


@pytest.mark.parametrize("name", ["", None, "../outside", "x" * 32, "A" * 32])
def test_what_is_no_name_leads_nowhere(keys, tmp_path, name):
    keys.create()
    (tmp_path / "outside.key").write_bytes(bytes(32))
    assert not keys.has(name)
    with pytest.raises(KeyMissing):
        keys.cipher(name)
    keys.destroy(name)
    assert (tmp_path / "outside.key").exists()


def test_what_was_sealed_with_other_ids_or_another_key_is_not_opened(keys):
    first, second = (keys.cipher(keys.create()) for _ in range(2))
    ids, payloads = (b"".join(part) for part in zip(*map(report, "abc"), strict=True))
    kept = first.seal(payloads, ids)
    assert first.unseal(kept, ids) == payloads
    assert kept != first.seal(payloads, ids)
    for cipher, data, beside in ((second, kept, ids), (first, kept, ids[::-1]), (first, kept[:-1] + b"?", ids)):
        with pytest.raises(StoreUnavailable, match="damaged"):
            cipher.unseal(data, beside)


# Found by everybody


def test_every_process_and_one_that_was_restarted_find_the_key(url, sealed, keys):
    with closing(open_store(url, keys=keys.folder)) as other:
        assert other.add_reports([batch([0, "new"])]) == [bytes([KNOWN, NEW])]
        assert stored(sealed) == frames([*range(40), "new"])
        assert other.withdraw(CAMPAIGN, report(3)[0], 150) == Withdrawal.REMOVED
    sealed.close()
    with closing(open_store(url, keys=keys.folder)) as again:
        assert stored(again) == frames([*range(3), *range(4, 40), "new"])
    assert len(names(keys)) == 1


def test_no_wave_is_opened_without_a_place_for_its_key(url, tmp_path):
    (tmp_path / "file").write_bytes(b"")
    with closing(open_store(url, keys=tmp_path / "file" / "keys")) as store:
        store.create_campaign(CAMPAIGN, b"", 100)
        with pytest.raises(StoreUnavailable, match="key directory"):
            store.open_wave(CAMPAIGN, new_wave(), 101, CampaignState.DRAFT)
        assert store.waves(CAMPAIGN) == []


# Missed aloud


def test_a_lost_key_directory_is_one_clear_error_and_nothing_is_acknowledged(sealed, keys, tmp_path):
    """What was acknowledged is still there once the directory is back; meanwhile nothing new is."""
    keys.folder.rename(tmp_path / "elsewhere")
    for call in (
        lambda: sealed.add_reports([batch(["late"])]),
        lambda: sealed.withdraw(CAMPAIGN, report(3)[0], 150),
        lambda: stored(sealed),
        sealed.check_writable,
    ):
        with pytest.raises(KeyMissing, match="bring the directory back"):
            call()
    assert sealed.missing_keys() == [(CAMPAIGN, 1)]
    assert sealed.add_reports([batch([1], insert=False)]) == [bytes([KNOWN])]  # ids are known without it
    hold(sealed)
    with pytest.raises(KeyMissing):
        count(sealed)
    (tmp_path / "elsewhere").rename(keys.folder)
    assert stored(sealed) == frames(range(40))
    sealed.check_writable()
    assert sealed.freeze_wave(CAMPAIGN, 1, count(sealed), 300, CampaignState.FINISHED)


def test_a_wave_whose_key_is_lost_for_good_can_be_given_up(sealed, keys):
    shutil.rmtree(keys.folder)
    sealed.set_wave_state(CAMPAIGN, 1, WaveState.OPEN, WaveState.VOID, 200)
    assert sealed.missing_keys() == []
    assert stored(sealed) == set()
    sealed.check_writable()


def test_a_kept_campaign_is_not_restored_without_its_key(sealed, keys, new_url, tmp_path):
    sealed.backup(str(tmp_path / "backup"))
    url = new_url()
    with pytest.raises(KeyMissing):
        restore(tmp_path / "backup", url, 500, keep=[CAMPAIGN], keys=tmp_path / "another")
    assert restore(tmp_path / "backup", url, 500, keep=[CAMPAIGN], keys=keys.folder).forgotten == 0
    with closing(open_store(url, keys=keys.folder)) as again:
        assert stored(again) == frames(range(40))


# Destroyed


def give_up_groups(store):
    for group in GROUPS:
        store.void_group(CAMPAIGN, 1, group, 200)


def give_up_wave(store):
    store.set_wave_state(CAMPAIGN, 1, WaveState.OPEN, WaveState.VOID, 200)


def end_and_delete(store):
    close(store, last=True)
    store.delete_reports(CAMPAIGN, 300)


@pytest.mark.parametrize("end", [give_up_groups, give_up_wave, end_and_delete], ids=lambda f: f.__name__)
def test_the_key_goes_with_the_reports(sealed, keys, end):
    assert len(names(keys)) == 1
    end(sealed)
    assert names(keys) == []
    assert stored(sealed) == stored(sealed, GROUPS[1]) == set()
    assert sealed.add_reports([batch([1, "late"])])[0][0] == KNOWN  # the id, and nothing else, is left


def test_one_group_of_two_keeps_the_key(sealed, keys):
    sealed.void_group(CAMPAIGN, 1, GROUPS[0], 200)
    assert stored(sealed, GROUPS[1]) == frames("xyz")


def test_a_crash_between_the_deletion_and_the_key_is_made_good(sealed, keys, monkeypatch):
    """Retention asks again until it was told that all is done."""
    close(sealed, last=True)

    def crash(*_):
        raise StoreUnavailable("killed")

    with monkeypatch.context() as patch:
        patch.setattr(Keys, "destroy", crash)
        with pytest.raises(StoreUnavailable, match="killed"):
            sealed.delete_reports(CAMPAIGN, 300)
    assert len(names(keys)) == 1
    assert sealed.delete_reports(CAMPAIGN, 301) == 0
    assert names(keys) == []


@pytest.mark.parametrize("end", [give_up_groups, give_up_wave], ids=lambda f: f.__name__)
def test_a_crash_between_giving_up_and_the_key_is_made_good_although_nobody_asks_again(sealed, keys, monkeypatch, end):
    """The key stayed until the retention of the campaign, which may be years away, and opened every backup."""

    def crash(*_):
        raise StoreUnavailable("killed")

    with monkeypatch.context() as patch:
        patch.setattr(Keys, "destroy", crash)
        with pytest.raises(StoreUnavailable, match="killed"):
            end(sealed)
    assert len(names(keys)) == 1
    sealed.finish_deletions()
    assert names(keys) == []
    sealed.finish_deletions()


def test_a_key_that_cannot_be_removed_keeps_nothing_else(sealed, keys, monkeypatch):
    """A deletion that stopped at the first left all payloads behind it."""

    def stuck(*_):
        raise StoreUnavailable("stuck")

    monkeypatch.setattr(uploads, "PORTION", 1)
    monkeypatch.setattr(Keys, "destroy", stuck)
    with pytest.raises(StoreUnavailable, match="stuck"):
        give_up_wave(sealed)
    with sealed.reading() as tx:
        assert tx.rows("SELECT 1 FROM chunks WHERE n > 0") == []


def test_a_key_that_was_overwritten_is_gone_although_a_crash_left_its_file(sealed, keys):
    """A restore took it for a key, and kept reports that nobody can read."""
    (name,) = names(keys)
    (keys.folder / name).write_bytes(bytes(32))
    assert sealed.missing_keys() == [(CAMPAIGN, 1)]
    with pytest.raises(KeyMissing):
        stored(sealed)
    give_up_wave(sealed)
    assert names(keys) == []


def test_a_wave_that_a_restore_ended_keeps_its_key_until_the_retention(sealed, keys, new_url, tmp_path):
    """In the store that was backed up it goes on, where a restore is only tried."""
    sealed.backup(str(tmp_path / "backup"))
    target = new_url()
    restore(tmp_path / "backup", target, 500, keys=keys.folder)
    with closing(open_store(target, keys=keys.folder)) as again:
        again.finish_deletions()
    assert stored(sealed) == frames(range(40))


def test_a_failed_change_destroys_nothing(sealed, keys, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr("ahead_ldp.service.store.waves.events.note", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            give_up_wave(sealed)
    assert stored(sealed) == frames(range(40))


# After it, nothing is left from which a report could be recovered


def everything_in(url, folder):
    """All bytes that a store has on disk: tables, free pages and the log."""
    if url.startswith("postgresql"):
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("CHECKPOINT")
            ((place, database),) = connection.execute(
                "SELECT current_setting('data_directory'), oid FROM pg_database WHERE datname = current_database()"
            )
        paths = [*Path(place, "base", str(database)).iterdir(), *Path(place, "pg_wal").iterdir()]
    else:
        paths = folder.glob("store0.db*")
    return b"".join(path.read_bytes() for path in paths if path.is_file())


def test_after_retention_the_store_its_log_and_a_backup_made_before_forget(url, sealed, keys, new_url, tmp_path):
    """Whoever has the files of the store from before and after, but not the keys, has no report."""
    sealed.backup(str(tmp_path / "backup"))
    before = everything_in(url, tmp_path)
    close(sealed, last=True)
    sealed.delete_reports(CAMPAIGN, 300)
    left = everything_in(url, tmp_path)
    for name in (*range(40), *"xyz"):
        report_id, payload = report(name)
        for data in (before, left, (tmp_path / "backup").read_bytes()):
            assert report_id in data  # it is looked for in the right place
            assert payload not in data
    target = new_url()
    with pytest.raises(KeyMissing):
        restore(tmp_path / "backup", target, 500, keep=[CAMPAIGN], keys=keys.folder)
    restore(tmp_path / "backup", target, 500, keys=keys.folder)
    with closing(open_store(target, keys=keys.folder)) as again:
        assert stored(again) == stored(again, GROUPS[1]) == set()


def test_a_replica_forgets_too(postgres, keys, tmp_path):
    """A streaming replica has every page and the whole log from before and after, and no report."""
    url = postgres.new_database()
    replica = PostgresServer(quick_folder(), primary=postgres)
    try:
        with closing(open_store(url, keys=keys.folder)) as store:
            open_campaign(store)
            store.add_reports([batch(range(40))])
            before = everything_in(caught_up(url, postgres, replica), tmp_path)
            end_and_delete(store)
            after = everything_in(caught_up(url, postgres, replica), tmp_path)
    finally:
        replica.remove()
    for name in range(40):
        report_id, payload = report(name)
        for data in (before, after):
            assert report_id in data
            assert payload not in data


def caught_up(url, primary, replica):
    """The same database on the replica, once it has all that the primary has."""
    with psycopg.connect(url) as connection:
        ((there,),) = connection.execute("SELECT pg_current_wal_flush_lsn()").fetchall()
    here = url.replace(str(primary.folder), str(replica.folder))
    for _ in range(600):
        with psycopg.connect(here) as connection:
            ((done,),) = connection.execute("SELECT pg_last_wal_replay_lsn() >= %s::pg_lsn", [there]).fetchall()
        if done:
            return here
        time.sleep(0.05)
    raise AssertionError("the replica does not follow")


def test_a_backup_of_closed_waves_forgets_too(sealed, keys, new_url, tmp_path):
    close(sealed, last=True)
    sealed.backup(str(tmp_path / "backup"))
    sealed.delete_reports(CAMPAIGN, 300)
    target = new_url()
    assert restore(tmp_path / "backup", target, 500, keys=keys.folder).forgotten == 43
    with closing(open_store(target, keys=keys.folder)) as again:
        assert stored(again) == set()
        assert [q.n for q in again.questions(CAMPAIGN, 1)] == [40, 3]  # the tally stays
        assert again.add_reports([batch([1])]) == [bytes([KNOWN])]


def test_no_payload_is_ever_on_disk_as_it_came(tmp_path):
    """Not in the file, not in the log, not while the wave is open."""
    with closing(open_store(f"{tmp_path}/store.db", keys=tmp_path / "keys")) as store:
        open_campaign(store)
        for k in range(20):
            store.add_reports([batch(range(100 * k, 100 * k + 100))])
        store.withdraw(CAMPAIGN, report(7)[0], 150)
        data = b"".join(path.read_bytes() for path in tmp_path.iterdir() if path.is_file())
        assert report(8)[0] in data
        assert not any(report(k)[1] in data for k in range(0, 2000, 13))


def test_a_restarted_process_has_nothing_in_memory(tmp_path):
    """A new process over the erased store, with everything that it can reach of it, answers by the id alone."""
    with closing(open_store(f"{tmp_path}/store.db", keys=tmp_path / "keys")) as store:
        open_campaign(store)
        store.add_reports([batch(range(40))])
        end_and_delete(store)
    script = f"""
from ahead_ldp.service.store import open_store
from tests.service.store.support import CAMPAIGN, batch
store = open_store({str(tmp_path / "store.db")!r}, keys={str(tmp_path / "keys")!r})
same, other = store.add_reports([batch(range(40)), batch(range(40), change=1)])
print(set(same), set(other), sum(chunk.n for chunk in store.reports(CAMPAIGN, 1, "coarse")))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=Path.cwd(), check=True)
    assert done.stdout == f"{{{int(KNOWN)}}} {{{int(KNOWN)}}} 0\n"


# Files of the store


@pytest.mark.parametrize("umask", [0o022, 0o000])
def test_finding_13_store_log_and_backup_are_the_owners_alone(tmp_path, umask):
    """Finding 13."""
    before = os.umask(umask)
    try:
        with closing(SQLiteStore(tmp_path / "store.db", keys=tmp_path / "keys")) as store:
            open_campaign(store)
            store.add_reports([batch("abc")])
            store.backup(str(tmp_path / "backup"))
            restore(tmp_path / "backup", str(tmp_path / "restored.db"), 500, keys=tmp_path / "keys")
            modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    finally:
        os.umask(before)
    files = ("store.db", "store.db-wal", "store.db-shm", "backup", "restored.db")
    assert modes == {**dict.fromkeys(files, 0o600), "keys": 0o700}


def test_a_file_that_others_could_read_is_closed_to_them(tmp_path):
    path = tmp_path / "store.db"
    SQLiteStore(path).close()
    path.chmod(0o664)
    SQLiteStore(path).close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_backup_of_a_database_is_the_owners_alone(postgres, tmp_path):
    with closing(open_store(postgres.new_database())) as store:
        open_campaign(store)
        store.backup(str(tmp_path / "backup"))
    assert stat.S_IMODE((tmp_path / "backup").stat().st_mode) == 0o600
    with sqlite3.connect(tmp_path / "backup") as connection:
        assert connection.execute("SELECT COUNT(*) FROM waves").fetchone() == (1,)
    connection.close()
