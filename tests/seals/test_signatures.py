"""Signatures of receipts."""

import subprocess
import sys

import pytest

from lidp.errors import SealError
from lidp.seals import make_receipt, open_seal, verify_receipt
from lidp.seals.receipt import Receipt
from tests.cli.invoke import lidp
from tests.seals.sealed import gradients, scored

pytest.importorskip("cryptography")


def key_pair(folder, name, kind="ed25519", password=None):
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ed25519, x25519

    key = (ed25519.Ed25519PrivateKey if kind == "ed25519" else x25519.X25519PrivateKey).generate()
    locked = serialization.NoEncryption() if password is None else serialization.BestAvailableEncryption(password)
    pem = serialization.Encoding.PEM
    (folder / f"{name}.pem").write_bytes(key.private_bytes(pem, serialization.PrivateFormat.PKCS8, locked))
    public = key.public_key().public_bytes(pem, serialization.PublicFormat.SubjectPublicKeyInfo)
    (folder / f"{name}.pub").write_bytes(public)
    return folder / f"{name}.pem", folder / f"{name}.pub"


@pytest.fixture
def unsigned(tmp_path):
    gradients(tmp_path / "s")
    return make_receipt(open_seal(tmp_path / "s", scored(tmp_path / "s")))


def text_of(verification):
    return next(check.text for check in verification.checks if check.name == "signature")


def test_signature_of_a_known_and_an_unknown_key(tmp_path, unsigned):
    private, public = key_pair(tmp_path, "a")
    _, other = key_pair(tmp_path, "b")
    signed = unsigned.signed(private)
    assert signed.digest == unsigned.digest
    unknown = verify_receipt(signed)
    assert unknown.holds
    assert "signed by an unknown key: sha256:" in text_of(unknown)
    known = verify_receipt(signed, public_key=public)
    assert known.holds
    assert "signed by the key of" in text_of(known)
    wrong = verify_receipt(signed, public_key=other)
    assert not wrong.holds
    assert "another key" in text_of(wrong)


def test_unsigned_receipts_do_not_pass_for_signed_ones(tmp_path, unsigned):
    _, public = key_pair(tmp_path, "a")
    assert not verify_receipt(unsigned, public_key=public).holds


def test_signature_of_another_receipt_does_not_match(tmp_path, unsigned):
    private, _ = key_pair(tmp_path, "a")
    foreign = Receipt({**unsigned.plain, "created": "later"}).signed(private)
    verification = verify_receipt(Receipt({**unsigned.plain, "signature": foreign.plain["signature"]}))
    assert "does not match" in text_of(verification)
    assert not verification.holds


def test_keys_that_cannot_sign_are_refused(tmp_path, unsigned):
    other, _ = key_pair(tmp_path, "x", kind="x25519")
    locked, _ = key_pair(tmp_path, "l", password=b"1")
    (tmp_path / "text.pem").write_text("no key")
    for path, reason in (
        (other, "expected an Ed25519 key; make one by openssl"),
        (locked, "protected by a password"),
        (tmp_path / "text.pem", "not a private key in PEM format"),
        (tmp_path / "none.pem", "No such file"),
    ):
        with pytest.raises(SealError, match=reason):
            unsigned.signed(path)


def test_without_cryptography_the_message_names_the_extra(tmp_path):
    code = (
        "import sys; sys.modules['cryptography'] = None\n"
        "from lidp.errors import SealError\nfrom lidp.seals.receipt import Receipt\n"
        "try:\n    Receipt({}).signed('key.pem')\nexcept SealError as error:\n    print(error)\n"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install 'lidp[signing]'" in out.stdout


def test_opening_again_keeps_a_signed_receipt(tmp_path, capsys):
    private, public = key_pair(tmp_path, "k")
    gradients(tmp_path / "s")
    receipt = tmp_path / "s" / "receipt.json"
    opening = ("open", tmp_path / "s", "--scores", scored(tmp_path / "s"))
    assert lidp(capsys, *opening)[0] == 0
    assert lidp(capsys, *opening, "--sign", private)[0] == 0
    signed = receipt.read_bytes()
    code, _, err = lidp(capsys, *opening)
    assert code == 2
    assert "receipt.json is signed; add --sign KEY" in err
    assert receipt.read_bytes() == signed
    assert lidp(capsys, *opening, "--receipt", tmp_path / "other.json")[0] == 0
    assert lidp(capsys, "verify", receipt, "--public-key", public)[0] == 0
