"""Canaries along coordinates: where they are in a model, and which of them a run inserts and watches."""

import numpy as np
import pytest

from lidp import AuditFailed, InvalidArgument
from lidp.integrations.coordinate_canaries import CoordinateRecords, ParameterGroups

GROUPS = ParameterGroups(("weights", "scale", "bias"), ((2, 3), (), (4,)))


def test_coordinates_are_located_in_their_arrays():
    groups, offsets = GROUPS.locate(np.array([0, 5, 6, 7, 10]))
    assert groups.tolist() == [0, 0, 1, 2, 2]
    assert offsets.tolist() == [0, 5, 0, 0, 3]
    assert GROUPS.sizes == GROUPS.canaries.group_sizes == (6, 1, 4)


@pytest.mark.parametrize("coordinate", [-1, 11])
def test_coordinates_outside_the_model_are_refused(coordinate):
    with pytest.raises(InvalidArgument, match="must be 0 to 10"):
        GROUPS.locate(np.array([3, coordinate]))


@pytest.mark.parametrize("shapes", [(), ((3,), (0, 2))])
def test_groups_without_parameters_are_refused(shapes):
    with pytest.raises(InvalidArgument, match="at least one parameter"):
        ParameterGroups(tuple("ab"[: len(shapes)]), shapes)


def test_other_arrays_end_the_audit():
    GROUPS.require(GROUPS.names, GROUPS.shapes, "the sums")
    with pytest.raises(
        AuditFailed, match="the sums have the arrays weights, but the parameters of the target have weights, scale, bias"
    ):
        GROUPS.require(("weights",), ((2, 3),), "the sums")
    with pytest.raises(AuditFailed, match=r"the sums have shape \(3, 2\) at weights, but .* have \(2, 3\)"):
        GROUPS.require(GROUPS.names, ((3, 2), (), (4,)), "the sums")


def test_watched_canaries_come_first_and_keep_their_numbers():
    canaries = GROUPS.canaries.draw(np.random.default_rng(0), 8)
    data = CoordinateRecords(np.zeros(3)).with_canaries(canaries[[6, 1, 3]])
    for watched in ([], [3, 4], [4, 6, 3, 1], range(8)):
        rows = data.watching(canaries[list(watched)]).canaries()
        assert rows.coordinates[: len(watched)].tolist() == canaries[list(watched), 0].tolist()
        numbers = {
            int(c): int(n) for c, n, inserted in zip(rows.coordinates, rows.numbers, rows.inserted, strict=True) if inserted
        }
        assert numbers == {int(canaries[row, 0]): number for number, row in enumerate([6, 1, 3])}
        values = dict(zip(rows.coordinates.tolist(), rows.values.tolist(), strict=True))
        assert all(values[int(coordinate)] == value for coordinate, value in canaries[[6, 1, 3]])


def test_two_canaries_at_one_coordinate_end_the_audit():
    rows = np.array([[2.0, 1.0], [2.0, -1.0]])
    for data in (CoordinateRecords([]).with_canaries(rows), CoordinateRecords([]).watching(rows)):
        with pytest.raises(AuditFailed, match="the same coordinate"):
            data.canaries()


def test_records_are_copied_and_counted():
    records = np.arange(6.0).reshape(3, 2), np.arange(3)
    data = CoordinateRecords(records).with_canaries(np.array([[1.0, 1.0]]))
    assert len(data) == 3
    data.copy_records()[0][:] = 7
    assert records[0][0, 0] == 0
