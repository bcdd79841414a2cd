"""Text canaries: what each kind consists of, and that candidates differ from the data and from one another."""

import numpy as np
import pytest

from lidp import InvalidArgument
from lidp.canaries.text import TextCanaryKind, TextDistribution, text_canaries
from lidp.testing import CanaryContract

DATA = ("the cat sat on the mat", "a dog sat on a log", "the dog ate the cat", "cats and dogs")
VOCABULARY = {word for text in DATA for word in text.split()}
KINDS = list(TextCanaryKind)


def draw(kind, size=50, seed=1, **options):
    return text_canaries(kind, DATA, size, np.random.default_rng(seed), **options)


class _Contract(CanaryContract):
    kind: TextCanaryKind

    def make(self):
        return TextDistribution(self.kind, DATA, length=12)


class TestNewTokens(_Contract):
    kind = TextCanaryKind.NEW_TOKENS


class TestRandomTokens(_Contract):
    kind = TextCanaryKind.RANDOM_TOKENS


class TestSampled(_Contract):
    kind = TextCanaryKind.SAMPLED


@pytest.mark.parametrize("kind", KINDS)
def test_candidates_differ_and_have_the_length(kind):
    drawn = draw(kind, 200, length=7, secret=3)
    assert len(set(drawn.texts)) == len(drawn.texts) == 200
    assert {len(text.split()) for text in drawn.texts} == {10}
    assert not set(drawn.texts) & set(DATA)


@pytest.mark.parametrize("kind", KINDS)
def test_the_secret_consists_of_words_of_the_data(kind):
    texts = draw(kind, 300, secret=2).texts
    assert {word for text in texts for word in text.split()[-2:]} == VOCABULARY


def test_new_tokens_belong_to_one_candidate_each():
    drawn = draw("new-tokens", 40)
    assert len(set(drawn.new_tokens)) == len(drawn.new_tokens) == 40
    for text, token in zip(drawn.texts, drawn.new_tokens, strict=True):
        assert set(text.split()) == {token}
    assert not set(drawn.new_tokens) & VOCABULARY


def test_new_tokens_of_the_data_are_not_drawn_again():
    taken = text_canaries("new-tokens", DATA, 5, np.random.default_rng(3))
    data = (*DATA, f"a log of {taken.new_tokens[0]}")
    drawn = text_canaries("new-tokens", data, 5, np.random.default_rng(3), length=4)
    assert taken.new_tokens[0] not in drawn.new_tokens
    assert set(taken.new_tokens[1:]) <= set(drawn.new_tokens)


@pytest.mark.parametrize("kind", ["random-tokens", "sampled"])
def test_other_kinds_need_no_new_tokens(kind):
    drawn = draw(kind)
    assert drawn.new_tokens == ()
    assert {word for text in drawn.texts for word in text.split()} <= VOCABULARY


def test_sampled_words_follow_one_another_as_in_the_data():
    pairs = {pair for text in DATA for pair in zip(text.split(), text.split()[1:], strict=False)}
    ends = {text.split()[-1] for text in DATA}
    starts = {text.split()[0] for text in DATA}
    for text in draw("sampled", 200).texts:
        words = text.split()
        assert words[0] in starts
        for before, after in zip(words, words[1:], strict=False):
            assert (before, after) in pairs or (before in ends and after in starts)


def test_random_words_are_uniform():
    words = [word for text in draw("random-tokens", 2000, length=10).texts for word in text.split()]
    counts = np.array([words.count(word) for word in sorted(VOCABULARY)])
    expected = len(words) / len(VOCABULARY)
    assert np.abs(counts - expected).max() < 6 * expected**0.5


def test_a_text_that_is_a_record_is_drawn_again():
    data = ("a", "b", "a  a", "b b", "a b")
    drawn = text_canaries("random-tokens", data, 1, np.random.default_rng(0), length=2)
    assert drawn.texts == ("b a",)
    with pytest.raises(InvalidArgument, match="only 1 of 2 different texts"):
        text_canaries("random-tokens", data, 2, np.random.default_rng(0), length=2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kind": "loud"}, "kind must be one of new-tokens, random-tokens, sampled, got 'loud'"),
        ({"size": 0}, "size must be a whole number"),
        ({"length": 0}, "length must be a whole number"),
        ({"secret": -1}, "secret must be a whole number"),
        ({"texts": ("", "  ")}, "have none"),
        ({"texts": ("a", 3)}, "texts must be strings, got int"),
    ],
)
def test_a_wrong_argument_is_named(options, message):
    arguments = {"kind": "sampled", "texts": DATA, "size": 2, "rng": np.random.default_rng(0)} | options
    with pytest.raises(InvalidArgument, match=message):
        text_canaries(**arguments)
