"""The number of canaries that a target suggests: used if nobody gives a design, and kept in the store."""

import json
from dataclasses import replace

import pytest

import lidp
from lidp import CoinFlip
from lidp.errors import StoreError
from lidp.store import Store
from lidp.target import CanaryCount
from tests.cli.invoke import lidp as invoke
from tests.sample_targets import CLAIM, LEAKY

SUGGESTING = replace(LEAKY, canary_count=CanaryCount(8, "as a test"))
OPTIONS = {"claim": CLAIM, "trials": 12, "stop_when": "never"}


def test_a_target_without_suggestion_gets_the_usual_number():
    result = lidp.audit(LEAKY, **OPTIONS)
    assert result.design == CoinFlip(64)
    assert "canaries   " not in str(result)


def test_a_suggestion_is_followed_and_named():
    result = lidp.audit(SUGGESTING, **OPTIONS)
    assert result.design == CoinFlip(8)
    assert "\n  canaries   8 per model, chosen by default: as a test\n" in str(result)
    assert (
        result.scores.to_arrays().keys() == lidp.audit(SUGGESTING, design=CoinFlip(8), **OPTIONS).scores.to_arrays().keys()
    )


def test_a_resumed_audit_keeps_the_number_of_its_store(tmp_path):
    first = lidp.audit(SUGGESTING, store=tmp_path / "a.db", **OPTIONS)
    changed = replace(SUGGESTING, canary_count=CanaryCount(32, "another opinion"))
    again = lidp.audit(changed, store=tmp_path / "a.db", **OPTIONS | {"trials": 16})
    assert again.design == first.design
    assert again.facts == first.facts
    assert again.bound.trials == 16


def test_a_given_design_is_not_replaced_by_that_of_the_store(tmp_path):
    lidp.audit(SUGGESTING, store=tmp_path / "a.db", **OPTIONS)
    with pytest.raises(StoreError, match="another audit"):
        lidp.audit(SUGGESTING, store=tmp_path / "a.db", design=CoinFlip(32), **OPTIONS)


@pytest.mark.parametrize(
    "damage", [{"facts": None}, {"facts": ["canaries"]}, {"design": {}}, {"design": "x"}, {"design": None}], ids=str
)
def test_a_strangers_store_is_refused_in_one_line_whatever_its_configuration(damage, tmp_path):
    lidp.audit(SUGGESTING, store=tmp_path / "a.db", **OPTIONS)
    with Store.open(tmp_path / "a.db") as store:
        store.keep_fact("configuration", store.configuration | damage)
    with pytest.raises(StoreError):
        lidp.audit(SUGGESTING, store=tmp_path / "a.db", **OPTIONS)


@pytest.mark.parametrize(
    ("options", "canaries"), [((), 8), (("--canaries", 4), 4), (("--design", "leave-one-out"), 64)], ids=str
)
def test_the_command_follows_a_suggestion_unless_told_otherwise(capsys, options, canaries):
    target = "tests.engine.test_default_canaries:SUGGESTING"
    command = ("audit", target, "--epsilon", 1, "--trials", 4, "--stop-when", "never", "--json", "--quiet", *options)
    _, out, _ = invoke(capsys, *command)
    assert json.loads(out)["bound"]["canaries"] == canaries
