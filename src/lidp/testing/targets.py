"""The contract of targets: randomness from the generator only, no memory, data left as it was, fit for worker processes."""

from __future__ import annotations

import copy
import pickle
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from lidp._runtime.global_generators import preserve_global_generators, seed_global_generators
from lidp.claim import Neighbours
from lidp.designs import CoinFlip, Design, LeaveOneOut, ReplaceOne
from lidp.target import Output, Target, plain_preparation, with_canaries
from lidp.target_spec.fingerprint import fingerprint
from lidp.testing.comparing import equal, same_record
from lidp.testing.contract import Contract, ContractViolated, require
from lidp.trials.trial import TrialSetup, run_trial, run_trials


class TargetContract(Contract):
    """Checks of a target, such as one that an integration makes. Define ``make``. All checks are exact, none is statistical.

    The mechanism is run about twenty times.
    """

    canaries: ClassVar[int] = 3
    """canaries per trial"""
    seed: ClassVar[int] = 1

    @abstractmethod
    def make(self) -> Target:
        """Return the target to check."""

    def designs(self) -> Sequence[Design]:
        """Return the designs that the target supports: by default all, for the neighbours that it is made for."""
        designs: tuple[Design, ...] = (
            CoinFlip(self.canaries),
            CoinFlip(self.canaries, Neighbours.REPLACE_ONE),
            LeaveOneOut(self.canaries, self.canaries),
            ReplaceOne(self.canaries, self.canaries),
        )
        wanted = self.make().neighbours
        return [design for design in designs if wanted in (None, design.neighbours)]

    def _setup(self, target: Target, design: Design | None = None) -> TrialSetup:
        return TrialSetup(target, design or self.designs()[0], self.seed, self._prepared(target))

    def _prepared(self, target: Target) -> Mapping[str, Any] | None:
        if target.prepare is None:
            return None
        preparation = target.prepare(target.dataset, np.random.default_rng(self.seed))
        return {name: np.asarray(array) for name, array in plain_preparation(preparation).arrays.items()}

    def _data(self, target: Target, seed: int) -> Any:
        canaries = self._setup(target).canaries.draw(np.random.default_rng(seed), self.canaries)
        return with_canaries(target.dataset, canaries)

    def _run(self, target: Target, data_seed: int, noise_seed: int) -> Any:
        try:
            output = target.mechanism(self._data(target, data_seed), np.random.default_rng(noise_seed))
        except Exception as error:
            raise ContractViolated(f"the mechanism raised {type(error).__name__}: {error}") from error
        return output.value if isinstance(output, Output) else output

    def test_every_design_runs_without_a_failure(self) -> None:
        for design in self.designs():
            record = run_trial(self._setup(self.make(), design), 0)
            require(not record.failures, f"{design}: {' '.join(record.failures.values())}")
            unscored = [name for name in record.metadata if name.endswith("_unscored")]
            require(not unscored, f"{design}: canaries without a finite score ({', '.join(unscored)})")

    def test_randomness_comes_from_the_generator_only(self) -> None:
        target = self.make()
        with preserve_global_generators():
            seed_global_generators(np.random.default_rng(1))
            first = copy.deepcopy(self._run(target, 1, 2))
            seed_global_generators(np.random.default_rng(2))
            again = self._run(target, 1, 2)
        require(equal(first, again), "two runs on the same data with equal generators differ: draw all randomness from rng")

    def test_runs_leave_nothing_behind_for_later_runs(self) -> None:
        target = self.make()
        first = copy.deepcopy(self._run(target, 1, 2))
        self._run(target, 3, 4)
        require(
            equal(first, self._run(target, 1, 2)), "a run depends on the runs before it: keep no state in the mechanism"
        )

    def test_base_data_set_is_not_changed_by_trials(self) -> None:
        target = self.make()
        before, mark = copy.deepcopy(target.dataset), fingerprint(target)
        for design in self.designs():
            run_trial(self._setup(target, design), 0)
        require(equal(before, target.dataset), "a trial changed the data set: let with_canaries return a copy")
        require(fingerprint(target) == mark, "a trial changed the fingerprint of the target: resuming would be refused")

    def test_data_with_canaries_are_not_shared_between_runs(self) -> None:
        target = self.make()
        expected = copy.deepcopy(self._data(target, 1))
        self._run(target, 1, 2)
        require(
            equal(expected, self._data(target, 1)), "a run changed the data of later runs: let with_canaries return a copy"
        )

    def test_trial_is_the_same_each_time_and_in_worker_processes(self) -> None:
        target = self.make()
        received = pickle.loads(pickle.dumps(target))  # noqa: S301  # pickled in this line
        require(fingerprint(received) == fingerprint(target), "a pickled copy has another fingerprint")
        first = run_trial(self._setup(target), 0)
        require(same_record(first, run_trial(self._setup(target), 0)), "the same trial gave two results")
        require(same_record(first, run_trial(self._setup(received), 0)), "a pickled copy computes something else")

    def test_many_at_a_time_gives_what_one_at_a_time_gives(self) -> None:
        setup = self._setup(self.make())
        for index, record in enumerate(run_trials(setup, range(3))):
            require(same_record(record, run_trial(setup, index)), f"run_many gives another trial {index} than single runs")

    def test_preparation_is_a_function_of_its_generator(self) -> None:
        first, again = (self._prepared(self.make()) for _ in range(2))
        require(equal(first, again), "two preparations with equal generators differ: draw all randomness from rng")


def check_target(target: Target) -> None:
    """Run the contract of targets on one of your own; raise ``ContractViolated`` if it fails."""

    class Single(TargetContract):
        def make(self) -> Target:
            return target

    Single().run()
