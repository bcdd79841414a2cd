"""The evidence of sealed runs: scores by candidate, their hashes, the scores and coins that statistics use, and a compact form."""

from __future__ import annotations

import base64
import binascii
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lidp.arrays import Bools, Floats
from lidp.errors import InvalidScores, SealError
from lidp.scores import Scores
from lidp.seals.files import canonical, sha256
from lidp.seals.plan import Commitment, SealPlan
from lidp.seals.sealed_run import SealedRun, hash_coins

_FLOAT = np.dtype("<f8")


@dataclass(frozen=True, eq=False)
class RunEvidence:
    """What is known of one run when it is opened: scores in the order of candidates, or the reason why the training failed."""

    commitment: Commitment
    ids: NDArray[np.bytes_]
    coins: Bools
    salt: bytes
    scores: Floats | None
    failed: str | None = None

    @classmethod
    def of(cls, run: SealedRun, scores: Floats | None, failed: str | None = None) -> RunEvidence:
        """Return the evidence of a sealed run."""
        return cls(run.commitment, run.ids, run.coins, run.salt, scores, failed)

    @property
    def hash(self) -> str:
        """The hash of the scores, or of the fact that there are none, for this commitment."""
        return hash_scores(self.commitment.digest, self.scores)

    def to_dict(self) -> dict[str, Any]:
        """Return the evidence compactly, ready for JSON: about ten bytes per candidate."""
        return {
            "ids": _pack(bytes.fromhex(self.ids.tobytes().decode("ascii"))),
            "scores": None if self.scores is None else _pack(self.scores.astype(_FLOAT).tobytes()),
            "coins": _pack(np.packbits(self.coins).tobytes()),
            "salt": self.salt.hex(),
            "failed": self.failed,
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any], commitment: Commitment) -> RunEvidence:
        """Return the evidence that :meth:`to_dict` described. The plan says how large it is, so nothing larger is unpacked.

        Ids are random, so they cannot be packed. A small file with few of them therefore never unpacks to a large one.
        """
        size = commitment.plan.canaries
        if len(plain["ids"]) < 8 * size:
            raise SealError(f"the evidence is damaged: it has not the ids of {size:,} candidates")
        ids = np.frombuffer(_unpack(plain["ids"], 8 * size).hex().encode(), dtype="S16")
        if len(np.unique(ids)) != size:
            raise SealError("the evidence has an id twice")
        bits = np.frombuffer(_unpack(plain["coins"], -(-size // 8)), dtype=np.uint8)
        packed, failed = plain["scores"], plain["failed"]
        if (packed is None) != isinstance(failed, str):
            raise SealError("a run has either scores or a reason why it failed")
        scores = None if packed is None else np.frombuffer(_unpack(packed, 8 * size), dtype=_FLOAT).astype(np.float64)
        coins = np.unpackbits(bits, count=size).astype(np.bool_)
        return cls(commitment, ids, coins, bytes.fromhex(plain["salt"]), scores, failed)

    def check_coins(self) -> None:
        """Raise ``SealError`` unless the coins are the committed ones."""
        if hash_coins(self.salt, self.coins) != self.commitment.coins:
            raise SealError(f"the coins of run {self.commitment.run} are not the committed ones")


def hash_scores(digest: str, scores: Floats | None) -> str:
    """Return the hash of the scores of the run with this commitment; None stands for a failed training."""
    if scores is None:
        return sha256(digest.encode(), b" failed")
    return sha256(digest.encode(), b" scores ", scores.astype(_FLOAT).tobytes())


def hash_evidence(hashes: Sequence[str]) -> str:
    """Return the hash of the evidence of several runs."""
    return sha256(canonical(list(hashes)))


def scores_of(plan: SealPlan, runs: Sequence[RunEvidence]) -> Scores:
    """Return scores and coins as trials x candidates; nothing is bet on runs that failed.

    Raises:
        InvalidScores: if the coins are not fair, which coins that ``lidp seal`` drew are not in one of 10^12 seals.
    """
    nothing = np.zeros(plan.canaries)
    try:
        return Scores.of_block(
            neighbours=plan.claim.neighbours,
            scores=np.stack([nothing if run.scores is None else run.scores for run in runs]),
            coins=np.stack([run.coins for run in runs]),
            failed=np.array([run.scores is None for run in runs]),
        )
    except InvalidScores as error:
        raise InvalidScores(f"these coins cannot come from lidp seal, which draws fair ones: {error}") from None


def _pack(content: bytes) -> str:
    return base64.b64encode(zlib.compress(content)).decode("ascii")


def _unpack(text: Any, size: int) -> bytes:
    """Return exactly ``size`` bytes, without unpacking more than that."""
    unpacker = zlib.decompressobj()
    try:
        content = unpacker.decompress(base64.b64decode(text, validate=True), size + 1)
    except (zlib.error, binascii.Error) as error:
        raise SealError(f"the evidence is damaged ({error})") from None
    if len(content) != size:
        raise SealError(
            f"the evidence is damaged: expected {size:,} bytes, got {'more' if len(content) > size else 'fewer'}"
        )
    return content
