"""Receipts: what holds is said, and what was edited is found."""

import base64
import json
import shutil
import zlib

import numpy as np
import pytest

from lidp import Claim
from lidp.errors import InvalidArgument, SealError
from lidp.seals import Receipt, make_receipt, open_seal, read_receipt, verify_receipt
from lidp.seals.files import canonical, sha256
from lidp.seals.receipt import digest_of, model_card
from tests.seals.sealed import coins_of, gradients, scored


@pytest.fixture
def receipt(tmp_path):
    gradients(tmp_path / "s", claim=Claim.gaussian(0.5), canaries=400, runs=1)
    opened = open_seal(tmp_path / "s", scored(tmp_path / "s", shift=6.0))
    make_receipt(opened).write(tmp_path / "r.json")
    return tmp_path / "r.json"


def outcome(verification):
    return {check.name: check.holds for check in verification.checks}


def edited(path, change, *, digest=True):
    """The receipt after a change, with a digest that matches it, as a forger would make it."""
    plain = json.loads(path.read_text(encoding="utf-8"))
    change(plain)
    return Receipt(plain | {"digest": digest_of(plain)} if digest else plain)


def test_receipt_holds(receipt):
    verification = verify_receipt(receipt)
    assert verification.holds
    assert outcome(verification) == {
        "digest": True, "signature": None, "commitments": True, "evidence": True, "bound": True, "verdict": True,
    }  # fmt: skip
    assert "refuted" in str(verification)


def test_receipt_of_the_same_opening_is_the_same(receipt, tmp_path):
    again = make_receipt(open_seal(tmp_path / "s", scored(tmp_path / "s", shift=6.0)))
    assert again.plain == read_receipt(receipt).plain


def test_any_edit_breaks_the_digest(receipt):
    verification = verify_receipt(edited(receipt, lambda plain: plain["bound"].update(epsilon=9.0), digest=False))
    assert outcome(verification)["digest"] is False
    assert not verification.holds


def recommit(plain, change):
    """Change the plan everywhere, with digests that match."""
    commitment = plain["commitments"][0]
    change(commitment["plan"])
    rest = {name: value for name, value in commitment.items() if name != "digest"}
    commitment["digest"] = sha256(canonical(rest))
    plain["plan"] = commitment["plan"]
    plain["claim"] = commitment["plan"]["claim"]


def flip_coin(plain):
    packed = plain["evidence"][0]
    packed["coins"], packed["scores"] = packed["scores"], packed["coins"]


@pytest.mark.parametrize(
    ("change", "fails"),
    [
        (lambda plain: plain["bound"].update(epsilon=plain["bound"]["epsilon"] * (1 + 1e-12)), "bound"),
        (lambda plain: plain["bound"].update(failure_probability=0.01), "bound"),
        (lambda plain: plain["bound"].update(hypothesis="point"), "bound"),
        (lambda plain: plain["bound"]["point"].update(epsilon=0.0), "bound"),
        (lambda plain: plain.update(bound=None), "bound"),
        (lambda plain: plain.update(verdict="not refuted"), "verdict"),
        (lambda plain: plain["verdicts"].update(point="inconclusive"), "verdict"),
        (lambda plain: plain["assumptions"].pop(), "verdict"),
        (lambda plain: plain["claim"].update(epsilon=9.0), "commitments"),
        (lambda plain: plain["plan"].update(looks=3), "commitments"),
        (lambda plain: plain["commitments"][0].update(run=2), "commitments"),
        (lambda plain: plain.update(commitments=[]), "commitments"),
        (lambda plain: plain.update(commitments=[None]), "commitments"),
        (lambda plain: plain["commitments"].append(plain["commitments"][0]), "commitments"),
        (lambda plain: plain.update(runs=[]), "evidence"),
        (lambda plain: plain.update(runs=7), "evidence"),
        (lambda plain: plain["runs"][0].update(scores=sha256(b"")), "evidence"),
        (lambda plain: plain["runs"][0].update(failed="it did"), "evidence"),
        (lambda plain: plain.update(evidence_hash=sha256(b"")), "evidence"),
        (lambda plain: plain["evidence"][0].update(salt="00" * 32), "evidence"),
        (lambda plain: plain["evidence"][0].update(scores=None), "evidence"),
        (lambda plain: plain["evidence"][0].update(scores=None, failed="it did"), "evidence"),
        (lambda plain: plain["evidence"][0].update(coins="AAAA"), "evidence"),
        (flip_coin, "evidence"),
        (lambda plain: plain.update(evidence=[]), "evidence"),
        (lambda plain: plain.update(evidence={}), "evidence"),
        (lambda plain: plain.update(signature=[]), "signature"),
        (lambda plain: plain.update(signature={"algorithm": "none"}), "signature"),
        (lambda plain: recommit(plain, lambda plan: plan.update(failure_probability=0.5)), "evidence"),
    ],
)
def test_edits_with_a_new_digest_are_found_out(receipt, change, fails):
    verification = verify_receipt(edited(receipt, change))
    assert not verification.holds
    assert outcome(verification)[fails] is False
    assert all("\n" not in check.text for check in verification.checks)


def test_a_commitment_changed_together_with_everything_shows_another_digest(receipt):
    """Nothing in the file can reveal that: the digest that was published before training does."""
    published = read_receipt(receipt).plain["commitments"][0]["digest"]
    forged = edited(receipt, lambda plain: recommit(plain, lambda plan: plan.update(looks=2)))
    assert forged.plain["commitments"][0]["digest"] != published


def test_receipts_without_evidence_need_the_seal_and_the_scores(tmp_path):
    gradients(tmp_path / "s")
    scores = scored(tmp_path / "s")
    short = make_receipt(open_seal(tmp_path / "s", scores), with_evidence=False)
    alone = verify_receipt(short)
    assert not alone.holds
    assert outcome(alone)["evidence"] is None
    assert "could not be checked completely" in str(alone)
    assert verify_receipt(short, seals=[tmp_path / "s"], scores=[scores]).holds
    assert not verify_receipt(short, seals=[tmp_path / "s"], scores=[scored(tmp_path / "s", seed=5)]).holds
    assert outcome(verify_receipt(short, seals=[tmp_path / "s"]))["evidence"] is None
    with pytest.raises(InvalidArgument, match="give --seal too"):
        verify_receipt(short, scores=[scores])


def test_failed_runs_can_be_verified(tmp_path):
    gradients(tmp_path / "s")
    opened = open_seal(tmp_path / "s", failed={1: "out of memory"})
    assert verify_receipt(make_receipt(opened)).holds
    short = make_receipt(opened, with_evidence=False)
    assert verify_receipt(short, seals=[tmp_path / "s"]).holds


def test_folders_of_another_seal_do_not_fit(receipt, tmp_path):
    gradients(tmp_path / "other", claim=Claim.gaussian(0.5), canaries=400, runs=1, seed=1)
    assert outcome(verify_receipt(receipt, seals=[tmp_path / "other"]))["seal"] is False
    assert verify_receipt(receipt, seals=[tmp_path / "s"]).holds
    shutil.rmtree(tmp_path / "other")
    assert outcome(verify_receipt(receipt, seals=[tmp_path / "other"]))["seal"] is False


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("[" * 100_000, "nested too deeply"),
        ("[]", "expected a JSON object"),
        ("{}", "format None is unknown"),
        ('{"format": 1}', "claim is missing"),
        ('{"format": 1, "format": 1}', "occurs twice"),
        ('{"format": ' + "9" * 5000 + "}", "not the JSON"),
    ],
)
def test_files_that_are_no_receipts_are_refused(tmp_path, content, reason):
    (tmp_path / "r.json").write_text(content)
    with pytest.raises(SealError, match=reason) as error:
        verify_receipt(tmp_path / "r.json")
    assert "\n" not in str(error.value)


def test_no_receipt_while_looks_are_left(tmp_path):
    gradients(tmp_path / "s", looks=2)
    with pytest.raises(InvalidArgument, match="no receipt while looks are left"):
        make_receipt(open_seal(tmp_path / "s", scored(tmp_path / "s")))


def test_evidence_is_compact(receipt):
    size = len(json.dumps(read_receipt(receipt).plain["evidence"]))
    assert size < 25 * 400


def test_model_card_is_a_short_block_with_both_digests(tmp_path):
    gradients(tmp_path / "s")
    opened = open_seal(tmp_path / "s", scored(tmp_path / "s"))
    made = make_receipt(opened)
    card = model_card(opened.result, made)
    assert 8 <= len(card.splitlines()) <= 12
    assert made.digest in card
    assert opened.evidence[0].commitment.digest in card
    assert "**not refuted**" in card
    assert not set(coins_of(tmp_path / "s")) & set(card.split())


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"look": 2}, "of look 2, and the plan has 1"),
        ({"look": True}, "of look True"),
        ({"look": "1"}, "of look '1'"),
        ({"created": "yesterday"}, "expected a time"),
        ({"created": None}, "expected a time"),
        ({"certified_by": "the regulator"}, "states 'certified_by'"),
    ],
)
def test_statements_that_no_opening_makes_are_found(receipt, change, reason):
    verification = verify_receipt(edited(receipt, lambda plain: plain.update(change)))
    assert not verification.holds
    assert reason in str(verification)


def test_times_cannot_pretend_to_be_checks(receipt):
    forged = "2030-01-01T00:00:00+00:00\nholds        signature: signed by the key of key.pub"

    def change(plain):
        plain["commitments"][0]["created"] = forged
        recommit(plain, lambda plan: None)

    verification = verify_receipt(edited(receipt, change))
    assert not verification.holds
    assert not [line for line in str(verification).splitlines() if line.startswith("holds        signature")]


def test_ids_are_those_of_the_sealed_folder(receipt, tmp_path):
    verification = verify_receipt(receipt, seals=[tmp_path / "s"])
    assert verification.holds
    other = packed(np.random.default_rng(0).bytes(8 * 400))
    swapped = edited(receipt, lambda plain: plain["evidence"][0].update(ids=other))
    assert "not those of the sealed folder" in str(verify_receipt(swapped, seals=[tmp_path / "s"]))


def packed(content, level=-1):
    return base64.b64encode(zlib.compress(content, level)).decode()


@pytest.mark.parametrize(
    ("level", "reason"), [(9, "it has not the ids of 400 candidates"), (0, "the evidence has an id twice")]
)
def test_small_receipts_do_not_unpack_to_many_candidates(receipt, level, reason):
    ids = packed(bytes(8 * 400), level)
    verification = verify_receipt(edited(receipt, lambda plain: plain["evidence"][0].update(ids=ids)))
    assert not verification.holds
    assert reason in str(verification)


def test_failure_probability_is_told_with_the_verdict(receipt):
    assert "(failure probability 0.05)" in str(verify_receipt(receipt))
