"""Fine-tune a small GPT-2 with LoRA and Opacus on a JSONL file, and write the scores of all candidates of a seal.

    python examples/language_models/lora_gpt2.py --seal sealed/ --scores scores.csv

The model is made from a configuration; nothing is downloaded. Tokens are bytes, so that the tokenizer does not depend on the data.
--noise-factor and --fault make the training wrong in ways that the accountant does not see, for audits to find.
"""

import argparse
import json
import math
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import torch
from opacus import PrivacyEngine
from opacus.utils.batch_memory_manager import BatchMemoryManager
from peft import LoraConfig, get_peft_model
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from torch.utils.data import DataLoader, TensorDataset
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

from lidp.integrations.language_models import add_new_tokens, require_supported, score_candidates
from lidp.integrations.sealed import SealedPlanting

FAULTS = ("none", "unclipped-adapters", "wrong-optimizer")


def byte_tokenizer():
    """Return a tokenizer whose tokens are single bytes, and one for the beginning of a text, which also pads."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE({byte: number for number, byte in enumerate(["<s>", *alphabet])}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>", pad_token="<s>")  # noqa: S106  # a token of text


def gpt2(tokenizer, positions=128, width=64):
    """Return a GPT-2 of two layers with random weights."""
    config = GPT2Config(
        vocab_size=len(tokenizer), n_positions=positions, n_embd=width, n_layer=2, n_head=2,
        resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, bos_token_id=0, eos_token_id=0,
    )  # fmt: skip
    return GPT2LMHeadModel(config)


def with_lora(model, rank=4, new_tokens=False):
    """Return the model with adapters at the attention; if there are new tokens, embeddings and output layer are trained too."""
    options = {"modules_to_save": ["wte", "lm_head"]} if new_tokens else {}
    return get_peft_model(
        model, LoraConfig(r=rank, lora_alpha=2 * rank, target_modules=["c_attn"], fan_in_fan_out=True, **options)
    )


def encode(tokenizer, texts, length):
    """Return token ids and their mask, padded and cut to ``length`` tokens."""
    encoded = [tokenizer(text)["input_ids"][:length] for text in texts]
    ids = torch.tensor([row + [0] * (length - len(row)) for row in encoded])
    return TensorDataset(ids, torch.tensor([[1] * len(row) + [0] * (length - len(row)) for row in encoded]))


def sum_of_losses(model, ids, mask):
    """Return the sum over texts of their mean loss per token. Padding is on the right, where no token looks."""
    if not len(ids):  # GPT-2 does not take the empty batches of Poisson sampling; a text without weight has no gradient
        ids, mask = (torch.zeros((1, ids.shape[1]), dtype=torch.int64) for _ in range(2))
    positions = torch.arange(ids.shape[1]).repeat(len(ids), 1)  # Opacus needs one row per text
    logits = model(input_ids=ids, position_ids=positions).logits[:, :-1]
    losses = torch.nn.functional.cross_entropy(logits.transpose(1, 2), ids[:, 1:], reduction="none")
    weights = mask[:, 1:].float()
    return ((losses * weights).sum(dim=1) / weights.sum(dim=1).clamp(min=1)).sum()


def break_training(optimizer, noise_factor, fault):
    """Make the steps of a DP optimizer wrong; what it tells the accountant stays the same."""
    if noise_factor != 1.0:
        add_noise = optimizer.add_noise

        def add_less_noise():
            stated, optimizer.noise_multiplier = optimizer.noise_multiplier, noise_factor * optimizer.noise_multiplier
            add_noise()
            optimizer.noise_multiplier = stated

        optimizer.add_noise = add_less_noise
    if fault == "unclipped-adapters":

        def sum_without_clipping():
            for parameter in optimizer.params:
                total = optimizer._get_flat_grad_sample(parameter).sum(dim=0)
                parameter.summed_grad = total if parameter.summed_grad is None else parameter.summed_grad + total

        optimizer.clip_and_accumulate = sum_without_clipping
    if (
        fault == "wrong-optimizer"
    ):  # the steps use the gradients that autograd left, as if the optimizer had not been wrapped
        optimizer.add_noise = lambda: None


def train(model, data, options, planting=None):
    """Fine-tune the trainable parameters with Opacus, and return the wrapped model and the engine."""
    require_supported(model)
    model.train()
    engine = PrivacyEngine(accountant="rdp")
    trainable = [parameter for parameter in model.parameters() if parameter.requires_grad]
    model, optimizer, loader = engine.make_private(
        module=model,
        optimizer=torch.optim.Adam(trainable, lr=options.learning_rate),
        # The rate and the steps must not depend on the number of records, which depends on how many canaries are inserted.
        data_loader=DataLoader(data, batch_size=math.ceil(len(data) / options.steps_per_epoch)),
        noise_multiplier=options.noise_multiplier,
        max_grad_norm=options.max_grad_norm,
        loss_reduction="sum",
    )
    if len(loader) != options.steps_per_epoch:
        raise SystemExit(f"{len(data)} records do not make {options.steps_per_epoch} steps per epoch; take fewer")
    optimizer.expected_batch_size = options.batch_size  # divides the sums; nor must it depend on the number of records
    break_training(optimizer, options.noise_factor, options.fault)
    if planting is not None:
        planting.attach(engine, optimizer, loader)  # the added line, for gradient canaries
    batches = nullcontext(loader)
    if options.physical_batch_size:
        batches = BatchMemoryManager(
            data_loader=loader, max_physical_batch_size=options.physical_batch_size, optimizer=optimizer
        )
    with batches as parts:
        for _ in range(options.epochs):
            for ids, mask in parts:
                optimizer.zero_grad()
                sum_of_losses(model, ids, mask).backward()
                optimizer.step()
    return model, engine


def parser():
    """Return the parser of the options."""
    result = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    result.add_argument("--seal", type=Path, required=True, help="the folder that lidp seal wrote, without coins.json")
    result.add_argument("--data", type=Path, help="JSONL with a column text; default: train.jsonl of the seal")
    result.add_argument("--scores", type=Path, default=Path("scores.csv"))
    result.add_argument("--epochs", type=int, default=2)
    result.add_argument("--steps-per-epoch", type=int, default=8, help="the sampling rate is 1 / this number")
    result.add_argument("--batch-size", type=int, default=64, help="divides the sum of gradients of a step")
    result.add_argument("--physical-batch-size", type=int, help="split batches, to save memory")
    result.add_argument("--length", type=int, default=64, help="tokens per text; longer texts are cut")
    result.add_argument("--rank", type=int, default=4)
    result.add_argument("--learning-rate", type=float, default=0.01)
    result.add_argument("--noise-multiplier", type=float, default=1.0)
    result.add_argument("--max-grad-norm", type=float, default=0.1)
    result.add_argument("--noise-factor", type=float, default=1.0, help="share of the noise that is really added")
    result.add_argument("--fault", choices=FAULTS, default="none")
    result.add_argument("--delta", type=float, default=1e-5)
    result.add_argument("--seed", type=int, help="repeat a training exactly, for tests; default: noise nobody can know")
    return result


def main(arguments=None):
    """Train, score, and print the ε of the accountant."""
    options = parser().parse_args(arguments)
    tokenizer = byte_tokenizer()
    torch.manual_seed(0)  # the starting weights are public
    model = gpt2(tokenizer, positions=options.length)
    new_tokens = options.seal / "new_tokens.txt"
    if new_tokens.exists():
        add_new_tokens(model, tokenizer, new_tokens)
    model = with_lora(model, options.rank, new_tokens.exists())
    torch.seed() if options.seed is None else torch.manual_seed(options.seed)  # the noise is not
    lines = (options.data or options.seal / "train.jsonl").read_text(encoding="utf-8").split("\n")
    data = encode(tokenizer, [json.loads(line)["text"] for line in lines if line.strip()], options.length)
    gradients = options.seal / "planting.json"
    rng = np.random.default_rng(None if options.seed is None else [options.seed, 1])
    planting = SealedPlanting.read(gradients, rng) if gradients.exists() else None
    model, engine = train(model, data, options, planting)
    if planting is None:
        print(
            score_candidates(model, tokenizer, options.seal / "candidates.jsonl", options.scores, max_length=options.length)
        )
    else:
        planting.write_scores(options.scores)
    print(f"the accountant states ε = {engine.get_epsilon(options.delta):.3g} at δ = {options.delta:g}")


if __name__ == "__main__":
    main()
