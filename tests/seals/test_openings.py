"""The ledger of looks."""

import pytest

from lidp.errors import SealError
from lidp.seals.openings import Look, Opening, ledger_of, look_of


def opening(*runs, revealed=False, time="2030-01-01T00:00:00+00:00"):
    return Opening(runs, "sha256:e", "not refuted", revealed, time)


@pytest.mark.parametrize(
    ("earlier", "runs", "looks", "look"),
    [
        ([], ("a",), 1, Look(1, 0)),
        ([], ("a",), 3, Look(1, 2)),
        ([opening("a", revealed=True)], ("a",), 1, Look(1, 0)),
        ([opening("a", revealed=True)], ("a", "b"), 1, Look(1, 0)),  # a further run extends the evidence
        ([opening("a", "b", revealed=True)], ("a",), 1, Look(1, 0)),
        ([opening("a")], ("b",), 3, Look(2, 1)),
        ([opening("a")], ("b", "c"), 2, Look(2, 0)),
        ([opening("a"), opening("a", "b")], ("a", "c"), 2, Look(2, 0)),
        ([opening("a"), opening("b")], ("a", "c"), 3, Look(1, 1)),
        ([opening("a"), opening("b", revealed=True)], ("a",), 3, Look(1, 0)),
    ],
)
def test_look_of_scores_after_earlier_openings(earlier, runs, looks, look):
    assert look_of(runs, earlier, looks) == look


@pytest.mark.parametrize(
    ("earlier", "runs", "looks", "reason"),
    [
        ([opening("a", revealed=True)], ("b",), 1, "its result was told"),
        ([opening("a", revealed=True)], ("b",), 3, "its result was told"),
        ([opening("a", "b", revealed=True)], ("c",), 1, "told"),
        ([opening("a", "b", revealed=True)], ("a", "c"), 1, "told"),
        ([opening("a", revealed=True)], ("b", "a"), 1, "told"),
        ([opening("a"), opening("b")], ("c",), 2, "all 2 looks that were reserved at sealing are spent"),
        ([opening("a"), opening("a", "b")], ("c", "b", "d"), 1, "all 1 looks"),
    ],
)
def test_other_scores_are_refused_when_no_look_is_left(earlier, runs, looks, reason):
    with pytest.raises(SealError, match=reason):
        look_of(runs, earlier, looks)


def test_openings_are_kept_in_every_folder_once(tmp_path):
    folders = [tmp_path / "1", tmp_path / "2"]
    for folder in folders:
        folder.mkdir()
    with ledger_of(folders[:1]) as ledger:
        assert ledger.record(opening("a", time="2030-01-01T00:00:00+00:00")) == "2030-01-01T00:00:00+00:00"
    with ledger_of(folders) as ledger:
        assert ledger.openings == (opening("a"),)
        ledger.record(opening("a", "b", time="2030-01-02T00:00:00+00:00"))
        ledger.record(opening("a", "b", time="2030-01-03T00:00:00+00:00"))
    with ledger_of(folders) as ledger:
        assert [one.runs for one in ledger.openings] == [("a",), ("a", "b")]
        assert ledger.record(opening("a", "b", time="2030-01-04T00:00:00+00:00")) == "2030-01-02T00:00:00+00:00"
    assert [len((folder / "openings.jsonl").read_text().splitlines()) for folder in folders] == [2, 1]


def test_two_openings_at_a_time_are_refused(tmp_path):
    with ledger_of([tmp_path]), pytest.raises(SealError, match="another process is opening"), ledger_of([tmp_path]):
        pass


@pytest.mark.parametrize("content", [b"[1]\n", b"{}\n", b"torn {", b"\xff\n", b'{"runs": 1}\n'])
def test_damaged_ledgers_are_refused(tmp_path, content):
    (tmp_path / "openings.jsonl").write_bytes(content)
    with pytest.raises(SealError, match="line 1"), ledger_of([tmp_path]):
        pass


def test_ledgers_behind_links_are_refused(tmp_path):
    (tmp_path / "openings.jsonl").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(SealError, match="openings must be recorded here"), ledger_of([tmp_path]):
        pass
    assert not (tmp_path / "elsewhere").exists()


def test_ledger_drops_a_line_that_a_crash_left_unfinished(tmp_path):
    with ledger_of([tmp_path]) as ledger:
        ledger.record(opening("a"))
    file = tmp_path / "openings.jsonl"
    whole = file.read_bytes()
    for torn in (whole[:1], whole[:50], whole[:-2]):
        file.write_bytes(whole + torn)
        with ledger_of([tmp_path]) as ledger:
            assert ledger.openings == (opening("a"),)
    assert file.read_bytes() == whole
    with ledger_of([tmp_path]) as ledger:
        ledger.record(opening("b"))
    file.write_bytes(file.read_bytes()[:-1])  # a whole line stays one without its end
    with ledger_of([tmp_path]) as ledger:
        assert ledger.openings == (opening("a"), opening("b"))


def test_ledger_stays_as_it_was_if_the_disk_takes_a_part_of_a_line(tmp_path):
    resource = pytest.importorskip("resource")
    with ledger_of([tmp_path]) as ledger:
        ledger.record(opening("a"))
    file = tmp_path / "openings.jsonl"
    whole = file.read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    with ledger_of([tmp_path]) as ledger:
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(whole) + 20, limits[1]))
        try:
            with pytest.raises(SealError, match="cannot be recorded, so nothing was opened: File too large"):
                ledger.record(opening("b"))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert file.read_bytes() == whole
