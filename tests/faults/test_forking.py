"""Mechanisms that fork: the child is nobody's second driver, and changes nothing."""

import json

import pytest

from tests.faults.auditing import assert_like_undisturbed, audit_words, end_group, end_of, start

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("child", ["RETURNS", "EXITS", "ENDS", "RAISES"])
def test_a_mechanism_that_forks(child, workers, tmp_path):
    """About 20 of 200 runs fork a child that does this."""
    store = tmp_path / "a.db"
    process = start(audit_words(store, child, 200, workers, "--json"))
    try:
        code, out, err = end_of(process)
    finally:
        end_group(process)
    assert code == 0, err
    assert json.loads(out)["failed_runs"] == 0  # one result, not one from each process
    assert "Traceback" not in err
    assert_like_undisturbed(store, 200)
