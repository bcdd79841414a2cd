"""``PairScorer``: predict the coins of each block from its outputs and from earlier blocks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from lidp.arrays import Bools, Floats
from lidp.designs import Design
from lidp.designs.pair_runs import COINS, FAILED
from lidp.designs.trial_record import TrialRecord
from lidp.errors import AuditFailed, StoreError
from lidp.pairs.classifier import Classifier, OnlineClassifier
from lidp.pairs.columns import Columns
from lidp.pairs.setup import first_failure, table_of
from lidp.scores import Scores
from lidp.trial_notes import TrialNote
from lidp.trials.repeated_noise import never_varies


class PairScorer:
    """The scorer of audits of two data sets; see :class:`lidp.engine.scorer.Scorer`.

    Stored predictions are the bets that were made: they are used unchanged, and the classifier only learns from their blocks.
    Without a classifier, blocks that have no stored prediction cannot be scored.

    Args:
        design: the design of the audit.
        name: the name of the target, for messages.
        predictions: stored predictions by trial.
        classifier: the user's classifier.
        make_classifier: makes the default classifier, given the first outputs; None for audits with a user's classifier.
    """

    learns = True

    def __init__(
        self,
        design: Design,
        name: str,
        predictions: Mapping[int, Floats],
        *,
        classifier: Classifier | None = None,
        make_classifier: Callable[[Columns], OnlineClassifier] | None = None,
    ) -> None:
        self.design = design
        self.name = name
        self.classifier: Classifier | OnlineClassifier | None = classifier
        self._make_classifier = make_classifier
        self._stored = predictions
        self._new: dict[int, Floats] = {}
        self._names: tuple[str, ...] = ()
        self._outputs: Columns | None = None
        self._coins: Bools = np.zeros(0, dtype=np.bool_)
        self._learned_rows = 0
        self._runs = 0
        self._first_failure = ""
        self._identities: set[float] = set()

    def can_score(self, record: TrialRecord) -> bool:
        """See :class:`lidp.engine.scorer.Scorer`."""
        return self.classifier is not None or self._make_classifier is not None or record.index in self._stored

    def score(self, records: Sequence[TrialRecord]) -> Scores:
        """See :class:`lidp.engine.scorer.Scorer`. The records are one block."""
        (record,) = records
        arrays = self.design.score_arrays(records)
        failed: Bools = arrays["failed"]
        logits: Floats = np.full(len(failed), np.nan)
        self._runs += len(failed)
        self._first_failure = self._first_failure or first_failure(record.metadata)
        self._look_at(record)
        if self._outputs is not None:
            logits[~failed] = self._predict(record.index, self._outputs)
        return Scores.of_block(scores=logits[:, None], **arrays)

    def _look_at(self, record: TrialRecord) -> None:
        try:
            table = table_of(record)
        except ValueError as error:
            raise StoreError(f"the store is damaged: {error}") from None
        self._outputs = None
        if table is None:
            return
        self._outputs = table.look(self._names)
        self._names = self._outputs.names
        self._coins = record.arrays[COINS][record.arrays[FAILED] == 0].astype(np.bool_)
        if len(self._identities) < 2:
            # A NaN equals no other NaN, but outputs that are all NaN do not vary.
            identities = np.unique(np.nan_to_num(self._outputs.identities, nan=np.inf))
            self._identities |= set(identities[:2].tolist())
        if self.classifier is None and self._make_classifier is not None:
            self.classifier = self._make_classifier(self._outputs)

    def _predict(self, index: int, outputs: Columns) -> Floats:
        stored = self._stored.get(index)
        if stored is not None and (stored.shape != (len(outputs),) or not np.isfinite(stored).all()):
            raise StoreError(
                f"the store is damaged: the predictions of trial {index} do not fit its {len(outputs):,} outputs"
            )
        logits: Any = stored
        if isinstance(self.classifier, OnlineClassifier):
            predicted = self.classifier.predict_and_learn(outputs, self._coins)
            self._learned_rows += len(outputs)
            logits = predicted if stored is None else stored
        elif stored is None and self.classifier is not None:
            logits = np.array(self.classifier.predict(outputs), dtype=np.float64)
        if np.shape(logits) != (len(outputs),) or not np.isfinite(logits).all():
            raise AuditFailed(
                f"the classifier must give {len(outputs):,} finite log-odds, one for each run, got shape {np.shape(logits)}"
            )
        if stored is None:
            self._new[index] = logits
        predictions: Floats = logits
        return predictions

    def learn(self, record: TrialRecord, rows: int) -> None:
        """See :class:`lidp.engine.scorer.Scorer`. The default classifier has learned already, run by run."""
        if self._outputs is None or self.classifier is None or isinstance(self.classifier, OnlineClassifier):
            return
        kept = int((record.arrays[FAILED][:rows] == 0).sum())
        self.classifier.learn(self._outputs.part(0, kept), self._coins[:kept])

    def take_predictions(self) -> dict[int, Floats]:
        """See :class:`lidp.engine.scorer.Scorer`."""
        predictions, self._new = self._new, {}
        return predictions

    def note(self, record: TrialRecord) -> TrialNote:
        """See :class:`lidp.engine.scorer.Scorer`."""
        reason = first_failure(record.metadata)
        return TrialNote(record.index, record.seconds, record.attempts, {"runs": reason} if reason else {})

    def require_outcomes(self, rows: int) -> None:
        """See :class:`lidp.engine.scorer.Scorer`."""
        if not self._identities:
            raise AuditFailed(f"all {self._runs:,} runs of {self.name} raised, the first with: {self._first_failure}")
        if len(self._identities) == 1 and self._runs >= self.design.rows(1):
            raise never_varies(self.name, self._runs)

    def explain(self, scores: Scores) -> str:
        """See :class:`lidp.engine.scorer.Scorer`. It counts only the runs of the result, so that their numbers agree."""
        if self.classifier is None:
            return ""
        if isinstance(self.classifier, OnlineClassifier):
            counted = int((~scores.failed).sum())
            self.classifier.forget(self._learned_rows - counted)
            self._learned_rows = counted
        return self.classifier.explain()
