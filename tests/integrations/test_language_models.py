"""Losses and scores of causal language models, new tokens, and the models that Opacus cannot train."""

import copy
import csv
import json

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the extra torch")
pytest.importorskip("opacus", reason="needs the extra torch")
pytest.importorskip("peft", reason="needs the extra llm")
pytest.importorskip("transformers", reason="needs the extra llm")

from opacus import GradSampleModule  # noqa: E402
from peft import LoraConfig, get_peft_model  # noqa: E402
from transformers import GPT2Config, GPT2LMHeadModel  # noqa: E402

from lidp.errors import AuditFailed, InvalidArgument, InvalidData  # noqa: E402
from lidp.integrations.language_models import (  # noqa: E402
    add_new_tokens,
    read_candidates,
    require_supported,
    score_candidates,
    score_texts,
    sequence_losses,
)
from tests.integrations.tiny_gpt2 import example  # noqa: E402

pytestmark = pytest.mark.filterwarnings("default")  # of Opacus, peft and transformers, about themselves
TEXTS = ["a cat sat", "dogs", "the longest text of these four", "cats and dogs"]


@pytest.fixture
def tokenizer():
    return example().byte_tokenizer()


def gpt2(vocabulary=257, **options):
    torch.manual_seed(1)
    sizes = {"vocab_size": vocabulary, "n_positions": 48, "n_embd": 8, "n_layer": 2, "n_head": 2}
    return GPT2LMHeadModel(GPT2Config(**sizes, bos_token_id=0, eos_token_id=0, **options))


def lora(base=None, **options):
    options = {"target_modules": ["c_attn"], "fan_in_fan_out": True} | options
    model = get_peft_model(gpt2() if base is None else base, LoraConfig(r=2, **options))
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "lora_B" in name:
                parameter.normal_(generator=torch.Generator().manual_seed(4))
    return model


def reference_loss(model, tokenizer, text):
    """Return the loss of one text, token by token, without padding."""
    ids = torch.tensor([tokenizer(text)["input_ids"]])
    with torch.no_grad():
        log_probabilities = model.eval()(input_ids=ids).logits[0].double().log_softmax(dim=1)
    return -sum(float(log_probabilities[k, token]) for k, token in enumerate(ids[0, 1:]))


@pytest.mark.parametrize("batch_size", [1, 3, 16])
def test_the_loss_of_a_text_does_not_depend_on_its_batch(tokenizer, batch_size):
    model = gpt2().train()  # with dropout, which scoring must switch off
    losses = sequence_losses(model, tokenizer, TEXTS, batch_size=batch_size)
    assert model.training
    assert losses.losses.dtype == np.float64
    assert losses.truncated == 0
    np.testing.assert_allclose(losses.losses, [reference_loss(model, tokenizer, text) for text in TEXTS], rtol=1e-5)


def test_the_loss_of_a_text_does_not_depend_on_the_side_of_padding(tokenizer):
    expected = sequence_losses(gpt2(), tokenizer, TEXTS).losses
    tokenizer.padding_side = "left"
    np.testing.assert_array_equal(sequence_losses(gpt2(), tokenizer, TEXTS).losses, expected)


def test_long_texts_are_cut_and_counted(tokenizer):
    losses = sequence_losses(gpt2(), tokenizer, ["x" * 48, "x" * 100, "y" * 49])
    assert (losses.truncated, losses.max_length) == (2, 48)
    np.testing.assert_allclose(losses.losses[1], losses.losses[0], rtol=1e-5)
    assert sequence_losses(gpt2(), tokenizer, ["abcdef"], max_length=3).truncated == 1


def test_a_text_of_one_token_is_refused(tokenizer):
    with pytest.raises(InvalidData, match="text 2 has fewer than two tokens"):
        sequence_losses(gpt2(), tokenizer, ["ab", "c"])


def test_a_score_is_the_gain_over_the_adapter_switched_off(tokenizer):
    model = lora()
    with model.disable_adapter():
        start = np.array([reference_loss(model, tokenizer, text) for text in TEXTS])
    trained = np.array([reference_loss(model, tokenizer, text) for text in TEXTS])
    assert np.abs(start - trained).min() > 1e-4
    for whole in (model, GradSampleModule(model)):  # as make_private wraps it
        scores, _ = score_texts(whole, tokenizer, TEXTS)
        np.testing.assert_allclose(scores, start - trained, atol=1e-3)


def test_a_score_is_the_gain_over_a_given_starting_model(tokenizer):
    model, start = gpt2(), gpt2()
    with torch.no_grad():
        model.transformer.wte.weight += 0.1
    scores, losses = score_texts(model, tokenizer, TEXTS, starting_model=start)
    np.testing.assert_array_equal(scores, sequence_losses(start, tokenizer, TEXTS).losses - losses.losses)
    with pytest.raises(InvalidArgument, match="GPT2LMHeadModel has no adapter to switch off; pass starting_model="):
        score_texts(model, tokenizer, TEXTS)


def test_scores_of_all_candidates_are_written(tokenizer, tmp_path):
    lines = [{"id": f"{k:016x}", "text": text} for k, text in enumerate(TEXTS)]
    (tmp_path / "candidates.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    model = lora()
    result = score_candidates(model, tokenizer, tmp_path / "candidates.jsonl", tmp_path / "scores.csv", max_length=20)
    with (tmp_path / "scores.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["id"] for row in rows] == [line["id"] for line in lines] == list(result.ids)
    assert [float(row["score"]) for row in rows] == result.scores.tolist()
    assert str(result) == "4 candidates scored; 1 were cut to 20 tokens"


def test_a_model_that_diverged_has_no_scores(tokenizer, tmp_path):
    (tmp_path / "c.jsonl").write_text('{"id": "a", "text": "some text"}\n', encoding="utf-8")
    model = lora()
    with torch.no_grad():
        next(p for p in model.parameters() if p.requires_grad).fill_(np.nan)
    with pytest.raises(AuditFailed, match="1 of 1 candidates have no finite loss.*--failed"):
        score_candidates(model, tokenizer, tmp_path / "c.jsonl", tmp_path / "scores.csv")
    assert not (tmp_path / "scores.csv").exists()


def test_candidates_that_are_records_have_their_text_in_a_column(tmp_path):
    path = tmp_path / "candidates.jsonl"
    path.write_text('{"id": "a", "record": {"body": "one\\u2028two", "year": 3}}\n\n', encoding="utf-8")
    assert read_candidates(path, "body") == (("a",), ("one\u2028two",))
    with pytest.raises(InvalidData, match="line 1: candidate a has no text; give the column that holds it as text_field="):
        read_candidates(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "no candidates in it"),
        (b"{", "line 1: not JSON"),
        (b"[" * 100_000, "line 1: not JSON"),
        (b"[1]", "line 1: a candidate needs an id"),
        (b'{"id": 3, "text": "x"}', "line 1: a candidate needs an id"),
        (b'{"id": "\\u001b[2J"}', r"candidate \\x1b\[2J has no text"),
        (b'{"id": "a", "text": "x"}\n{"id": "a", "text": "y"}', "an id occurs twice"),
        (b"\xff\xfe", "not text in UTF-8"),
    ],
)
def test_a_wrong_file_of_candidates_is_refused_in_one_line(content, message, tmp_path):
    path = tmp_path / "candidates.jsonl"
    path.write_bytes(content)
    with pytest.raises(InvalidData, match=message) as caught:
        read_candidates(path)
    assert "\n" not in str(caught.value)


NEW = ["<canary-00000000000000aa>", "<canary-00000000000000bb>"]


@pytest.mark.parametrize("tied", [True, False])
def test_new_tokens_get_ids_and_the_same_embeddings_every_time(tied, tmp_path):
    (tmp_path / "new_tokens.txt").write_text("\n".join(NEW) + "\n", encoding="utf-8")
    rows = []
    for seed in (1, 2):
        tokenizer, model = example().byte_tokenizer(), gpt2(tie_word_embeddings=tied)
        old = model.get_input_embeddings().weight.detach().clone()
        torch.manual_seed(seed)
        ids = add_new_tokens(model, tokenizer, tmp_path / "new_tokens.txt")
        assert ids == (257, 258)
        assert tokenizer(f"{NEW[1]} a{NEW[0]}")["input_ids"][::3] == [258, 257]
        weights = [layer.weight.detach() for layer in (model.get_input_embeddings(), model.get_output_embeddings())]
        assert torch.equal(weights[0][:257], old)
        assert torch.equal(*(weight[257:] for weight in weights)) or not tied
        rows.append(torch.cat([weight[257:] for weight in weights]))
        assert 0.2 < float(rows[-1].std() / old.std()) < 3
        sequence_losses(model, tokenizer, [" ".join(NEW)])
    assert torch.equal(*rows)
    assert not torch.equal(rows[0][0], rows[0][1])


def test_new_tokens_use_rows_that_the_model_already_has():
    tokenizer, model = example().byte_tokenizer(), gpt2(vocabulary=300)
    add_new_tokens(model, tokenizer, NEW)
    assert len(model.get_input_embeddings().weight) == 300


def test_known_tokens_are_refused(tokenizer):
    model = gpt2()
    add_new_tokens(model, tokenizer, NEW[:1])
    with pytest.raises(InvalidData, match="already knows 1 of the new tokens, such as <canary-00000000000000aa>"):
        add_new_tokens(model, tokenizer, NEW)


def test_new_tokens_come_before_the_adapter(tokenizer):
    with pytest.raises(InvalidArgument, match="before get_peft_model and make_private"):
        add_new_tokens(lora(), tokenizer, NEW)


def checkpointing():
    model = lora()
    model.gradient_checkpointing_enable()
    return model


def frozen():
    model = gpt2()
    model.requires_grad_(False)
    return model


@pytest.mark.parametrize(
    ("make", "mode", "message"),
    [
        (frozen, "hooks", "no parameter is trainable"),
        (lambda: lora(use_dora=True), "hooks", "DoRA has no per-sample gradients; leave out use_dora"),
        (lambda: lora(trainable_token_indices=[1, 2]), "hooks", "trainable_token_indices.*modules_to_save"),
        (lambda: lora(target_modules=["wte"], fan_in_fan_out=False), "hooks", "LoRA of an embedding.*modules_to_save"),
        (checkpointing, "hooks", "gradient checkpointing.*BatchMemoryManager"),
        (gpt2, "ghost", "wte.weight and lm_head.weight are one tied weight.*grad_sample_mode='hooks'"),
    ],
    ids=["frozen", "dora", "token indices", "embedding", "checkpointing", "tied"],
)
def test_what_opacus_cannot_train_is_refused_by_name(make, mode, message):
    with pytest.raises(AuditFailed, match=message):
        require_supported(make(), mode)


def test_what_opacus_can_train_is_not_refused():
    for model in (lora(), lora(target_modules="all-linear"), lora(modules_to_save=["wte", "ln_f"])):
        require_supported(model, "hooks")
        require_supported(model, "ghost")
    require_supported(gpt2(), "hooks")
    require_supported(gpt2(tie_word_embeddings=False), "ghost")


def test_the_switched_off_adapter_is_the_starting_model(tokenizer):
    """Embeddings that are trained beside the adapter are switched off with it."""
    start = gpt2()
    model = lora(copy.deepcopy(start), modules_to_save=["wte"])
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.requires_grad:
                parameter += 0.1
    by_adapter, _ = score_texts(model, tokenizer, TEXTS)
    by_model, _ = score_texts(model, tokenizer, TEXTS, starting_model=start)
    np.testing.assert_allclose(by_adapter, by_model, rtol=1e-6)
