"""Read what ``lidp reproduce`` wrote."""

import csv
from pathlib import Path


def files_in(folder):
    """Return the table, figure and summary of an experiment by name, without the stores of its cells."""
    return {
        path.name: path.read_bytes() for path in sorted(Path(folder).iterdir()) if path.suffix in (".csv", ".svg", ".json")
    }


def read_table(path):
    """Return the table of a CSV file, with numbers as numbers."""
    with path.open(newline="", encoding="utf-8") as file:
        return [{name: parse(text) for name, text in row.items()} for row in csv.DictReader(file)]


def parse(text):
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
