"""Losses of texts under causal language models, and scores of candidates."""

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

from lidp.errors import AuditFailed, InvalidArgument, InvalidData  # noqa: E402
from lidp.integrations.language_models import score_candidates, score_texts, sequence_losses  # noqa: E402
from tests.integrations.tiny_gpt2 import example, lora, small_gpt2  # noqa: E402

pytestmark = pytest.mark.filterwarnings("default")  # of Opacus, peft and transformers, about themselves
TEXTS = ["a cat sat", "dogs", "the longest text of these four", "cats and dogs"]


@pytest.fixture
def tokenizer():
    return example().byte_tokenizer()


def reference_loss(model, tokenizer, text):
    """Return the loss of one text, token by token, without padding."""
    ids = torch.tensor([tokenizer(text)["input_ids"]])
    with torch.no_grad():
        log_probabilities = model.eval()(input_ids=ids).logits[0].double().log_softmax(dim=1)
    return -sum(float(log_probabilities[k, token]) for k, token in enumerate(ids[0, 1:]))


@pytest.mark.parametrize("batch_size", [1, 3, 16])
def test_the_loss_of_a_text_does_not_depend_on_its_batch(tokenizer, batch_size):
    model = small_gpt2().train()  # with dropout, which scoring must switch off
    losses = sequence_losses(model, tokenizer, TEXTS, batch_size=batch_size)
    assert model.training
    assert losses.losses.dtype == np.float64
    assert losses.truncated == 0
    np.testing.assert_allclose(losses.losses, [reference_loss(model, tokenizer, text) for text in TEXTS], rtol=1e-5)


def test_the_loss_of_a_text_does_not_depend_on_the_side_of_padding(tokenizer):
    expected = sequence_losses(small_gpt2(), tokenizer, TEXTS).losses
    tokenizer.padding_side = "left"
    np.testing.assert_array_equal(sequence_losses(small_gpt2(), tokenizer, TEXTS).losses, expected)


def test_long_texts_are_cut_and_counted(tokenizer):
    losses = sequence_losses(small_gpt2(), tokenizer, ["x" * 48, "x" * 100, "y" * 49])
    assert (losses.truncated, losses.max_length) == (2, 48)
    np.testing.assert_allclose(losses.losses[1], losses.losses[0], rtol=1e-5)
    assert sequence_losses(small_gpt2(), tokenizer, ["abcdef"], max_length=3).truncated == 1


def test_a_text_of_one_token_is_refused(tokenizer):
    with pytest.raises(InvalidData, match="text 2 has fewer than two tokens"):
        sequence_losses(small_gpt2(), tokenizer, ["ab", "c"])


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
    model, start = small_gpt2(), small_gpt2()
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


def test_the_switched_off_adapter_is_the_starting_model(tokenizer):
    """Embeddings that are trained beside the adapter are switched off with it."""
    start = small_gpt2()
    model = lora(copy.deepcopy(start), modules_to_save=["wte"])
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.requires_grad:
                parameter += 0.1
    by_adapter, _ = score_texts(model, tokenizer, TEXTS)
    by_model, _ = score_texts(model, tokenizer, TEXTS, starting_model=start)
    np.testing.assert_allclose(by_adapter, by_model, rtol=1e-6)
