"""Fingerprints: what belongs to an audited target, so that a store is resumed with the same one only."""

import os
import subprocess
import sys
from functools import partial

import numpy as np
import pytest

from lidp import Target
from lidp.target_spec.fingerprint import fingerprint
from tests.sample_targets import Numbers, closeness

CONSTANTS = """
NOISE = {noise!r}
SIZES = {sizes!r}
state = {noise!r}

def mechanism(dataset, rng):
    def noisy():
        return [NOISE * rng.standard_normal() for _ in SIZES], state
    return noisy()
"""


def fingerprint_of(mechanism):
    return fingerprint(Target(mechanism, Numbers(), closeness))


def with_constants(noise=1.0, sizes=(1, 2)):
    names = {"np": np}
    exec(CONSTANTS.format(noise=noise, sizes=sizes), names)  # noqa: S102
    return names["mechanism"]


def test_fingerprint_depends_on_constants_of_the_module():
    """A store must not be resumed after ``NOISE = 2.0`` has become ``NOISE = 0.1``."""
    assert fingerprint_of(with_constants()) == fingerprint_of(with_constants())
    others = [with_constants(noise) for noise in (2.0, 1, True, None, "1.0", (1.0,), {"a": 1.0}, {"a": 2.0}, np.float32(1))]
    others += [
        with_constants(sizes=sizes) for sizes in ((1, 3), [1, 4], {1: "a"}, {1: ("a", {"b": 2})}, {1: ("a", {"b": 3})})
    ]
    assert len({fingerprint_of(other) for other in [with_constants(), *others]}) == len(others) + 1

    def through(inner):
        return lambda dataset, rng: inner(dataset, rng)

    assert fingerprint_of(through(with_constants())) == fingerprint_of(through(with_constants()))
    assert fingerprint_of(through(with_constants())) != fingerprint_of(through(with_constants(2.0)))
    running = with_constants()
    before = fingerprint_of(running)
    running.__globals__["state"] = "has run"  # not a constant: it may change while trials run
    assert fingerprint_of(running) == before
    running.__globals__["SIZES"] = object()  # cannot be compared with that of another process
    assert fingerprint_of(running) != before


def test_fingerprint_depends_on_settings_in_dictionaries():
    def mechanism(dataset, rng, config=None):
        return config

    def closure(config):
        return lambda dataset, rng: mechanism(dataset, rng, config)

    for make in (partial(partial, mechanism), closure, lambda config: partial(mechanism, config=config)):
        one, same, other = (
            fingerprint_of(make(config)) for config in ({"a": 1, "b": [2]}, {"b": [2], "a": 1}, {"a": 1, "b": [3]})
        )
        assert one == same != other


def test_fingerprint_is_the_same_in_every_process():
    """Hashes of texts, and so the order of sets, differ from process to process."""
    code = (
        "from tests.target_spec.test_fingerprint import *; "
        "print(fingerprint_of(partial(with_constants({'a': 1, 'b': (2, 'c')}), x={'d': 1, 'e': 2})))"
    )
    printed = {
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env=os.environ | {"PYTHONHASHSEED": seed},
        ).stdout.strip()
        for seed in ("0", "1", "2")
    }
    assert printed == {fingerprint_of(partial(with_constants({"b": (2, "c"), "a": 1}), x={"e": 2, "d": 1}))}
    assert printed != {fingerprint_of(partial(with_constants({"b": (2, "d"), "a": 1}), x={"e": 2, "d": 1}))}


def test_fingerprint_of_compiled_functions_depends_on_constants():
    numba = pytest.importorskip("numba")
    assert fingerprint_of(numba.njit(with_constants())) == fingerprint_of(numba.njit(with_constants()))
    assert fingerprint_of(numba.njit(with_constants())) != fingerprint_of(numba.njit(with_constants(2.0)))
