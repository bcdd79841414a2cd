"""``lidp plan``."""

import json

import pytest

from tests.cli.invoke import lidp


def test_plan(capsys):
    arguments = ("plan", "--claim", "0.5", "--suspect", "4", "--canaries", "32", "--repeats", "10", "--models", "20")
    code, out, _ = lidp(capsys, *arguments, "--json")
    assert code == 0
    assert json.loads(out)["recommended"]["canaries"] == 32
    code, out, _ = lidp(capsys, *arguments)
    assert code == 0
    assert "to refute ε = 0.5" in out


def test_the_cost_is_models_times_time_times_price(capsys):
    arguments = (
        "plan",
        "--claim",
        "0.5",
        "--suspect",
        "4",
        "--canaries",
        "32",
        "--repeats",
        "10",
        "--seconds-per-model",
        "1800",
    )
    arguments += ("--price-per-hour", "2.5", "--workers", "4")
    best = json.loads(lidp(capsys, *arguments, "--json")[1])["recommended"]
    assert best["machine_hours"] == best["models"] / 2
    assert best["cost"] == best["models"] / 2 * 2.5
    assert best["wall_clock_seconds"] == -(-best["models"] // 4) * 1800
    out = lidp(capsys, *arguments)[1]
    assert "with 4 workers at once" in out
    assert f"{best['models'] / 2:,.1f} machine hours at 2.50 = {best['cost']:,.2f}" in out


BAD = [
    (
        ["plan", "--claim", "1", "--suspect", "2", "--canaries", "1.5"],
        "integer, unable to parse string as an integer, got '1.5'",
    ),
    (["plan", "--claim", "2"], "--suspect"),
    (["plan", "--claim", "2", "--suspect", "1"], "suspect must be above"),
    (["plan", "--claim", "2", "--suspect", "3", "--power", "1"], "power must"),
    (["plan", "--claim", "2", "--suspect", "3", "--canaries", "0"], "canaries must be"),
    (["plan", "--claim", "2", "--suspect", "3", "--price-per-hour", "1"], "need seconds_per_model"),
    (["plan", "--claim", "2", "--suspect", "3", "--workers", "0"], "workers must be"),
    (["plan", "--claim", "2", "--suspect", "3", "--price-per-hour", "-1"], "price_per_hour must be"),
]


@pytest.mark.parametrize(
    ("arguments", "message"), BAD, ids=lambda value: " ".join(value) if isinstance(value, list) else ""
)
def test_bad_input_is_one_line_and_exit_code_2(capsys, arguments, message):
    code, out, err = lidp(capsys, *arguments)
    assert code == 2
    assert out == ""
    assert err.count("\n") == 1
    assert err.startswith("lidp: ")
    assert message in err
