"""The contract of methods: what every method must do, whatever its statistics."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import fields, is_dataclass, replace
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from lidp._runtime.global_generators import preserve_global_generators, seed_global_generators
from lidp.claim import Direction
from lidp.curves.gaussian import gaussian_epsilon
from lidp.designs import CoinFlip, Design, LeaveOneOut
from lidp.epsilon_bound import EpsilonBound, Guarantee
from lidp.errors import InvalidArgument, LidpError, MethodNotApplicable
from lidp.scores import Scores
from lidp.stats.citations import Work
from lidp.stats.method import ALIKE, AnytimeMethod, Method
from lidp.stats.registry import bound, check_name
from lidp.stats.storable import from_plain, to_plain
from lidp.testing.contract import Contract, raises, require
from lidp.testing.simulations import (
    Null,
    assert_covers,
    echoed_response,
    exchangeable_arms,
    false_alarms,
    gaussian_arms,
    gaussian_coins,
    randomized_response,
)

_DESIGNS: tuple[Design, ...] = (LeaveOneOut(8, 8), CoinFlip(8), LeaveOneOut(1, 1), CoinFlip(1))
_DELTA, _BETA = 1e-5, 0.05


def example_scores(design: Design, trials: int = 300, shift: float = 1.5, seed: int = 0) -> Scores:
    """Return scores with standard normal noise, and ``shift`` more for inserted canaries."""
    rng = np.random.default_rng(seed)
    if design.has_coins:
        coins = rng.integers(0, 2, (trials, design.canaries))
        return Scores(scores=shift * coins + rng.standard_normal(coins.shape), coins=coins)
    inserted, held_out = (rng.standard_normal((trials, size)) for size in design.arm_sizes)
    return Scores(inserted=shift + inserted, held_out=held_out)


class MethodContract(Contract):
    """Checks of a method. Define ``make``; override the rest where the method needs it.

    A threshold that is fixed should be between 0 and 1 (``make`` may set it): inserted and held-out scores are standard normal
    around 1.5 and 0, or 1 and 0 with probabilities that (ε, δ)-DP just allows.

    The coverage simulations are seeded; on a valid method each of them fails with probability at most 1e-4 over the choice of the
    seed, and so does ``test_equal_arms_give_no_bound`` for methods with a finite-sample guarantee. All other checks are exact.
    """

    coverage_repeats: ClassVar[int] = 200
    seed: ClassVar[int] = 1
    delta_slack: ClassVar[float] = 1e-9
    """by how much a larger δ may raise the bound: methods that choose other bets at another δ need a little"""

    @abstractmethod
    def make(self) -> Method:
        """Return the method to check."""

    def make_untuned(self) -> Method:
        """Return the method with nothing left to tune on the scores: then its bound must be monotone in β and δ."""
        return self.make()

    def nulls(self) -> Sequence[Null]:
        """Return mechanisms of exactly known ε, with dependent canaries where the method allows several.

        For conditional methods and tests of curves they are Gaussian mechanisms; override for another family. Credible bounds
        have no coverage.
        """
        method, design = self.make(), self._design()
        canaries, asymptotic = design.canaries, method.guarantee is Guarantee.ASYMPTOTIC
        if method.guarantee is Guarantee.CREDIBLE:
            return []
        if method.guarantee is Guarantee.CONDITIONAL or method.needs_curve:
            truth = gaussian_epsilon(1.0, _DELTA)
            if design.has_coins:
                return [Null("Gaussian mechanism", gaussian_coins(400, 1, 1.0), truth, _DELTA)]
            return [Null("Gaussian mechanism with shared noise", gaussian_arms(1000, canaries, 1.0, 0.7), truth, _DELTA)]
        if design.has_coins:
            trials = 1000 if asymptotic else 64
            echo = Null("randomized response, echoed", echoed_response(trials, canaries, 1.0), 1.0)
            reveal = randomized_response(trials, canaries, 1.0, 0.01, whole_run=True)
            return [echo, Null("randomized response that reveals whole runs", reveal, 1.0, 0.01)]
        trials = 3000 if asymptotic else 100
        laws = (0.5, 1.0) if canaries > 1 else (0.0,)
        return [
            Null(f"arms of correlation {c:g}", exchangeable_arms(trials, canaries, 0.2, 1.0, 0.0, c), 1.0) for c in laws
        ]

    def _covers(self, design: Design) -> bool:
        try:
            self.make().check(design)
        except MethodNotApplicable:
            return False
        return True

    def _design(self) -> Design:
        for design in _DESIGNS:
            if self._covers(design):
                return design
        raise AssertionError(f"{self.make()!r} covers none of the designs {_DESIGNS}")

    def _scores(self, **options: Any) -> Scores:
        return example_scores(self._design(), **options)

    def _bound(self, scores: Scores, method: Method | None = None) -> EpsilonBound:
        return bound(scores, method or self.make(), delta=_DELTA, failure_probability=_BETA)

    def test_class_says_what_reports_and_citations_need(self) -> None:
        method = self.make()
        check_name(method)
        require(method.name and method.name == method.name.strip(), "a method needs a name")
        require(isinstance(method.guarantee, Guarantee), f"guarantee must be a lidp.Guarantee, got {method.guarantee!r}")
        require(method.summary, "summary must say in one sentence how the method arrives at its bound")
        is_list = isinstance(method.works, tuple) and all(isinstance(work, Work) for work in method.works)
        require(method.works and is_list, f"works must be a tuple of lidp.Work, got {method.works!r}")
        require(
            "Guarantee:" in (type(method).__doc__ or ""), "the docstring needs a paragraph that begins with 'Guarantee:'"
        )

    def test_parameters_survive_the_store(self) -> None:
        method = self.make()
        require(is_dataclass(method), "a method must be a frozen dataclass")
        restored = from_plain(json.loads(json.dumps(to_plain(method), allow_nan=False)), classes=[type(method)])
        require(restored == method, f"{method!r} was read from its store as {restored!r}")
        require(hash(restored) == hash(method), "a method must be hashable: use @dataclass(frozen=True)")

    def test_clear_difference_gives_a_bound_with_its_whole_record(self) -> None:
        method, scores = self.make(), self._scores()
        result = self._bound(scores)
        require(result.epsilon > 0, "scores that differ by 1.5 standard deviations gave a bound of 0")
        require(result.method == method.name, f"the bound says that it is by {result.method!r}")
        require(result.guarantee is method.guarantee, f"the bound has the guarantee {result.guarantee}")
        counts = (result.trials, result.canaries, result.models)
        require(counts == (scores.trials, scores.canaries, scores.models), f"trials, canaries and models are {counts}")
        require(result.neighbours is scores.neighbours, f"the bound is for {result.neighbours} neighbours")
        require((result.delta, result.failure_probability) == (_DELTA, _BETA), "δ or β are not those that were asked for")
        require(result.assumptions, "the bound states no assumptions")
        require((ALIKE in result.assumptions) != scores.has_coins, "make the bound with Method.report")
        require(EpsilonBound.from_json(result.to_json()) == result, "the bound does not survive JSON")
        require(method.name in str(result), "the bound in words does not name its method")

    def test_every_number_of_the_bound_is_described(self) -> None:
        method, result = self.make(), self._bound(self._scores())
        for names, words in (
            (result.rates, method.describe_rates(result)),
            (result.thresholds, method.describe_thresholds(result)),
        ):
            missing = [name for name in names if not words.get(name)]
            require(not missing, f"describe_rates or describe_thresholds has no words for {', '.join(missing)}")
        unknown = set(method.counts) - set(result.rates)
        require(not unknown, f"counts names {unknown}, which are no rates")

    def test_equal_arms_give_no_bound(self) -> None:
        result = bound(self._scores(shift=0.0, seed=self.seed), self.make(), delta=_DELTA, failure_probability=1e-4)
        require(result.epsilon == 0, f"scores without a difference gave a bound of {result.epsilon}")

    def test_constant_scores_give_no_bound(self) -> None:
        arrays: dict[str, Any] = self._scores().to_arrays()
        constant = Scores(**{name: array if name == "coins" else 0 * array for name, array in arrays.items()})
        require(self._bound(constant).epsilon == 0, "constant scores gave a bound")

    def test_failed_runs_give_no_bound(self) -> None:
        scores = self._scores()
        arrays: dict[str, Any] = scores.to_arrays()
        failed = Scores(**arrays, failed=np.ones_like(scores.failed))
        require(self._bound(failed).epsilon == 0, "scores of failed runs gave a bound")

    def test_single_trial_is_bounded_or_refused(self) -> None:
        try:
            result = self._bound(self._scores(trials=1), self.make_untuned())
        except LidpError:
            return
        require(result.epsilon >= 0, "the bound of one trial is negative")

    def test_same_scores_give_the_same_bound(self) -> None:
        scores = self._scores()
        before = {name: array.copy() for name, array in scores.to_arrays().items()}
        with preserve_global_generators():  # which a method must not use
            seed_global_generators(np.random.default_rng(1))
            first = self._bound(scores)
            seed_global_generators(np.random.default_rng(2))
            require(self._bound(scores) == first, "two calls on the same scores gave two bounds")
        unchanged = all(np.array_equal(before[name], array) for name, array in scores.to_arrays().items())
        require(unchanged, "the method changed the scores")

    def test_smaller_failure_probability_gives_no_larger_bound(self) -> None:
        method, scores = self.make_untuned(), self._scores()
        epsilons = [
            bound(scores, method, delta=_DELTA, failure_probability=b).epsilon for b in (1e-6, 1e-3, 0.01, 0.05, 0.3)
        ]
        require(epsilons == sorted(epsilons), f"bounds at growing failure probabilities are {epsilons}")
        require(epsilons[0] < epsilons[-1], f"the failure probability does not matter: all bounds are {epsilons[0]}")

    def test_larger_delta_gives_no_larger_bound(self) -> None:
        method, scores = self.make_untuned(), self._scores()
        epsilons = [bound(scores, method, delta=d, failure_probability=_BETA).epsilon for d in (1e-6, 1e-4, 1e-2, 0.2)]
        steps = pairwise(epsilons)
        require(all(late <= early + self.delta_slack for early, late in steps), f"bounds at growing δ are {epsilons}")
        require(epsilons[-1] < epsilons[0], f"δ does not matter: all bounds are {epsilons[0]}")

    def test_invalid_probabilities_are_refused(self) -> None:
        method, scores = self.make(), self._scores()
        for delta, beta in ((-0.1, 0.05), (1.0, 0.05), (_DELTA, 0.0), (_DELTA, 1.0)):
            name = "delta" if beta == _BETA else "failure_probability"
            message = f"delta={delta} and failure_probability={beta} must raise InvalidArgument"
            error = raises(
                InvalidArgument, lambda d=delta, b=beta: bound(scores, method, delta=d, failure_probability=b), message
            )
            require(name in str(error), f"the error does not name {name}: {error}")

    def test_designs_that_it_does_not_cover_are_refused_by_check_and_by_bound(self) -> None:
        method = self.make()
        for design in _DESIGNS:
            scores = example_scores(design)
            if self._covers(design):
                method.bound(scores, delta=_DELTA, failure_probability=_BETA)
                continue
            message = f"check refuses {design}, so bound must raise MethodNotApplicable (Method.report does)"
            raises(
                MethodNotApplicable,
                lambda some=scores: method.bound(some, delta=_DELTA, failure_probability=_BETA),
                message,
            )

    def test_trials_that_were_stopped_early_are_refused_unless_anytime_valid(self) -> None:
        method, stopped = self.make(), self._scores().stopped()
        for scores in (stopped, stopped[:200]):
            if method.anytime:
                require(self._bound(scores).epsilon >= 0, "the bound is negative")
                continue
            message = "a method that is not anytime-valid must refuse trials that were stopped early"
            raises(MethodNotApplicable, lambda some=scores: self._bound(some), message)
            direct = lambda some=scores: method.bound(some, delta=_DELTA, failure_probability=_BETA)  # noqa: E731
            raises(MethodNotApplicable, direct, f"{message}, also if bound is called directly")

    def test_directions_work_and_mirror_each_other(self) -> None:
        method, scores = self.make(), self._scores()
        if "direction" not in {item.name for item in fields(method)}:  # type: ignore[arg-type]  # a dataclass
            require(method.direction in Direction, f"direction must be a lidp.Direction, got {method.direction!r}")
            return
        arrays = scores.to_arrays()
        if scores.has_coins:
            mirrored = Scores(scores=-arrays["scores"], coins=1 - arrays["coins"].astype(int))
        else:
            mirrored = Scores(inserted=-arrays["held_out"], held_out=-arrays["inserted"])
        with_direction: Any = lambda direction: replace(method, direction=direction)  # type: ignore[type-var]  # noqa: E731
        forward = self._bound(scores, with_direction("forward"))
        backward = self._bound(mirrored, with_direction("backward"))
        require(forward.direction is Direction.FORWARD, "the bound does not state its direction")
        require(forward.epsilon > 0, "the forward direction gave no bound")
        close = abs(forward.epsilon - backward.epsilon) <= 0.03 + 0.05 * forward.epsilon
        require(close, f"forward gives {forward.epsilon}, and {backward.epsilon} backward on mirrored scores")
        raises(InvalidArgument, lambda: with_direction("sideways"), "an unknown direction must raise InvalidArgument")

    def test_run_gives_the_same_bound_trial_by_trial(self) -> None:
        method, scores = self.make(), self._scores(trials=120)
        if not isinstance(method, AnytimeMethod):
            require(
                not method.anytime, "anytime-valid methods derive from lidp.AnytimeMethod, so that audits can stop early"
            )
            return
        run = method.begin(delta=_DELTA, failure_probability=_BETA)
        seen: list[float] = []
        for index in range(scores.trials):
            run.update(scores[index : index + 1])
            seen.append(run.epsilon)
        result = run.bound()
        require(
            result == method.bound(scores, delta=_DELTA, failure_probability=_BETA), "one by one and all at once differ"
        )
        require(seen == sorted(seen), "the bound of a run falls")
        along = [result.epsilon_after(trials) for trials in range(1, scores.trials + 1)]
        require(along == seen, "the path of the bound is not what the run said trial by trial")

    def test_bound_exceeds_the_truth_no_more_often_than_it_says(self) -> None:
        method = self.make()
        for number, null in enumerate(self.nulls()):

            def epsilon(scores: Scores, delta: float = null.delta) -> float:
                return bound(scores, method, delta=delta, failure_probability=_BETA).epsilon

            alarms = false_alarms(epsilon, null.draw, null.epsilon, self.coverage_repeats, self.seed + number)
            try:
                assert_covers(alarms, self.coverage_repeats, _BETA)
            except AssertionError as error:
                raise AssertionError(f"{null.name}: {error}") from None


def check_method(method: Method) -> None:
    """Run the contract of methods on one of your own; raise ``ContractViolated`` if it fails."""

    class Single(MethodContract):
        def make(self) -> Method:
            return method

    Single().run()
