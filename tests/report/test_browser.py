"""The pages in a real browser: nothing goes wrong, everyone can read them, and they say what the JSON says."""

import json
from dataclasses import replace

import pytest

import lidp
from lidp import CoinFlip, LeaveOneOut, TargetSpec, Verdict, Wilson
from lidp.report.assertions import AssertionRow, SessionReport
from lidp.report.comparison import Comparison
from tests.browsing import CONTRASTS, NEEDS_BROWSER, PROBLEMS, axe, open_browser
from tests.report.curve_results import CURVE_RESULTS
from tests.report.results import pair_result, result_like, scores_like
from tests.report.test_page import EVIL, value_at
from tests.sample_targets import run as audit

pytestmark = NEEDS_BROWSER


@pytest.fixture(scope="module")
def browser():
    with open_browser() as started:
        yield started


def results():
    """Pages of every shape."""
    leaky = result_like(scores_like(CoinFlip(6), 150))
    arms = scores_like(LeaveOneOut(30, 3), 80, failed=2)
    return {
        "refuted": replace(
            leaky,
            configuration=dict(
                audit(trials=2, target_spec=TargetSpec("python", {"path": "tests.sample_targets:LEAKY"})).configuration
            ),
        ),
        "not-refuted": replace(leaky, verdict=Verdict.NOT_REFUTED, facts={"σ": 2.5, "noise": "Gaussian"}),
        "provisional": result_like(arms, Wilson(), planned=500, verdict=Verdict.INCONCLUSIVE),
        "one-trial": result_like(scores_like(CoinFlip(6), 1), verdict=Verdict.INCONCLUSIVE),
        "evil": result_like(scores_like(CoinFlip(6)), target=EVIL, facts={EVIL: EVIL}),
        "long": result_like(
            scores_like(CoinFlip(6)), target="x" * 400, configuration={"target_spec": None, "fingerprint": "f" * 90}
        ),
        "pair": pair_result(),
        "curve": CURVE_RESULTS["refuted"](),
        "curve-stands": CURVE_RESULTS["nothing excluded"](),
        "curve-alone": CURVE_RESULTS["without family"](),
    }


def session_report():
    """The assertions of a test session, one of them refuted, with long and hostile names."""
    claim = "(1, 0)-DP under add-remove neighbours"
    rows = [
        AssertionRow("test_a.py::test_right", 1, "noisy_count", claim, "not refuted", "ε ≥ 0.4", 900, 900, 4e-7, 7, ""),
        AssertionRow("t" * 300, 1, EVIL, claim, "refuted", "ε ≥ 1.01", 151, 900, 4e-7, 8, f"{EVIL}\n  leak     value"),
        AssertionRow("t" * 300, 1, EVIL, claim, "refuted", "ε ≥ 1.01", 0, 900, 0.0, 8, EVIL, repeats=True),
    ]
    return SessionReport.of(rows, failure_probability=1e-6, budget="quick", seed=5)


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    written = {name: (lidp.write_report(result, folder / f"{name}.html"), result) for name, result in results().items()}
    audits = [(name if name != "long" else "n" * 300, result) for name, (_, result) in written.items()]
    points = Comparison.of([audit for audit in audits if not audit[0].startswith("curve")])
    curves = Comparison.of(audits)
    return written | {
        "compare": (points.write(folder / "compare.html"), None),
        "compare-curves": (curves.write(folder / "compare-curves.html"), None),
        "assertions": (session_report().write(folder / "assertions.html"), None),
    }


AUDITS = [
    "refuted",
    "not-refuted",
    "provisional",
    "one-trial",
    "evil",
    "long",
    "pair",
    "curve",
    "curve-stands",
    "curve-alone",
]
NAMES = [*AUDITS, "compare", "compare-curves"]


def show(browser, page, *, width=1200, scheme="light", media="screen"):
    feature = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media, "features": feature})
    size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.get_log("browser")
    browser.get(page.as_uri())


@pytest.mark.parametrize("name", NAMES)
def test_it_renders_without_complaint(browser, pages, name):
    show(browser, pages[name][0])
    assert browser.get_log("browser") == []
    assert browser.execute_script("return document.scripts.length + performance.getEntriesByType('resource').length") == 0
    sizes = browser.execute_script(
        "return [...document.querySelectorAll('svg')].map(s => s.getBoundingClientRect().height)"
    )
    assert sizes
    assert min(sizes) > 0


@pytest.mark.parametrize("name", AUDITS)
def test_the_numbers_are_those_of_the_json(browser, pages, name):
    page, result = pages[name]
    show(browser, page)
    plain = json.loads(result.to_json())
    shown_values = browser.execute_script(
        "return [...document.querySelectorAll('data[data-json]')].map(n => [n.dataset.json, n.value, n.textContent])"
    )
    assert len(shown_values) > 15
    for key, value, _ in shown_values:
        expected = value_at(plain, key) if name != "evil" or not key.startswith("facts") else None
        if isinstance(expected, (int, float)) and not isinstance(expected, bool):
            assert float(value) == expected, key


@pytest.mark.slow_after_first
@pytest.mark.parametrize(("scheme", "width"), [("light", 1200), ("dark", 1200), ("light", 390)])
@pytest.mark.parametrize("name", NAMES)
def test_everyone_can_read_it(browser, pages, name, scheme, width):
    show(browser, pages[name][0], scheme=scheme, width=width)
    browser.execute_script("document.querySelectorAll('details').forEach(d => d.open = true)")
    violations, incomplete = axe(browser)
    assert violations == []
    assert incomplete == []
    assert browser.execute_script(PROBLEMS) == []
    contrasts = browser.execute_script(CONTRASTS)
    assert len(contrasts) > 20
    assert [(words, contrast) for words, contrast in contrasts if contrast < 4.5] == []


@pytest.mark.parametrize(("scheme", "width"), [("light", 1200), ("dark", 390)])
def test_everyone_can_read_the_assertions_of_a_session(browser, pages, scheme, width):
    show(browser, pages["assertions"][0], scheme=scheme, width=width)
    assert browser.get_log("browser") == []
    assert browser.execute_script("return document.scripts.length + performance.getEntriesByType('resource').length") == 0
    assert browser.execute_script("return document.querySelectorAll('tbody tr').length") == 3
    assert axe(browser) == ([], [])
    assert browser.execute_script(PROBLEMS) == []
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width


def test_the_checks_see_what_is_wrong(browser, pages):
    show(browser, pages["refuted"][0])
    browser.execute_script(
        """document.querySelector('.headline').style.color = '#ccc';
           document.querySelector('svg').removeAttribute('aria-labelledby');
           document.querySelector('svg title').remove();
           document.querySelector('svg text').style.fill = '#ccc';
           document.documentElement.lang = '';"""
    )
    assert {"color-contrast", "html-has-lang", "svg-img-alt"} <= {rule for rule, _, _ in axe(browser)[0]}
    assert browser.execute_script(PROBLEMS) == ["a figure without title or description"]
    assert min(contrast for _, contrast in browser.execute_script(CONTRASTS)) < 4.5


# How many lines each cell has, with its text.
LINES = """
return [...document.querySelectorAll(arguments[0])].map(cell => {
  const range = document.createRange();
  range.selectNodeContents(cell);
  return [cell.textContent, new Set([...range.getClientRects()].map(box => Math.round(box.top))).size];
});
"""


@pytest.mark.parametrize("width", [1200, 390])
def test_numbers_and_words_of_a_comparison_stay_on_one_line(browser, pages, width):
    show(browser, pages["compare"][0], width=width)
    cells = browser.execute_script(LINES, ".wide .number, .wide .word")
    assert len(cells) == 9 * 7 + 9  # seven audits, and the header
    assert [cell for cell in cells if cell[1] != 1] == []
    # Names may be broken, but not into single letters.
    widths = browser.execute_script("return [...document.querySelectorAll('.wide td.name')].map(cell => cell.clientWidth)")
    assert min(widths) > 100
    beyond, scrolls = browser.execute_script(
        """const region = document.querySelector('.wide');
           return [document.documentElement.scrollWidth > innerWidth, region.scrollWidth > region.clientWidth]"""
    )
    assert not beyond
    assert scrolls == (width == 390)


@pytest.mark.parametrize("width", [1200, 390, 320])
@pytest.mark.parametrize("name", AUDITS)
def test_numbers_stay_on_one_line(browser, pages, name, width):
    show(browser, pages[name][0], width=width)
    browser.execute_script("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert [cell for cell in browser.execute_script(LINES, "td.number, dd > data, .standing") if cell[1] != 1] == []


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("evil", "long")])
def test_a_caption_has_at_most_two_lines_and_folds_the_rest(browser, pages, name, width):
    show(browser, pages[name][0], width=width)
    captions = browser.execute_script(LINES, "figcaption > p")
    assert len(captions) == browser.execute_script("return document.querySelectorAll('figcaption').length") > 0
    assert [caption for caption in captions if caption[1] > 2] == []
    assert browser.execute_script("return [...document.querySelectorAll('figcaption > details')].every(d => !d.open)")


# Shaded regions and their outlines: size in pixels, and the contrast of the outline with the page.
REGIONS = """
const light = ([r, g, b]) => [r, g, b].map(v => v / 255).map(v => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
const parts = text => (text.match(/[\\d.]+/g) || []).map(Number);
return [...document.querySelectorAll('svg .band, svg .excluded, svg .track')].map(region => {
  const box = region.getBoundingClientRect(), style = getComputedStyle(region);
  const [a, b] = [light(parts(style.stroke)), light(parts(getComputedStyle(document.body).backgroundColor))];
  return [region.getAttribute('class'), Math.min(box.width, box.height), (Math.max(a, b) + .05) / (Math.min(a, b) + .05)];
});
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["refuted", "curve", "compare"])
def test_every_shaded_region_can_be_seen(browser, pages, name, scheme):
    show(browser, pages[name][0], scheme=scheme)
    regions = browser.execute_script(REGIONS)
    assert regions
    assert [region for region in regions if region[1] < 1 or region[2] < 3] == []


def test_a_key_stays_beside_its_name(browser, pages):
    show(browser, pages["compare"][0], width=390)
    apart = browser.execute_script(
        """return [...document.querySelectorAll('.keys li')].filter(key => {
            const [sample, name] = [...key.children].map(part => part.getBoundingClientRect());
            return name.left < sample.right || name.left > sample.right + 20
                || sample.bottom < name.top || sample.top > name.bottom || sample.width < 20;
        }).map(key => key.textContent)"""
    )
    assert apart == []


@pytest.mark.parametrize("name", ["refuted", "curve"])
def test_gauge_and_path_are_side_by_side_on_a_desktop(browser, pages, name):
    tops = """return ['gauge', 'path'].map(name => document.getElementById(`${name}-title`).parentElement
                .closest('.figures > *').getBoundingClientRect().top)"""
    show(browser, pages[name][0])
    gauge, path = browser.execute_script(tops)
    assert abs(gauge - path) < 20
    show(browser, pages[name][0], width=390)
    gauge, path = browser.execute_script(tops)
    assert gauge < path - 100


def test_the_claim_is_seen_on_the_bar(browser, pages):
    """By its halo, against which both mark and bar stand out."""

    def light(colour):
        parts = [int(part) / 255 for part in colour.removeprefix("rgb(").removesuffix(")").split(",")]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.05 + sum(share * part for share, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))

    for scheme in ("light", "dark"):
        show(browser, pages["refuted"][0], scheme=scheme)
        mark, halo, bar = browser.execute_script(
            """const style = kind => getComputedStyle(document.querySelector(`svg .${kind}`));
               return [style('mark').stroke, style('halo').stroke, style('beyond').fill]"""
        )
        for one in (mark, bar):
            assert max(light(one) / light(halo), light(halo) / light(one)) > 4.5
        assert max(light(mark) / light(bar), light(bar) / light(mark)) > 1.5


def test_dark_is_dark_and_light_is_light_and_paper_is_white(browser, pages):
    colour = "return getComputedStyle(document.body).backgroundColor"
    seen = {}
    for scheme, media in (("light", "screen"), ("dark", "screen"), ("dark", "print")):
        show(browser, pages["refuted"][0], scheme=scheme, media=media)
        seen[scheme, media] = browser.execute_script(colour)
    assert seen["light", "screen"] == seen["dark", "print"] == "rgb(255, 255, 255)"
    assert seen["dark", "screen"] == "rgb(18, 22, 27)"


@pytest.mark.parametrize("width", [320, 375, 800])
@pytest.mark.parametrize("name", NAMES)
def test_it_fits_a_phone(browser, pages, name, width):
    show(browser, pages[name][0], width=width)
    browser.execute_script("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    if width >= 375:
        heights = browser.execute_script(
            "return [...document.querySelectorAll('svg text')].map(t => parseFloat(getComputedStyle(t).fontSize) * t.getCTM().a)"
        )
        assert min(heights) >= 9


@pytest.mark.parametrize("name", ["refuted", "curve", "curve-stands", "curve-alone", "compare", "compare-curves"])
def test_words_of_a_figure_stay_inside_it(browser, pages, name):
    show(browser, pages[name][0])
    outside = browser.execute_script(
        """return [...document.querySelectorAll('svg text')].filter(t => {
            const box = t.getBoundingClientRect(), frame = t.ownerSVGElement.getBoundingClientRect();
            return box.left < frame.left - 1 || box.right > frame.right + 1
                || box.top < frame.top - 1 || box.bottom > frame.bottom + 1;
        }).map(t => t.textContent)"""
    )
    assert outside == []


@pytest.mark.parametrize("name", ["refuted", "pair", "curve", "compare", "compare-curves"])
def test_it_prints(browser, pages, name):
    show(browser, pages[name][0], media="print")
    paper = browser.execute_cdp_cmd("Page.printToPDF", {"printBackground": False})
    assert len(paper["data"]) > 20_000


PAPER = 700  # pixels between the margins of A4


@pytest.mark.parametrize("name", ["compare", "compare-curves"])
def test_paper_has_the_whole_table(browser, pages, name):
    show(browser, pages[name][0], width=PAPER, media="print")
    assert browser.execute_script("return document.documentElement.scrollWidth") <= PAPER
    right = browser.execute_script("return document.querySelector('.wide table').getBoundingClientRect().right")
    assert right <= PAPER


def test_paper_does_not_tear_what_belongs_together(browser, pages):
    show(browser, pages["refuted"][0], media="print")
    torn = browser.execute_script(
        """const style = (selector, name) => getComputedStyle(document.querySelector(selector))[name];
           return [style('pre', 'breakInside'), style('figure', 'breakInside'), style('thead', 'breakAfter'),
                   style('tbody tr', 'breakAfter'), style('tbody tr:last-child', 'breakBefore'), style('h2', 'breakAfter')]"""
    )
    assert torn == ["avoid"] * 6
