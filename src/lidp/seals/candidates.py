"""Draw the candidates of a sealed run, list them with opaque ids, and insert those whose coin is 1 into the data set."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lidp.arrays import Bools
from lidp.canaries.text import text_canaries
from lidp.errors import InvalidArgument, InvalidData
from lidp.seals.array_tables import ID, NpzTable
from lidp.seals.plan import SealPlan
from lidp.seals.tables import Table, check_fill, read_table


@dataclass(frozen=True)
class Candidates:
    """The candidates of one run, in their order.

    ``table`` holds the records of the data set and then the candidates; it is None for gradients. ``texts`` are the candidates
    of the kind text.
    """

    size: int
    table: Table | None = None
    chosen: Table | None = None
    texts: tuple[str, ...] | None = None
    new_tokens: tuple[str, ...] = ()

    def write_list(self, folder: Path, ids: NDArray[np.bytes_]) -> None:
        """Write the list of all candidates, inserted or not, for whoever scores them."""
        if isinstance(self.chosen, NpzTable):
            NpzTable({ID: ids.astype(np.str_), **self.chosen.arrays}).write(folder / NpzTable.candidates_name)
            return
        with (folder / Table.candidates_name).open("x", encoding="utf-8", newline="\n") as stream:
            stream.writelines(
                f'{{"id": "{name}"{rest}}}\n' for name, rest in zip(ids.astype(str).tolist(), self._bodies(), strict=True)
            )

    def _bodies(self) -> Iterable[str]:
        """Return what follows the id of each candidate in its line."""
        if self.texts is not None:
            return (f', "text": {json.dumps(text)}' for text in self.texts)
        if self.chosen is not None:
            return (f', "record": {record}' for record in self.chosen.records())
        return ("" for _ in range(self.size))

    def write_data(self, folder: Path, coins: Bools, rng: np.random.Generator) -> None:
        """Write the records and the inserted candidates, sorted by random keys.

        Every record and every candidate, inserted or not, has a key of its own, so that inserting a candidate moves nothing else.
        """
        assert self.table is not None  # noqa: S101  # there is no data set for gradients
        keys = rng.integers(0, 2**63, self.table.rows)
        present = np.concatenate([np.ones(self.table.rows - self.size, dtype=np.bool_), coins])
        order = np.argsort(keys, kind="stable")
        self.table.take(order[present[order]]).write(folder / self.table.train_name)


def draw_candidates(
    plan: SealPlan, data: str | Path | None, pool: str | Path | None, rng: np.random.Generator
) -> Candidates:
    """Return the candidates of a run: a function of the plan, the data, the pool and the random stream, never of coins."""
    if plan.kind == "gradients":
        if data is not None or pool is not None:
            raise InvalidArgument(
                "gradient canaries are planted by the trainer, not in the data; leave --data and --pool out"
            )
        return Candidates(plan.canaries)
    if data is None:
        raise InvalidArgument(f"--data is missing: the data set into which {plan.kind} canaries are inserted")
    records = read_table(data)
    if plan.kind == "text":
        if pool is not None:
            raise InvalidArgument("--pool is for --kind records; text canaries are made up")
        return _texts(plan, records, rng)
    if pool is None:
        raise InvalidArgument("--pool is missing: the file from which candidates are drawn, with the columns of --data")
    if Path(pool).resolve() == Path(data).resolve():
        raise InvalidArgument(
            f"--pool is the file of --data, {data}: a candidate that is in the data anyway shows nothing; split off a pool"
        )
    return _rows(plan, records, read_table(pool), rng)


def _texts(plan: SealPlan, records: Table, rng: np.random.Generator) -> Candidates:
    options: dict[str, Any] = dict(plan.options)
    column = options["text_field"]
    records.require_text(column)
    check_fill(records.columns, column, options["fill"])
    drawn = text_canaries(
        options["canary_text"], records.texts(column), plan.canaries, rng, secret=options["secret_tokens"]
    )
    chosen = records.filled(column, drawn.texts, options["fill"])
    return Candidates(
        plan.canaries, records.joined(chosen), chosen, _texts_unless_arrays(chosen, drawn.texts), drawn.new_tokens
    )


def _texts_unless_arrays(chosen: Table, texts: tuple[str, ...]) -> tuple[str, ...] | None:
    return None if isinstance(chosen, NpzTable) else texts


def _rows(plan: SealPlan, records: Table, pool: Table, rng: np.random.Generator) -> Candidates:
    if type(pool) is not type(records):
        raise InvalidData(f"the pool must have the format of the data, {records.train_name.removeprefix('train.')}")
    records.require_same_columns(pool)
    if pool.rows < plan.canaries:
        raise InvalidData(
            f"the pool has {pool.rows:,} records, fewer than the {plan.canaries:,} canaries; give a larger pool or fewer canaries"
        )
    chosen = pool.take(rng.permutation(pool.rows)[: plan.canaries])
    return Candidates(plan.canaries, records.joined(chosen), chosen)
