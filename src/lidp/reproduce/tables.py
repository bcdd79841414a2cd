"""Tables as lists of rows: select, group and average rows; write CSV files."""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

Row = dict[str, Any]
"""One line of a table: plain values by column."""


def select(table: Iterable[Row], **values: object) -> list[Row]:
    """Return the rows of a table with these values."""
    return [row for row in table if all(row[name] == value for name, value in values.items())]


def group(rows: Iterable[Row], *columns: str) -> dict[tuple[Any, ...], list[Row]]:
    """Return the rows by their values in these columns, in the order in which the values first appear."""
    groups = defaultdict(list)
    for row in rows:
        groups[tuple(row[name] for name in columns)].append(row)
    return dict(groups)


def sorted_groups(rows: Iterable[Row], *columns: str) -> list[tuple[Row, list[Row]]]:
    """Return each combination of values in these columns, as the beginning of a row, with the rows that have it; sorted."""
    return [(dict(zip(columns, values, strict=True)), same) for values, same in sorted(group(rows, *columns).items())]


def average(rows: Iterable[Row], *columns: str) -> list[Row]:
    """Return the mean ε̂ of repetitions: one row per combination of values in these columns, sorted by them."""
    table = []
    for line, repetitions in sorted_groups(rows, *columns):
        mean, error = mean_and_error([row["epsilon"] for row in repetitions])
        table.append(line | {"epsilon_hat": mean, "standard_error": error, "repetitions": len(repetitions)})
    return table


def mean_and_error(values: Sequence[float]) -> tuple[float, float]:
    """Return the mean and its standard error (0 for a single value)."""
    error = float(np.std(values, ddof=1) / len(values) ** 0.5) if len(values) > 1 else 0.0
    return float(np.mean(values)), error


def write_table(path: Path, table: Sequence[Row]) -> None:
    """Write a table as a CSV file, numbers with six digits."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(table[0])
        writer.writerows([f"{value:.6g}" if isinstance(value, float) else value for value in row.values()] for row in table)
