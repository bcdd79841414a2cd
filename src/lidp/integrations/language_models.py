"""Score text candidates by a causal language model of Hugging Face ``transformers``, with or without LoRA by ``peft``.

    add_new_tokens(model, tokenizer, "sealed/new_tokens.txt")  # before get_peft_model; only for canaries with new tokens
    ...  # train
    score_candidates(model, tokenizer, "sealed/candidates.jsonl", "scores.csv")

The score of a text is minus its loss under the trained model, relative to its loss under the starting model.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lidp import checks
from lidp._runtime.terminal_text import printable
from lidp.arrays import Floats
from lidp.errors import AuditFailed, InvalidArgument, InvalidData
from lidp.integrations.sealed import write_scores

_MAX_BYTES = 2**32
_EMBEDDING_SEED = 20_240_917
"""Draws the embeddings of new tokens; public, and the same whoever is inserted."""


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
        return f"{len(self.ids):,} candidates scored{cut}"


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
        raise InvalidData(f"text {short[0] + 1} has fewer than two tokens, and {len(short):,} of {len(texts):,} have; nothing to score")
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
        raise InvalidArgument(f"the configuration of {type(model).__name__} states no max_position_embeddings; pass max_length=")
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


def read_candidates(path: str | Path, text_field: str = "text") -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the ids and texts of the candidates of a seal.

    Raises:
        InvalidData: if the file is not a list of candidates with texts.
    """
    path = Path(path)
    ids, texts = [], []
    for number, line in enumerate(_lines(path), start=1):
        identifier, text = _candidate(f"{path}, line {number}", line, text_field)
        ids.append(identifier)
        texts.append(text)
    if not ids:
        raise InvalidData(f"{path}: there are no candidates in it")
    if len(set(ids)) < len(ids):
        raise InvalidData(f"{path}: an id occurs twice; give the candidates.jsonl of one seal")
    return tuple(ids), tuple(texts)


def _candidate(where: str, line: str, text_field: str) -> tuple[str, str]:
    """Return the id and the text of one line."""
    try:
        plain = json.loads(line)
    except (ValueError, RecursionError):
        raise InvalidData(f"{where}: not JSON; expected a candidate of lidp seal") from None
    identifier = plain.get("id") if isinstance(plain, dict) else None
    if not isinstance(identifier, str):
        raise InvalidData(f"{where}: a candidate needs an id; expected the candidates.jsonl of lidp seal")
    record = plain.get("record")
    text = record.get(text_field) if isinstance(record, dict) else plain.get("text")
    if not isinstance(text, str):
        raise InvalidData(f"{where}: candidate {printable(identifier)} has no text; give the column that holds it as text_field=")
    return identifier, text


def _lines(path: Path) -> list[str]:
    """Return the lines of a file that are not empty."""
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise InvalidData(f"{path}: more than {_MAX_BYTES // 2**30} GB; expected a file of lidp seal")
        return [line for line in path.read_text(encoding="utf-8").split("\n") if line.strip()]
    except OSError as error:
        raise InvalidData(f"{path}: cannot be read: {error.strerror}; give the file of lidp seal") from None
    except UnicodeDecodeError:
        raise InvalidData(f"{path}: not text in UTF-8; give the file of lidp seal") from None


def add_new_tokens(model: Any, tokenizer: Any, new_tokens: str | Path | Sequence[str]) -> tuple[int, ...]:
    """Add the new tokens of all candidates to a tokenizer, give the model embeddings for them, and return their ids.

    Call it before ``get_peft_model`` and before ``make_private``. The embeddings have the mean and the spread of the existing ones,
    and come from a fixed public seed: they are the same whoever is inserted.

    Args:
        model: a model that has not been wrapped yet.
        tokenizer: its tokenizer, which must not know the tokens.
        new_tokens: the file ``new_tokens.txt`` of a seal, or a list of tokens.
    """
    if hasattr(model, "disable_adapter") or hasattr(model, "_module"):
        raise InvalidArgument("add new tokens to the plain model, before get_peft_model and make_private")
    tokens = [line.strip() for line in _lines(Path(new_tokens))] if isinstance(new_tokens, (str, Path)) else list(new_tokens)
    known = tokenizer.get_vocab()
    present = [token for token in tokens if token in known]
    if present:
        raise InvalidData(f"the tokenizer already knows {len(present):,} of the new tokens, such as {printable(present[0])}; seal again")
    tokenizer.add_tokens(tokens)
    ids = tuple(int(number) for number in tokenizer.convert_tokens_to_ids(tokens))
    rows = model.get_input_embeddings().weight.shape[0]
    if len(tokenizer) > rows:
        model.resize_token_embeddings(len(tokenizer), mean_resizing=False)
    _initialise(model, ids)
    return ids


def _initialise(model: Any, ids: Sequence[int]) -> None:
    """Draw the embeddings of these tokens like the other ones, from the fixed seed."""
    import torch

    layers = [model.get_input_embeddings(), model.get_output_embeddings()]
    seen: set[int] = set()
    for layer in layers:
        if layer is None or id(layer.weight) in seen or not ids:
            continue
        seen.add(id(layer.weight))
        with torch.no_grad():
            weight = layer.weight
            others = torch.ones(len(weight), dtype=torch.bool)
            others[list(ids)] = False
            old = weight.detach()[others].float().cpu()
            noise = torch.randn((len(ids), weight.shape[1]), generator=torch.Generator().manual_seed(_EMBEDDING_SEED))
            rows = old.mean(dim=0) + old.std(dim=0) * noise
            weight[list(ids)] = rows.to(weight.device, weight.dtype)
            if getattr(layer, "bias", None) is not None:
                layer.bias[list(ids)] = 0.0


_REFUSED_PARAMETERS = {
    "lora_embedding_": "LoRA of an embedding has no per-sample gradients; train the embedding whole: modules_to_save=[...]",
    "trainable_tokens_": "trainable_token_indices has no per-sample gradients; train the embedding whole: modules_to_save=[...]",
    "lora_magnitude_vector": "DoRA has no per-sample gradients; leave out use_dora",
}


def require_supported(model: Any, grad_sample_mode: str = "hooks") -> None:
    """Raise if Opacus has no per-sample gradients for a trainable part of a model; call it before ``make_private``.

    Opacus itself fails in the middle of the first step, or not at all.

    Raises:
        AuditFailed: the message names the part and the remedy.
    """
    trainable = [(name, tensor) for name, tensor in model.named_parameters(remove_duplicate=False) if tensor.requires_grad]
    if not trainable:
        raise AuditFailed("no parameter is trainable; unfreeze some, or add an adapter by get_peft_model")
    for name, _ in trainable:
        for part, remedy in _REFUSED_PARAMETERS.items():
            if part in name:
                raise AuditFailed(f"{name}: Opacus does not support it. {remedy}")
    if any(getattr(module, "gradient_checkpointing", False) for module in model.modules()):
        raise AuditFailed(
            "gradient checkpointing runs each layer twice, which the hooks of Opacus do not support; leave it out and use "
            "BatchMemoryManager with smaller physical batches"
        )
    tied = [name for name, tensor in trainable if sum(tensor is other for _, other in trainable) > 1]
    if tied and grad_sample_mode.startswith("ghost"):
        raise AuditFailed(
            f"{' and '.join(tied)} are one tied weight, whose norm ghost clipping cannot compute; use grad_sample_mode='hooks', or "
            "untie them (tie_word_embeddings=False)"
        )
