"""What mkdocs does to the pages besides: formulas become MathML, and roles in docstrings become code.

Formulas stand between dollars, which a code host renders by itself; pymdownx.arithmatex finds them here. MathML is part of the
page: nothing has to be fetched, nothing runs, and it prints.
"""

from __future__ import annotations

import re
from html import unescape
from typing import Any

from latex2mathml.converter import convert
from mkdocs.exceptions import PluginError

_FORMULA = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', flags=re.DOTALL)
_IDENTIFIER = re.compile(r"<mi[^>]*>(.*?)</mi>")
_ROLE = re.compile(r":(?:attr|class|data|exc|func|meth|mod):<code>~?([\w.]+)</code>")


def on_page_content(html: str, page: Any, **_: Any) -> str:
    """Called by mkdocs with the HTML of every page."""
    if "arithmatex" in html:
        html = _FORMULA.sub(lambda found: formula(unescape(found[2]).strip(), found[1] == "div", page.file.src_uri), html)
    return with_links(html) if ":<code>" in html else html


def formula(latex: str, alone: bool, where: str) -> str:
    """A formula as MathML, on a line of its own or within one.

    Raises:
        PluginError: for what the converter passes on as if it were a name, such as a command that it does not know.
    """
    found: str = convert(latex, display="block" if alone else "inline")
    for name in map(unescape, _IDENTIFIER.findall(found)):
        if not name.isalpha() and name not in "′″…":
            raise PluginError(f"{where}: {name!r} is not understood in the formula {latex}")
    return f'<div class="formula">{found}</div>' if alone else found


def with_links(html: str) -> str:
    """Roles such as :class:`Target` as code, with a link if the page describes exactly one thing of that name."""
    places = re.findall(r'\bid="([\w.]+)"', html)

    def plain(found: re.Match[str]) -> str:
        name = found[1].rpartition(".")[2]
        meant = {place for place in places if place == found[1] or place.endswith(f".{found[1]}")}
        return f'<a href="#{meant.pop()}"><code>{name}</code></a>' if len(meant) == 1 else f"<code>{name}</code>"

    return _ROLE.sub(plain, html)
