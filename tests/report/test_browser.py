"""The pages in a real browser: nothing goes wrong, everyone can read them, and they say what the JSON says."""

import json
import os
import shutil
from dataclasses import replace

import pytest

from lidp import CoinFlip, LeaveOneOut, Verdict, Wilson
from lidp.report.comparison import Comparison
from tests.report.results import pair_result, result_like, scores_like
from tests.report.test_page import EVIL, found_at

webdriver = pytest.importorskip("selenium.webdriver", reason="the browser tests need the Python package selenium")
BROWSER, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
pytestmark = [
    pytest.mark.skipif(BROWSER is None, reason="the browser tests need the Debian package chromium"),
    pytest.mark.skipif(DRIVER is None, reason="the browser tests need the Debian package chromium-driver"),
]

# Every piece of text that is seen, with the contrast of its colour against what is behind it.
CONTRASTS = """
const light = ([r, g, b]) => [r, g, b].map(v => v / 255).map(v => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
const parts = text => (text.match(/[\\d.]+/g) || []).map(Number);
const behind = node => {
  for (; node; node = node.parentElement) {
    const found = parts(getComputedStyle(node).backgroundColor);
    if (found.length === 3 || found[3] === 1) return found;
  }
  return [255, 255, 255];
};
const found = [];
for (const node of document.querySelectorAll('body *')) {
  const words = [...node.childNodes].filter(n => n.nodeType === 3).map(n => n.data.trim()).join(' ').trim();
  if (!words || ['STYLE', 'title', 'desc'].includes(node.tagName)) continue;
  const style = getComputedStyle(node);
  const ink = parts(node.namespaceURI.endsWith('svg') ? style.fill : style.color);
  const [a, b] = [light(ink), light(behind(node))].sort((x, y) => y - x);
  found.push([words.slice(0, 60), (a + .05) / (b + .05)]);
}
return found;
"""

# What an accessibility checker would call serious.
PROBLEMS = """
const found = [], all = selector => [...document.querySelectorAll(selector)];
if (!document.documentElement.lang) found.push('no lang');
if (!document.title.trim()) found.push('no title');
for (const name of ['header', 'main', 'footer', 'h1']) if (all(name).length !== 1) found.push(`${all(name).length} ${name}`);
let level = 0;
for (const heading of all('h1, h2, h3, h4')) {
  const own = Number(heading.tagName[1]);
  if (own > level + 1) found.push(`heading ${heading.textContent} skips a level`);
  if (!heading.textContent.trim()) found.push('an empty heading');
  level = own;
}
for (const svg of all('svg:not([aria-hidden=true])')) {
  const named = (svg.getAttribute('aria-labelledby') || '').split(' ').map(id => document.getElementById(id));
  if (svg.getAttribute('role') !== 'img' || named.length !== 2 || named.some(n => !n || !n.textContent.trim()))
    found.push('a figure without title or description');
}
for (const table of all('table')) if (!table.querySelector('thead th')) found.push('a table without headers');
for (const cell of all('th')) if (!cell.scope || !cell.textContent.trim()) found.push(`a header without scope or words`);
for (const one of all('details')) if (!one.querySelector('summary')?.textContent.trim()) found.push('details without summary');
const ids = all('[id]').map(n => n.id);
if (new Set(ids).size !== ids.length) found.push('an id twice');
for (const node of all('dl > *'))
  if (node.tagName !== 'DIV' || !node.querySelector('dt') || !node.querySelector('dd')) found.push('a bad dl');
if (/user-scalable=no|maximum-scale/.test(document.querySelector('meta[name=viewport]').content)) found.push('no zoom');
for (const node of all('*')) {
  const style = getComputedStyle(node);
  if (/auto|scroll/.test(style.overflowX) && node.scrollWidth > node.clientWidth && node.tabIndex < 0)
    found.push('cannot be scrolled by keyboard');
}
return found;
"""


@pytest.fixture(scope="module")
def browser():
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    for argument in ("--headless=new", "--disable-dev-shm-usage", "--disable-gpu", "--window-size=1200,900"):
        options.add_argument(argument)
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        options.add_argument("--no-sandbox")  # which does not work for root
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    started = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    yield started
    started.quit()


def results():
    """Pages of every shape."""
    leaky = result_like(scores_like(CoinFlip(6), 150))
    arms = scores_like(LeaveOneOut(30, 3), 80, failed=2)
    return {
        "refuted": leaky,
        "not-refuted": replace(leaky, verdict=Verdict.NOT_REFUTED, facts={"σ": 2.5, "noise": "Gaussian"}),
        "provisional": result_like(arms, Wilson(), planned=500, verdict=Verdict.UNDECIDED),
        "one-trial": result_like(scores_like(CoinFlip(6), 1), verdict=Verdict.UNDECIDED),
        "evil": result_like(scores_like(CoinFlip(6)), target=EVIL, facts={EVIL: EVIL}),
        "long": result_like(
            scores_like(CoinFlip(6)), target="x" * 400, configuration={"origin": "", "fingerprint": "f" * 90}
        ),
        "pair": pair_result(),
    }


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    found = {name: (result.report(folder / f"{name}.html"), result) for name, result in results().items()}
    both = Comparison.of([(name if name != "long" else "n" * 300, result) for name, (_, result) in found.items()])
    return found | {"compare": (both.write(folder / "compare.html"), None)}


NAMES = ["refuted", "not-refuted", "provisional", "one-trial", "evil", "long", "pair", "compare"]


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


@pytest.mark.parametrize("name", [name for name in NAMES if name != "compare"])
def test_the_numbers_are_those_of_the_json(browser, pages, name):
    page, result = pages[name]
    show(browser, page)
    plain = json.loads(result.to_json())
    said = browser.execute_script(
        "return [...document.querySelectorAll('data[data-json]')].map(n => [n.dataset.json, n.value, n.textContent])"
    )
    assert len(said) > 15
    for place, value, _ in said:
        expected = found_at(plain, place) if name != "evil" or not place.startswith("facts") else None
        if isinstance(expected, (int, float)) and not isinstance(expected, bool):
            assert float(value) == expected, place


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", NAMES)
def test_everyone_can_read_it(browser, pages, name, scheme):
    show(browser, pages[name][0], scheme=scheme)
    browser.execute_script("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert browser.execute_script(PROBLEMS) == []
    contrasts = browser.execute_script(CONTRASTS)
    assert len(contrasts) > 40
    assert [(words, contrast) for words, contrast in contrasts if contrast < 4.5] == []


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


@pytest.mark.parametrize("name", ["refuted", "compare"])
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


@pytest.mark.parametrize("name", ["refuted", "pair", "compare"])
def test_it_prints(browser, pages, name):
    show(browser, pages[name][0], media="print")
    paper = browser.execute_cdp_cmd("Page.printToPDF", {"printBackground": False})
    assert len(paper["data"]) > 20_000
