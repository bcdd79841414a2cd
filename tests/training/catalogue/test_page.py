"""The page about broken training lists the catalogue as it is."""

import pytest

from lidp.training.catalogue import TRAININGS
from tests.pages import ROOT

PAGE = (ROOT / "docs" / "broken-training.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("entry", TRAININGS.values(), ids=list(TRAININGS))
def test_every_entry_is_described_and_has_a_result(entry):
    assert f"| {entry.name} | {entry.about} | {entry.reference} |" in PAGE
    assert f"| {entry.name} | {entry.planted.description}, {entry.canaries} per model | {entry.found_by} |" in PAGE
