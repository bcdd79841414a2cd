"""``Receipt``: one JSON file that states what was claimed, committed to, scored and found, and that anybody can check offline."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lidp.errors import InvalidArgument, SealError
from lidp.rounding import at_least, at_most, counted, exact
from lidp.seals.files import canonical, read_json, replace_file, sha256
from lidp.seals.opening import OpenedSeal, SealedResult
from lidp.seals.plan import FORMAT, check_format
from lidp.seals.signatures import sign

_BESIDE_THE_DIGEST = ("digest", "signature")
STATEMENTS = (
    "format", "claim", "plan", "commitments", "look", "runs", "evidence_hash", "bound", "verdict", "verdicts", "assumptions",
    "versions", "created", "evidence", *_BESIDE_THE_DIGEST,
)  # fmt: skip
"""The names of all entries of a receipt."""


@dataclass(frozen=True)
class Receipt:
    """The content of a receipt, as plain data. Nothing in it is believed before :func:`verify_receipt` has checked it."""

    plain: Mapping[str, Any]

    @property
    def digest(self) -> str:
        """The hash of everything but the digest and the signature."""
        return digest_of(self.plain)

    def signed(self, key: str | Path) -> Receipt:
        """Return the receipt with a signature by the private key in a PEM file."""
        return Receipt({**self.plain, "signature": sign(self.digest, Path(key))})

    def write(self, path: str | Path) -> None:
        """Write the receipt; an existing file is replaced."""
        replace_file(Path(path), (json.dumps(self.plain, indent=1, allow_nan=False) + "\n").encode())


def digest_of(plain: Mapping[str, Any]) -> str:
    """Return the digest of the content of a receipt."""
    return sha256(canonical({name: value for name, value in plain.items() if name not in _BESIDE_THE_DIGEST}))


def make_receipt(opened: OpenedSeal, *, with_evidence: bool = True) -> Receipt:
    """Return the receipt of an opening, with ids, scores, coins and salts unless they are to be left out.

    Raises:
        InvalidArgument: if the result is not told yet.
    """
    result = opened.result
    if result is None:
        raise InvalidArgument("there is no receipt while looks are left; open the seal with --last (last=True)")
    plain = {
        "format": FORMAT,
        "claim": opened.plan.claim.to_dict(),
        "plan": opened.plan.to_dict(),
        "commitments": [run.commitment.to_dict() for run in opened.evidence],
        "look": opened.look.number,
        "runs": [{"scores": run.hash, "failed": run.failed} for run in opened.evidence],
        "evidence_hash": opened.evidence_hash,
        "bound": json.loads(result.bound.to_json()),
        "verdict": str(opened.verdict),
        "verdicts": {name: str(verdict) for name, verdict in result.verdicts.items()},
        "assumptions": list(result.assumptions),
        "versions": dict(result.computed_with),
        "created": opened.time,
        "evidence": [run.to_dict() for run in opened.evidence] if with_evidence else None,
    }
    return Receipt({**plain, "digest": digest_of(plain)})


def read_receipt(path: str | Path) -> Receipt:
    """Return the receipt in a file, unchecked.

    Raises:
        SealError: if it is not JSON, or has another format.
    """
    path = Path(path)
    plain = read_json(path.resolve())
    check_format(plain, path)
    missing = [
        name for name in ("claim", "plan", "commitments", "runs", "bound", "verdict", "evidence") if name not in plain
    ]
    if missing:
        raise SealError(f"{path}: not a receipt of lidp: {missing[0]} is missing")
    return Receipt(plain)


def model_card(result: SealedResult, receipt: Receipt) -> str:
    """Return a block of Markdown about the audit, for the card of a model."""
    bound, claim = result.bound, result.claim
    trainings = f"{bound.trials} training" + ("s" if bound.trials > 1 else "")
    lines = [
        "## Privacy audit",
        "",
        f"- Claim: {claim}.",
        f"- Verdict: **{result.verdict}** ({bound.certainty}).",
        f"- Lower bound at δ = {exact(claim.delta)}: ε ≥ {at_least(bound.epsilon, above=claim.epsilon)}"
        f", where at most {at_most(claim.epsilon)} is claimed.",
        f"- Hypothesis tested: {bound.hypothesis.meaning}.",
        f"- Evidence: {trainings}, {counted(bound.canaries, 'candidates')} each, sealed before training; method {bound.method}.",
        f"- Assumes: {'; '.join(result.assumptions)}.",
        *(f"- Commitment: `{digest}`" for digest in result.digests[-1:]),
        f"- Receipt: `{receipt.digest}`, checked by `lidp verify receipt.json` (lidp {result.computed_with.get('lidp', '')}).",
        "- A verdict of *not refuted* does not prove the claim.",
    ]
    return "\n".join(lines) + "\n"
