"""Sealed gradient canaries: the file, the gradients of candidates, and planting in tiny language models."""

import csv
import json
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the extra torch")
pytest.importorskip("opacus", reason="needs the extra torch")
pytest.importorskip("peft", reason="needs the extra llm")
pytest.importorskip("transformers", reason="needs the extra llm")

from opacus import PrivacyEngine  # noqa: E402
from opacus.utils.batch_memory_manager import BatchMemoryManager  # noqa: E402
from peft import LoraConfig, get_peft_model  # noqa: E402
from torch.utils.data import DataLoader, TensorDataset  # noqa: E402
from transformers import GPT2Config, GPT2LMHeadModel  # noqa: E402

from lidp.canaries.gradients import GradientCanary  # noqa: E402
from lidp.errors import AuditFailed, InvalidData  # noqa: E402
from lidp.integrations.opacus_settings import ConfigurationWarning  # noqa: E402
from lidp.integrations.sealed import PlantingFile, SealedPlanting  # noqa: E402
from lidp.training.transcript import COLUMNS  # noqa: E402

pytestmark = pytest.mark.filterwarnings("default")  # of Opacus, peft and transformers, about themselves
PRODUCT = COLUMNS.index("product")
RECORDS, VOCABULARY = 24, 40
IDS = tuple(f"{number:016x}" for number in range(40))
PLAIN = {"format": 1, "seed": 5, "canary": "dirac-gradient", "candidates": list(IDS), "inserted": list(IDS[::2])}
FILE = PlantingFile(5, GradientCanary.DIRAC_GRADIENT, IDS, IDS[::2])


def config(**options):
    sizes = {"vocab_size": VOCABULARY, "n_positions": 8, "n_embd": 8, "n_layer": 2, "n_head": 2}
    return GPT2Config(**sizes, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, bos_token_id=0, eos_token_id=0, **options)


def lora(base=None, **options):
    options = {"target_modules": ["c_attn"], "fan_in_fan_out": True} | options
    return get_peft_model(GPT2LMHeadModel(config()) if base is None else base, LoraConfig(r=4, **options))


def train(model, planting, *, mode="hooks", noise=1.0, steps=3, batch=RECORDS, parts=None, autocast=False):
    """Train by an Opacus user's loop; at the default batch size, the rate is 1."""
    torch.manual_seed(3)
    model.train()
    ids = torch.randint(0, VOCABULARY, (RECORDS, 6))
    engine = PrivacyEngine()
    criterion = torch.nn.CrossEntropyLoss()
    model, optimizer, *rest = engine.make_private(
        module=model,
        optimizer=torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.1),
        criterion=criterion,
        data_loader=DataLoader(TensorDataset(ids), batch_size=batch),
        noise_multiplier=noise,
        max_grad_norm=0.5,
        grad_sample_mode=mode,
    )
    criterion = rest[0] if mode == "ghost" else criterion
    planting.attach(engine, optimizer, rest[-1])
    manager = nullcontext(rest[-1])
    if parts is not None:
        manager = BatchMemoryManager(data_loader=rest[-1], max_physical_batch_size=parts, optimizer=optimizer)
    with manager as loader:
        for _ in range(steps):
            for (batch_ids,) in loader:
                optimizer.zero_grad()
                with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
                    logits = model(input_ids=batch_ids, position_ids=torch.arange(6).repeat(len(batch_ids), 1)).logits
                flat, labels = logits[:, :-1].float().reshape(-1, VOCABULARY), batch_ids[:, 1:].reshape(-1)
                shape = {"shape": (len(batch_ids), 5)} if mode == "ghost" else {}
                criterion(flat, labels, **shape).backward()
                optimizer.step()
    return model


MODELS = {
    "attention": lora,
    "all linear": lambda: lora(target_modules="all-linear"),
    "embedding": lambda: lora(modules_to_save=["wte"]),
    "layer norm": lambda: lora(modules_to_save=["ln_1", "ln_f"]),
    "output layer": lambda: lora(GPT2LMHeadModel(config(tie_word_embeddings=False)), modules_to_save=["lm_head"]),
    "frozen half": lambda: lora(GPT2LMHeadModel(config()).to(torch.bfloat16)),
}
CASES = [
    *(
        pytest.param(make, {"mode": mode}, id=f"{name}, {mode}")
        for name, make in MODELS.items()
        for mode in ("hooks", "ghost")
    ),
    pytest.param(lora, {"mode": "functorch"}, id="attention, functorch"),
    pytest.param(lora, {"autocast": True}, id="autocast"),
    pytest.param(lora, {"parts": 10}, id="virtual steps"),
    pytest.param(lora, {"parts": 10, "mode": "ghost"}, id="virtual steps, ghost"),
    pytest.param(lambda: GPT2LMHeadModel(config()), {}, id="full with tied weights"),
    pytest.param(lambda: GPT2LMHeadModel(config(tie_word_embeddings=False)), {"mode": "ghost"}, id="full, ghost"),
]


@pytest.mark.parametrize(("make", "options"), CASES)
def test_inserted_canaries_and_no_others_are_planted(make, options):
    """At rate 1 and without noise, the residual of a step is the sum of the inserted canaries."""
    planting = SealedPlanting(FILE)
    planting.noiseless = True
    model = make()
    trainable = sum(p.numel() for p in model.parameters() if p.requires_grad)
    train(model, planting, **options)
    assert planting.size == trainable
    transcript = planting.outcome().transcript
    assert transcript.steps == 3
    expected = np.outer(np.arange(len(IDS)) % 2 == 0, np.ones(3))
    np.testing.assert_allclose(transcript.evidence[:, :, PRODUCT], expected, atol=1e-4)


def test_gradients_do_not_depend_on_who_is_inserted():
    drawn = []
    for inserted in (IDS[:3], IDS[5:]):
        planting = SealedPlanting(PlantingFile(5, GradientCanary.DIRAC_GRADIENT, IDS, inserted))
        planting.watch(torch.zeros(size) for size in (30, 70))
        drawn.append(planting._watched)
    np.testing.assert_array_equal(*drawn)
    assert len(set(drawn[0][:, 0])) == len(IDS)


def test_the_sampling_of_canaries_differs_from_run_to_run():
    """The seed of the file is public, so what it determines must not include the steps that a canary takes part in."""
    sums = []
    for _ in range(2):
        planting = SealedPlanting(FILE)
        planting.watch([torch.zeros(100)])
        total = torch.zeros(100)
        planting.add([total], clip_norm=1.0, rate=0.5)
        sums.append(total)
    assert not torch.equal(*sums)


@pytest.mark.parametrize("canary", ["dirac-gradient", "random-gradient"])
def test_a_loop_of_ones_own_writes_scores_of_all_candidates(canary, tmp_path):
    file = tmp_path / "planting.json"
    file.write_text(json.dumps(PLAIN | {"canary": canary}), encoding="utf-8")
    planting = SealedPlanting.read(file, np.random.default_rng(1))
    generator = torch.Generator().manual_seed(2)
    planting.watch([torch.zeros(20, 30), torch.zeros(10)])
    for _ in range(40):
        sums = [torch.zeros(20, 30), torch.zeros(10)]
        planting.add(sums, clip_norm=2.0, rate=0.5)
        noisy = [total + torch.randn(total.shape, generator=generator) for total in sums]  # half of what is claimed
        planting.released(noisy, clip_norm=2.0, noise_multiplier=1.0, rate=0.5)
    planting.write_scores(tmp_path / "scores.csv")
    with (tmp_path / "scores.csv").open(newline="", encoding="utf-8") as written:
        rows = list(csv.DictReader(written))
    assert [row["id"] for row in rows] == list(IDS)
    scores = np.array([float(row["score"]) for row in rows])
    np.testing.assert_array_equal(scores, planting.scores())
    assert scores[::2].min() > scores[1::2].max()


def test_more_candidates_than_trainable_parameters_are_refused():
    planting = SealedPlanting(FILE)
    with pytest.raises(AuditFailed, match="40 candidates, .* trains only 39 parameters in 2 tensors; seal fewer"):
        planting.watch([torch.zeros(30), torch.zeros(9)])


def test_trainable_parameters_in_half_precision_are_refused():
    with pytest.raises(AuditFailed, match=r"trainable parameter is bfloat16.*torch\.autocast"):
        train(GPT2LMHeadModel(config()).to(torch.bfloat16), SealedPlanting(FILE))


def test_a_run_that_diverged_has_no_scores():
    planting = SealedPlanting(FILE)
    planting.watch([torch.zeros(100)])
    total = torch.zeros(100)
    planting.add([total], clip_norm=1.0, rate=0.5)
    planting.released([total + np.nan], clip_norm=1.0, noise_multiplier=1.0, rate=0.5)
    with pytest.raises(AuditFailed, match="40 of 40 candidates have no finite score.*--failed"):
        planting.scores()


def test_a_run_without_steps_has_no_scores():
    with pytest.raises(AuditFailed, match="planted no canaries"):
        SealedPlanting(FILE).scores()


def test_settings_that_contradict_the_accountant_are_named(tmp_path):
    planting = SealedPlanting(FILE)
    train(lora(), planting)
    settings = planting.settings()
    planting._read_settings = lambda: replace(settings, history=((2.0, 1.0, 2),))
    with pytest.warns(ConfigurationWarning) as caught:
        planting.write_scores(tmp_path / "scores.csv")
    names = [str(warning.message).partition(":")[0] for warning in caught if warning.category is ConfigurationWarning]
    assert names == ["secure_mode off", "steps not counted", "noise overstated"]
    assert settings.claim(1e-5).curve is not None


def test_an_optimizer_that_is_not_private_is_refused():
    model = lora()
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.1)
    with pytest.raises(AuditFailed, match="attach takes the optimizer that make_private returned, got SGD"):
        SealedPlanting(FILE).attach(PrivacyEngine(), optimizer, DataLoader(TensorDataset(torch.zeros(3))))


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(InvalidData, match="nowhere.json: cannot be read: No such file"):
        SealedPlanting.read(tmp_path / "nowhere.json")
