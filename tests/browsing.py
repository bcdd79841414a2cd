"""A real browser for tests of pages, and what to look for in a page that it shows."""

import json
import os
import shutil
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.waiting import PATIENCE

webdriver = pytest.importorskip("selenium.webdriver", reason="the browser tests need the Python package selenium")
BROWSER, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
NEEDS_BROWSER = [
    pytest.mark.skipif(BROWSER is None, reason="the browser tests need the Debian package chromium"),
    pytest.mark.skipif(DRIVER is None, reason="the browser tests need the Debian package chromium-driver"),
]

# Every piece of text in a figure, with the contrast of its colour against what is behind it: axe does not know the colours of SVG.
CONTRASTS = """
const light = ([r, g, b]) => [r, g, b].map(v => v / 255).map(v => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
const parts = text => (text.match(/[\\d.]+/g) || []).map(Number);
const behind = node => {
  for (; node; node = node.parentElement) {
    const colour = parts(getComputedStyle(node).backgroundColor);
    if (colour.length === 3 || colour[3] === 1) return colour;
  }
  return [255, 255, 255];
};
return [...document.querySelectorAll('svg text')].map(node => {
  const [a, b] = [light(parts(getComputedStyle(node).fill)), light(behind(node))].sort((x, y) => y - x);
  return [node.textContent.slice(0, 60), (a + .05) / (b + .05)];
});
"""

# What axe does not ask for: figures with a description beside their title, headers of tables, summaries of details.
PROBLEMS = """
const problems = [], all = selector => [...document.querySelectorAll(selector)];
for (const svg of all('svg:not([aria-hidden=true])')) {
  const named = (svg.getAttribute('aria-labelledby') || '').split(' ').map(id => document.getElementById(id));
  if (svg.getAttribute('role') !== 'img' || named.length !== 2 || named.some(n => !n || !n.textContent.trim()))
    problems.push('a figure without title or description');
}
for (const table of all('table')) if (!table.querySelector('thead th')) problems.push('a table without headers');
for (const cell of all('th')) if (!cell.scope || !cell.textContent.trim()) problems.push(`a header without scope or words`);
for (const one of all('details')) if (!one.querySelector('summary')?.textContent.trim()) problems.push('details without summary');
return problems;
"""

AXE = """
const done = arguments[arguments.length - 1];
axe.run({resultTypes: ['violations', 'incomplete']}).then(done, error => done({failed: String(error)}));
"""


def axe(browser):
    """What axe-core finds: (rule, impact, where), and what it could not decide, outside of figures."""
    scripts = pytest.importorskip(
        "axe_core_python", reason="the accessibility tests need the Python package axe-core-python"
    )
    browser.execute_script((Path(scripts.__file__).parent / "axe.min.js").read_text(encoding="utf-8"))
    findings = browser.execute_async_script(AXE)
    assert "failed" not in findings, findings
    violations, incomplete = (
        [(rule["id"], rule["impact"], node["html"][:200]) for rule in findings[kind] for node in rule["nodes"]]
        for kind in ("violations", "incomplete")
    )
    return violations, [one for one in incomplete if not one[2].startswith("<text ")]


@contextmanager
def open_browser(*, network=False):
    """Yield a browser without a window; with ``network`` it logs every request, for :func:`requested`."""
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    for argument in ("--headless=new", "--disable-dev-shm-usage", "--disable-gpu", "--window-size=1200,900"):
        options.add_argument(argument)
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        options.add_argument("--no-sandbox")  # which does not work for root
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"} | ({"performance": "ALL"} if network else {}))
    started = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    started.set_script_timeout(PATIENCE)
    started.set_page_load_timeout(PATIENCE)
    try:
        yield started
    finally:
        started.quit()


def requested(browser):
    """The addresses that pages have asked for since the last call, those that were refused included."""
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    return [one["params"]["request"]["url"] for one in messages if one["method"] == "Network.requestWillBeSent"]
