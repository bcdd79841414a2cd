"""What lidp writes as JSON follows the schemas that it ships."""

import json
from copy import deepcopy

import pytest

import lidp
from lidp.cli.app import run
from lidp.schemas import SCHEMAS, schema
from lidp.score_files import write_scores
from lidp.seals import open_seal
from tests.report import curve_results
from tests.report.results import case, every_case, pair_result, scores_like
from tests.seals.sealed import POINT, gradients, scored

jsonschema = pytest.importorskip("jsonschema", reason="the schemas are checked by the package jsonschema")
TARGET = ("tests.sample_targets:LEAKY", "--delta", "1e-5", "--canaries", "8", "--trials", "40", "--quiet", "--json")


def validator(name):
    return jsonschema.Draft202012Validator(schema(name))


def printed(capsys, *arguments):
    code = run([str(argument) for argument in arguments])
    out, err = capsys.readouterr()
    assert code in (0, 1), err
    return json.loads(out)


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_schema_is_valid_and_refuses_something_else(name):
    jsonschema.Draft202012Validator.check_schema(schema(name))
    assert not validator(name).is_valid({})
    assert not validator(name).is_valid({"colour": 3})


def test_an_unknown_schema_is_refused_by_name():
    with pytest.raises(lidp.InvalidArgument, match="no schema 'plan'; the schemas are audit-result"):
        schema("plan")


@pytest.mark.parametrize(("name", "method"), every_case())
def test_results_of_every_method_follow_their_schema(name, method):
    plain = json.loads(case(name, method).to_json(scores=True))
    validator("audit-result").validate(plain)
    validator("epsilon-bound").validate(plain["bound"])


def test_results_of_pairs_and_curves_follow_their_schema():
    for result in (pair_result(), curve_results.refuted()):
        validator("audit-result").validate(json.loads(result.to_json()))


@pytest.mark.parametrize("claim", [("--epsilon", "1"), ("--gaussian-mu", "0.5")], ids=["point", "curve"])
def test_the_output_of_an_audit_follows_its_schema(capsys, claim):
    validator("audit-result").validate(printed(capsys, "audit", *TARGET, *claim))


def test_the_output_of_bounds_follows_its_schema(capsys, tmp_path):
    write_scores(scores_like(lidp.CoinFlip(6)), tmp_path / "scores.npz")
    given = ("bound", tmp_path / "scores.npz", "--delta", "1e-5", "--json")
    validator("epsilon-bound").validate(printed(capsys, *given))
    validator("epsilon-bound").validate(printed(capsys, *given, "--claim", "0.5"))
    validator("epsilon-bound").validate(printed(capsys, *given, "--gaussian-mu", "0.5"))
    validator("bounds").validate(printed(capsys, *given, "--method", "all"))


@pytest.mark.parametrize("suspicion", [("--suspect", "6"), ("--noise-ratio", "0.3")], ids=["point", "curve"])
def test_the_output_of_a_plan_follows_its_schema(capsys, suspicion):
    given = ("--canaries", "16", "--repeats", "3", "--seconds-per-model", "2", "--price-per-hour", "3", "--json")
    validator("budget-plan").validate(printed(capsys, "plan", "--claim", "1", *suspicion, *given))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("verdict",), "true"),
        (("bound", "epsilon"), -1),
        (("bound", "path"), [[1]]),
        (("claim", "neighbours"), "zero-out"),
        (("design", "kind"), "Other"),
        (("trial_notes", "attempts"), {"0": 0}),
        (("trial_notes", "seconds", 0), -1),
        (("more",), 1),
    ],
    ids=str,
)
def test_a_result_with_a_wrong_part_breaks_the_schema(path, value):
    plain = json.loads(case("coins", "coin-wager").to_json())
    validator("audit-result").validate(plain)
    wrong = inner = deepcopy(plain)
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    assert not validator("audit-result").is_valid(wrong)


def test_a_sealed_result_follows_the_schema_and_is_not_read_as_a_plain_one(tmp_path):
    gradients(tmp_path / "run", claim=POINT)
    sealed = open_seal(tmp_path / "run", scored(tmp_path / "run", shift=100.0)).result
    plain = json.loads(sealed.to_json())
    validator("audit-result").validate(plain)
    assert plain["commitments"] == list(sealed.digests)
    assert not validator("audit-result").is_valid(plain | {"seed": 1})
    with pytest.raises(lidp.InvalidArgument, match="would tell its coins"):
        sealed.to_json(scores=True)
    for cls in (lidp.AuditResult, type(sealed)):
        with pytest.raises(lidp.InvalidArgument, match="lidp verify RECEIPT"):
            cls.from_dict(plain)
