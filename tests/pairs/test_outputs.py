"""``take_apart`` and ``OutputTable.look``: what a classifier sees of outputs of every kind."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lidp import AuditFailed
from lidp.pairs.outputs import MOST_COLUMNS, MOST_ELEMENTS, OutputTable, take_apart

numbers = st.one_of(st.integers(-(2**40), 2**40), st.floats(allow_nan=False))
values = st.recursive(
    st.one_of(st.none(), numbers, st.text(max_size=5)),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=3), inner, max_size=4)),
    max_leaves=8,
)


def column(outputs, name, known=()):
    columns = take_apart(outputs).look(known)
    return columns.values[:, columns.names.index(name)]


def identities(*outputs):
    return take_apart(list(outputs)).identities.tolist()


def test_number_is_its_value():
    columns = take_apart([3, 2.5, True, Decimal("0.5"), Fraction(1, 4), np.float32(8)]).look()
    assert columns.names == ("value",)
    assert columns.values[:, 0].tolist() == [3, 2.5, 1, 0.5, 0.25, 8]


def test_number_too_large_for_a_float_is_infinite():
    assert column([10**400, -(10**400)], "value").tolist() == [np.inf, -np.inf]


def test_array_of_numbers_is_its_values_and_their_identities():
    columns = take_apart(np.array([3.0, 1.0, 3.0])).look()
    assert columns.names == ("value",)
    assert columns.values[:, 0].tolist() == columns.identities.tolist() == [3.0, 1.0, 3.0]


def test_vector_is_its_elements_and_summaries():
    outputs = np.array([[1.0, 5.0, 1.0], [2.0, 0.0, 4.0]])
    assert column(outputs, "element 1").tolist() == [5, 0]
    assert column(outputs, "sum").tolist() == [7, 6]
    assert column(outputs, "largest").tolist() == [5, 4]
    assert column(outputs, "index of the largest").tolist() == [1, 2]
    assert column(outputs, "equal to an earlier element").tolist() == [1, 0]


def test_list_is_its_length_elements_and_summaries():
    outputs = [[1, 5, 1], [2], []]
    assert column(outputs, "length").tolist() == [3, 1, 0]
    np.testing.assert_array_equal(column(outputs, "element 1"), [5, np.nan, np.nan])
    np.testing.assert_array_equal(column(outputs, "last"), [1, 2, np.nan])
    np.testing.assert_array_equal(column(outputs, "sum"), [7, 2, np.nan])


def test_text_is_its_length():
    columns = take_apart(["a", "abc"]).look()
    assert columns.names == ("length",)
    assert columns.values[:, 0].tolist() == [1, 3]


def test_dict_is_its_values_by_key():
    outputs = [{"count": 3, "name": "ab"}, {"count": 4}]
    assert column(outputs, "count").tolist() == [3, 4]
    np.testing.assert_array_equal(column(outputs, "name: length"), [2, np.nan])


def test_none_has_a_column_of_its_own():
    outputs = [None, 2.0]
    np.testing.assert_array_equal(column(outputs, "is None"), [1, np.nan])
    np.testing.assert_array_equal(column(outputs, "value"), [np.nan, 2])


def test_long_list_has_a_limited_number_of_elements():
    names = take_apart([list(range(MOST_ELEMENTS + 10))]).look().names
    assert f"element {MOST_ELEMENTS - 1}" in names
    assert f"element {MOST_ELEMENTS}" not in names


def test_features_are_added():
    columns = take_apart(["ab", "b"], features=lambda text: [text.count("a"), 7]).look()
    assert columns.select(["feature 0", "feature 1"]).tolist() == [[1, 7], [0, 7]]


@pytest.mark.parametrize("outputs", [np.array([0.0, 1.0]), [0.0, 1.0]], ids=["array", "list"])
def test_bits_add_the_trailing_zeros_of_floats(outputs):
    columns = take_apart(outputs, bits=True).look()
    assert columns.select(["trailing zero bits"])[:, 0].tolist() == [64, 52]


def test_known_columns_come_first_and_stay_although_no_output_has_them():
    columns = take_apart([{"b": 1}, {"a": 2, "b": 3}]).look(("gone", "a"))
    assert columns.names == ("gone", "a", "b")
    np.testing.assert_array_equal(columns.values, [[np.nan, np.nan, 1], [np.nan, 2, 3]])


def test_columns_are_limited_to_the_known_and_then_the_commonest():
    known = tuple(f"known {k}" for k in range(MOST_COLUMNS - 1))
    columns = take_apart([{"rare": 1, "common": 2}, {"common": 3}]).look(known)
    assert columns.names == (*known, "common")
    assert columns.values[:, -1].tolist() == [2, 3]


def test_known_columns_stay_where_later_outputs_have_more_than_can_be_kept():
    """Which columns there are must not depend on later outputs."""
    known = take_apart([{"early": 1.0, "rare": 2.0}]).look().names
    crowd = [{f"{k}": 0.0 for k in range(400)} for _ in range(3)]
    columns = take_apart(crowd).look(known)
    assert columns.names[:2] == known
    assert len(columns.names) == len(take_apart(crowd).look().names) < 400
    assert np.isnan(columns.select(known)).all()


@given(output=values)
def test_equal_outputs_have_equal_identities(output):
    copied = take_apart([output, _rebuilt(output)])
    assert copied.identities[0] == copied.identities[1]


def _rebuilt(output):
    """Return an equal output with tuples for lists, floats for small integers, and dicts in the reverse order."""
    if isinstance(output, list):
        return tuple(_rebuilt(value) for value in output)
    if isinstance(output, dict):
        return {key: _rebuilt(output[key]) for key in reversed(output)}
    return float(output) if isinstance(output, int) else output


@given(outputs=st.lists(st.lists(st.integers(0, 2), max_size=4), min_size=2, max_size=8))
def test_identities_are_equal_exactly_where_outputs_are(outputs):
    assigned = take_apart(outputs).identities
    for i, one in enumerate(outputs):
        assert [assigned[i] == other for other in assigned] == [one == other for other in outputs]


@given(rows=st.lists(st.lists(st.integers(0, 1), min_size=3, max_size=3), min_size=2, max_size=8))
def test_identities_of_array_rows_are_equal_exactly_where_rows_are(rows):
    assigned = take_apart(np.array(rows, dtype=float)).identities
    for i, one in enumerate(rows):
        assert [assigned[i] == other for other in assigned] == [one == other for other in rows]


def test_different_kinds_of_equal_length_have_different_identities():
    assert len(set(identities("1", "2", None))) == 3
    assert len(set(identities([1, 2], [2, 1], ["1", 2]))) == 3


def test_texts_describe_outputs_by_identity():
    table = take_apart(["yes", "no"])
    columns = table.look()
    assert [columns.describe(identity) for identity in table.identities] == ["'yes'", "'no'"]


@given(
    matrix=st.lists(st.lists(st.floats(-9, 9), min_size=3, max_size=3), min_size=1, max_size=6),
    known=st.lists(st.sampled_from(["a", "b", "c", "d"]), unique=True),
)
def test_sparse_table_with_all_values_shows_the_columns_of_the_dense_one(matrix, known):
    dense_values = np.array(matrix)
    ids = np.arange(len(matrix), dtype=float)
    rows, columns = np.indices(dense_values.shape)
    names = ("a", "b", "c")
    dense = OutputTable(names, dense_values.ravel(), ids, {})
    sparse = OutputTable(names, dense_values.ravel(), ids, {}, rows.ravel().astype(float), columns.ravel().astype(float))
    np.testing.assert_array_equal(sparse.look().values, dense.look().values)
    np.testing.assert_array_equal(sparse.look(known).select(names), dense.look(known).select(names))
    assert len(sparse) == len(dense) == len(matrix)


@given(matrix=st.lists(st.lists(st.integers(-9, 9), min_size=3, max_size=3), min_size=1, max_size=6))
def test_lists_and_array_rows_of_equal_numbers_show_equal_columns(matrix):
    dense, sparse = take_apart(np.array(matrix, dtype=float)).look(), take_apart(matrix).look()
    assert set(dense.names) < set(sparse.names)
    np.testing.assert_array_equal(sparse.select(dense.names), dense.values)


@given(outputs=st.lists(st.lists(values, max_size=3), min_size=1, max_size=5))
def test_every_output_has_a_row_and_every_stored_value_a_name(outputs):
    table = take_apart(outputs)
    columns = table.look()
    assert len(table) == len(columns) == len(outputs)
    assert columns.values.shape == (len(outputs), len(columns.names))
    assert not len(table.columns) or table.columns.max() < len(table.names)


@pytest.mark.parametrize("outputs", [[1, "a"], [[1], {"a": 1}], ["a", None, 2]])
def test_outputs_of_different_kinds_are_refused(outputs):
    with pytest.raises(AuditFailed, match="in one run and a .* in another"):
        take_apart(outputs)


def test_object_without_parts_is_refused():
    with pytest.raises(AuditFailed, match="wrap it so that outputs are numbers, texts, lists, dicts or None"):
        take_apart([object()])
