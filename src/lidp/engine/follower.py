"""``Follower``: read the audit in a store while another process runs it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from lidp.arrays import Floats
from lidp.designs.trial_record import TrialRecord
from lidp.engine.audit import read_plan
from lidp.engine.ledger import Ledger
from lidp.engine.loop import AuditLoop, check_record
from lidp.engine.plan import AuditPlan
from lidp.errors import StoreError
from lidp.result import AuditResult
from lidp.stats.storable import Storable
from lidp.store import Store

MOST_TRIALS = 2048
"""How many trials one update reads at most."""


class Follower:
    """The evidence in a store so far. Each trial is read and bet on once; no code of the target is loaded.

    Guarantee: the bets are those of the audit itself, in the order of the trials' numbers, so the bound is that of the audit.

    Raises:
        StoreError: if the file is no store, or is damaged. All methods that read may raise it.
    """

    def __init__(self, path: str | Path, *, methods: Iterable[type[Storable]] = ()) -> None:
        self.path = Path(path)
        self._predictions: dict[int, Floats] = {}
        with Store.read(self.path) as store:
            self._audit_id = store.audit_id
            self._loop = AuditLoop(read_plan(store, methods), store)
        scorer = self._loop.procedure.scorer(self.plan, self._predictions)
        self._loop.ledger = Ledger(self.plan, scorer)

    @property
    def plan(self) -> AuditPlan:
        """The settings of the audit."""
        return self._loop.plan

    @property
    def ledger(self) -> Ledger:
        """The trials read so far, and the bets on them."""
        return self._loop.ledger

    @property
    def preparation_models(self) -> int:
        """The number of models that the preparation trained."""
        return 0 if self._loop.preparation is None else self._loop.preparation[1]

    @property
    def ended(self) -> bool:
        """Whether the audit is over: refuted and stopped, or no planned trial is missing."""
        return self.ledger.stopped or self.ledger.finished_rows >= self.plan.rows

    def update(self, most: int = MOST_TRIALS) -> list[TrialRecord]:
        """Read at most ``most`` trials that were saved since the last call, bet on them, and return them."""
        with self._open() as store:
            ledger = self.ledger
            waiting = store.finished(ledger.bet_trials, most + ledger.waiting)
            numbers = [number for number in waiting if not ledger.has(number)][:most]
            records = [record for first, last in _ranges(numbers) for record in store.trials(first, last)]
            for record in records:
                check_record(record, self.plan, store)
            if self._loop.preparation is None:
                self._loop.preparation = store.preparation()
            if records and ledger.scorer.learns:
                self._predictions.update(store.predictions())
        ledger.add(records)
        return records

    def result(self) -> AuditResult:
        """Return the result on the trials read so far.

        Raises:
            AuditFailed: if there is none yet.
        """
        with self._open() as store:
            self._loop.store = store
            try:
                return self._loop.result()
            finally:
                self._loop.store = None

    def could_refute(self) -> bool:
        """Return whether the trials read so far are enough to refute the claim for the leakiest mechanism."""
        scores = self.ledger.last_scores(self.plan.rows)
        return scores is not None and self._loop.procedure.could_refute(self.plan, scores)

    def _open(self) -> Store:
        store = Store.read(self.path)
        if store.audit_id != self._audit_id:
            store.close()
            raise StoreError(f"{self.path} was replaced by the store of another audit")
        return store


def _ranges(numbers: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the first and the last number of each run of consecutive numbers."""
    start = 0
    for end in range(1, len(numbers) + 1):
        if end == len(numbers) or numbers[end] != numbers[end - 1] + 1:
            yield numbers[start], numbers[end - 1]
            start = end
