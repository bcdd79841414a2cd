"""``lidp catalogue`` and ``lidp audit-catalogue``."""

import json

import pytest

from lidp.mechanisms.catalogue import CATALOGUE
from lidp.training.catalogue import TRAININGS
from tests.cli.invoke import lidp


def test_every_mechanism_is_listed_with_its_truth_and_every_training(capsys):
    code, out, _ = lidp(capsys, "catalogue")
    assert code == 0
    mechanisms, trainings = (part.splitlines() for part in out.split("\n\n"))
    assert [line.split()[0] for line in mechanisms] == ["Mechanisms:", *CATALOGUE]
    assert [line.split()[0] for line in trainings] == ["Trainings:", *TRAININGS]
    assert "not private" in out
    assert [line.split()[1] for line in trainings[1:]].count("right") == 2


@pytest.mark.slow
def test_a_training_is_audited_with_its_own_claim_and_canaries(capsys):
    code, out, _ = lidp(capsys, "audit", "catalogue:noise-reused-across-steps", "--quiet")
    assert code == 1
    assert "refuted: training noise-reused-across-steps claims the privacy curve of DP-SGD with noise multiplier 1," in out
    code, out, _ = lidp(capsys, "audit", "catalogue:correct-with-examples", "--trials", 1, "--json", "--quiet")
    result = json.loads(out)
    assert code == 0
    assert result["design"]["canaries"] == TRAININGS["correct-with-examples"].canaries


def test_options_replace_the_claim_and_the_canaries_of_a_training(capsys):
    words = "audit catalogue:correct --epsilon 9 --delta 1e-5 --canaries 8 --trials 1 --json --quiet"
    code, out, _ = lidp(capsys, *words.split())
    result = json.loads(out)
    assert code == 0
    assert result["design"]["canaries"] == 8
    assert result["claim"]["epsilon"] == 9


@pytest.mark.parametrize(("name", "remedy"), [
    ("laplace", "laplace is a mechanism with two data sets; use lidp audit-pair catalogue:laplace"),
    ("x", "there is no training 'x' in the catalogue; choose one of correct,"),
])  # fmt: skip
def test_names_of_no_training_are_refused(capsys, name, remedy):
    code, out, err = lidp(capsys, "audit", f"catalogue:{name}")
    assert (code, out) == (2, "")
    assert remedy in err


def test_every_mechanism_is_audited(capsys):
    code, out, _ = lidp(capsys, "audit-catalogue", "--epsilon", 1, "--runs", 400, "--quiet")
    assert code == 1
    assert [line.split()[0] for line in out.splitlines()] == ["mechanism", *CATALOGUE]
    assert "svt5                         not private            refuted" in out
