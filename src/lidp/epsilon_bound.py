"""``EpsilonBound``: a lower bound on ε together with everything needed to judge it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from enum import StrEnum
from typing import Any, NamedTuple

from lidp import checks
from lidp._runtime.json_objects import object_from_json
from lidp.claim import Claim, Direction, Neighbours
from lidp.curves import PrivacyCurve, curve_from_json
from lidp.errors import InvalidArgument
from lidp.rounding import at_least, at_most, counted, exact


class Guarantee(StrEnum):
    """The kind of guarantee that a bound has."""

    FINITE_SAMPLE = "finite-sample"
    ASYMPTOTIC = "asymptotic"
    CONDITIONAL = "conditional"
    CREDIBLE = "credible"

    @property
    def meaning(self) -> str:
        """Return the guarantee in words, as the end of a sentence."""
        return _MEANINGS[self]


_MEANINGS = {
    Guarantee.FINITE_SAMPLE: "holds for any number of trials that is fixed in advance",
    Guarantee.ASYMPTOTIC: "holds in the limit of many trials",
    Guarantee.CONDITIONAL: "holds if the mechanism's privacy curve is of the stated family",
    Guarantee.CREDIBLE: "a posterior probability, not a failure probability",
}


_ANYTIME = "holds for any number of trials"


class Hypothesis(StrEnum):
    """What is false if a bound refutes a claim. A curve may be false while its point (ε, δ) is true."""

    POINT = "point"
    CURVE = "curve"
    CURVE_BY_CANARY = "curve, canary by canary"

    @property
    def meaning(self) -> str:
        """Return the hypothesis in words."""
        return _HYPOTHESES[self]


_HYPOTHESES = {
    Hypothesis.POINT: "the mechanism is (ε, δ)-DP",
    Hypothesis.CURVE: "the mechanism has the claimed privacy curve or a smaller one",
    Hypothesis.CURVE_BY_CANARY: (
        "the output about each canary has the claimed privacy curve or a smaller one, independently of the other canaries"
    ),
}


_ADDED_BY_COMMAND = frozenset(("verdict", "verdicts", "provisional", "claim", "epsilon_point"))
"""Fields of the JSON output of ``lidp bound`` beyond those of the bound."""


class Certainty(NamedTuple):
    """The name of a bound's probability and its value."""

    name: str
    number: str

    def __str__(self) -> str:
        return f"{self.name} {self.number}"


@dataclass(frozen=True)
class EpsilonBound:
    """A lower bound on ε at a given δ.

    Guarantee: unless an event of at most ``failure_probability`` happened, the mechanism is not (ε', δ)-DP
    under ``neighbours`` for any ε' < ``epsilon``, in the sense of ``guarantee`` and under ``assumptions``. If the hypothesis is a
    curve, what is excluded is instead every curve of its family with at least ``effective_noise`` times the claimed noise, and
    ``epsilon`` is what the curve with that noise promises at ``delta``.

    Attributes:
        thresholds: the threshold each direction used, where the method has one.
        rates: the observed rates, interval ends and counts that the bound was computed from, by name; the method's
            ``describe_rates`` says what they mean.
        path: for anytime-valid methods, (trials seen, ε) at each change of the bound; empty otherwise.
        curve: the claimed curve that was tested; None if the hypothesis is the point.
        effective_noise: the noise that the mechanism behaves as if it had, at most, in units of the noise of ``curve``; None if no
            amount of noise is excluded.
        fell_at: the number of trials after which the claimed curve was refuted; None if it was not.
        point: if the hypothesis is a curve, the bound on ε at ``delta`` alone, from the same scores. Each of the two bounds
            has this failure probability; that one of them fails has at most twice as much.
    """

    epsilon: float
    delta: float
    failure_probability: float
    method: str
    guarantee: Guarantee
    neighbours: Neighbours
    direction: Direction
    trials: int
    canaries: int
    models: int
    parameters: Mapping[str, Any] = field(default_factory=dict)
    thresholds: Mapping[str, float] = field(default_factory=dict)
    rates: Mapping[str, float] = field(default_factory=dict)
    path: tuple[tuple[int, float], ...] = ()
    assumptions: tuple[str, ...] = ()
    hypothesis: Hypothesis = Hypothesis.POINT
    curve: PrivacyCurve | None = None
    effective_noise: float | None = None
    fell_at: int | None = None
    point: EpsilonBound | None = None

    def __post_init__(self) -> None:
        checks.non_negative(epsilon=self.epsilon)
        checks.delta(delta=self.delta)
        checks.probability(failure_probability=self.failure_probability)

    def refutes(self, claim: Claim) -> bool:
        """Return whether the claim is refuted: its ε lies below the bound, for the same neighbours, at no larger δ."""
        if claim.neighbours is not self.neighbours:
            raise InvalidArgument(
                f"the bound is for {self.neighbours} neighbours, the claim for {claim.neighbours}; "
                "a bound for one relation says nothing about the other"
            )
        if claim.delta > self.delta:
            raise InvalidArgument(
                f"the bound was computed at delta={self.delta:g}, the claim allows {claim.delta:g}; "
                f"compute it again with delta={claim.delta:g}"
            )
        if self.hypothesis is Hypothesis.POINT:
            return claim.epsilon < self.epsilon
        if claim.curve != self.curve:
            raise InvalidArgument(f"the bound tests {self.curve}, the claim is {claim}; compute it again with this claim")
        return self.fell_at is not None

    @property
    def epsilon_point(self) -> float:
        """The bound on ε at ``delta`` alone, whatever the rest of the curve; the bound itself if no curve was tested."""
        return self.epsilon if self.point is None else self.point.epsilon

    def describe_guarantee(self, *, anytime: bool | None = None) -> str:
        """Return the guarantee in words; ``anytime`` says whether the method is anytime-valid, None to see it from the path.

        A bound of 0 always holds, so nothing is lost if it has no path to see it from.
        """
        if anytime is None:
            anytime = bool(self.path) or self.epsilon == 0
        meaning = _ANYTIME if anytime and self.guarantee is Guarantee.FINITE_SAMPLE else self.guarantee.meaning
        return f"{self.guarantee}: {meaning}"

    def verdicts(self, claim: Claim) -> dict[str, bool]:
        """Return what of a claim is refuted: its curve, if it has one and that was tested, and its point (ε, δ).

        The point is tested only if the curve is refuted, so that both verdicts together have one failure probability: if the curve
        is true, the first test errs with that probability at most, and if it is false, the second one does.
        """
        if self.hypothesis is Hypothesis.POINT:
            return {"point": self.refutes(claim.point)}
        curve = self.refutes(claim)
        return {"curve": curve, "point": curve and self.point is not None and self.point.refutes(claim.point)}

    def refuted_after(self, claim: Claim) -> int | None:
        """Return the number of trials after which an anytime-valid method refuted a claim; None if it did not."""
        if self.hypothesis is not Hypothesis.POINT:
            return self.fell_at if self.refutes(claim) else None
        return next((seen for seen, epsilon in self.path if epsilon > claim.epsilon), None)

    def epsilon_after(self, trials: int) -> float:
        """Return the bound of an anytime-valid method after this many trials."""
        if self.epsilon > 0 and not self.path:
            raise InvalidArgument(f"{self.method} is not anytime-valid: it has one bound, on all trials, and no path")
        standing = [epsilon for seen, epsilon in self.path if seen <= trials]
        return standing[-1] if standing else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, ready for JSON. The schema is ``epsilon-bound`` of :mod:`lidp.schemas`."""
        plain = asdict(self)
        plain["path"] = [list(point) for point in self.path]
        plain["curve"] = None if self.curve is None else self.curve.to_json()
        plain["point"] = None if self.point is None else self.point.to_dict()
        plain["assumptions"] = list(self.assumptions)
        return {key: str(value) if isinstance(value, StrEnum) else value for key, value in plain.items()}

    def to_json(self, indent: int | None = None) -> str:
        """Return JSON that :meth:`from_json` turns back into an equal object."""
        return json.dumps(self.to_dict(), indent=indent, allow_nan=False)

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> EpsilonBound:
        """Return the bound that :meth:`to_dict` described."""
        plain = {name: value for name, value in plain.items() if name not in _ADDED_BY_COMMAND}
        known = {f.name for f in fields(cls)}
        unknown = set(plain) - known
        missing = {f.name for f in fields(cls)[:10]} - set(plain)
        if unknown or missing:
            problem = f"unknown {sorted(unknown)}" if unknown else f"missing {sorted(missing)}"
            raise InvalidArgument(f"this is not an epsilon bound: {problem}")
        values = dict(plain)
        values["guarantee"] = Guarantee(values["guarantee"])
        values["neighbours"] = Neighbours(values["neighbours"])
        values["direction"] = Direction(values["direction"])
        values["hypothesis"] = Hypothesis(values.get("hypothesis", Hypothesis.POINT))
        values["curve"] = None if values.get("curve") is None else curve_from_json(values["curve"])
        values["point"] = None if values.get("point") is None else cls.from_dict(values["point"])
        values["path"] = tuple((int(seen), float(epsilon)) for seen, epsilon in values.get("path", ()))
        values["assumptions"] = tuple(values.get("assumptions", ()))
        return cls(**values)

    @classmethod
    def from_json(cls, text: str) -> EpsilonBound:
        """Return the bound that :meth:`to_json` described."""
        return cls.from_dict(object_from_json(text, "an epsilon bound"))

    def describe_noise(self) -> str:
        """Return in words what a bound on a curve says about the noise."""
        if self.curve is None:
            raise InvalidArgument("the bound is about a point, which has no noise; see EpsilonBound.curve")
        if self.effective_noise is None:
            return "no amount of noise is excluded"
        if not self.curve.has_family:
            return f"leaks more than {self.curve} allows"
        name, claimed = self.curve.describe_noise()
        behaves = f"behaves as if its {name} were"
        if self.effective_noise == 1:
            return f"{behaves} below the {claimed:.4g} that was claimed; this evidence does not tell by how much"
        noise, epsilon = at_most(claimed * self.effective_noise), at_least(self.epsilon)
        return f"{behaves} at most {noise}, where {claimed:.4g} was claimed: ε ≥ {epsilon} by the same accountant"

    def __str__(self) -> str:
        return self.describe()

    def _repr_html_(self) -> str:
        from lidp._runtime.html_text import card, table
        from lidp._runtime.terminal_text import labelled_lines

        text = self.describe()
        return card(text.partition("\n")[0], table(labelled_lines(text)))

    def describe(self, claimed: float | None = None) -> str:
        """Return the bound in words, with as many digits as it takes to tell it from a claimed ε."""
        shown = at_least(self.epsilon, above=claimed)
        by = "" if self.curve is None else " by the curve"
        lines = [
            f"ε ≥ {shown} at δ = {exact(self.delta)}{by} ({self.certainty}, {self.neighbours} neighbours)",
            f"  method     {self.method}{_parenthesised(self.parameters)}",
            f"  guarantee  {self.describe_guarantee()}",
            f"  evidence   {counted(self.trials, 'trials')} x {counted(self.canaries, 'canaries')}, "
            f"{counted(self.models, 'models')}",
        ]
        if self.curve is not None:
            lines.insert(1, f"  curve      {self.curve}: {self.describe_noise()}")
            lines.insert(2, f"  tested     {self.hypothesis.meaning}")
        if self.point is not None:
            point = f"ε ≥ {at_least(self.point.epsilon, above=claimed)} at this δ alone, by {self.point.method}"
            lines.insert(3, f"  point      {point} ({self.point.certainty} of its own)")
        if self.thresholds:
            lines.append("  threshold  " + ", ".join(f"{k} {v:.4g}" for k, v in self.thresholds.items()))
        if self.rates:
            lines.append("  rates      " + ", ".join(f"{k} {v:.4g}" for k, v in self.rates.items()))
        lines.extend(f"  assumes    {text}" for text in self.assumptions)
        return "\n".join(lines)

    @property
    def certainty(self) -> Certainty:
        """Return the failure probability, as in "failure probability 0.05", or for credible bounds "credibility 0.95"."""
        if self.guarantee is Guarantee.CREDIBLE:
            return Certainty(
                "credibility", at_least(round(1 - self.failure_probability, 15), 6)
            )  # 1 - 0.9 is not quite 0.1
        return Certainty("failure probability", f"{self.failure_probability:g}")


def _parenthesised(parameters: Mapping[str, Any]) -> str:
    return f"({', '.join(f'{k}={v}' for k, v in parameters.items())})" if parameters else ""
