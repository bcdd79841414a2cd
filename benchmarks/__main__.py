"""``python -m benchmarks [NAME ...]``: all of them, or the named ones."""

import sys

from benchmarks import (
    bound_command,
    broken_training,
    canary_counts,
    clusters,
    curves,
    nulls,
    one_run,
    opacus_overhead,
    opacus_transcripts,
    overhead,
    pairs,
    peers,
    report,
    scale,
    serve,
    simulation,
    speed,
    strength,
    text_canaries,
    training,
    training_profile,
    transcripts,
)

PARTS = {
    "speed": speed.main,
    "overhead": overhead.main,
    "simulation": simulation.main,
    "strength": strength.main,
    "curves": curves.main,
    "one-run": one_run.main,
    "nulls": nulls.main,
    "training": training.main,
    "training-profile": training_profile.main,
    "transcripts": transcripts.main,
    "broken-training": broken_training.main,
    "opacus": opacus_overhead.main,
    "opacus-transcripts": opacus_transcripts.main,
    "text-canaries": text_canaries.main,
    "canary-counts": canary_counts.main,
    "pairs": pairs.main,
    "peers": peers.main,
    "clusters": clusters.main,
    "report": report.main,
    "serve": serve.main,
    "scale": scale.main,
    "bound-command": bound_command.main,
}

if __name__ == "__main__":
    names = sys.argv[1:] or list(PARTS)
    unknown = set(names) - set(PARTS)
    if unknown:
        sys.exit(f"unknown benchmark {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    for name in names:
        PARTS[name]()
