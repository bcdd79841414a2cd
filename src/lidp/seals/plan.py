"""``SealPlan``: everything that is decided before training, and ``Commitment``: the public promise about one sealed run."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from lidp import checks
from lidp.canaries.gradients import GradientCanary
from lidp.claim import Claim, Neighbours
from lidp.designs import CoinFlip
from lidp.epsilon_bound import Guarantee
from lidp.errors import InvalidArgument, LidpError, MethodNotApplicable, SealError
from lidp.seals.files import canonical, sha256
from lidp.stats.curve_wager import CurveWager
from lidp.stats.curve_wager_with_guesses import CurveWagerWithGuesses
from lidp.stats.method import Method, check_probabilities
from lidp.stats.registry import canary_by_canary, make_method, method_named, point_method
from lidp.stats.signed_ranks import SignedRanks
from lidp.stats.storable import from_plain, to_plain

FORMAT = 1
KINDS = ("text", "records", "gradients")
MAX_CANARIES = 2**25
_HASH = re.compile(r"sha256:[0-9a-f]{64}")
_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\+00:00")
_DAMAGED = (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError, LidpError)

Value = TypeVar("Value")


def parsed(where: object, make: Callable[[], Value]) -> Value:
    """Return what ``make`` makes of untrusted plain data; raise ``SealError`` if it cannot."""
    try:
        return make()
    except SealError:
        raise
    except _DAMAGED as error:
        raise SealError(f"{where}: not what lidp writes ({type(error).__name__}: {str(error)[:200]})") from None


@dataclass(frozen=True)
class SealPlan:
    """The claim, the method, the failure probability and the canaries of all runs of one plan, fixed before the first training."""

    id: str
    claim: Claim
    method: Method
    failure_probability: float
    looks: int
    kind: str
    canaries: int
    options: Mapping[str, Any] = field(default_factory=dict)
    runs: int | None = None
    """the number of planned runs; None if it is open"""

    def __post_init__(self) -> None:
        object.__setattr__(self, "failure_probability", checks.probability(failure_probability=self.failure_probability))
        for name in ("looks", "canaries"):
            object.__setattr__(self, name, checks.count(**{name: getattr(self, name)}))
        if self.runs is not None:
            object.__setattr__(self, "runs", checks.count(runs=self.runs))
        checks.one_of(KINDS, kind=self.kind)
        if self.canaries > MAX_CANARIES:
            raise InvalidArgument(f"canaries must be at most {MAX_CANARIES:,}, got {self.canaries:,}")
        if self.claim.neighbours is not Neighbours.ADD_REMOVE:
            raise InvalidArgument(
                "a seal inserts canaries or leaves them out, so the claim must be about add-remove neighbours"
            )
        check_probabilities(self.claim.delta, self.failure_probability_per_look)  # before a training, not after it
        self._check_method()

    def _check_method(self) -> None:
        """Raise an error if the method does not keep the failure probability for these canaries and runs."""
        self.method.check(self.design)
        if self.method.guarantee is not Guarantee.FINITE_SAMPLE:
            raise MethodNotApplicable(
                f"a seal promises a failure probability, and the guarantee of {self.method.name} is {self.method.guarantee}: "
                f"{self.method.guarantee.meaning}; leave --method out, or name one with a finite-sample guarantee"
            )
        if self.method.assumes_independent_canaries:
            check_independence(self.kind, self.options)
        if not self.method.anytime and self.runs is None:
            raise InvalidArgument(
                f"{self.method.name} needs a number of runs that is fixed beforehand; say --runs N (runs=N), 1 for one training"
            )

    @property
    def design(self) -> CoinFlip:
        """The design of every run: a fair coin per candidate."""
        return CoinFlip(self.canaries, self.claim.neighbours)

    @property
    def failure_probability_per_look(self) -> float:
        """The failure probability of each look, also of the first."""
        return self.failure_probability / self.looks

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, ready for JSON."""
        return {
            "id": self.id,
            "claim": self.claim.to_dict(),
            "method": to_plain(self.method),
            "failure_probability": self.failure_probability,
            "looks": self.looks,
            "kind": self.kind,
            "canaries": self.canaries,
            "options": dict(self.options),
            "runs": self.runs,
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> SealPlan:
        """Return the plan that :meth:`to_dict` described."""
        values = dict(plain)
        values["claim"] = Claim(**values["claim"])
        values["method"] = from_plain(values["method"])
        if not isinstance(values["method"], Method) or not isinstance(values["options"], dict):
            raise SealError("the plan names no method")
        if not isinstance(values["id"], str) or not re.fullmatch(r"[0-9a-f]{16}", values["id"]):
            raise SealError("the plan has no id")
        return cls(**values)


def choose_method(
    claim: Claim, canaries: int, *, runs: int | None, independent_canaries: bool = False, name: str | None = None
) -> Method:
    """Return the method to commit to: the named one, or the strongest for this claim and this number of runs."""
    if name is not None:
        method = make_method(method_named(name), claim)
        return canary_by_canary(method) if independent_canaries else method
    if claim.curve is None:
        if independent_canaries:
            raise MethodNotApplicable(
                "independent canaries are a hypothesis about a privacy curve, and a point (ε, δ) is claimed; claim a curve, "
                "such as --gaussian-mu or --noise-multiplier"
            )
        return point_method(CoinFlip(canaries, claim.neighbours), claim)
    if independent_canaries:
        return SignedRanks(claim.curve) if runs is not None else canary_by_canary(CurveWager(claim.curve))
    return CurveWagerWithGuesses(claim.curve) if runs == 1 else CurveWager(claim.curve)


def check_independence(kind: str, options: Mapping[str, Any]) -> None:
    """Raise ``InvalidArgument`` if canaries of this kind interfere with one another."""
    if kind != "gradients":
        raise InvalidArgument(
            f"independent canaries must be gradients: {kind} canaries change one model together and interfere, so the "
            "hypothesis would be false and a true claim could be refuted"
        )
    if options.get("canary") != GradientCanary.DIRAC_GRADIENT:
        raise InvalidArgument(
            "independent canaries must be Dirac gradients (--canary dirac-gradient): random gradients overlap, so the hypothesis "
            "would be false and a true claim could be refuted"
        )


@dataclass(frozen=True)
class Commitment:
    """What is promised about one sealed run before it is trained. It can be published: it tells nothing about the coins.

    ``coins`` is a salted hash, ``files`` are the hashes of all other files, ``previous`` is the digest of the run before.
    """

    plan: SealPlan
    run: int
    previous: str | None
    coins: str
    files: Mapping[str, str]
    versions: Mapping[str, str]
    created: str

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, ready for JSON, with the digest of everything else."""
        plain = {
            "format": FORMAT,
            "plan": self.plan.to_dict(),
            "run": self.run,
            "previous": self.previous,
            "coins": self.coins,
            "files": dict(self.files),
            "versions": dict(self.versions),
            "created": self.created,
        }
        return plain | {"digest": sha256(canonical(plain))}

    @property
    def digest(self) -> str:
        """The hash of everything that is promised: one line that can be published."""
        return str(self.to_dict()["digest"])

    @property
    def candidates_name(self) -> str:
        """The name of the file with the candidates."""
        return next(name for name in self.files if name.startswith("candidates."))

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any], where: object) -> Commitment:
        """Return the commitment that :meth:`to_dict` described.

        Raises:
            SealError: if the digest does not match the rest, or the data is not a commitment.
        """
        check_format(plain, where)
        rest = {name: value for name, value in plain.items() if name != "digest"}
        if plain.get("digest") != parsed(where, lambda: sha256(canonical(rest))):
            raise SealError(
                f"{where} was changed after sealing: its digest does not match its content; restore the original"
            )
        commitment = parsed(where, lambda: cls._parse(rest))
        if commitment.to_dict() != plain:
            raise SealError(f"{where}: not what this version of lidp writes; open it with lidp {_version(rest)}")
        return commitment

    @classmethod
    def _parse(cls, rest: Mapping[str, Any]) -> Commitment:
        values = {name: value for name, value in rest.items() if name != "format"}
        values["plan"] = SealPlan.from_dict(values["plan"])
        commitment = cls(**values)
        checks.count(run=commitment.run)
        hashes = [commitment.coins, *commitment.files.values(), *([commitment.previous] if commitment.previous else [])]
        names = [name for name in commitment.files if name in ("candidates.jsonl", "candidates.npz")]
        if not all(_HASH.fullmatch(value) for value in hashes) or len(names) != 1:
            raise SealError("the hashes of its files are missing")
        if not isinstance(commitment.versions, dict):
            raise SealError("its versions are missing")
        check_time(commitment.created)
        if any("/" in name or name.startswith(".") or not name.isprintable() for name in commitment.files):
            raise SealError("it names files outside the folder")
        return commitment


def check_format(plain: Mapping[str, Any], where: object) -> None:
    """Raise ``SealError`` unless the file has the format of this version."""
    if plain.get("format") != FORMAT:
        raise SealError(
            f"{where}: format {plain.get('format')!r:.40} is unknown; this version of lidp reads format {FORMAT}"
        )


def check_time(text: object) -> None:
    """Raise ``SealError`` unless a text is a time as lidp writes it: in UTC, to the second."""
    if not isinstance(text, str) or not _TIME.fullmatch(text):
        raise SealError(f"expected a time such as 2030-01-31T12:00:00+00:00, got {text!r:.40}")


def _version(plain: Mapping[str, Any]) -> str:
    versions = plain.get("versions")
    return str(versions.get("lidp", "of that time")) if isinstance(versions, dict) else "of that time"
