"""``seal``: what is written, and that nothing but membership depends on coins."""

import json
import os
import stat

import numpy as np
import pytest

from lidp import Claim
from lidp.errors import InvalidArgument, InvalidData, SealError
from lidp.seals import seal, seal_next
from lidp.seals.candidates import Candidates
from lidp.seals.sealed_run import read_sealed_run
from lidp.seals.tables import JsonLines
from tests.seals.sealed import POINT, coins_of, gradients


def texts(path, rows=30):
    path.write_text("".join(f'{{"text": "some words {row}"}}\n' for row in range(rows)), encoding="utf-8")
    return path


def lines(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n")[:-1]]


def test_text_seal_holds_what_each_party_needs(tmp_path):
    made = seal(tmp_path / "s", claim=POINT, canaries=20, kind="text", data=texts(tmp_path / "d.jsonl"), seed=3)
    folder, coins = tmp_path / "s", coins_of(tmp_path / "s")
    names = {"candidates.jsonl", "coins.json", "commitment.json", "new_tokens.txt", "train.jsonl"}
    assert {file.name for file in folder.iterdir()} == names
    candidates = {line["id"]: line["text"] for line in lines(folder / "candidates.jsonl")}
    trained = [line["text"] for line in lines(folder / "train.jsonl")]
    inserted = [candidates[name] for name, coin in coins.items() if coin]
    assert sorted(trained) == sorted([f"some words {row}" for row in range(30)] + inserted)
    tokens = (folder / "new_tokens.txt").read_text(encoding="utf-8").split()
    assert tokens == [text.split()[0] for text in candidates.values()]  # in or not
    assert made.for_the_trainer == ("new_tokens.txt", "train.jsonl")
    assert list(candidates) == list(coins)
    assert 0 < len(inserted) < 20


def test_inserting_a_candidate_moves_nothing_else(tmp_path):
    rows = [f'{{"n": {row}}}'.encode() for row in range(40)]
    orders = []
    for name, coins in (("none", np.zeros(10)), ("all", np.ones(10)), ("some", np.arange(10) % 2)):
        (tmp_path / name).mkdir()
        candidates = Candidates(10, JsonLines(rows, ("n",), {}))
        candidates.write_data(tmp_path / name, coins.astype(bool), np.random.default_rng(5))
        orders.append([line["n"] for line in lines(tmp_path / name / "train.jsonl")])
    none, everything, some = orders
    assert none == [row for row in everything if row < 30]
    assert some == [row for row in everything if row < 30 or row % 2]
    assert none != sorted(none)
    assert [row for row in everything if row >= 30] != everything[-10:]  # candidates are among the records


def test_coins_are_fair_and_have_a_stream_of_their_own(tmp_path):
    first = gradients(tmp_path / "a", canaries=4000, seed=1)
    coins = np.array(list(coins_of(tmp_path / "a").values()))
    assert abs(coins.mean() - 0.5) < 0.05
    second = gradients(tmp_path / "b", canaries=4000, seed=2)
    other = np.array(list(coins_of(tmp_path / "b").values()))
    assert abs((coins == other).mean() - 0.5) < 0.05
    assert first.commitment.plan.id != second.commitment.plan.id
    ids = np.array([int(name, 16) for name in coins_of(tmp_path / "a")], dtype=float)
    assert abs(np.corrcoef(ids, coins)[0, 1]) < 0.1


def test_runs_of_one_seed_have_different_coins(tmp_path):
    gradients(tmp_path / "a", canaries=500, seed=1)
    seal_next(tmp_path / "a", tmp_path / "b", seed=1)
    one, other = (np.array(list(coins_of(tmp_path / name).values())) for name in "ab")
    assert abs((one == other).mean() - 0.5) < 0.2
    assert not set(coins_of(tmp_path / "a")) & set(coins_of(tmp_path / "b"))


def test_the_same_seed_gives_the_same_seal_and_none_another_one(tmp_path):
    for name, seed in (("a", 1), ("b", 1), ("c", None), ("d", None)):
        gradients(tmp_path / name, seed=seed)
    contents = [(tmp_path / name / "coins.json").read_bytes() for name in "abcd"]
    assert contents[0] == contents[1]
    assert len(set(contents)) == 3


def test_coins_are_private_whatever_the_umask(tmp_path):
    before = os.umask(0)
    try:
        gradients(tmp_path / "s")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "s" / "coins.json").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "s").stat().st_mode) == 0o700


def test_gradient_seal_is_a_planting(tmp_path):
    gradients(tmp_path / "s", canary="random-gradient")
    plain = json.loads((tmp_path / "s" / "planting.json").read_text(encoding="utf-8"))
    coins = coins_of(tmp_path / "s")
    assert plain["canary"] == "random-gradient"
    assert plain["format"] == 1
    assert 0 <= plain["seed"] < 2**62
    assert plain["candidates"] == list(coins)
    assert plain["inserted"] == [name for name, coin in coins.items() if coin]
    assert lines(tmp_path / "s" / "candidates.jsonl") == [{"id": name} for name in coins]


def test_record_candidates_are_different_rows_of_the_pool(tmp_path):
    (tmp_path / "d.csv").write_text("x,y\n1,2\n")
    (tmp_path / "p.csv").write_text("x,y\n" + "".join(f"{row},a\n" for row in range(30)))
    seal(tmp_path / "s", claim=POINT, canaries=20, kind="records", data=tmp_path / "d.csv", pool=tmp_path / "p.csv", seed=0)
    drawn = [line["record"]["x"] for line in lines(tmp_path / "s" / "candidates.jsonl")]
    assert len(set(drawn)) == 20
    assert drawn != sorted(drawn, key=int)
    coins = list(coins_of(tmp_path / "s").values())
    trained = {line.split(",")[0] for line in (tmp_path / "s" / "train.csv").read_text().split()[1:]}
    assert trained == {"1"} | {x for x, coin in zip(drawn, coins, strict=True) if coin}


def test_array_candidates_have_ids_and_the_same_arrays(tmp_path):
    np.savez(tmp_path / "d.npz", x=np.zeros((5, 2), dtype=np.float32))
    np.savez(tmp_path / "p.npz", x=np.arange(60, dtype=np.float32).reshape(30, 2))
    seal(tmp_path / "s", claim=POINT, canaries=20, kind="records", data=tmp_path / "d.npz", pool=tmp_path / "p.npz", seed=0)
    listed, coins = np.load(tmp_path / "s" / "candidates.npz"), coins_of(tmp_path / "s")
    assert listed["id"].tolist() == list(coins)
    assert listed["x"].dtype == np.float32
    assert len(np.load(tmp_path / "s" / "train.npz")["x"]) == 5 + sum(coins.values())
    assert read_sealed_run(tmp_path / "s").ids.astype(str).tolist() == list(coins)


def test_next_run_has_the_plan_and_names_the_run_before(tmp_path):
    first = gradients(tmp_path / "a", runs=2)
    second = seal_next(tmp_path / "a", tmp_path / "b")
    assert second.commitment.plan == first.commitment.plan
    assert (second.commitment.run, second.commitment.previous) == (2, first.digest)
    with pytest.raises(InvalidArgument, match="run 2 of 2 planned runs"):
        seal_next(tmp_path / "b", tmp_path / "c")


def test_next_run_takes_new_data(tmp_path):
    seal(tmp_path / "a", claim=POINT, canaries=20, kind="text", data=texts(tmp_path / "1.jsonl"), seed=3)
    seal_next(tmp_path / "a", tmp_path / "b", data=texts(tmp_path / "2.jsonl", rows=50))
    assert len(lines(tmp_path / "b" / "train.jsonl")) == 50 + sum(coins_of(tmp_path / "b").values())
    with pytest.raises(InvalidArgument, match="--data is missing"):
        seal_next(tmp_path / "a", tmp_path / "c")


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"kind": "images"}, "kind must be one of"),
        ({"kind": "text"}, "--data is missing"),
        ({"kind": "records", "data": "d.jsonl"}, "--pool is missing"),
        ({"kind": "records", "data": "d.jsonl", "pool": "s.jsonl"}, "30 records, fewer than the 50 canaries"),
        ({"kind": "records", "data": "d.jsonl", "pool": "./d.jsonl"}, "--pool is the file of --data"),
        ({"kind": "records", "data": "d.jsonl", "pool": "p.jsonl"}, "the pool has no column 'text'"),
        ({"kind": "records", "data": "d.jsonl", "pool": "p.csv"}, "the format of the data, jsonl"),
        ({"kind": "gradients", "data": "d.jsonl"}, "leave --data and --pool out"),
        ({"kind": "gradients", "canary": "sphere"}, "canary must be one of"),
        ({"kind": "text", "data": "d.jsonl", "text_field": "body"}, "no column 'body'"),
        ({"kind": "text", "data": "p.jsonl", "text_field": "n"}, "must be a text in every record"),
        ({"kind": "text", "data": "d.jsonl", "pool": "d.jsonl"}, "--pool is for"),
        ({"kind": "gradients", "seed": -1}, "seed"),
    ],
)
def test_seal_refuses_in_one_line_and_leaves_nothing(tmp_path, monkeypatch, options, reason):
    monkeypatch.chdir(tmp_path)
    texts(tmp_path / "d.jsonl")
    texts(tmp_path / "s.jsonl")
    (tmp_path / "p.jsonl").write_text('{"n": 1}\n' * 60)
    (tmp_path / "p.csv").write_text("text\na\n")
    with pytest.raises((InvalidArgument, InvalidData), match=reason):
        seal("s", claim=POINT, canaries=50, **options)
    assert {file.name for file in tmp_path.iterdir()} == {"d.jsonl", "s.jsonl", "p.jsonl", "p.csv"}


def test_seal_does_not_replace_another_one(tmp_path):
    gradients(tmp_path / "s")
    before = (tmp_path / "s" / "coins.json").read_bytes()
    with pytest.raises(SealError, match="is not empty"):
        gradients(tmp_path / "s")
    assert (tmp_path / "s" / "coins.json").read_bytes() == before


def test_seal_says_whether_it_could_refute_anything(tmp_path):
    assert gradients(tmp_path / "a", claim=Claim.gaussian(1.0), canaries=500, runs=1).could_refute
    assert not gradients(tmp_path / "b", claim=Claim.gaussian(1.0), canaries=5, runs=1).could_refute
