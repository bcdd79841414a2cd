"""A two-layer GPT-2 with LoRA from the example, seals for it, and its training."""

from __future__ import annotations

import csv
import importlib.util
import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

import lidp
from lidp.canaries.text import text_canaries

ROOT = Path(__file__).parent.parent.parent
WORDS = 8  # of a record


@cache
def example():
    """Return the module of the example."""
    path = ROOT / "examples" / "language_models" / "lora_gpt2.py"
    spec = importlib.util.spec_from_file_location("lora_gpt2", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def records(count=400):
    """Return texts: runs of words of the licence."""
    words = (ROOT / "LICENSE").read_text(encoding="utf-8").split()
    starts = np.random.default_rng(0).integers(0, len(words) - WORDS, count)
    return [" ".join(words[start : start + WORDS]) for start in starts]


def small_gpt2(vocabulary=257, **options):
    """Return a GPT-2 of two layers of width 8, always with the same weights; with dropout."""
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(1)
    sizes = {"vocab_size": vocabulary, "n_positions": 48, "n_embd": 8, "n_layer": 2, "n_head": 2}
    return GPT2LMHeadModel(GPT2Config(**sizes, bos_token_id=0, eos_token_id=0, **options))


def lora(base=None, **options):
    """Return a model with LoRA whose adapter is not zero, as after training."""
    import torch
    from peft import LoraConfig, get_peft_model

    options = {"target_modules": ["c_attn"], "fan_in_fan_out": True} | options
    model = get_peft_model(small_gpt2() if base is None else base, LoraConfig(r=2, **options))
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "lora_B" in name:
                parameter.normal_(generator=torch.Generator().manual_seed(4))
    return model


@dataclass(frozen=True)
class Sealed:
    """A folder with the files that a trainer and a scorer get, and the coins in the order of the candidates."""

    folder: Path
    ids: list
    coins: np.ndarray

    def train(self, *options, seed):
        """Train with the example, and return the scores in the order of the candidates."""
        path = self.folder / "scores.csv"
        example().main(["--seal", str(self.folder), "--scores", str(path), "--seed", str(seed), *map(str, options)])
        with path.open(newline="", encoding="utf-8") as file:
            by_id = {row["id"]: float(row["score"]) for row in csv.DictReader(file)}
        return np.array([by_id[identifier] for identifier in self.ids])


def _write_lines(path, lines):
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def seal_gradients(folder, *, canaries, seed, data):
    """Write a seal of gradient canaries; the data have no canaries."""
    folder.mkdir(parents=True)
    coins, ids = _coins_and_ids(canaries, seed)
    inserted = [identifier for identifier, coin in zip(ids, coins, strict=True) if coin]
    plain = {"format": 1, "seed": seed, "canary": "dirac-gradient", "candidates": ids, "inserted": inserted}
    (folder / "planting.json").write_text(json.dumps(plain), encoding="utf-8")
    _write_lines(folder / "train.jsonl", [json.dumps({"text": text}) for text in data])
    return Sealed(folder, ids, coins)


def seal_texts(folder, *, kind, canaries, seed, data):
    """Write a seal of text canaries."""
    folder.mkdir(parents=True)
    coins, ids = _coins_and_ids(canaries, seed)
    drawn = text_canaries(kind, data, canaries, np.random.default_rng([seed, 2]), length=WORDS)
    inserted = [text for text, coin in zip(drawn.texts, coins, strict=True) if coin]
    _write_lines(folder / "train.jsonl", [json.dumps({"text": text}) for text in [*data, *inserted]])
    lines = [json.dumps({"id": i, "text": text}) for i, text in zip(ids, drawn.texts, strict=True)]
    _write_lines(folder / "candidates.jsonl", lines)
    if drawn.new_tokens:
        _write_lines(folder / "new_tokens.txt", drawn.new_tokens)
    return Sealed(folder, ids, coins)


def _coins_and_ids(canaries, seed):
    coins = np.random.default_rng([seed, 0]).integers(0, 2, canaries)
    return coins, [f"{number:016x}" for number in np.random.default_rng([seed, 3]).permutation(2**20)[:canaries]]


def refutes(scores, coins, claim, method):
    """Return whether some runs, one row each, refute a claim at β = .05."""
    bound = lidp.bound(lidp.Scores(scores=scores, coins=coins), delta=claim.delta, failure_probability=0.05, method=method)
    return bound.refutes(claim)
