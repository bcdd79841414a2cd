import io
import tracemalloc
import warnings
import zipfile

import numpy as np
import pytest

from lidp import InvalidScores, Scores
from lidp._runtime import npz_files
from lidp.score_files import read_scores, write_scores

ARMS = "trial,arm,score\n0,inserted,1.5\n0,held_out,0.5\n1,inserted,2\n1,held-out,-1\n"
COINS = "trial,coin,score\n1,1,3\n1,0,4\n0,0,1\n0,1,2\n"


def written(path, text):
    path.write_text(text)
    return path


@pytest.mark.parametrize("layout", ["arms", "coins"])
def test_npz_and_back(tmp_path, layout):
    rng = np.random.default_rng(0)
    values = rng.standard_normal((4, 3))
    scores = Scores(inserted=values, held_out=values - 1) if layout == "arms" else Scores(scores=values, coins=values > 0)
    write_scores(scores, tmp_path / "deep" / "scores.npz")
    back = read_scores(tmp_path / "deep" / "scores.npz")
    assert back.design == scores.design
    assert all((back.to_arrays()[key] == array).all() for key, array in scores.to_arrays().items())


def test_scores_that_know_coins_of_their_trial_stay_marked(tmp_path):
    scores = Scores(scores=[[1.0, 2.0]], coins=[[0, 1]], sequential=True)
    write_scores(scores, tmp_path / "scores.npz")
    assert read_scores(tmp_path / "scores.npz").sequential


def test_csv_of_arms(tmp_path):
    inserted, held_out = read_scores(written(tmp_path / "a.csv", ARMS)).arms()
    assert inserted.tolist() == [[1.5], [2.0]]
    assert held_out.tolist() == [[0.5], [-1.0]]


def test_csv_of_coins_in_the_order_of_trial_numbers(tmp_path):
    scores, coins = read_scores(written(tmp_path / "a.csv", COINS)).flips()
    assert scores.tolist() == [[1, 2], [3, 4]]
    assert coins.tolist() == [[False, True], [True, False]]


def test_csv_with_spaces_and_a_byte_order_mark(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("trial, coin , score\n0,1,2\n", encoding="utf-8-sig")
    assert read_scores(path).trials == 1


def test_replace_one_is_said_by_the_reader(tmp_path):
    assert read_scores(written(tmp_path / "a.csv", ARMS), neighbours="replace-one").neighbours == "replace-one"


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.csv", "trial,score\n0,1\n", "expected the columns trial, arm or coin, score; found score, trial"),
        ("a.csv", "", "found nothing"),
        ("a.csv", "trial,coin,score\n", "no trial in it"),
        ("a.csv", "trial,coin,score\n0,1,abc\n", "line 2: score must be a number, got 'abc'"),
        ("a.csv", "trial,coin,score\n0,1\n", "line 2: score must be a number, got None"),
        ("a.csv", "trial,coin,score\n0.5,1,1\n", "line 2: trial must be a whole number"),
        ("a.csv", "trial,coin,score\n0,1,1,5\n", "line 2: more cells than columns"),
        ("a.csv", "trial,coin,arm,score\n0,1,inserted,1\n", "both a column arm and a column coin"),
        ("a.csv", "trial,coin,score\ninf,1,1\n", "line 2: trial must be a whole number"),
        ("a.csv", "trial,coin,score\n0,2,1\n", "coins must be 0 or 1, got 2.0 at trial 0, canary 0"),
        ("a.csv", "trial,coin,score\n0,1,nan\n", "got nan at trial 0, canary 0"),
        ("a.csv", "trial,arm,score\n0,left,1\n", "line 2: arm must be inserted or held_out, got 'left'"),
        ("a.csv", "trial,coin,score\n0,1,1\n1,1,1\n1,0,2\n", "trial 1 has 2 scores canaries, the first trial has 1"),
        ("a.csv", "trial,arm,score\n0,inserted,1\n", "held_out must"),
        ("a.npz", "not a zip", "is not an .npz file, but a text file"),
        ("a.txt", "1 2 3", "expected a .npz or .csv file"),
    ],
)
def test_bad_files(tmp_path, name, text, message):
    with pytest.raises(InvalidScores, match=message):
        read_scores(written(tmp_path / name, text))


def test_missing_files_and_arrays(tmp_path):
    with pytest.raises(InvalidScores, match="no such file"):
        read_scores(tmp_path / "none.npz")
    np.savez(tmp_path / "a.npz", inserted=np.ones((2, 2)))
    with pytest.raises(InvalidScores, match="found inserted"):
        read_scores(tmp_path / "a.npz")


def test_pickled_arrays_are_not_loaded(tmp_path):
    np.savez(tmp_path / "a.npz", scores=np.array([[object()]], dtype=object), coins=np.ones((1, 1)))
    with pytest.raises(InvalidScores, match="plain numbers"):
        read_scores(tmp_path / "a.npz")


def test_unwritable_places(tmp_path):
    scores = Scores(scores=[[1]], coins=[[1]])
    with pytest.raises(InvalidScores, match="written as .npz"):
        write_scores(scores, tmp_path / "a.csv")
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidScores, match="cannot be written"):
        write_scores(scores, tmp_path / "file" / "a.npz")


def test_large_trial_numbers_stay_apart(tmp_path):
    text = f"trial,coin,score\n{2**53},1,1\n{2**53 + 1},0,2\n"
    assert read_scores(written(tmp_path / "a.csv", text)).trials == 2


def test_two_layouts_in_one_file(tmp_path):
    one = np.ones((2, 2))
    np.savez(tmp_path / "a.npz", inserted=one, held_out=one, scores=one, coins=one)
    with pytest.raises(InvalidScores, match="keep one of the two"):
        read_scores(tmp_path / "a.npz")


def test_a_single_array_in_disguise(tmp_path):
    with (tmp_path / "a.npz").open("wb") as file:
        np.save(file, np.ones(3))
    with pytest.raises(InvalidScores, match="a single array"):
        read_scores(tmp_path / "a.npz")


def test_damaged_files_are_the_files_fault(tmp_path):
    """Every byte of a small compressed file changed in turn: it reads as it was, or is refused as what it is."""
    rng = np.random.default_rng(0)
    np.savez_compressed(tmp_path / "good.npz", scores=rng.standard_normal((3, 2)), coins=rng.integers(0, 2, (3, 2)))
    good = (tmp_path / "good.npz").read_bytes()
    refused = 0
    for offset in range(0, len(good), 3):
        (tmp_path / "bad.npz").write_bytes(good[:offset] + bytes([good[offset] ^ 0x5A]) + good[offset + 1 :])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                read_scores(tmp_path / "bad.npz")
            except InvalidScores:
                refused += 1
    assert refused > 10


def test_failed_runs_survive_the_file(tmp_path):
    scores = Scores(scores=np.ones((3, 2)), coins=np.ones((3, 2)), failed=[0, 1, 0])
    write_scores(scores, tmp_path / "a.npz")
    assert read_scores(tmp_path / "a.npz").failed.ravel().tolist() == [False, True, False]


def test_a_table_sorted_by_coin_is_refused(tmp_path):
    rng = np.random.default_rng(0)
    lines = [f"{trial},{coin},{rng.standard_normal()}" for coin in (0, 1) for trial in range(4) for _ in range(24)]
    with pytest.raises(InvalidScores, match="a.csv: coins must be independent.*sorted by coin|exactly 24"):
        read_scores(written(tmp_path / "a.csv", "\n".join(["trial,coin,score", *lines])))


def test_trials_that_were_stopped_stay_marked(tmp_path):
    write_scores(Scores(scores=[[1.0, 2.0]], coins=[[0, 1]], stopped_early=True), tmp_path / "scores.npz")
    assert read_scores(tmp_path / "scores.npz").stopped_early


def test_a_small_file_that_unpacks_to_too_much_is_not_unpacked(tmp_path, monkeypatch):
    """Zeros pack a thousandfold. What the directory of the file says is enough to refuse it."""
    assert npz_files.MAX_BYTES <= 2**30
    monkeypatch.setattr(npz_files, "MAX_BYTES", 2**25)
    np.savez_compressed(tmp_path / "bomb.npz", scores=np.zeros((2**22, 1)), coins=np.zeros((2**22, 1)))
    assert (tmp_path / "bomb.npz").stat().st_size < 2**17
    tracemalloc.start()
    with pytest.raises(InvalidScores, match="would take 67,109,120 bytes"):
        read_scores(tmp_path / "bomb.npz")
    assert tracemalloc.get_traced_memory()[1] < 2**22
    tracemalloc.stop()


def test_scores_that_pack_well_are_read_again(tmp_path, monkeypatch):
    monkeypatch.setattr(npz_files, "MAX_BYTES", 2**20)
    coins = np.random.default_rng(0).integers(0, 2, (4096, 64))
    write_scores(Scores(scores=np.zeros(coins.shape), coins=coins), tmp_path / "scores.npz")
    assert 16 * coins.size > 64 * (tmp_path / "scores.npz").stat().st_size
    assert read_scores(tmp_path / "scores.npz").trials == 4096


def test_an_array_that_claims_more_than_it_has_is_refused(tmp_path):
    path = tmp_path / "a.npz"
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (2**28, 1)})
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("scores.npy", header.getvalue() + bytes(80))
        file.writestr("coins.npy", header.getvalue() + bytes(80))
    tracemalloc.start()
    with pytest.raises(InvalidScores, match="its array coins.npy has 208 bytes, but its header says 2,147,483,776"):
        read_scores(path)
    assert tracemalloc.get_traced_memory()[1] < 2**24
    tracemalloc.stop()


def test_a_text_file_named_npz_is_called_one(tmp_path):
    (tmp_path / "a.npz").write_text("trial,score\n", encoding="utf-8")
    with pytest.raises(InvalidScores, match=r"is not an \.npz file, but a text file; write it with np\.savez"):
        read_scores(tmp_path / "a.npz")


def test_a_cut_npz_file_is_damaged(tmp_path):
    np.savez(tmp_path / "a.npz", scores=np.zeros((3, 2)), coins=np.zeros((3, 2)))
    whole = (tmp_path / "a.npz").read_bytes()
    (tmp_path / "a.npz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InvalidScores, match=r"a damaged \.npz file"):
        read_scores(tmp_path / "a.npz")
