"""Journals on one node: what a worker process has finished can be read after its death."""

import os

import numpy as np
import pytest

from lidp.designs.trial_record import TrialRecord
from lidp.errors import AuditFailed
from lidp.trials import ray_journal
from lidp.trials.ray_journal import Journal, read_journal, remove_journals


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(ray_journal, "_FOLDER", tmp_path)
    monkeypatch.setattr(ray_journal, "_previous", [])
    return tmp_path


def record(index):
    return TrialRecord(index, {"scores": np.zeros(2)}, seconds=index)


def numbers(records):
    return [one.index for one in records]


def test_records_are_read_while_their_writer_is_alive(folder):
    journal = Journal("a", 1)
    assert read_journal("a", 1) == []
    journal.add([record(3), record(4)])
    journal.add([record(5)])
    assert numbers(read_journal("a", 1)) == [3, 4, 5]
    journal.close()
    assert numbers(read_journal("a", 1)) == [3, 4, 5]


def test_a_record_that_was_cut_short_is_missing_and_those_before_it_are_not(folder):
    journal = Journal("a", 1)
    journal.add([record(1)])
    whole = journal.path.read_bytes()
    journal.add([record(2)])
    for size in (len(whole) + 3, len(whole) + 20):
        os.truncate(journal.path, size)
        assert numbers(read_journal("a", 1)) == [1]


def test_a_journal_that_is_missing_or_overwritten_is_not_read(folder):
    assert read_journal("a", 1) is None
    journal = Journal("a", 1)
    journal.add([record(1)])
    journal.path.write_bytes(journal.path.read_bytes()[:8] + bytes(1000))
    assert read_journal("a", 1) is None


def test_a_folder_of_somebody_else_is_not_trusted(folder, monkeypatch):
    Journal("a", 1).add([record(1)])
    monkeypatch.setattr(os, "geteuid", lambda: -1)
    assert read_journal("a", 1) is None
    with pytest.raises(AuditFailed, match="set TMPDIR"):
        Journal("a", 2)


def test_only_its_user_may_read_a_journal(folder):
    path = Journal("a", 1).path
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_a_journal_is_removed_with_the_next_one_of_its_process(folder):
    first, second = Journal("a", 1), Journal("a", 2)
    assert not first.path.exists()
    assert second.path.exists()


def test_journals_are_removed_with_their_audit_and_others_only_after_long(folder):
    for audit in ("old", "a", "b"):
        Journal(audit, 1)
        ray_journal._previous.clear()
    os.utime(folder / "lidp-journals-old", (0, 0))
    remove_journals("a")
    Journal("c", 1)
    assert sorted(path.name for path in folder.iterdir()) == ["lidp-journals-b", "lidp-journals-c"]


def test_a_full_disk_ends_the_audit_with_a_remedy(folder):
    journal = Journal("a", 1)
    journal.close()
    journal._descriptor = os.open("/dev/full", os.O_WRONLY)
    with pytest.raises(AuditFailed, match=r"cannot write to .* \(No space left on device\); free space"):
        journal.add([record(1)])
    journal.close()
