"""The documents as Markdown sees them: blocks, spans of code, links and headings."""

import re
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from markdown_it import MarkdownIt

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
CONTRIBUTING = ROOT / "CONTRIBUTING.md"
PAGES = sorted((ROOT / "docs").glob("*.md"))
DOCUMENTS = [README, CONTRIBUTING, *PAGES]


class Block(NamedTuple):
    """A block of code: its language, the file it is to be saved as, its text, and the text of what it prints, if that follows."""

    kind: str
    title: str | None
    text: str
    line: int
    prints: str | None = None


def tokens_of(page):
    return MarkdownIt().enable("table").parse(page.read_text(encoding="utf-8"))


def blocks_of(page):
    """The fenced blocks. A block of text right after one of Python, with nothing between, is what that one prints."""
    tokens = tokens_of(page)
    found = []
    for before, token in pairwise([None, *tokens]):
        if token.type != "fence":
            continue
        kind, _, rest = token.info.strip().partition(" ")
        title = re.fullmatch(r'title="(.+)"', rest)
        assert title or not rest, f"{page.name}: {token.info}"
        if kind == "text" and before is not None and before.type == "fence" and before.info.strip() == "python":
            found[-1] = found[-1]._replace(prints=token.content)
        else:
            found.append(Block(kind, title and title[1], token.content, token.map[0] + 1))
    return found


def indented_blocks(page):
    return [token.content for token in tokens_of(page) if token.type == "code_block"]


def _inline(page):
    return [child for token in tokens_of(page) if token.type == "inline" for child in token.children]


def spans_of(page):
    """The texts that stand as code within a sentence."""
    return [child.content for child in _inline(page) if child.type == "code_inline"]


def links_of(page):
    """Targets of links and pictures, as written."""
    kinds = {"link_open": "href", "image": "src"}
    return [child.attrs[kinds[child.type]] for child in _inline(page) if child.type in kinds]


def anchors_of(page):
    """Names of the headings, as code hosts make them; mkdocs makes the same of headings in plain letters."""
    tokens = tokens_of(page)
    headings = [after.content for token, after in pairwise(tokens) if token.type == "heading_open"]
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
