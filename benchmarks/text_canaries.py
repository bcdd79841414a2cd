"""How much each kind of text canary shows: the same two-layer GPT-2 with LoRA, fine-tuned with Opacus on the same records.

The model and its training are those of ``examples/language_models/lora_gpt2.py``; adapters, embeddings and the output layer are
trained, whatever the canaries. Prints a Markdown table. Needs the extra ``llm``; takes some minutes.
"""

from __future__ import annotations

import importlib.util
import warnings
from pathlib import Path

import numpy as np

import lidp
from lidp.canaries.text import TextCanaryKind, text_canaries

ROOT = Path(__file__).parent.parent
RECORDS, CANARIES, RUNS, WORDS = 300, 200, 3, 8
NOISES = (1.5, 0.5)
OPTIONS = (
    "--epochs",
    10,
    "--steps-per-epoch",
    2,
    "--batch-size",
    200,
    "--max-grad-norm",
    0.1,
    "--learning-rate",
    0.01,
    "--length",
    48,
)
DELTA, FAILURE_PROBABILITY = 1e-5, 0.05


def main() -> None:
    import torch

    torch.set_num_threads(1)
    example = _load_example()
    print(
        f"{RUNS} models x {CANARIES} canaries of {WORDS} words in {RECORDS} records; δ = {DELTA:g}, β = {FAILURE_PROBABILITY:g}\n"
    )
    print("| noise multiplier | ε of the accountant | canaries | ε̂ | TPR at 1 % FPR | area under the ROC curve |")
    print("|---|---|---|---|---|---|")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Opacus, peft and transformers warn about themselves
        for noise in NOISES:
            for kind in TextCanaryKind:
                print(_row(example, noise, kind), flush=True)


def _row(example: object, noise: float, kind: TextCanaryKind) -> str:
    """Return a row of the table."""
    runs = [_train(example, noise, kind, seed) for seed in range(RUNS)]
    scores, coins = np.array([run[0] for run in runs]), np.array([run[1] for run in runs])
    bound = lidp.bound(lidp.Scores(scores=scores, coins=coins), delta=DELTA, failure_probability=FAILURE_PROBABILITY)
    inserted, held_out = scores[coins == 1], scores[coins == 0]
    rate = float((inserted > np.quantile(held_out, 0.99, method="higher")).mean())
    area = float((inserted[:, None] > held_out).mean())
    return f"| {noise:g} | {runs[0][2]:.1f} | {kind} | {bound.epsilon:.2f} | {100 * rate:.1f} % | {area:.2f} |"


def _train(example, noise, kind, seed):  # type: ignore[no-untyped-def]  # the example is a module
    """Return the scores and coins of one training, and the ε of its accountant."""
    import torch

    from lidp.integrations.language_models import add_new_tokens, score_texts

    words = (ROOT / "LICENSE").read_text(encoding="utf-8").split()
    coin_rng, canary_rng, data_rng = np.random.default_rng([seed, 18]).spawn(3)
    coins = coin_rng.integers(0, 2, CANARIES)
    records = [" ".join(words[start : start + WORDS]) for start in data_rng.integers(0, len(words) - WORDS, RECORDS)]
    canaries = text_canaries(kind, records, CANARIES, canary_rng, length=WORDS)
    options = example.parser().parse_args(["--seal", ".", *map(str, OPTIONS), "--noise-multiplier", str(noise)])
    tokenizer = example.byte_tokenizer()
    torch.manual_seed(0)
    model = example.gpt2(tokenizer, positions=options.length)
    add_new_tokens(model, tokenizer, canaries.new_tokens)
    model = example.with_lora(model, options.rank, new_tokens=True)
    torch.manual_seed(1_000 + seed)
    inserted = [text for text, coin in zip(canaries.texts, coins, strict=True) if coin]
    model, engine = example.train(model, example.encode(tokenizer, records + inserted, options.length), options)
    scores, _ = score_texts(model, tokenizer, canaries.texts, max_length=options.length)
    return scores, coins, engine.get_epsilon(DELTA)


def _load_example():  # type: ignore[no-untyped-def]
    spec = importlib.util.spec_from_file_location("lora_gpt2", ROOT / "examples" / "language_models" / "lora_gpt2.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
