"""The documentation as a site: it is built without a warning, formulas are formulas, and the reference is complete."""

import inspect
import os
import re
import subprocess
import sys

import pytest

import lidp
from tests.pages import PAGES, ROOT

pytest.importorskip("mkdocs", reason="the site needs the extra docs")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The folder of the site, built as ``make docs`` does: every warning is an error."""
    folder = tmp_path_factory.mktemp("site")
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    return folder


def page_of(site, name):
    return (site / name / "index.html").read_text(encoding="utf-8")


def test_every_page_is_in_the_site(site):
    for page in PAGES:
        assert page.stem == "index" or (site / page.stem / "index.html").exists()


def test_formulas_are_mathematics(site):
    html = page_of(site, "methods")
    source = (ROOT / "docs" / "methods.md").read_text(encoding="utf-8")
    alone = len(re.findall(r"^\$\$$", source, flags=re.MULTILINE)) // 2
    assert html.count('<math xmlns="http://www.w3.org/1998/Math/MathML" display="block">') == alone > 5
    assert html.count('display="inline"') == len(re.findall(r"\$[^$\n]+\$", source)) > 50
    for text in (html, html.partition("<article")[2].partition("</article>")[0]):
        assert "arithmatex" not in text
        assert r"\le " not in text
    assert "$" not in re.sub(r"<[^>]*>", "", html.partition("<article")[2].partition("</article>")[0])


def test_nothing_is_fetched_from_elsewhere(site):
    for page in site.rglob("*.html"):
        html = page.read_text(encoding="utf-8")
        assert not re.findall(r'<(?:script|img|iframe)[^>]*src="(?:https?:)?//', html), page
        assert not re.findall(r'<link[^>]*rel="stylesheet"[^>]*href="(?:https?:)?//', html), page


def test_a_formula_that_is_not_understood_is_an_error():
    pytest.importorskip("latex2mathml")
    from docs_hooks import formula
    from mkdocs.exceptions import PluginError

    assert "<mo>&#x02264;</mo>" in formula(r"x \le y", False, "page")
    for unknown in (r"\foo", "x ≤ y", r"e^{\pm ε}"):
        with pytest.raises(PluginError, match="page: .* is not understood in the formula"):
            formula(unknown, False, "page")


def test_roles_are_code_with_links(site):
    html = page_of(site, "reference")
    assert not re.findall(r":(?:attr|class|data|exc|func|meth|mod):", html)
    assert '<a href="#lidp.Target"><code>Target</code></a>' in html


VERBS = (lidp.audit, lidp.audit_pair, lidp.bound, lidp.plan)


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.__name__)
def test_a_verb_describes_each_of_its_arguments(verb):
    described = re.findall(r"^    (\w+): ", inspect.getdoc(verb).partition("Args:\n")[2], flags=re.MULTILINE)
    assert set(inspect.signature(verb).parameters) <= set(described)


def test_the_reference_has_every_public_name(site):
    html = page_of(site, "reference")
    places = {place.rpartition(".")[2] for place in re.findall(r'\bid="([\w.]+)"', html)}
    collections = {"METHODS", "Design"}  # of what is described itself
    assert {name for name in lidp.__all__ if not name.startswith("_")} - collections <= places
