"""Child processes that a mechanism forks do not continue the audit, and change nothing."""

import json

import pytest

from tests.faults.auditing import assert_like_undisturbed, audit_words, end_of, running

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("child", ["RETURNS", "EXITS", "ENDS", "RAISES"])
def test_forked_children_change_no_result(child, workers, tmp_path):
    """About 20 of 200 runs fork a child, which returns, exits or raises."""
    store = tmp_path / "a.db"
    with running(audit_words(store, child, 200, workers, "--json")) as process:
        code, out, err = end_of(process)
    assert code == 0, err
    assert json.loads(out)["failed_runs"] == 0  # one result, not one from each process
    assert "Traceback" not in err
    assert_like_undisturbed(store, 200)
