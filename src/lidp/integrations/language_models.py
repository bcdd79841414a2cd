"""Score text candidates by a causal language model of Hugging Face ``transformers``, with or without LoRA by ``peft``.

    add_new_tokens(model, tokenizer, "sealed/new_tokens.txt")  # before get_peft_model; only for canaries with new tokens
    ...  # train
    score_candidates(model, tokenizer, "sealed/candidates.jsonl", "scores.csv")

The score of a text is minus its loss under the trained model, relative to its loss under the starting model.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lidp import checks
from lidp.arrays import Floats
from lidp.errors import AuditFailed, InvalidArgument, InvalidData
from lidp.integrations.language_model_setup import add_new_tokens, require_supported
from lidp.rounding import counted
from lidp.seals.trainer_files import read_candidates, write_scores

__all__ = [
    "CandidateScores",
    "SequenceLosses",
    "add_new_tokens",
    "require_supported",
    "score_candidates",
    "score_texts",
    "sequence_losses",
]


@dataclass(frozen=True)
class SequenceLosses:
    """The loss of each text: minus the sum of the log-probabilities of its tokens after the first one."""

    losses: Floats
    truncated: int
    """How many texts were longer than ``max_length`` tokens, and were cut."""
    max_length: int


@dataclass(frozen=True)
class CandidateScores:
    """Scores of candidates in the order of their file; higher means "looks more inserted"."""

    ids: tuple[str, ...]
    scores: Floats
    truncated: int
    max_length: int

    def __str__(self) -> str:
        cut = f"; {self.truncated:,} were cut to {self.max_length:,} tokens" if self.truncated else ""
        return f"{counted(len(self.ids), 'candidates')} scored{cut}"


def sequence_losses(
    model: Any, tokenizer: Any, texts: Sequence[str], *, batch_size: int = 16, max_length: int | None = None
) -> SequenceLosses:
    """Return the loss of each text under a causal language model in evaluation mode, without dropout.

    Texts are encoded by ``tokenizer(text)``, padded on the right, and padding is masked, so that the loss of a text does not
    depend on its batch, up to rounding. Texts of more than ``max_length`` tokens (by default, of as many as the model has
    positions) are cut.

    Raises:
        InvalidData: if a text has fewer than two tokens, so that there is nothing to predict.
    """
    import torch

    model = _unwrapped(model)
    checks.count(batch_size=batch_size)
    limit = _positions(model) if max_length is None else checks.count(max_length=max_length)
    encoded = [list(tokenizer(text)["input_ids"]) for text in texts]
    short = [number for number, ids in enumerate(encoded) if len(ids) < 2]
    if short:
        raise InvalidData(
            f"text {short[0] + 1} has fewer than two tokens, and {len(short):,} of {len(texts):,} have; nothing to score"
        )
    order = np.argsort([len(ids) for ids in encoded], kind="stable")
    losses = np.empty(len(texts))
    with _evaluating(model), torch.no_grad():
        for start in range(0, len(order), batch_size):
            chosen = order[start : start + batch_size]
            losses[chosen] = _batch_losses(model, [encoded[number][:limit] for number in chosen])
    return SequenceLosses(losses, sum(len(ids) > limit for ids in encoded), limit)


def _batch_losses(model: Any, sequences: Sequence[list[int]]) -> Floats:
    """Return the loss of each sequence of token ids."""
    import torch

    width = max(len(ids) for ids in sequences)
    device = next(model.parameters()).device
    ids = torch.tensor([sequence + [0] * (width - len(sequence)) for sequence in sequences], device=device)
    mask = torch.tensor([[1] * len(sequence) + [0] * (width - len(sequence)) for sequence in sequences], device=device)
    logits = model(input_ids=ids, attention_mask=mask).logits[:, :-1].float()
    losses = torch.nn.functional.cross_entropy(logits.transpose(1, 2), ids[:, 1:], reduction="none")
    totals: Floats = (losses.double() * mask[:, 1:]).sum(dim=1).cpu().numpy()
    return totals


@contextmanager
def _evaluating(model: Any) -> Iterator[None]:
    """Put a model into evaluation mode for a while."""
    training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(training)


def _unwrapped(model: Any) -> Any:
    """Return the model inside the wrapper that ``make_private`` returned; other models as they are."""
    return getattr(model, "_module", model)


def _positions(model: Any) -> int:
    """Return the largest number of tokens that a model takes."""
    limit = getattr(model.config, "max_position_embeddings", None)
    if limit is None:
        raise InvalidArgument(
            f"the configuration of {type(model).__name__} states no max_position_embeddings; pass max_length="
        )
    return int(limit)


def score_texts(
    model: Any,
    tokenizer: Any,
    texts: Sequence[str],
    *,
    starting_model: Any = None,
    batch_size: int = 16,
    max_length: int | None = None,
) -> tuple[Floats, SequenceLosses]:
    """Return the score of each text, and its loss under the trained model.

    See :func:`score_candidates` for the arguments.
    """
    trained = _unwrapped(model)
    options: dict[str, Any] = {"batch_size": batch_size, "max_length": max_length}
    losses = sequence_losses(trained, tokenizer, texts, **options)
    if starting_model is not None:
        start = sequence_losses(starting_model, tokenizer, texts, **options)
    elif hasattr(trained, "disable_adapter"):
        with trained.disable_adapter():
            start = sequence_losses(trained, tokenizer, texts, **options)
    else:
        raise InvalidArgument(
            f"{type(trained).__name__} has no adapter to switch off; pass starting_model=, the model before training "
            "(copy.deepcopy(model), with the new tokens added)"
        )
    return start.losses - losses.losses, losses


def score_candidates(
    model: Any,
    tokenizer: Any,
    candidates: str | Path,
    scores: str | Path,
    *,
    starting_model: Any = None,
    text_field: str = "text",
    batch_size: int = 16,
    max_length: int | None = None,
) -> CandidateScores:
    """Score all candidates of a seal, and write the scores as CSV with the columns id and score.

    Args:
        model: the trained model, with or without the wrapper of ``make_private``.
        tokenizer: the tokenizer of the training.
        candidates: the file ``candidates.jsonl`` of a seal.
        scores: the file to write.
        starting_model: the model before training. With LoRA it may be left out: it is the model with its adapter switched off.
        text_field: the column that holds the text, for candidates that are records.
        batch_size: texts per forward pass.
        max_length: tokens per text, as in the training; longer texts are cut. Default: the positions of the model.

    Guarantee: keeps the audit valid. A score is a function of the trained model, the starting model and the candidate.

    Raises:
        AuditFailed: if a loss is not finite, as after a training that diverged.
    """
    ids, texts = read_candidates(candidates, text_field)
    options: dict[str, Any] = {"starting_model": starting_model, "batch_size": batch_size, "max_length": max_length}
    values, losses = score_texts(model, tokenizer, texts, **options)
    lost = int((~np.isfinite(values)).sum())
    if lost:
        raise AuditFailed(
            f"{lost:,} of {len(values):,} candidates have no finite loss: the training diverged. Report it by lidp open --failed, "
            "which counts the run; do not train again under the same seal"
        )
    write_scores(scores, ids, values)
    return CandidateScores(ids, values, losses.truncated, losses.max_length)
