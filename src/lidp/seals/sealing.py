"""``seal``: draw candidates and coins, write the data set to train on, and commit to everything that opening will use."""

from __future__ import annotations

import datetime as dt
import hashlib
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lidp import checks
from lidp._runtime.versions import versions
from lidp.arrays import Bools
from lidp.canaries.gradients import GradientCanary
from lidp.claim import Claim
from lidp.engine.procedure import could_refute
from lidp.errors import InvalidArgument
from lidp.scores import Scores
from lidp.seals.candidates import draw_candidates
from lidp.seals.files import hash_of, new_folder, write_bytes, write_json
from lidp.seals.plan import FORMAT, Commitment, SealPlan, choose_method
from lidp.seals.sealed_run import COINS, COMMITMENT, NEW_TOKENS, PLANTING, hash_coins, read_commitment
from lidp.seals.trainer_files import PlantingFile
from lidp.streams import check_seed

SEED_BITS = 128
_SALT_BYTES = 32
_MANY_COINS = 200_000  # so many refute every claim that a leaky training can break


class Draw(StrEnum):
    """What a random stream is for. Each purpose has a stream of its own."""

    COINS = "coins"
    CANDIDATES = "candidates"
    IDS = "ids"
    ORDER = "order"
    SALT = "salt"
    PLANTING = "planting"
    PLAN = "plan"


@dataclass(frozen=True)
class Seal:
    """A sealed run: where it is, and its public commitment."""

    folder: Path
    commitment: Commitment

    @property
    def digest(self) -> str:
        """The line to publish before training."""
        return self.commitment.digest

    @property
    def could_refute(self) -> bool:
        """Whether the planned runs, or one if their number is open, would refute a training that reveals every coin."""
        plan = self.commitment.plan
        runs = plan.runs or self.commitment.run
        if plan.canaries * runs > _MANY_COINS:
            return True
        nothing = np.zeros((runs, plan.canaries))
        scores = Scores.of_block(**{**plan.design.perfect_arrays(runs), "scores": nothing})
        return could_refute(
            plan.method, plan.claim, plan.design, scores, failure_probability=plan.failure_probability_per_look
        )

    @property
    def for_the_trainer(self) -> tuple[str, ...]:
        """The names of the files that whoever trains needs."""
        return tuple(name for name in self.commitment.files if not name.startswith("candidates."))


def seal(
    output: str | Path,
    *,
    claim: Claim,
    canaries: int,
    kind: str,
    data: str | Path | None = None,
    pool: str | Path | None = None,
    text_field: str = "text",
    canary_text: str = "new-tokens",
    secret_tokens: int = 0,
    fill: Mapping[str, str] | None = None,
    canary: str = "dirac-gradient",
    failure_probability: float = 0.05,
    looks: int = 1,
    runs: int | None = None,
    independent_canaries: bool = False,
    method: str | None = None,
    seed: int | None = None,
) -> Seal:
    """Seal the first run of a plan into a new folder.

    Args:
        output: the folder to create.
        claim: what is claimed about the training, for add-remove neighbours.
        canaries: the number of candidates; a fair coin decides for each whether it is inserted.
        kind: "text", "records" or "gradients".
        data: the data set to insert text or records into.
        pool: for records, the file that candidates are drawn from, without replacement.
        text_field: for text, the column to write canaries to; other columns get the values of ``fill``.
        canary_text: for text, "new-tokens", "random-tokens" or "sampled".
        secret_tokens: for text, the number of random words that follow.
        fill: for text, the values of canaries in the other columns.
        canary: for gradients, "dirac-gradient" or "random-gradient".
        failure_probability: β, the largest probability with which a true claim may be refuted, over all looks.
        looks: how many different sets of scores may be tried; each has failure probability β/looks.
        runs: the number of planned runs; None if it is open.
        independent_canaries: whether to test the curve together with the hypothesis that canaries do not interfere.
        method: the name of a method, instead of the strongest one for this claim and these runs.
        seed: for tests only: whoever knows it knows the coins. By default it comes from the operating system.

    Guarantee: coins are fair and come from a stream of their own. Nothing that the trainer or the scorer gets depends on them,
    except which candidates are in the data set: the position of a record among the others does not.
    """
    options = _options(kind, text_field, canary_text, secret_tokens, fill or {}, canary)
    if not isinstance(claim, Claim):
        raise InvalidArgument(f"claim must be a Claim, as in Claim(epsilon=2, delta=1e-5), got {claim!r}")
    entropy = secrets.randbits(SEED_BITS) if seed is None else check_seed(seed)
    plan = SealPlan(
        id=_stream(entropy, 1, Draw.PLAN).bytes(8).hex(),
        claim=claim,
        method=choose_method(claim, canaries, runs=runs, independent_canaries=independent_canaries, name=method),
        failure_probability=failure_probability,
        looks=looks,
        kind=kind,
        canaries=canaries,
        options=options,
        runs=runs,
    )
    return _seal_run(Path(output), plan, 1, None, data, pool, entropy)


def seal_next(
    like: str | Path,
    output: str | Path,
    *,
    data: str | Path | None = None,
    pool: str | Path | None = None,
    seed: int | None = None,
) -> Seal:
    """Seal the next run of the plan of another seal: new candidates, ids and coins, everything else as committed."""
    before = read_commitment(Path(like))
    if before.plan.runs is not None and before.run >= before.plan.runs:
        raise InvalidArgument(f"{like} is run {before.run} of {before.plan.runs} planned runs; there is no next one")
    entropy = secrets.randbits(SEED_BITS) if seed is None else check_seed(seed)
    return _seal_run(Path(output), before.plan, before.run + 1, before.digest, data, pool, entropy)


def _options(
    kind: str, text_field: str, canary_text: str, secret_tokens: int, fill: Mapping[str, str], canary: str
) -> dict[str, Any]:
    if kind == "text":
        secret = 0 if not secret_tokens else checks.count(secret_tokens=secret_tokens)
        return {"text_field": text_field, "canary_text": canary_text, "secret_tokens": secret, "fill": dict(fill)}
    if kind == "gradients":
        return {"canary": str(checks.member(GradientCanary, canary=canary))}
    return {}


def _stream(entropy: int, run: int, purpose: Draw) -> np.random.Generator:
    """Return the generator for one purpose of one run. A hash separates streams: what one draws tells nothing about others."""
    digest = hashlib.sha256(f"lidp seal {entropy} {run} {purpose}".encode()).digest()
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(int.from_bytes(digest))))


def _seal_run(
    output: Path,
    plan: SealPlan,
    run: int,
    previous: str | None,
    data: str | Path | None,
    pool: str | Path | None,
    entropy: int,
) -> Seal:
    candidates = draw_candidates(plan, data, pool, _stream(entropy, run, Draw.CANDIDATES))
    coins = _stream(entropy, run, Draw.COINS).integers(0, 2, plan.canaries).astype(np.bool_)
    ids = _draw_ids(plan.canaries, _stream(entropy, run, Draw.IDS))
    salt = _stream(entropy, run, Draw.SALT).bytes(_SALT_BYTES)
    with new_folder(output) as folder:
        candidates.write_list(folder, ids)
        if candidates.table is None:
            planting_seed = int(_stream(entropy, run, Draw.PLANTING).integers(0, 2**62))
            names, inserted = (tuple(some.astype(str).tolist()) for some in (ids, ids[coins]))
            kind = GradientCanary(plan.options["canary"])
            PlantingFile(planting_seed, kind, names, inserted).write(folder / PLANTING)
        else:
            candidates.write_data(folder, coins, _stream(entropy, run, Draw.ORDER))
        if candidates.new_tokens:
            write_bytes(folder / NEW_TOKENS, "".join(f"{token}\n" for token in candidates.new_tokens).encode())
        commitment = Commitment(
            plan=plan,
            run=run,
            previous=previous,
            coins=hash_coins(salt, coins),
            files={file.name: hash_of(file) for file in sorted(folder.iterdir())},
            versions=versions(),
            created=now(),
        )
        _write_coins(folder / COINS, ids, coins, salt, entropy)
        write_json(folder / COMMITMENT, commitment.to_dict())
    return Seal(output, commitment)


def now() -> str:
    """Return the time in UTC, to the second."""
    return dt.datetime.now(dt.UTC).isoformat(timespec="seconds")


def _draw_ids(size: int, rng: np.random.Generator) -> NDArray[np.bytes_]:
    """Return different random ids of 16 hexadecimal digits."""
    words = np.unique(rng.integers(0, 2**64, size, dtype=np.uint64))
    while len(words) < size:  # in one of 10^7 seals of a million candidates
        words = np.unique(np.concatenate([words, rng.integers(0, 2**64, size - len(words), dtype=np.uint64)]))
    return np.frombuffer(rng.permutation(words).astype(">u8").tobytes().hex().encode(), dtype="S16")


def _write_coins(path: Path, ids: NDArray[np.bytes_], coins: Bools, salt: bytes, entropy: int) -> None:
    by_id = dict(zip(ids.astype(str).tolist(), coins.astype(int).tolist(), strict=True))
    write_json(path, {"format": FORMAT, "salt": salt.hex(), "coins": by_id, "seed": entropy}, private=True, indent=None)
