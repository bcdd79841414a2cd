"""``lidp catalogue`` and ``lidp audit-catalogue``."""

from lidp.mechanisms.catalogue import CATALOGUE
from tests.cli.invoke import lidp


def test_every_mechanism_is_listed_with_its_truth(capsys):
    code, out, _ = lidp(capsys, "catalogue")
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()] == list(CATALOGUE)
    assert "not private" in out


def test_every_mechanism_is_audited(capsys):
    code, out, _ = lidp(capsys, "audit-catalogue", "--epsilon", 1, "--runs", 400, "--quiet")
    assert code == 1
    assert [line.split()[0] for line in out.splitlines()] == ["mechanism", *CATALOGUE]
    assert "svt5                         not private            refuted" in out
