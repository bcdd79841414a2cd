"""``python -m benchmarks [speed] [overhead] [simulation] [strength] [training] [pairs] [report]``: all, or the named ones."""

import sys

from benchmarks import overhead, pairs, report, simulation, speed, strength, training

PARTS = {
    "speed": speed.main,
    "overhead": overhead.main,
    "simulation": simulation.main,
    "strength": strength.main,
    "training": training.main,
    "pairs": pairs.main,
    "report": report.main,
}

if __name__ == "__main__":
    names = sys.argv[1:] or list(PARTS)
    unknown = set(names) - set(PARTS)
    if unknown:
        sys.exit(f"unknown benchmark {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    for name in names:
        PARTS[name]()
