"""The six variants of the sparse vector technique that Lyu, Su and Li (2017) compare, with their numbers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from lidp.mechanisms.catalogue.entry import Entry, entry
from lidp.mechanisms.catalogue.laws import discrete_epsilon, laplace_cdf, laplace_density, quadrature
from lidp.mechanisms.catalogue.sparse_vector import SparseVector, output_laws

_T = 0.5  # half-way between the answers 0 and 1


def _first(e: float, _: float) -> SparseVector:
    return SparseVector(_T, 2 / e, 4 / e, cutoff=1)


def _second(e: float, _: float, cutoff: int = 2) -> SparseVector:
    return SparseVector(_T, 2 * cutoff / e, 4 * cutoff / e, cutoff, resample=True)


def _third(e: float, _: float) -> SparseVector:
    return SparseVector(_T, 2 / e, 2 / e, cutoff=1, release=True)


def _fourth(e: float, _: float) -> SparseVector:
    return SparseVector(_T, 4 / e, 4 / (3 * e), cutoff=3)


def _fifth(e: float, _: float) -> SparseVector:
    return SparseVector(_T, 2 / e, 0.0)


def _sixth(e: float, _: float) -> SparseVector:
    return SparseVector(_T, 2 / e, 2 / e)


def _swapped_answers(half: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    return (1.0,) * half + (0.0,) * half, (0.0,) * half + (1.0,) * half


def _exact_epsilon(make: Callable[[float, float], SparseVector], half: int, epsilon: float, delta: float) -> float:
    return discrete_epsilon(*output_laws(make(epsilon, delta), *_swapped_answers(half)), delta)


def third_epsilon(epsilon: float, _: float) -> float:
    """Return ε of the third variant with cut-off 1 on 1⁵0⁵ and 0⁵1⁵ at δ = 0, which is an upper bound at other δ.

    An output is a number of False and a value v, which reveals that the noisy threshold was at most v. Each False among the first
    five is likelier on the second data set: by the factor exp(ε/2) if v is far below 0, and by less for larger v. So are a v far
    below 0 at one of the first five positions, and a v above 1 at the sixth. The most revealing outputs are therefore four False
    and v → -∞, with 5ε/2, or five False and some v in [0, 1]. A False at a later position reveals less.
    """
    scale = 2 / epsilon
    at, weights = quadrature(np.array([0.0, _T, 1.0]), scale, min(scale / 2, 0.01))
    # Integrals up to every node, accurate to its weight; nodes are dense.
    likelier, less_likely = (
        np.cumsum(weights * laplace_density(at - _T, scale) * laplace_cdf(at - answer, scale) ** 5) for answer in (0.0, 1.0)
    )
    value_ratio = laplace_density(at - 1, scale) / laplace_density(at, scale)
    return max(5 * epsilon / 2, float(np.log(likelier / less_likely * value_ratio).max()))


def _variant(number: int, about: str, source: str, mechanism: Any, half: int, *, correct: bool, truth: Any = None) -> Entry:
    return entry(
        f"svt{number}", about, f"Lyu, Su, Li 2017, Algorithm {number}{source}",
        mechanism=mechanism, pair=_swapped_answers(half), truth=truth or partial(_exact_epsilon, mechanism, half), correct=correct,
    )  # fmt: skip


ENTRIES: tuple[Entry, ...] = (
    _variant(1, "sparse vector, correct", "", _first, 5, correct=True),
    _variant(2, "sparse vector with a new threshold after each True, correct", " (Dwork, Roth 2014)", _second, 5, correct=True),
    # The third, fifth and sixth variant leak without limit as the number of answers grows; the truth is for these answers.
    _variant(
        3, "sparse vector that releases the noisy value that was compared with the threshold",
        " (Roth's lecture notes, 2011)", _third, 5, correct=False, truth=third_epsilon,
    ),
    # In general, ε is (1 + 6c)/4 times the claim for the cut-off c.
    _variant(
        4, "sparse vector whose noise does not grow with the cut-off, here 3", " (Lee, Clifton 2014)", _fourth, 5, correct=False
    ),
    _variant(5, "sparse vector without noise on the answers", " (Stoddard, Chen, Machanavajjhala 2014)", _fifth, 5, correct=False),
    _variant(6, "sparse vector without a cut-off", " (Chen, Xiao, Zhang, Xu 2015)", _sixth, 10, correct=False),
)  # fmt: skip
