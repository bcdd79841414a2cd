"""New tokens of a language model, and the models that Opacus cannot train."""

import pytest

torch = pytest.importorskip("torch", reason="needs the extra torch")
pytest.importorskip("opacus", reason="needs the extra torch")
pytest.importorskip("peft", reason="needs the extra llm")
pytest.importorskip("transformers", reason="needs the extra llm")

from lidp.errors import AuditFailed, InvalidArgument, InvalidData  # noqa: E402
from lidp.integrations.language_model_setup import add_new_tokens, require_supported  # noqa: E402
from lidp.integrations.language_models import sequence_losses  # noqa: E402
from tests.integrations.tiny_gpt2 import example, lora, small_gpt2  # noqa: E402

pytestmark = pytest.mark.filterwarnings("default")  # of Opacus, peft and transformers, about themselves


@pytest.fixture
def tokenizer():
    return example().byte_tokenizer()


NEW = ["<canary-00000000000000aa>", "<canary-00000000000000bb>"]


@pytest.mark.parametrize("tied", [True, False])
def test_new_tokens_get_ids_and_the_same_embeddings_every_time(tied, tmp_path):
    (tmp_path / "new_tokens.txt").write_text("\n".join(NEW) + "\n", encoding="utf-8")
    rows = []
    for seed in (1, 2):
        tokenizer, model = example().byte_tokenizer(), small_gpt2(tie_word_embeddings=tied)
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
    tokenizer, model = example().byte_tokenizer(), small_gpt2(vocabulary=300)
    add_new_tokens(model, tokenizer, NEW)
    assert len(model.get_input_embeddings().weight) == 300


def test_known_tokens_are_refused(tokenizer):
    model = small_gpt2()
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
    model = small_gpt2()
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
        (small_gpt2, "ghost", "wte.weight and lm_head.weight are one tied weight.*grad_sample_mode='hooks'"),
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
    require_supported(small_gpt2(), "hooks")
    require_supported(small_gpt2(tie_word_embeddings=False), "ghost")
