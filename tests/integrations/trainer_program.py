"""A program that "trains", as someone's script would: reads {data}, writes losses to {out}. Misbehaves on request."""

import argparse
import sys
from pathlib import Path

import numpy as np

parser = argparse.ArgumentParser()
parser.add_argument("--data", required=True)
parser.add_argument("--out", required=True)
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--noise", type=float, default=1.0)
parser.add_argument("--fail", type=int, default=0, help="fail in one of so many runs, by seed")
parser.add_argument("--nonsense", choices=["text", "few", "nan", "nothing", "pickle"])
parser.add_argument("--form", choices=["npy", "text", "json"], default="npy")
given = parser.parse_args()

if given.fail and given.seed % given.fail == 0:
    sys.stdout.write("the disk is on fire\n")
    sys.exit(7)
data = np.load(given.data)
rows = data["x"] / np.maximum(np.linalg.norm(data["x"], axis=1, keepdims=True), 1.0)
model = rows.sum(axis=0) + given.noise * np.random.default_rng(given.seed).standard_normal(rows.shape[1])
losses = -data["canary_x"] @ model
out = Path(given.out)
if given.nonsense == "text":
    out.write_text("all went well")
elif given.nonsense == "few":
    out.write_text("1.0\n2.0\n")
elif given.nonsense == "nan":
    out.write_text("\n".join(["nan"] * len(losses)))
elif given.nonsense == "pickle":
    np.save(out, np.array([{}], dtype=object), allow_pickle=True)
elif given.nonsense == "nothing":
    pass
elif given.form == "npy":
    np.save(out, losses)
elif given.form == "text":
    out.write_text("\n".join(map(str, losses)))
else:
    out.write_text(str(losses.tolist()))
