"""Reports as Markdown and JUnit XML."""

import json
from xml.etree import ElementTree as ET

import pytest
from markdown_it import MarkdownIt

import lidp
from lidp.integrations.trackers import _settings_of
from lidp.report.formats import Format
from lidp.seals import open_seal
from tests.report import curve_results
from tests.report.results import case, every_case, pair_result, result_like, scores_like
from tests.seals.sealed import gradients, scored

HOSTILE = "<script>x</script> [a](http://evil) `b` | **c** @user\n# d\x1b]]>&\u202e"


def parsed(result):
    return ET.fromstring(Format.JUNIT.render(result))  # noqa: S314  # our own


def rendered(markdown):
    return MarkdownIt("commonmark").enable("table").render(markdown)


@pytest.mark.parametrize(("name", "method"), every_case())
def test_markdown_states_verdict_bound_and_claim(name, method):
    result = case(name, method)
    text = Format.MARKDOWN.render(result)
    assert text.startswith(f"## {'❌' if result.verdict is lidp.Verdict.REFUTED else '✅'} leaky: {result.verdict}\n")
    html = rendered(text)
    assert "<td>claimed ε</td>\n<td>0.2</td>" in html
    assert f"<td>{result.bound.method}</td>" in html
    assert "Assumptions" in html


@pytest.mark.parametrize("make", [pair_result, curve_results.refuted, curve_results.refuted_by_canary])
def test_markdown_of_real_audits_has_what_leaks_and_both_verdicts(make):
    html = rendered(Format.MARKDOWN.render(make()))
    assert "❌" in html
    if make is pair_result:
        assert "<td>leak</td>" in html
    else:
        assert "privacy curve" in html


def test_hostile_names_stay_text_in_markdown():
    html = rendered(Format.MARKDOWN.render(case("coins", "coin-wager", target=HOSTILE)))
    for markup in ("<script", "<a ", "<code>b", "<strong>", "<h1>"):
        assert markup not in html
    assert "&lt;script&gt;x&lt;/script&gt; [a](http://evil) `b` | **c** @user # d" in html
    assert "\x1b" not in html


def test_bare_host_names_are_no_links_in_markdown():
    text = Format.MARKDOWN.render(case("coins", "coin-wager", target="see www.evil.com"))
    assert r"see www\.evil.com" in text  # GitHub links "www." without any markup
    assert "see www.evil.com" in rendered(text)


def test_markdown_names_problems_before_assumptions():
    text = Format.MARKDOWN.render(result_like(scores_like(lidp.CoinFlip(6), failed=2)))
    assert "Failed runs: 2" in text.replace("\\", "")
    assert text.index("### Problems") < text.index("### Assumptions")


def test_a_refuted_claim_is_a_failure_in_junit():
    result = case("coins", "coin-wager", target=HOSTILE)
    root = parsed(result)
    assert root.attrib["failures"] == root[0].attrib["failures"] == "1"
    failure = root.find("./testsuite/testcase/failure")
    assert failure.attrib["type"] == "refuted"
    assert "is refuted" in failure.attrib["message"]
    assert "coin-wager" in failure.text
    values = {one.attrib["name"]: one.attrib["value"] for one in root.iter("property")}
    assert float(values["epsilon"]) == result.bound.epsilon


@pytest.mark.parametrize(("claim", "tag"), [(9.0, "system-out"), (0.2, "failure")])
def test_junit_tells_verdicts_apart(claim, tag):
    root = parsed(case("coins", "coin-wager", claim=claim))
    assert [child.tag for child in root.find("./testsuite/testcase")] == ["properties", tag]


def test_no_verdict_is_skipped_in_junit_and_never_passes():
    result = case("coins", "coin-wager", claim=9.0, verdict=lidp.Verdict.INCONCLUSIVE)
    root = parsed(result)
    assert (root.attrib["skipped"], root.attrib["failures"]) == ("1", "0")
    assert root.find("./testsuite/testcase/skipped") is not None


def test_junit_has_a_case_for_the_curve_and_one_for_the_point():
    result = curve_results.refuted()
    root = parsed(result)
    cases = root.findall("./testsuite/testcase")
    assert [one.attrib["name"].split()[0] for one in cases] == ["curve", "point"]
    assert [one.find("failure") is not None for one in cases] == [True, False]


def test_no_report_for_machines_tells_the_seed_of_a_seal(tmp_path):
    gradients(tmp_path / "run", seed=987654321)
    sealed = open_seal(tmp_path / "run", scored(tmp_path / "run", shift=100.0)).result
    for kind in Format:
        assert "987654321" not in kind.render(sealed)
    assert "lidp.seed" not in _settings_of(sealed)
    assert "987654321" not in sealed._repr_html_()


def test_json_reads_back():
    result = case("coins", "coin-wager")
    assert lidp.AuditResult.from_json(Format.JSON.render(result)) == result
    assert json.loads(Format.JSON.render(result))["verdict"] == "refuted"
