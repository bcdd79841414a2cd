"""Options that do not exist here: what was meant, or which command has them."""

import pytest

from tests.cli.invoke import lidp

CASES = [
    (["audit", "x:y", "--trails", "3"], "No such option: --trails; did you mean --trials?"),
    (["audit", "x:y", "--runs", "3"], "--runs is an option of lidp audit-catalogue, audit-pair"),
    (["audit-pair", "x:y", "--canaries=3"], "No such option: --canaries; --canaries is an option of lidp audit,"),
    (["audit", "x:y", "--zzzzz"], "No such option: --zzzzz (see lidp audit --help)"),
    (["simulate", "gaussian", "--workers", "2"], "--workers is an option of lidp audit"),
    (["--trials"], "--trials is an option of lidp audit"),
]


@pytest.mark.parametrize(
    ("arguments", "message"), CASES, ids=lambda value: " ".join(value) if isinstance(value, list) else ""
)
def test_a_refused_option_is_explained_on_one_line(capsys, arguments, message):
    code, out, err = lidp(capsys, *arguments)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert message in err
