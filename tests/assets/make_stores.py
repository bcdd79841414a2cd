"""Write the stores of this folder: ``python -m tests.assets.make_stores``. Do so only when the format has changed on purpose."""

import json
from pathlib import Path

import lidp
from tests.pairs.test_pair_stores import Texts
from tests.sample_targets import LEAKY, SILENT

FOLDER = Path(__file__).parent


def make_stores(folder):
    """Write one store per kind of design, each of a finished audit."""
    claim = lidp.Claim(1.0, 1e-5)
    replaced = lidp.Claim(1.0, 1e-5, "replace-one")
    lidp.audit(LEAKY, claim=claim, design=lidp.CoinFlip(4), trials=12, store=folder / "coin-flip.db")
    lidp.audit(SILENT, claim=claim, design=lidp.LeaveOneOut(3, 2), trials=6, store=folder / "leave-one-out.db")
    lidp.audit(SILENT, claim=replaced, design=lidp.ReplaceOne(3, 2), trials=6, store=folder / "replace-one.db")
    lidp.audit_pair(Texts(0.1), 0, 1, claim=lidp.Claim(1.0), runs=200, store=folder / "pair.db")


def expected_of(store):
    """Return what must be read from a store: the witness, and what leaks."""
    result = lidp.result_of(store)
    return json.loads(json.dumps({**result.witness(), "verdict": str(result.verdict), "leak": result.leak}))


if __name__ == "__main__":
    make_stores(FOLDER)
    for store in sorted(FOLDER.glob("*.db")):
        store.with_suffix(".json").write_text(json.dumps(expected_of(store)) + "\n", encoding="utf-8")
