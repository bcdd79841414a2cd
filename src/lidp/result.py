"""``AuditResult``: the verdict, and everything needed to examine or recheck it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from lidp._runtime.json_objects import object_from_json
from lidp._runtime.optional_packages import data_frame
from lidp._runtime.terminal_text import labelled_lines
from lidp.claim import Claim
from lidp.designs import Design, design_from_json
from lidp.designs.trial_record import WHOLE_TRIAL, TrialRecord
from lidp.epsilon_bound import EpsilonBound, Hypothesis
from lidp.errors import InvalidArgument
from lidp.plain_scores import AbsentScores, plain_arrays, scores_from_plain
from lidp.rounding import at_least, at_most, claimed
from lidp.scores import Scores
from lidp.stats.method import Method
from lidp.stats.registry import bound
from lidp.stats.storable import Storable, from_plain, to_plain
from lidp.trial_notes import TrialNote, note_columns

if TYPE_CHECKING:
    from rich.table import Table


INDEPENDENT_RUNS = "the mechanism's randomness comes from rng, or is independent from run to run"
"""Assumption of every bound: runs that share noise are not independent."""
CHOSEN_CANARIES = "canaries"
"""Name of the fact that says how many canaries were chosen by default, and why."""
RETRIED = "the mechanism draws all its randomness from rng, so that a retried trial is the same run"
"""Further assumption of a bound if trials were retried."""


class Verdict(StrEnum):
    """The conclusion of an audit about its claim."""

    REFUTED = "refuted"
    NOT_REFUTED = "not refuted"
    INCONCLUSIVE = "inconclusive"
    """too few trials to refute any mechanism, however leaky"""


@dataclass(frozen=True)
class AuditResult:
    """The outcome of an audit.

    Guarantee: if the verdict is ``refuted``, the claim is false unless an event of at most ``bound.failure_probability``
    happened, in the sense of ``bound.guarantee``. ``not refuted`` does not mean that the claim is true.
    """

    sealed: ClassVar[bool] = False
    """whether seals were opened: then ``seed`` is as secret as the coins, and is not shown"""

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
    """package versions that started the audit; empty if its store is too old to record them"""
    seconds: float = field(default=0.0, compare=False)
    facts: Mapping[str, float | str] = field(default_factory=dict)
    """facts that the target states about itself, such as its noise"""
    configuration: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)
    """the settings of the audit, as its store keeps them"""
    computed_with: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)
    """package versions that computed the bound from the scores, possibly later ones"""
    leak: str = ""
    """pair audits only: where the outputs of the two data sets differ most, in words"""
    warnings: tuple[str, ...] = field(default=(), compare=False)
    """what is suspicious about the mechanism or its scores; the verdict does not depend on it"""
    transcripts: tuple[TrialRecord, ...] = field(default=(), repr=False, compare=False)
    """trials that recorded what their steps tell about canaries, for a diagnosis, also those after a refutation; not in JSON"""

    @property
    def verdicts(self) -> dict[str, Verdict]:
        """The verdict on each part of the claim: the curve, if one is claimed and was tested, and the point (ε, δ).

        Together they have one failure probability: the point is tested only if the curve is refuted.
        """
        if self.verdict is Verdict.INCONCLUSIVE:
            return dict.fromkeys(self.bound.verdicts(self.claim), Verdict.INCONCLUSIVE)
        return {
            name: Verdict.REFUTED if refuted else Verdict.NOT_REFUTED
            for name, refuted in self.bound.verdicts(self.claim).items()
        }

    @property
    def models(self) -> int:
        """The number of models trained, including those of the preparation."""
        return self.bound.models + self.preparation_models

    @property
    def assumptions(self) -> tuple[str, ...]:
        """All assumptions of the bound: those of the method and those about runs."""
        return (*self.bound.assumptions, *self._run_assumptions())

    def _run_assumptions(self) -> tuple[str, ...]:
        """Return the assumptions about runs, which every method needs."""
        return (INDEPENDENT_RUNS, RETRIED) if self.retried_trials else (INDEPENDENT_RUNS,)

    @property
    def unfinished(self) -> bool:
        """Whether planned trials are missing that may still change the verdict."""
        return self.verdict is not Verdict.REFUTED and self.bound.trials < self.planned_trials

    @property
    def provisional(self) -> bool:
        """Whether the method gives no valid bound before the last planned trial, and trials are missing."""
        return not self.method.anytime and self.bound.trials < self.planned_trials

    @property
    def trial_seconds(self) -> float:
        """Total seconds of the trials that the bound uses, over all workers."""
        return sum(note.seconds for note in self.notes) if self.notes else self.seconds

    @property
    def failed_runs(self) -> int:
        """The number of failed runs; they are kept as outputs on which nothing is bet."""
        return self.scores.failed_runs + _lost_trials(self.notes)

    @property
    def retried_trials(self) -> int:
        """The number of trials that were retried because a worker process had died."""
        return sum(note.attempts > 1 for note in self.notes)

    @property
    def unscored_canaries(self) -> int:
        """The number of canaries that could not be scored and got a constant score."""
        return sum(int(value) for note in self.notes for name, value in note.metadata.items() if name.endswith("_unscored"))

    def to_dict(self, *, scores: bool = False) -> dict[str, Any]:
        """Return plain data, ready for JSON, with the scores if asked for.

        The schema is ``audit-result`` of :mod:`lidp.schemas`.
        """
        return self._summary() | ({"scores": self._plain_scores()} if scores else {})

    def _plain_scores(self) -> dict[str, Any]:
        marks = {"sequential": self.scores.sequential, "stopped_early": self.scores.stopped_early}
        return marks | {"arrays": plain_arrays(self.scores)}

    def _summary(self) -> dict[str, Any]:
        return {
            "verdict": str(self.verdict),
            "verdicts": {name: str(verdict) for name, verdict in self.verdicts.items()},
            "hypothesis": str(self.bound.hypothesis),
            "epsilon": self.bound.epsilon,
            "epsilon_point": self.bound.epsilon_point,
            "effective_noise": self.bound.effective_noise,
            "trials": self.bound.fell_at or self.bound.trials,
            "claim": self.claim.to_dict(),
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
            "warnings": list(self.warnings),
            "failed_runs": self.failed_runs,
            "retried_trials": self.retried_trials,
            "unscored_canaries": self.unscored_canaries,
            "seconds": self.seconds,
            "trial_seconds": self.trial_seconds,
            "versions": dict(self.versions),
            "computed_with": dict(self.computed_with),
            "configuration": dict(self.configuration),
            "trial_notes": [note.to_dict() for note in self.notes],
        }

    def to_json(self, indent: int | None = None, *, scores: bool = False) -> str:
        """Return JSON that :meth:`from_json` turns back into an equal result; ``scores`` keeps the scores too."""
        return json.dumps(self.to_dict(scores=scores), indent=indent, allow_nan=False)

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any], *, methods: Iterable[type[Storable]] = ()) -> AuditResult:
        """Return the result that :meth:`to_dict` described; transcripts are not kept, nor scores unless they were asked for.

        ``methods``: see :func:`lidp.recheck`. No code is run and no bound computed: a result from somebody else is as reliable as
        its sender, while a witness can be checked.

        Raises:
            ClassNotImported: if the data names a method that is neither imported nor among ``methods``.
            InvalidArgument: if the data describes no result, or its verdict contradicts its bound.
        """
        if "commitments" in plain:
            raise InvalidArgument(
                "this is the result of a sealed audit, whose receipt is to be read instead: lidp verify RECEIPT"
            )
        try:
            result = cls(**_fields_from_plain(plain, methods))
            expected = {True: Verdict.REFUTED, False: Verdict.NOT_REFUTED}[result.bound.refutes(result.claim)]
        except (ArithmeticError, AttributeError, KeyError, TypeError, ValueError) as error:
            problem = f"{error.args[0]!r} is missing" if isinstance(error, KeyError) else str(error)
            raise InvalidArgument(f"this is not an audit result: {problem}") from None
        if result.verdict not in (expected, Verdict.INCONCLUSIVE):
            raise InvalidArgument(f"the result states that the claim is {result.verdict}, its bound says {expected}")
        return result

    @classmethod
    def from_json(cls, text: str, *, methods: Iterable[type[Storable]] = ()) -> AuditResult:
        """Return the result that :meth:`to_json` described; see :meth:`from_dict`."""
        return cls.from_dict(object_from_json(text, "an audit result"), methods=methods)

    def witness(self) -> dict[str, Any]:
        """Return the scores and settings from which :func:`recheck` computes the verdict again, without the mechanism."""
        return {
            "claim": self.claim.to_dict(),
            "failure_probability": self.bound.failure_probability,
            "method": to_plain(self.method),
            "sequential": self.scores.sequential,
            "stopped_early": self.scores.stopped_early,
            "scores": plain_arrays(self.scores),
            "epsilon": self.bound.epsilon,
            "refuted": self.verdict is Verdict.REFUTED,
        }

    def to_frame(self) -> Any:
        """Return the scores and the notes of the trials as a pandas data frame, one row per trial and canary (extra ``frame``).

        The columns are those of :meth:`Scores.to_frame`, then ``failure`` (why the run failed, else empty), ``seconds`` and
        ``attempts`` of the trial, and a column ``metadata.NAME`` for each number that the mechanism returned. If two data sets
        were audited, there is one row per run: ``run`` is its number and ``trial`` that of its block, which has the seconds.
        """
        columns = self.scores.to_columns()
        rows, runs = columns["trial"], columns.get("arm", np.full(len(columns["trial"]), "scores"))
        if not self.design.has_canaries:
            ends = [self.design.rows(note.index + 1) for note in self.notes]
            blocks = np.searchsorted(ends, rows, side="right")
            columns = {"run": rows, "trial": blocks, **{name: columns[name] for name in ("coin", "score", "failed")}}
            rows = blocks
        if self.notes:
            columns |= note_columns(self.notes, rows, runs, columns["failed"])
        return data_frame(columns)

    def table(self) -> Table:
        """Return the result as a rich table."""
        from rich.table import Table

        table = Table(title=f"{self.target}: {self.verdict}", show_header=False, title_justify="left")
        for name, rest in labelled_lines(str(self)):
            table.add_row(name, rest)
        return table

    def _repr_html_(self) -> str:
        from lidp._runtime.html_text import card, gauge, table

        title, epsilon, claimed = str(self).partition("\n")[0], self.bound.epsilon, self.claim.epsilon
        refuted = self.verdict is Verdict.REFUTED
        label = f"bound {at_least(epsilon, above=claimed)}, claim {at_most(claimed)}"
        bar = gauge(epsilon, claimed, label, alarming=refuted)
        return card(title, bar, table(labelled_lines(str(self))), alarming=refuted)

    def __rich__(self) -> Table:
        return self.table()

    def __str__(self) -> str:
        lines = [
            f"{self.verdict}: {self.target} claims {self.claim}",
            *self._bounds(),
            *self._narrow_hypothesis(),
            f"  method     {self.bound.method}",
            f"  guarantee  {self.bound.guarantee}: {self.bound.guarantee.meaning}",
            f"  evidence   {self._evidence()}",
        ]
        if self.leak:
            lines.append(f"  {'leak      ' if self.verdict is Verdict.REFUTED else 'difference'} {self.leak}")
        if CHOSEN_CANARIES in self.facts:
            lines.append(f"  canaries   {self.facts[CHOSEN_CANARIES]}")
        values = [
            f"{name} {value:.4g}" if isinstance(value, float) else f"{name} {value}"
            for name, value in self.facts.items()
            if name != CHOSEN_CANARIES
        ]
        if values:
            lines.append(f"  target     {', '.join(values)}")
        lines.extend(f"  problem    {text}" for text in self._problems())
        lines.extend(f"  assumes    {text}" for text in self._run_assumptions())
        lines.extend(f"  note       {text}" for text in self._notes_on_verdict())
        lines.extend(self._origin())
        return "\n".join(lines)

    def _origin(self) -> list[str]:
        """Return the lines that say how the trials can be found again."""
        return [f"  seed       {self.seed}, {self.seconds:.1f} s"]

    def _bounds(self) -> list[str]:
        """Return the lines about the bounds: of the curve and of the point, or of the point alone."""
        bound, epsilon = self.bound, self.claim.epsilon
        above = "more than" if self.verdicts["point"] is Verdict.REFUTED else "against"
        stated = claimed(epsilon, bound.epsilon_point) if self.claim.curve is None else at_most(epsilon)
        point = f"ε ≥ {at_least(bound.epsilon_point, above=epsilon)}, {above} the {stated} claimed"
        if bound.point is None:
            return [f"  bound      {point} ({bound.certainty})"]
        verdicts = self.verdicts
        noise = "nothing is proved yet" if self.provisional else bound.describe_noise()
        return [
            f"  curve      {verdicts['curve']}: {noise} ({bound.certainty})",
            f"  point      {verdicts['point']}: {point} ({bound.point.certainty} of its own)",
        ]

    def _narrow_hypothesis(self) -> list[str]:
        """Return the line about the hypothesis, where it says more than that the mechanism has the claimed curve."""
        if self.bound.hypothesis is not Hypothesis.CURVE_BY_CANARY:
            return []
        return [f"  hypothesis {self.bound.hypothesis.meaning}"]

    def _evidence(self) -> str:
        done = f"{self.bound.trials:,} of {self.planned_trials:,} {self.design.unit}"
        if not self.design.has_canaries:
            spent = self.preparation_models
            return done + (f", and {spent:,} to choose the data sets" if spent else "")
        prepared = f" ({self.preparation_models:,} to prepare)" if self.preparation_models else ""
        return f"{done} x {self.bound.canaries:,} canaries, {self.models:,} models{prepared}"

    def _problems(self) -> list[str]:
        problems = list(self.warnings)
        if self.failed_runs or self.retried_trials:
            problems.append(f"{self.failed_runs:,} runs failed (kept, not bet on), {self.retried_trials:,} trials retried")
        if self.unscored_canaries:
            problems.append(f"{self.unscored_canaries:,} canaries could not be scored and got a constant score")
        return problems

    def _notes_on_verdict(self) -> list[str]:
        unit = self.design.unit
        if self.provisional:
            return [f"{self.bound.method} gives no verdict until all {self.planned_trials:,} {unit} are finished"]
        if self.verdict is not Verdict.INCONCLUSIVE:
            return []
        remedy = "the audit is not finished" if self.unfinished else self._remedy_of_too_few()
        return [f"too few {unit} to refute any mechanism; {remedy}"]

    def _remedy_of_too_few(self) -> str:
        return "lidp plan computes how many it takes" if self.design.has_canaries else "increase runs"


class AuditInterrupted(KeyboardInterrupt):
    """An interrupt, with the result so far; the store, if there is one, holds all finished trials."""

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
    claim = Claim(**witness["claim"])
    scores = scores_from_plain(
        witness["scores"],
        neighbours=claim.neighbours,
        sequential=witness["sequential"],
        stopped_early=witness.get("stopped_early", False),  # older witnesses do not have it
    )
    method = from_plain(witness["method"], classes=methods)
    recomputed = bound(scores, method, claim=claim, failure_probability=witness["failure_probability"])
    if recomputed.epsilon != witness["epsilon"]:
        raise InvalidArgument(f"the witness states ε ≥ {witness['epsilon']}, its scores give {recomputed.epsilon}")
    if recomputed.refutes(claim) != witness["refuted"]:
        stated = "refuted" if witness["refuted"] else "not refuted"
        raise InvalidArgument(f"the witness states that {claim} is {stated}, its scores say otherwise")
    return recomputed


def _lost_trials(notes: Iterable[TrialNote]) -> int:
    return sum(WHOLE_TRIAL in note.failures for note in notes)


def _fields_from_plain(plain: Mapping[str, Any], methods: Iterable[type[Storable]]) -> dict[str, Any]:
    """Return the fields of a result from the data of :meth:`AuditResult.to_dict`."""
    claim = Claim(**plain["claim"])
    notes = tuple(TrialNote(**note) for note in plain["trial_notes"])
    kept = plain.get("scores")
    scores: Scores = AbsentScores(int(plain["failed_runs"]) - _lost_trials(notes))
    if kept is not None:
        marks = {name: bool(kept[name]) for name in ("sequential", "stopped_early")}
        scores = scores_from_plain(kept["arrays"], neighbours=claim.neighbours, **marks)
    return {
        "verdict": Verdict(plain["verdict"]),
        "bound": EpsilonBound.from_dict(plain["bound"]),
        "claim": claim,
        "target": str(plain["target"]),
        "design": design_from_json(plain["design"]),
        "method": from_plain(plain["method"], classes=methods),
        "seed": int(plain["seed"]),
        "planned_trials": int(plain["planned_trials"]),
        "preparation_models": int(plain["preparation_models"]),
        "scores": scores,
        "notes": notes,
        "versions": dict(plain["versions"]),
        "seconds": float(plain["seconds"]),
        "facts": dict(plain["facts"]),
        "configuration": dict(plain["configuration"]),
        "computed_with": dict(plain["computed_with"]),
        "leak": str(plain["leak"]),
        "warnings": tuple(map(str, plain.get("warnings", ()))),  # older results have none
    }
