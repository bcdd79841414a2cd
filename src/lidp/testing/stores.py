"""The contract of stores: give back what was kept, to one writer at a time, and never write over an audit."""

from __future__ import annotations

import tempfile
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from lidp.designs.trial_record import TrialRecord
from lidp.errors import StoreError
from lidp.store import Store
from lidp.testing.comparing import equal, same_record
from lidp.testing.contract import Contract, raises, require

_CONFIGURATION = {"target": "a mechanism", "trials": 5, "method": {"kind": "CoinWager"}, "facts": {"noise": 0.1}}
_RECORDS = [
    TrialRecord(
        0, {"scores": np.array([0.1, -1e300]), "coins": np.array([0.0, 1.0])}, seconds=0.5, metadata={"loss": 0.25}
    ),
    TrialRecord(
        3, {"scores": np.array([np.nan, np.nan]), "coins": np.array([1.0, 1.0])}, {"scores": "it failed: ∞"}, attempts=2
    ),
]


class StoreContract(Contract):
    """Checks of a class of stores. Define ``make``. All checks are exact."""

    @abstractmethod
    def make(self) -> type[Store]:
        """Return the class, with ``create``, ``open`` and ``read`` as those of ``lidp.store.Store``."""

    @contextmanager
    def _path(self) -> Iterator[Path]:
        with tempfile.TemporaryDirectory() as folder:
            yield Path(folder) / "audit.db"

    def test_trials_are_read_as_they_were_kept(self) -> None:
        cls = self.make()
        with self._path() as path:
            with cls.create(path, _CONFIGURATION) as store:
                store.keep_trials(_RECORDS[1:])
                store.keep_trials(_RECORDS[:1])
            with cls.read(path) as store:
                require(list(store.finished()) == [0, 3], f"finished() returned {store.finished()} for the trials 0 and 3")
                for record, kept in zip(store.trials(), _RECORDS, strict=True):
                    require(same_record(record, kept), f"trial {kept.index} was read otherwise than it was kept")
                    notes = (record.seconds, record.attempts, dict(record.failures))
                    require(notes == (kept.seconds, kept.attempts, dict(kept.failures)), f"notes were read as {notes}")

    def test_configuration_and_versions_are_read_as_they_were_kept(self) -> None:
        cls = self.make()
        with self._path() as path:
            cls.create(path, _CONFIGURATION, {"lidp": "1.0"}).close()
            with cls.read(path) as store:
                require(store.configuration == _CONFIGURATION, f"the configuration was read as {store.configuration}")
                require(store.versions == {"lidp": "1.0"}, f"the versions were read as {store.versions}")
                require(store.trials() == [], "a new store has trials")

    def test_preparation_is_read_as_it_was_kept(self) -> None:
        cls = self.make()
        arrays = {"directions": np.arange(6.0).reshape(2, 3), "scale": np.array(0.5)}
        with self._path() as path, cls.create(path, _CONFIGURATION) as store:
            require(store.preparation() is None, "a new store has a preparation")
            store.keep_preparation(arrays, 7)
            preparation = store.preparation()
            require(preparation is not None and preparation[1] == 7, f"the preparation was read as {preparation}")
            require(preparation is not None and equal(preparation[0], arrays), "its arrays were read otherwise")

    def test_trials_are_kept_all_or_none(self) -> None:
        cls = self.make()
        with self._path() as path, cls.create(path, _CONFIGURATION) as store:
            store.keep_trials(_RECORDS[1:])
            raises(StoreError, lambda: store.keep_trials(_RECORDS), "a trial was kept twice")
            require(list(store.finished()) == [3], "of trials that could not be kept together, some were kept")

    def test_existing_file_is_not_replaced(self) -> None:
        cls = self.make()
        with self._path() as path:
            with cls.create(path, _CONFIGURATION) as store:
                store.keep_trials(_RECORDS)
            raises(StoreError, lambda: cls.create(path, {}), "create replaced an existing store")
            with cls.read(path) as store:
                require(list(store.finished()) == [0, 3], "the existing store has lost trials")

    def test_second_writer_is_refused_and_readers_are_not(self) -> None:
        cls = self.make()
        with self._path() as path, cls.create(path, _CONFIGURATION) as store:
            raises(StoreError, lambda: cls.open(path), "two writers opened one store")
            store.keep_trials(_RECORDS)
            with cls.read(path) as reader:
                require(list(reader.finished()) == [0, 3], "a reader does not see what was kept")

    def test_missing_and_foreign_files_are_refused(self) -> None:
        cls = self.make()
        with self._path() as path:
            raises(StoreError, lambda: cls.open(path), "a missing file was opened")
            path.write_text("no store", encoding="utf-8")
            for opening in (cls.open, cls.read):
                raises(StoreError, lambda opening=opening: opening(path), "a file that is no store was opened")


def check_store(store: type[Store]) -> None:
    """Run the contract of stores on a class of your own; raise ``ContractViolated`` if it fails."""

    class Single(StoreContract):
        def make(self) -> type[Store]:
            return store

    Single().run()
