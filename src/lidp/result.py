"""``AuditResult``: the verdict, and all that is needed to judge or re-check it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from lidp.claim import Claim
from lidp.designs import Design
from lidp.designs.trial_record import WHOLE_TRIAL
from lidp.epsilon_bound import EpsilonBound
from lidp.errors import InvalidArgument
from lidp.rounding import at_least, exact
from lidp.scores import Scores
from lidp.stats.method import Method
from lidp.stats.registry import bound
from lidp.stats.storable import Storable, from_plain, to_plain

if TYPE_CHECKING:
    from rich.table import Table


INDEPENDENT_RUNS = "the mechanism's randomness comes from rng, or is independent from run to run"
"""What every bound of an audit rests on: runs that share noise are not independent."""
RETRIED = "the mechanism draws all its randomness from rng, so that a second try is the same run"
"""What a bound rests on besides, if trials were tried again."""


class Verdict(StrEnum):
    """What an audit says about its claim."""

    REFUTED = "refuted"
    NOT_REFUTED = "not refuted"
    UNDECIDED = "undecided budget"
    """no mechanism, however leaky, could have been refuted with this many trials"""


@dataclass(frozen=True)
class TrialNote:
    """What is known of a trial besides its scores."""

    index: int
    seconds: float
    attempts: int
    failures: Mapping[str, str] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class AuditResult:
    """The outcome of an audit.

    Guarantee: if the verdict is ``refuted``, the claim is false unless an event of at most ``bound.failure_probability``
    happened, in the sense of ``bound.guarantee``. ``not refuted`` does not mean that the claim is true.
    """

    verdict: Verdict
    bound: EpsilonBound
    claim: Claim
    target: str
    design: Design
    method: Method
    seed: int
    planned_trials: int
    preparation_models: int
    scores: Scores = field(repr=False, compare=False)
    notes: tuple[TrialNote, ...] = field(repr=False, compare=False)
    versions: Mapping[str, str] = field(repr=False, compare=False)
    """those with which the audit was begun; empty if its store is too old to say"""
    seconds: float = field(default=0.0, compare=False)
    facts: Mapping[str, float | str] = field(default_factory=dict)
    """what the target says of itself, such as its noise"""
    configuration: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)
    """what the audit was asked to do, as its store keeps it"""
    computed_with: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)
    """the versions that computed the bound from the scores, which may be later ones"""
    leak: str = ""
    """for two data sets: where outputs differ most between them, in words"""

    @property
    def models(self) -> int:
        """All models that were trained for the bound, those of the preparation included."""
        return self.bound.models + self.preparation_models

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the bound rests on: the assumptions of the method, and those of running the mechanism."""
        return (*self.bound.assumptions, *self._run_assumptions())

    def _run_assumptions(self) -> tuple[str, ...]:
        """Return what the bound assumes of the runs, whatever the method."""
        return (INDEPENDENT_RUNS, RETRIED) if self.retried_trials else (INDEPENDENT_RUNS,)

    @property
    def unfinished(self) -> bool:
        """Whether trials that were planned may still come: the verdict is one so far."""
        return self.verdict is not Verdict.REFUTED and self.bound.trials < self.planned_trials

    @property
    def provisional(self) -> bool:
        """Whether a method that speaks only at the end was asked before it: the bound proves nothing yet."""
        return not self.method.anytime and self.bound.trials < self.planned_trials

    @property
    def trial_seconds(self) -> float:
        """The time of all trials that the bound uses, whoever ran them; for two data sets that of the audit."""
        return sum(note.seconds for note in self.notes) if self.notes else self.seconds

    @property
    def failed_runs(self) -> int:
        """How many runs of the mechanism failed; they are kept, as outputs that nobody bets on."""
        return int(self.scores.failed.sum()) + sum(WHOLE_TRIAL in note.failures for note in self.notes)

    @property
    def retried_trials(self) -> int:
        """How many trials were run a second time, because a worker process had died."""
        return sum(note.attempts > 1 for note in self.notes)

    @property
    def unscored_canaries(self) -> int:
        """How many canaries could not be scored and got a constant."""
        return sum(int(value) for note in self.notes for name, value in note.metadata.items() if name.endswith("_unscored"))

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON; the scores are in the witness."""
        return {
            "verdict": str(self.verdict),
            "claim": {"epsilon": self.claim.epsilon, "delta": self.claim.delta, "neighbours": str(self.claim.neighbours)},
            "bound": self.bound.to_dict(),
            "assumptions": list(self.assumptions),
            "target": self.target,
            "design": self.design.to_json(),
            "method": to_plain(self.method),
            "seed": self.seed,
            "planned_trials": self.planned_trials,
            "provisional": self.provisional,
            "models": self.models,
            "preparation_models": self.preparation_models,
            "facts": dict(self.facts),
            "leak": self.leak,
            "failed_runs": self.failed_runs,
            "retried_trials": self.retried_trials,
            "unscored_canaries": self.unscored_canaries,
            "seconds": self.seconds,
            "trial_seconds": self.trial_seconds,
            "versions": dict(self.versions),
            "computed_with": dict(self.computed_with),
            "trials": [_plain(asdict(note)) for note in self.notes],
        }

    def to_json(self, indent: int | None = None) -> str:
        """The result as JSON."""
        return json.dumps(self.to_dict(), indent=indent, allow_nan=False)

    def witness(self) -> dict[str, Any]:
        """Enough to re-check the verdict from the scores alone, without the mechanism: see :func:`recheck`."""
        arrays = {name: array.tolist() for name, array in self.scores.to_arrays().items()}
        for name in ("inserted", "held_out", "scores"):
            if name in arrays:
                arrays[name] = [[None if value != value else value for value in row] for row in arrays[name]]
        return {
            "claim": {"epsilon": self.claim.epsilon, "delta": self.claim.delta, "neighbours": str(self.claim.neighbours)},
            "failure_probability": self.bound.failure_probability,
            "method": to_plain(self.method),
            "sequential": self.scores.sequential,
            "stopped_early": self.scores.stopped_early,
            "scores": arrays,
            "epsilon": self.bound.epsilon,
            "refuted": self.verdict is Verdict.REFUTED,
        }

    def table(self) -> Table:
        """The result as a rich table."""
        from rich.table import Table

        table = Table(title=f"{self.target}: {self.verdict}", show_header=False, title_justify="left")
        for line in str(self).splitlines()[1:]:
            name, _, rest = line.strip().partition("  ")
            table.add_row(name, rest.strip())
        return table

    def __rich__(self) -> Table:
        return self.table()

    def __str__(self) -> str:
        above = "more than" if self.verdict is Verdict.REFUTED else "against"
        lines = [
            f"{self.verdict}: {self.target} claims {self.claim}",
            f"  bound      ε ≥ {at_least(self.bound.epsilon, above=self.claim.epsilon)}, {above} the "
            f"{exact(self.claim.epsilon)} claimed ({self.bound.certainty})",
            f"  method     {self.bound.method}",
            f"  guarantee  {self.bound.guarantee}: {self.bound.guarantee.meaning}",
            f"  evidence   {self._evidence()}",
        ]
        if self.leak:
            lines.append(f"  {'leak      ' if self.verdict is Verdict.REFUTED else 'difference'} {self.leak}")
        if self.facts:
            values = (
                f"{name} {value:.4g}" if isinstance(value, float) else f"{name} {value}"
                for name, value in self.facts.items()
            )
            lines.append(f"  target     {', '.join(values)}")
        lines.extend(f"  trouble    {text}" for text in self._troubles())
        lines.extend(f"  assumes    {text}" for text in self._run_assumptions())
        lines.extend(f"  note       {text}" for text in self._notes_on_verdict())
        lines.append(f"  seed       {self.seed}, {self.seconds:.1f} s")
        return "\n".join(lines)

    def _evidence(self) -> str:
        done = f"{self.bound.trials:,} of {self.planned_trials:,} {self.design.unit}"
        if not self.design.has_canaries:
            spent = self.preparation_models
            return done + (f", {spent:,} more to choose the data sets" if spent else "")
        prepared = f" ({self.preparation_models:,} to prepare)" if self.preparation_models else ""
        return f"{done} x {self.bound.canaries:,} canaries, {self.models:,} models{prepared}"

    def _troubles(self) -> list[str]:
        troubles = []
        if self.failed_runs or self.retried_trials:
            troubles.append(f"{self.failed_runs:,} runs failed (kept, not bet on), {self.retried_trials:,} trials retried")
        if self.unscored_canaries:
            troubles.append(f"{self.unscored_canaries:,} canaries could not be scored and got a constant")
        return troubles

    def _notes_on_verdict(self) -> list[str]:
        unit = self.design.unit
        if self.provisional:
            return [f"{self.bound.method} gives no verdict until all {self.planned_trials:,} {unit} are finished"]
        if self.verdict is not Verdict.UNDECIDED:
            return []
        plan = "lidp plan says how many it takes" if self.design.has_canaries else "raise runs"
        remedy = "the audit is not finished" if self.unfinished else plan
        return [f"no mechanism could have been refuted with so few {unit}; {remedy}"]


class AuditInterrupted(KeyboardInterrupt):
    """An interrupt, with the result so far; all finished trials are in the store, if there is one."""

    def __init__(self, result: AuditResult | None) -> None:
        super().__init__("the audit was interrupted")
        self.result = result


def recheck(witness: Mapping[str, Any], *, methods: Iterable[type[Storable]] = ()) -> EpsilonBound:
    """Compute the bound of a witness again, from its scores alone.

    ``methods`` are classes of a user's own that the witness names and that are not imported yet; no module is imported here.

    Raises:
        ClassNotImported: if the witness names a class that is neither imported nor among ``methods``.
        InvalidArgument: if the bound is not the one that the witness states.
    """
    arrays = dict(witness["scores"])
    for name in ("inserted", "held_out", "scores"):
        if name in arrays:
            arrays[name] = [[float("nan") if value is None else value for value in row] for row in arrays[name]]
    claim = Claim(**witness["claim"])
    scores = Scores(
        **arrays,
        neighbours=claim.neighbours,
        sequential=witness["sequential"],
        stopped_early=witness.get("stopped_early", False),  # which older witnesses do not say
    )
    method = from_plain(witness["method"], classes=methods)
    found = bound(scores, method, delta=claim.delta, failure_probability=witness["failure_probability"])
    if found.epsilon != witness["epsilon"]:
        raise InvalidArgument(f"the witness states ε ≥ {witness['epsilon']}, its scores give {found.epsilon}")
    if found.refutes(claim) != witness["refuted"]:
        stated = "refuted" if witness["refuted"] else "not refuted"
        raise InvalidArgument(f"the witness states that {claim} is {stated}, its scores say otherwise")
    return found


def _plain(values: dict[str, Any]) -> dict[str, Any]:
    return {name: str(value) if isinstance(value, StrEnum) else value for name, value in values.items()}
