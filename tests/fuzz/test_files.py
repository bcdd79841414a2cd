"""Random and damaged score files and witnesses: lidp prints at most one line of error, never a traceback."""

import json
import random

import numpy as np
import pytest

import lidp as library
from lidp import Claim, CoinFlip
from tests.fuzz.harness import lidp, mutated
from tests.sample_targets import LEAKY

EXAMPLES = 60
SLOW_BLOCKS = 10
BLOCKS = [0, *(pytest.param(block, marks=pytest.mark.slow) for block in range(1, SLOW_BLOCKS))]
NAMES = ["inserted", "held_out", "scores", "coins", "failed", "sequential", "stopped", "x", ""]
SPECIAL = [float("nan"), float("inf"), -float("inf"), 1e308, -1e308, 5e-324, 0.0, -0.0]
METHODS = [
    None,
    None,
    "all",
    "coin-wager",
    "lifted-betting",
    "one-run",
    "wilson",
    "clopper-pearson",
    "gdp",
    "bernstein",
    "nonsense",
]


SHAPES = [(8, 4), (8, 4), (8, 3), (30, 1), (1, 40), (0, 4), (4, 0), (5,), (), (2, 2, 2)]


def _array(rng, numbers, shape):
    """Return an array of a random kind, most often one that may pass for scores."""
    shape = shape if rng.random() < 0.9 else rng.choice(SHAPES)
    kind = rng.randrange(25)
    values = numbers.standard_normal(shape)
    if kind == 0:
        values = numbers.integers(0, 2, shape)
    elif kind == 1:
        values = numbers.integers(0, 2, shape).astype(bool)
    elif kind == 2:
        values = np.full(shape, rng.choice(SPECIAL))
    elif kind == 3 and values.size:
        values.flat[rng.randrange(values.size)] = rng.choice(SPECIAL)
    elif kind == 4:
        values = rng.choice(["<U3", "S4", "complex128", "float16", "M8[s]", "int8", "uint64", "float128"])
        values = np.zeros(shape, values)
    elif kind == 5:
        values = np.empty(shape, dtype=object)
    return values


def _options(rng):
    words = ["--delta", rng.choice(["0", "1e-5", "0.1"])]
    method = rng.choice(METHODS)
    words += ["--method", method] if method else []
    words += ["--claim", rng.choice(["0", "0.5", "3"])] if rng.random() < 0.5 else []
    words += ["--json"] if rng.random() < 0.3 else []
    words += ["--neighbours", "replace-one"] if rng.random() < 0.1 else []
    return words


def _npz(rng, path):
    numbers = np.random.default_rng(rng.randrange(2**32))
    if rng.random() < 0.6:
        names = rng.choice([["inserted", "held_out"], ["scores", "coins"]])
        names += rng.sample(NAMES, rng.choice([0, 0, 0, 1]))
    else:
        names = rng.sample(NAMES, rng.randrange(5))
    shape = rng.choice(SHAPES)
    arrays = {name: _array(rng, numbers, shape) for name in names}
    if "coins" in arrays and rng.random() < 0.7:
        shape = arrays["scores"].shape if "scores" in arrays else (8, 4)
        arrays["coins"] = numbers.integers(0, 2, shape)
    if rng.random() < 0.1:
        with path.open("wb") as file:
            np.save(file, numbers.standard_normal(5))
    else:
        rng.choice([np.savez, np.savez_compressed])(path, **{name: array for name, array in arrays.items() if name})
    if rng.random() < 0.5:
        path.write_bytes(mutated(path.read_bytes(), rng))


def _cell(rng, good):
    if rng.random() < 0.97:
        return good
    return rng.choice(
        ["", " ", "nan", "inf", "-inf", "1e999", "x", '"', "1,5", "0x10", "１", "1_000", "-1", "\0", "é", "9" * 5000]
    )


def _csv(rng, path):
    kind = rng.choice(["coin", "arm"])
    columns = ["trial", "score", kind]
    rng.shuffle(columns)
    if rng.random() < 0.1:
        columns[rng.randrange(3)] = rng.choice(["", "arm", "coin", "Trial", " trial", "score"])
    lines = [",".join(columns)]
    for trial in range(rng.choice([0, 1, 6])):
        for place in range(rng.choice([4, 4, 4, 4, 3])):
            good = {
                "trial": str(trial),
                "score": f"{rng.gauss(0, 1):.3f}",
                "coin": str(rng.randrange(2)),
                "arm": "inserted" if place % 2 else rng.choice(["held_out", "held-out"]),
            }
            lines.append(",".join(_cell(rng, good.get(column.strip(), "1")) for column in columns))
    content = rng.choice(["\n", "\n", "\r\n", "\r"]).join(lines).encode()
    if rng.random() < 0.4:
        content = mutated(content, rng)
    path.write_bytes(content)


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("kind", ["npz", "csv"])
def test_random_score_files(kind, block, tmp_path):
    rng = random.Random(f"{kind} {block}")  # noqa: S311
    path = tmp_path / f"a.{kind}"
    codes = set()
    for _ in range(EXAMPLES):
        {"npz": _npz, "csv": _csv}[kind](rng, path)
        codes.add(lidp("bound", path, *_options(rng))[0])
    assert 2 in codes
    if block == 0:  # its files are the same in every run; in others all may be nonsense, by chance
        assert 0 in codes


JUNK = [
    None,
    True,
    False,
    0,
    -1,
    1,
    2,
    0.5,
    1e999,
    -1e999,
    float("nan"),
    "",
    "x",
    "nan",
    [],
    [[]],
    {},
    {"a": 1},
    [[1, 2], [3]],
    10**400,
]


def _mutate(value, rng):
    """Return a JSON value with one change somewhere in it."""
    if isinstance(value, dict) and value and rng.random() < 0.85:
        name = rng.choice(list(value))
        changed = dict(value)
        kind = rng.randrange(8)
        if kind == 0:
            del changed[name]
        elif kind == 1:
            changed[rng.choice(["x", "epsilon", "order", "threshold", "failed", name + "_"])] = rng.choice(JUNK)
        else:
            changed[name] = _mutate(changed[name], rng)
        return changed
    if isinstance(value, list) and value and rng.random() < 0.85:
        changed = list(value)
        at = rng.randrange(len(changed))
        if rng.random() < 0.2:
            del changed[at]
        else:
            changed[at] = _mutate(changed[at], rng)
        return changed
    return rng.choice(JUNK)


@pytest.fixture(scope="module")
def witnesses():
    """Return witnesses of several designs and methods, as Python values."""
    claims = [
        (CoinFlip(4), None),
        (CoinFlip(4), "one-run"),
        (library.LeaveOneOut(2, 2), None),
        (library.LeaveOneOut(2, 2), "wilson"),
    ]
    values = []
    for design, method in claims:
        result = library.audit(LEAKY, claim=Claim(1.0, 1e-5), design=design, method=method, trials=30, stop_when="never")
        values.append(json.loads(json.dumps(result.witness())))
    return values


@pytest.mark.parametrize("block", BLOCKS)
def test_mutated_witnesses(block, witnesses, tmp_path):
    rng = random.Random(f"witness {block}")  # noqa: S311
    path = tmp_path / "witness.json"
    for witness in witnesses:
        path.write_text(json.dumps(witness))
        assert lidp("witness", path)[0] in (0, 1)
    for _ in range(EXAMPLES):
        value = rng.choice(witnesses)
        for _ in range(rng.choice([1, 1, 2])):
            value = _mutate(value, rng)
        content = json.dumps(value).encode()
        if rng.random() < 0.2:
            content = mutated(content, rng)
        path.write_bytes(content)
        lidp("witness", path)
        lidp("bound", path, "--delta", "1e-5")  # neither .npz nor .csv nor a store
