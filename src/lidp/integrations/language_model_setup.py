"""Prepare a language model for an audited fine-tuning: add new tokens, and refuse parts that Opacus cannot train."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lidp._runtime.terminal_text import printable
from lidp.errors import AuditFailed, InvalidArgument, InvalidData
from lidp.seals.trainer_files import read_lines

_EMBEDDING_SEED = 20_240_917
"""Draws the embeddings of new tokens; public, and the same whoever is inserted."""


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
    tokens = (
        [line.strip() for line in read_lines(Path(new_tokens))] if isinstance(new_tokens, (str, Path)) else list(new_tokens)
    )
    known = tokenizer.get_vocab()
    present = [token for token in tokens if token in known]
    if present:
        raise InvalidData(
            f"the tokenizer already knows {len(present):,} of the new tokens, such as {printable(present[0])}; seal again"
        )
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
