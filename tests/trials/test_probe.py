"""Randomness of a mechanism's own that repeats in worker processes, or when an audit is resumed, is found and refused."""

import os
import secrets
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

import lidp
from lidp import Claim, CoinFlip, Output, Target
from lidp.errors import InvalidArgument
from lidp.integrations.commands import Program
from lidp.mechanisms.gaussian import GaussianSum
from lidp.result import INDEPENDENT_RUNS
from lidp.training.trainer import DPSGD
from lidp.trials.executors import Processes, Serial
from lidp.trials.probe import refuse_replays, run_traces
from lidp.trials.trial import TrialSetup
from tests.sample_targets import Numbers, closeness, finished, itself, leaky, run, same

OWN = np.random.default_rng(7)
UNSEEDED = np.random.default_rng()


def module_level(dataset, rng):
    return [OWN.standard_normal()]


def unseeded(dataset, rng):
    return [UNSEEDED.standard_normal()]


def added_to_rng(dataset, rng):
    return [rng.standard_normal() + OWN.standard_normal()]


def from_rng(dataset, rng):
    return [rng.standard_normal()]


def from_the_system(dataset, rng):
    return [secrets.randbelow(2**53) / 2**53]


def fresh_generator(dataset, rng):
    return [np.random.default_rng().standard_normal()]


def global_generator(dataset, rng):
    return [np.random.standard_normal()]  # noqa: NPY002  # seeded by the audit before every run


def coarse_output(dataset, rng):
    """Its scores are all alike; only the output tells."""
    return Output([float(OWN.integers(2**40))])


class Instance:
    def __init__(self):
        self.rng = np.random.default_rng()

    def __call__(self, dataset, rng):
        return [self.rng.standard_normal()]


class Opaque:
    """An output that only its scores tell about."""

    def __init__(self, value):
        self.value_of = lambda: value


def opaque(dataset, rng):
    return Opaque(OWN.standard_normal())


def setup_of(mechanism, score=closeness):
    return TrialSetup(Target(mechanism, Numbers(), score), CoinFlip(4), 3)


def constant(output, canary):
    return 0.0


REPLAYING = [
    (module_level, closeness),
    (unseeded, closeness),
    (added_to_rng, closeness),
    (coarse_output, constant),
    (Instance(), closeness),
    (opaque, lambda output, canary: output.value_of()),
]


@pytest.mark.parametrize(("mechanism", "score"), REPLAYING, ids=lambda value: getattr(value, "__name__", "instance"))
def test_own_randomness_that_every_worker_replays_is_refused(mechanism, score):
    with pytest.raises(InvalidArgument, match="same ones in every worker process.*Draw from the rng"):
        refuse_replays(Processes(8), setup_of(mechanism, score))


@pytest.mark.parametrize("mechanism", [from_rng, from_the_system, fresh_generator, global_generator, leaky])
def test_randomness_that_is_independent_passes(mechanism):
    refuse_replays(Processes(8), setup_of(mechanism))


def test_the_audit_refuses_several_workers_and_allows_one():
    target = Target(module_level, Numbers(), closeness)
    with pytest.raises(InvalidArgument, match="module_level draws random numbers"):
        run(target, workers=8)
    assert run(target, workers=1).bound.trials == 40
    assert run(target, workers=1, time_limit=60, trials=4).bound.trials == 4


def test_one_worker_that_has_to_be_replaced_is_refused():
    """Its successor would begin with the same random numbers."""

    def dies(dataset, rng):
        output = [OWN.standard_normal()]
        if rng.random() < 0.3:
            os._exit(9)
        return output

    with pytest.raises(InvalidArgument, match="same ones in every worker process"):
        run(Target(dies, Numbers(), closeness), time_limit=60)


def test_what_dies_or_hangs_in_the_probe_is_left_to_the_trials(tmp_path):
    def dies(dataset, rng):
        os._exit(3)

    def hangs(dataset, rng):
        while True:
            (tmp_path / "ran").touch()

    refuse_replays(Processes(2), setup_of(dies))
    refuse_replays(Processes(2, time_limit=0.2), setup_of(hangs))
    assert (tmp_path / "ran").exists()


def test_the_probe_does_not_change_the_result():
    one, many = run(workers=1), run(workers=2)
    same(one, many)


def test_a_mechanism_that_promises_is_not_probed():
    class Promises(Instance):
        draws_only_from_rng = True

    refuse_replays(Processes(8), setup_of(Promises()))
    assert GaussianSum.draws_only_from_rng
    assert DPSGD.draws_only_from_rng
    assert Program.draws_only_from_rng


class Model:
    """A model with a number that counts the models so far, as handles of hooks do."""

    made = 0

    def __init__(self, weights):
        Model.made += 1
        self.number, self.weights = Model.made, weights


def test_counters_within_objects_are_no_randomness():
    def mechanism(dataset, rng):
        return Model(rng.standard_normal(3))

    def score(output, canary):
        return float(output.weights[0])

    refuse_replays(Processes(2), setup_of(mechanism, score))
    ((first, second),) = run_traces(setup_of(mechanism, score), [0], 2)
    assert first.same_as(second)
    assert first.outputs is not None


def test_weights_within_objects_are_looked_at():
    def mechanism(dataset, rng):
        return Model(OWN.standard_normal(3))

    with pytest.raises(InvalidArgument, match="same ones in every worker process"):
        refuse_replays(Processes(2), setup_of(mechanism, constant))


SCRIPT = """
import signal
import sys
import numpy as np
import lidp
from lidp import Claim, CoinFlip, Target
from lidp.errors import LidpError
from tests.sample_targets import Numbers, closeness

FIXED = np.random.default_rng(5)

calls = []

def interrupted_at_the_sixth_call(mechanism):
    def audited(dataset, rng):
        calls.append(1)
        if first and len(calls) == 6:
            signal.raise_signal(signal.SIGINT)
        return mechanism(dataset, rng)
    return audited

def fixed(dataset, rng):
    return [FIXED.standard_normal()]

def honest(dataset, rng):
    return [rng.standard_normal()]

def system(dataset, rng):
    return [np.random.default_rng().standard_normal()]

name, store, first, workers = sys.argv[1], sys.argv[2], sys.argv[3] == "first", int(sys.argv[4])
target = Target(interrupted_at_the_sixth_call(globals()[name]), Numbers(), closeness, name=name)
try:
    result = lidp.audit(target, claim=Claim(1.0), design=CoinFlip(2), trials=40, store=store, stop_when="never", workers=workers)
    print("done", result.bound.trials)
except KeyboardInterrupt:
    print("interrupted")
except LidpError as error:
    print(error)
"""


@pytest.mark.slow_after_first
@pytest.mark.parametrize(
    ("name", "workers", "said"),
    [
        ("fixed", 1, "may have started again when this audit was resumed"),
        ("honest", 1, "done 40"),
        ("honest", 2, "done 40"),
        ("system", 1, "done 40"),
    ],
)
def test_a_fixed_seed_that_starts_again_is_refused_when_resuming(name, workers, said, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(SCRIPT))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([*sys.path, str(Path.cwd())])}

    def start(part, workers):
        words = [sys.executable, str(script), name, str(tmp_path / "a.db"), part, str(workers)]
        return subprocess.run(words, capture_output=True, text=True, env=environment, check=True).stdout

    assert start("first", 1) == "interrupted\n"
    assert finished(tmp_path / "a.db") == 5
    assert said in start("second", workers)


def test_every_result_names_the_assumption(tmp_path):
    canaries = run(trials=5)
    pair = lidp.audit_pair(lambda data, rng: data + rng.laplace(), 0, 1, claim=Claim(1.0), runs=200)
    for result in (canaries, pair):
        assert INDEPENDENT_RUNS in str(result)
        assert INDEPENDENT_RUNS in result.to_dict()["assumptions"]
        page = lidp.write_report(result, tmp_path / "page.html").read_text(encoding="utf-8")
        assert "randomness comes from rng, or is independent from run to run" in page


@pytest.mark.parametrize("executor", [Serial(), Processes(1), Processes(2)], ids=repr)
def test_executors_say_whether_they_have_several_processes(executor):
    assert getattr(executor, "several", False) == (executor == Processes(2))


def test_a_mechanism_without_randomness_passes():
    refuse_replays(Processes(2), setup_of(lambda dataset, rng: float(len(dataset)), itself))


def dusty(dataset, rng):
    """Its last bits differ from run to run, as sums on a graphics card do."""
    return [OWN.standard_normal() + 1e-15 * secrets.randbelow(256)]


def timed(dataset, rng):
    return {"value": OWN.standard_normal(), "seconds": secrets.randbelow(2**53) / 2**53}


class Later:
    """Draws from its own generator from the third run on."""

    def __init__(self):
        self.rng, self.runs = np.random.default_rng(4), 0

    def __call__(self, dataset, rng):
        self.runs += 1
        return [(rng if self.runs <= 2 else self.rng).standard_normal()]


class Coarse:
    """Randomized response with a generator of its own, whose first two answers are alike."""

    def __init__(self):
        self.rng = np.random.default_rng(0)
        assert len({draw < 0.73 for draw in np.random.default_rng(0).random(2)}) == 1

    def __call__(self, dataset, rng):
        return float(self.rng.random() < 0.73)


def coarse_from_the_system(dataset, rng):
    return float(secrets.randbelow(100) < 73)


@pytest.mark.parametrize(
    ("mechanism", "score"),
    [(dusty, closeness), (timed, lambda output, canary: output["value"]), (Later(), closeness), (Coarse(), itself)],
    ids=["dust", "time", "later", "coarse"],
)
def test_replays_that_are_not_bit_for_bit_or_begin_later_are_refused(mechanism, score):
    with pytest.raises(InvalidArgument, match="same ones in every worker process"):
        refuse_replays(Processes(8), setup_of(mechanism, score))


def test_coarse_answers_that_agree_by_chance_pass():
    """False failure: at least three of four trials that differ within a process are replayed by chance, below 1 %."""
    refuse_replays(Processes(8), setup_of(coarse_from_the_system, itself))


def test_a_generator_that_a_preparation_has_advanced_is_refused_when_resuming(tmp_path):
    """The recorded trials begin where the preparation left the generator: none of them looks like the first run."""

    def target():
        own = np.random.default_rng(5)

        def prepare(dataset, rng):
            return {"pilot": own.standard_normal(3)}

        def mechanism(dataset, rng):
            return [own.standard_normal()]

        return Target(mechanism, Numbers(), lambda output, canary, prepared: output[0], prepare=prepare, name="own")

    class FiveTrials(Serial):
        def run(self, setup, indices):
            yield from super().run(setup, indices[:5])
            raise InterruptedError("stopped")

    with pytest.raises(InterruptedError):
        run(target(), store=tmp_path / "a.db", executor=FiveTrials())
    assert finished(tmp_path / "a.db") == 5
    with pytest.raises(InvalidArgument, match="may have started again when this audit was resumed"):
        run(target(), store=tmp_path / "a.db")


def test_a_preparation_in_a_process_of_its_own_makes_one_worker_a_second_process():
    def prepare(dataset, rng):
        return {"pilot": OWN.standard_normal(1)}

    target = Target(module_level, Numbers(), lambda output, canary, prepared: output[0], prepare=prepare)
    with pytest.raises(InvalidArgument, match="same ones in every worker process"):
        run(target, workers=1, time_limit=60, trials=4)
