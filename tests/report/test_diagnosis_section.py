"""The section “Where the evidence is”: its data, its figure, its words, and when it is left out."""

import math

import numpy as np

from lidp import CoinFlip, result_of
from lidp.diagnosis import diagnose
from lidp.report.diagnosis_drawings import diagnosis_section, noise_figure
from lidp.report.diagnosis_figure_data import MOST_GROUPS, NoiseBar, NoiseByPart
from lidp.report.page import render_report
from tests.diagnosis.simulated_runs import Training, diagnosed
from tests.diagnosis.stored_runs import stored
from tests.report.results import result_like, scores_like
from tests.report.test_page import Page, check_numbers


def data_of(training, **options):
    return NoiseByPart.of(diagnosed(training.runs(2, np.random.default_rng(0)), **options))


def test_there_is_a_bar_for_all_for_each_group_and_for_each_stretch():
    data = data_of(Training(steps=16, group_noise=(1.0, 0.1)))
    assert [bar.where for bar in data.bars[:4]] == ["all", "fc1.weight", "fc2.weight", "step 1"]
    assert len(data.bars) == 3 + 16
    first, second = data.bars[1:3]
    assert not first.deviates
    assert second.deviates
    assert second.lower < 0.1 < second.upper < 0.2


def test_the_figure_reaches_the_claim_and_cuts_what_is_far_beyond():
    assert data_of(Training(noise=0.1)).most == 1.2
    assert data_of(Training(noise=50.0)).most == 1.05 * 2.0


def test_without_lower_limits_bars_begin_at_0():
    assert {bar.lower for bar in data_of(Training(), separate_canaries=False).bars} == {0.0}


def test_of_many_groups_those_with_the_least_noise_are_shown():
    canaries = 2 * (MOST_GROUPS + 4)
    record = Training(canaries=canaries, steps=100).run(0, np.random.default_rng(0))
    record.evidence["group"] = np.repeat(np.arange(MOST_GROUPS + 4.0), 2)
    record.arrays["coins"][:] = np.tile([0.0, 1.0], MOST_GROUPS + 4)
    record.metadata["scores_groups"] = ", ".join(f"g{number}" for number in range(MOST_GROUPS + 4))
    data = NoiseByPart.of(diagnosed([record]))
    assert data.left_out == 4
    assert diagnosis_section(diagnosed([record]))["left_out"] == 4
    assert sum(bar.where.startswith("g") for bar in data.bars) == MOST_GROUPS


def test_the_figure_draws_each_bar_and_says_its_limits():
    bars = (NoiseBar("all", 0.9, 1.1, False, "0.9 to 1.1"), NoiseBar("x" * 40, 0.0, math.inf, True, "unknown"))
    markup = noise_figure("figure", NoiseByPart(bars, 1.2, 0))
    assert markup.count("fill bound") == 1
    assert markup.count("fill beyond") == 1
    assert "all: 0.9 to 1.1" in markup
    assert "inf" not in markup
    assert f"…{'x' * 20}<" in markup


def test_the_page_shows_what_lidp_diagnose_prints(tmp_path):
    path = stored(tmp_path / "a.db", Training(group_noise=(1.0, 0.1)))
    result = result_of(path)
    page = Page(render_report(result))
    assert "Where the evidence is" in page.text
    diagnosis = diagnose(path)
    for text in (*diagnosis.summary, diagnosis.certainty, *(cell for row in diagnosis.rows for cell in row)):
        assert text in page.text
    check_numbers(result)


def test_group_names_are_escaped(tmp_path):
    def rename(records):
        for record in records:
            record.metadata["scores_groups"] = "<script>alert(1)</script>, b"
        return records

    path = stored(tmp_path / "a.db", Training(), change=rename)
    assert "<script" not in render_report(result_of(path))


def test_results_without_transcripts_have_no_section():
    assert diagnosis_section(None) is None
    assert "Where the evidence is" not in render_report(result_like(scores_like(CoinFlip(4))))
