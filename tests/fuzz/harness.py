"""Run lidp on invalid input in this process, and check the contract of its exit codes and messages."""

import contextlib
import io
import json
import re
import warnings

from lidp.cli.app import run

CODES = {0, 1, 2, 130}


def lidp(*words):
    """Run a command, check the contract, and return its exit code, stdout and stderr."""
    words = [str(word) for word in words]
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), warnings.catch_warnings():
        warnings.simplefilter("error")  # a warning would mix with the output
        warnings.simplefilter("ignore", ResourceWarning)  # hidden from users by default
        code = run(words)
    _check(words, code, out.getvalue(), err.getvalue())
    return code, out.getvalue(), err.getvalue()


def _check(words, code, out, err):
    context = f"lidp {words}\nexit code {code}\nstdout: {out[-2000:]}\nstderr: {err[-2000:]}"
    assert code in CODES, context
    assert "Traceback" not in out + err, context
    assert "should not have happened" not in err, context
    if code == 2:
        assert err.startswith("lidp: "), context
        assert err.count("\n") == 1, context
        assert err.isprintable() or err[:-1].isprintable(), context
    if code == 1:
        assert _prints_refuted(out), context


def _prints_refuted(out):
    with contextlib.suppress(ValueError):
        return '"refuted": true' in out or '"verdict": "refuted"' in json.dumps(json.loads(out))
    return re.search(r"(?<!not )(?<!be )\brefuted\b", out) is not None


def mutated(content, rng):
    """Return bytes with one or several random changes."""
    changed = bytearray(content)
    for _ in range(rng.choice([1, 1, 1, 4, 30])):
        kind = rng.randrange(5)
        at = rng.randrange(len(changed)) if changed else 0
        if kind == 0 and changed:
            changed[at] ^= 1 << rng.randrange(8)
        elif kind == 1 and changed:
            changed[at] = rng.randrange(256)
        elif kind == 2:
            del changed[at : at + rng.choice([1, 3, 100])]
        elif kind == 3:
            changed[at:at] = rng.choice([b"\0", b"\xff", b"nan", b",", b"\n", b'"', b"[", b"1e999", rng.randbytes(5)])
        else:
            del changed[at:]
    return bytes(changed)
