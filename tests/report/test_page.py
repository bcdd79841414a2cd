"""The page: well-formed, escaped, self-contained, small, and with the numbers of the JSON."""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

import lidp
from lidp import CoinFlip, LeaveOneOut, Scores, TargetSpec, Verdict, Wilson, result_of
from lidp.errors import InvalidArgument
from lidp.report.page import render_report
from lidp.report.tables import numbers_behind
from lidp.report.texts import LONGEST, clean
from lidp.result import TrialNote
from lidp.rounding import at_least
from tests.report.results import CASES, case, every_case, pair_result, result_like, scores_like
from tests.sample_targets import LEAKY
from tests.sample_targets import run as audit

VOID = {"meta", "link", "br", "hr", "img", "input"}


class Page(HTMLParser):
    """A parsed page: its elements, its text, and the values that it shows for each path of the JSON."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.tags, self.words, self.values = [], [], [], {}
        self._key = None
        self.feed(text)
        self.close()
        assert self.open == [], f"not closed: {self.open}"

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        assert len(given) == len(attributes), f"an attribute twice: {tag} {attributes}"
        self.tags.append((tag, given))
        if "data-json" in given:
            self._key = given["data-json"]
            self.values.setdefault(self._key, []).append([given.get("value"), ""])
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag
        self._key = None

    def handle_data(self, data):
        self.words.append(data)
        if self._key is not None:
            self.values[self._key][-1][1] += data

    @property
    def text(self):
        return " ".join(" ".join(self.words).split())


def value_at(plain, path):
    """Return the value at a path of the JSON; names may contain dots."""
    while path:
        name = max((key for key in plain if path == key or path.startswith(f"{key}.")), key=len)
        plain, path = plain[name], path[len(name) + 1 :]
    return plain


def check_numbers(result):
    """Assert that every value with a path of the JSON equals the value there."""
    page = Page(render_report(result))
    plain = json.loads(result.to_json())
    for key, values in page.values.items():
        expected = value_at(plain, key)
        for value, shown in values:
            if isinstance(expected, (str, bool)):
                assert (shown if value is None else value) == str(expected), key
            else:
                assert float(value) == expected, key
                assert float(shown.replace(",", "")) == pytest.approx(expected, rel=1e-3), key
            if key in ("bound.epsilon", "epsilon_point"):
                assert float(shown) <= expected
            if key == "effective_noise":
                assert float(shown) >= expected
            if key == "claim.epsilon" and result.claim.curve is not None:
                assert float(shown) >= expected  # computed from the curve, so it is rounded up
            elif key.startswith("claim.") and key != "claim.neighbours":
                assert float(shown) == expected
    return page


@pytest.mark.parametrize(("design", "method"), every_case())
@pytest.mark.parametrize("claim", [0.01, 8.0])
def test_page_of_every_design_and_method_agrees_with_the_json(design, method, claim):
    page = check_numbers(case(design, method, claim=claim))
    needed = {"verdict", "claim.epsilon", "claim.delta", "bound.epsilon", "bound.failure_probability", "bound.guarantee"}
    needed |= {"bound.trials", "planned_trials", "models", "seed", "failed_runs", "versions.lidp", "trial_seconds"}
    assert needed <= set(page.values)
    assert "proved" not in page.text
    assert ("held-out canaries are drawn and scored like" in page.text.lower()) == (not design.startswith("coins"))
    if method == "joint-beta":
        assert "credibility 0.95" in page.text
        assert "failure probability" not in page.text.replace("not a failure probability", "")


def test_claim_close_to_the_bound_is_shown_with_enough_digits():
    result = result_like(scores_like(CoinFlip(6), 150), claim=1.02996)
    result = replace(result, bound=replace(result.bound, epsilon=1.03, path=((3, 1.03),)), verdict=Verdict.REFUTED)
    page = check_numbers(result)
    assert "claimed 1.02996" in page.text
    assert "at least 1.03." in page.text
    near = replace(result, bound=replace(result.bound, epsilon=1.0299604))
    assert check_numbers(near).values["bound.epsilon"][0][1] == "1.0299604"


def test_unfinished_audit_is_marked_in_its_verdict():
    done = result_like(scores_like(CoinFlip(6), 30), claim=8.0)
    page = check_numbers(replace(done, planned_trials=5000))
    assert page.values["verdict"] == [["not refuted", "not refuted so far"]]
    assert "After 30 of 5,000 trials, the claim of ε = 8 at δ = 1e-05 is not refuted so far" in page.text
    assert "so far" not in check_numbers(done).text.lower()
    early = result_like(scores_like(LeaveOneOut(4, 3)), Wilson(), planned=500, verdict=Verdict.INCONCLUSIVE)
    page = check_numbers(early)
    assert page.values["verdict"] == [["inconclusive", "no verdict yet"]]
    assert "inconclusive" not in page.text
    assert "provisional bound, ε ≥" in page.text


def test_versions_that_started_and_computed_are_shown():
    begun, now = {"lidp": "0.1.0", "numpy": "1.26.0"}, {"lidp": "0.2.0", "numpy": "2.0.0", "scipy": "1.17"}
    result = result_like(scores_like(CoinFlip(6)), versions=begun, computed_with=now)
    page = check_numbers(result)
    assert page.values["versions.numpy"][0][1] == "1.26.0"
    assert page.values["computed_with.numpy"][0][1] == "2.0.0"
    assert "computed with other versions" in page.text
    same = check_numbers(replace(result, computed_with=begun))
    assert "versions.numpy" in same.values
    assert not any(key.startswith("computed_with") for key in same.values)
    old = check_numbers(replace(result, versions={}))
    assert "does not record which versions" in old.text
    assert old.values["computed_with.numpy"][0][1] == "2.0.0"
    assert {"python", "lidp", "numpy", "scipy", "numba"} <= set(pair_result().versions)


def test_numbers_behind_the_bound_are_explained():
    page = check_numbers(result_like(scores_like(CoinFlip(6), 150), claim=0.1))
    assert "coins on which something was staked against ε = " in page.text
    assert "guesses that were right" in page.text
    assert "an ε is ruled out at 20, which is 1/β" in page.text
    assert "coins that were guessed, not abstained from" in check_numbers(case("coins", "one-run")).text


@pytest.mark.parametrize(("design", "method"), every_case())
def test_every_number_behind_a_bound_has_a_meaning(design, method):
    for entry in numbers_behind(case(design, method)):
        assert entry.meaning, entry.name


def test_one_trial_is_singular_everywhere():
    page = check_numbers(result_like(scores_like(CoinFlip(6), 1), verdict=Verdict.INCONCLUSIVE))
    assert "seconds of 1 trial:" in page.text
    assert "after 1 trial." in page.text
    assert not re.search(r"(after|of|with) 1 trials", page.text)
    assert "The one planned trial was used." in page.text


def test_single_bound_has_one_row_of_numbers():
    result = result_like(scores_like(LeaveOneOut(4, 3)), Wilson())
    page = render_report(result)
    rows = page.partition("The bound in numbers")[2].partition("</table>")[0]
    assert re.findall(r'<td class="number">([^<]+)</td>', rows) == ["48", at_least(result.bound.epsilon)]


def test_seed_is_shown_without_separators():
    assert check_numbers(result_like(scores_like(CoinFlip(6)), seed=1234567)).values["seed"][0][1] == "1234567"


def test_effective_canaries_are_a_whole_number():
    page = check_numbers(result_like(scores_like(CoinFlip(64), 200)))
    assert re.search(r"The mean over 64 canaries is as precise as over \d+ independent ones", page.text)


def test_page_of_a_pair_audit_names_the_leak():
    result = pair_result()
    page = check_numbers(result)
    assert page.values["leak"][0][1] == result.leak
    assert "Leak:" in page.text
    assert "There is no band" in page.text
    honest = pair_result("laplace", runs=1500)
    assert honest.verdict is Verdict.NOT_REFUTED
    assert "Largest difference:" in check_numbers(honest).text


def test_page_of_a_real_audit():
    result = audit(trials=60)
    page = check_numbers(result)
    assert "started from Python, by lidp.audit" in page.text
    assert page.values["bound.epsilon"][0][0] == repr(result.bound.epsilon)


@pytest.mark.parametrize("design", CASES.values(), ids=CASES)
@pytest.mark.parametrize("trials", [1, 2, 3])
def test_page_of_few_trials(design, trials):
    check_numbers(result_like(scores_like(design, trials), verdict=Verdict.INCONCLUSIVE))


@pytest.mark.parametrize("design", CASES.values(), ids=CASES)
def test_page_of_failed_runs_and_extreme_scores(design):
    page = check_numbers(result_like(scores_like(design, failed=7)))
    assert "kept as outputs on which nothing is bet" in page.text
    if design.has_coins:
        coins = np.random.default_rng(0).integers(0, 2, (30, design.canaries))
        check_numbers(result_like(Scores(scores=np.zeros(coins.shape), coins=coins, neighbours=design.neighbours)))
        for huge in (1e300 * coins, 1.6e308 * (2.0 * coins - 1), 1e-310 * coins):
            page = check_numbers(result_like(Scores(scores=huge, coins=coins, neighbours=design.neighbours)))
            assert not any("nan" in given.get("d", "") or "inf" in given.get("d", "") for _, given in page.tags)


def test_page_of_extreme_claims():
    scores = scores_like(CoinFlip(6), 120)
    for claim, delta in ((0.0, 0.0), (1e6, 0.0), (1e-9, 0.9)):
        check_numbers(result_like(scores, claim=claim, delta=delta))


def test_page_of_coins_that_are_all_1():
    scores = Scores(scores=[[0.5, 1.5]], coins=[[1, 1]])
    check_numbers(result_like(scores, verdict=Verdict.INCONCLUSIVE))


EVIL = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>&amp;{{ 7*7 }}{% raw %}\x00\x1b[31m\u202e\ud800"


def test_text_from_the_user_is_escaped():
    notes = (
        TrialNote(0, 0.1, 1, {"scores": f"Traceback\nRuntimeError: {EVIL}"}, {f"scores_{EVIL}": EVIL}),
        *(TrialNote(i, 0.1, 1, {}, {f"scores_{EVIL}2": 1.0 * i}) for i in range(1, 48)),
    )
    scores = scores_like(CoinFlip(6), failed=1)
    configuration = dict(audit(trials=2, target_spec=TargetSpec("python", {"path": EVIL})).configuration)
    result = result_like(scores, target=EVIL, notes=notes, facts={EVIL: EVIL, "σ": 2.0}, configuration=configuration)
    result = replace(result, versions={EVIL: EVIL}, bound=replace(result.bound, assumptions=(EVIL,), method=EVIL))
    text = render_report(result)
    text.encode("utf-8")
    page = Page(text)
    for tag, attributes in page.tags:
        assert tag not in {"script", "img", "iframe", "object", "embed", "form", "base"}
        assert not any(name.startswith("on") for name in attributes)
    assert "{{ 7*7 }}" in page.text
    assert page.text.count("<script>alert(1)</script>") >= 8
    assert not re.search("[\x00-\x08\x0b-\x1f\u202a-\u202e\ud800-\udfff]", text)


def test_leak_is_escaped():
    assert "<script>" not in render_report(replace(pair_result(), leak="<script>alert(1)</script>", target="<script>"))


def test_the_page_loads_nothing():
    page = Page(render_report(result_like(scores_like(CoinFlip(6)))))
    for tag, attributes in page.tags:
        assert tag != "script"
        for name in ("src", "href", "action", "data", "srcset", "xlink:href"):
            assert attributes.get(name, "data:,").startswith(("data:,", "#")), (tag, attributes)
    assert "url(" not in render_report(result_like(scores_like(CoinFlip(6))))
    policy = next(given["content"] for tag, given in page.tags if given.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'")


def test_ids_are_unique_and_references_exist():
    for result in (result_like(scores_like(LeaveOneOut(4, 3))), pair_result()):
        page = Page(render_report(result))
        ids = [given["id"] for _, given in page.tags if "id" in given]
        assert len(ids) == len(set(ids))
        for _, given in page.tags:
            assert set(given.get("aria-labelledby", "").split()) <= set(ids)


def test_size_does_not_grow_with_the_number_of_trials():
    small = render_report(result_like(scores_like(CoinFlip(64), 500)))
    large = render_report(result_like(scores_like(CoinFlip(64), 20_000)))
    assert len(large) < 1.3 * len(small)
    assert len(large) < 300_000


@pytest.mark.slow
def test_page_of_65536_trials_is_below_3_megabytes(tmp_path):
    from benchmarks.report import make_store

    make_store(tmp_path / "a.db")
    page = lidp.write_report(result_of(tmp_path / "a.db"), tmp_path / "a.html")
    assert "65,536" in page.read_text(encoding="utf-8")
    assert page.stat().st_size < 3e6


def test_many_names_do_not_grow_the_page():
    notes = tuple(TrialNote(i, 0.1, 1, {}, {f"scores_{j}": "x" * 500 + str(i) for j in range(200)}) for i in range(48))
    facts = {f"fact {i}": "y" * 5000 for i in range(1000)}
    assert len(render_report(result_like(scores_like(CoinFlip(6)), notes=notes, facts=facts))) < 500_000


def test_write_report_replaces_files_and_refuses_folders(tmp_path):
    result = audit(LEAKY, trials=20)
    path = tmp_path / "audit.html"
    path.write_text("old")
    assert lidp.write_report(result, path) == path
    assert path.read_text(encoding="utf-8").startswith("<!doctype html>")
    with pytest.raises(InvalidArgument, match="no such folder"):
        lidp.write_report(result, tmp_path / "missing" / "a.html")
    with pytest.raises(InvalidArgument, match="cannot be written"):
        lidp.write_report(result, tmp_path)


def test_equal_results_give_equal_pages():
    result = result_like(scores_like(CoinFlip(6)))
    assert render_report(result) == render_report(result)


def test_clean_replaces_control_characters_and_cuts_long_text():
    assert clean("a\x00b\u202ec") == "a\ufffdb\ufffdc"
    assert len(clean("x" * 10_000)) == LONGEST + 1
