"""A two-layer GPT-2 with LoRA from the example, seals for it, and its training."""

from __future__ import annotations

import importlib.util
import json
from functools import cache
from pathlib import Path

import numpy as np

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


def write_texts(path, texts):
    """Write a data set of texts as JSONL."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts), encoding="utf-8")
    return path


def train(folder, *options, seed, data=None):
    """Train one model under a seal with the example, and return the file of its scores."""
    scores = folder.with_suffix(".csv")
    given = [] if data is None else ["--data", str(data)]
    example().main(["--seal", str(folder), "--scores", str(scores), "--seed", str(seed), *given, *map(str, options)])
    return scores
