"""``python -m benchmarks [NAME ...]``: all of them, or the named ones of PARTS."""

import sys

from benchmarks import clusters, overhead, pairs, simulation, speed, strength, training

PARTS = {
    "speed": speed.main,
    "overhead": overhead.main,
    "simulation": simulation.main,
    "strength": strength.main,
    "training": training.main,
    "pairs": pairs.main,
    "clusters": clusters.main,
}

if __name__ == "__main__":
    names = sys.argv[1:] or list(PARTS)
    unknown = set(names) - set(PARTS)
    if unknown:
        sys.exit(f"unknown benchmark {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    for name in names:
        PARTS[name]()
