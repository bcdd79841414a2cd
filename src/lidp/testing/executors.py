"""The contract of executors: run every trial exactly once, and change nothing about it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace

from lidp.claim import Claim, Neighbours
from lidp.designs import CoinFlip, Design, LeaveOneOut, ReplaceOne
from lidp.designs.trial_record import TrialRecord
from lidp.engine.audit import audit
from lidp.target import Target
from lidp.testing.comparing import same_record
from lidp.testing.contract import Contract, require
from lidp.testing.example_targets import FAILING, LEAKY, LEAKY_MANY
from lidp.trials.executors import Executor, Serial
from lidp.trials.trial import TrialSetup

_DESIGNS: tuple[Design, ...] = (CoinFlip(6), CoinFlip(6, Neighbours.REPLACE_ONE), LeaveOneOut(4, 3), ReplaceOne(4, 3))


class ExecutorContract(Contract):
    """Checks of an executor: its records must be those of ``Serial``, each exactly once. Define ``make``. All checks are exact."""

    @abstractmethod
    def make(self) -> Executor:
        """Return the executor to check."""

    def _records(self, target: Target, design: Design, indices: Sequence[int]) -> list[TrialRecord]:
        setup = TrialSetup(target, design, seed=3)
        records = [record for batch in self.make().run(setup, indices) for record in batch]
        seen = [record.index for record in records]
        require(len(set(seen)) == len(seen), f"trials were returned more than once: {sorted(seen)}")
        require(set(seen) == set(indices), f"trials {sorted(indices)} were asked for, {sorted(seen)} were returned")
        return sorted(records, key=lambda record: record.index)

    def _check_same_as_serial(self, target: Target, design: Design, indices: Sequence[int]) -> list[TrialRecord]:
        records = self._records(target, design, indices)
        setup = TrialSetup(target, design, seed=3)
        expected = [record for batch in Serial().run(setup, sorted(indices)) for record in batch]
        for record, serial in zip(records, expected, strict=True):
            require(same_record(record, serial), f"{design}: trial {record.index} is not what Serial computes")
        return records

    def test_records_are_those_of_serial_for_every_design(self) -> None:
        for design in _DESIGNS:
            self._check_same_as_serial(LEAKY, design, range(12))

    def test_trials_with_gaps_and_in_any_order_are_run_once(self) -> None:
        self._check_same_as_serial(LEAKY, CoinFlip(6), [17, 3, 4, 40, 9])

    def test_single_trial_is_run(self) -> None:
        self._check_same_as_serial(LEAKY, CoinFlip(6), [5])

    def test_no_trials_give_no_records(self) -> None:
        require(self._records(LEAKY, CoinFlip(6), []) == [], "records were returned though no trial was asked for")

    def test_failed_runs_are_kept_with_their_reason(self) -> None:
        records = self._check_same_as_serial(FAILING, LeaveOneOut(4, 3), range(24))
        failed = [record for record in records if record.failures]
        require(failed, "no run failed, though about a quarter of them should")
        for record in failed:
            reasons = " ".join(record.failures.values())
            require("this run fails" in reasons, f"trial {record.index} does not say why it failed: {reasons!r}")

    def test_mechanism_with_run_many_gives_the_same_records(self) -> None:
        one_by_one = self._records(LEAKY, CoinFlip(6), range(12))
        together = self._check_same_as_serial(LEAKY_MANY, CoinFlip(6), range(12))
        for one, other in zip(one_by_one, together, strict=True):
            require(same_record(one, other), f"trial {one.index} depends on how many trials are run at a time")

    def test_iterator_can_be_closed_early_and_the_executor_used_again(self) -> None:
        executor = self.make()
        batches = iter(executor.run(TrialSetup(LEAKY, CoinFlip(6), seed=3), range(200)))
        next(batches)
        close = getattr(batches, "close", None)
        require(close is not None, "run must return a generator, so that an audit can close it to stop what is running")
        if close is not None:
            close()
        self._check_same_as_serial(LEAKY, CoinFlip(6), range(4))

    def test_audit_has_the_result_of_a_serial_audit(self) -> None:
        for claim in (Claim(1.0, 1e-5), Claim(9.0, 1e-5)):  # stopped early, and not
            results = [
                audit(LEAKY, claim=claim, design=CoinFlip(6), trials=60, seed=4, executor=executor)
                for executor in (self.make(), Serial())
            ]
            mine, serial = (replace(result, seconds=0.0) for result in results)
            require(mine == serial, f"the audit of {claim} has another result than with Serial")


def check_executor(executor: Executor) -> None:
    """Run the contract of executors on one of your own; raise ``ContractViolated`` if it fails."""

    class Single(ExecutorContract):
        def make(self) -> Executor:
            return executor

    Single().run()
