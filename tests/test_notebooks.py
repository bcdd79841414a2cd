"""The notebooks run from top to bottom, and what they end cells with can be shown."""

import ast
import json

import pytest

from tests.pages import ROOT, links_of

NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
NEEDS = {"opacus.ipynb": "opacus", "reading-a-result.ipynb": "pandas"}
MOST_BYTES = 10_000


def cells_of(notebook):
    """Return the code cells as text."""
    plain = json.loads(notebook.read_text(encoding="utf-8"))
    return ["".join(cell["source"]) for cell in plain["cells"] if cell["cell_type"] == "code"]


def show(value):
    """Return what a notebook shows of a value."""
    html = getattr(value, "_repr_html_", None)
    return repr(value) if html is None else html()


def run_cells(cells):
    """Run cells one after the other; return what each of them shows, None if it ends with a statement."""
    names, shown = {"__name__": "__main__"}, []
    for cell in cells:
        *statements, last = ast.parse(cell).body
        rest = [] if isinstance(last, ast.Expr) else [last]
        exec(compile(ast.Module([*statements, *rest], []), "cell", "exec"), names)  # noqa: S102  # our own
        value = eval(compile(ast.Expression(last.value), "cell", "eval"), names) if not rest else None  # noqa: S307
        shown.append(None if value is None else show(value))
    return shown


def needs(notebook):
    if notebook.name in NEEDS:
        pytest.importorskip(NEEDS[notebook.name], reason="the notebook needs it")


@pytest.mark.filterwarnings("ignore")  # libraries warn about themselves
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.name)
def test_a_notebook_runs_and_shows_its_results(notebook):
    needs(notebook)
    shown = [text for text in run_cells(cells_of(notebook)) if text is not None]
    assert len(shown) >= 2
    assert any(text.startswith('<div class="lidp"') and "refuted" in text for text in shown)


@pytest.mark.filterwarnings("ignore")
def test_a_kernel_shows_progress_and_results(tmp_path):
    nbclient = pytest.importorskip("nbclient", reason="needs nbclient and ipykernel")
    pytest.importorskip("ipykernel", reason="needs nbclient and ipykernel")
    import nbformat

    notebook = nbformat.read(ROOT / "docs" / "notebooks" / "mechanism.ipynb", as_version=4)
    nbclient.NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(tmp_path)}}).execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    shown = [output["data"]["text/html"] for output in outputs if "text/html" in output.get("data", {})]
    assert sum("<progress" in html for html in shown) == 2  # one per audit, however often it was updated
    assert any("refuted: noisy_sum" in html for html in shown)
    assert not [output for output in outputs if output.output_type == "stream"]


def test_a_cell_that_fails_is_noticed():
    with pytest.raises(AssertionError):
        run_cells(["x = 1", "assert x == 2"])
    assert run_cells(["x = 1", "x"]) == [None, "1"]


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.name)
def test_a_notebook_is_small_and_holds_no_outputs(notebook):
    assert notebook.stat().st_size < MOST_BYTES
    plain = json.loads(notebook.read_text(encoding="utf-8"))
    assert (plain["nbformat"], plain["nbformat_minor"]) == (4, 5)
    assert all(cell["outputs"] == [] for cell in plain["cells"] if cell["cell_type"] == "code")


def test_the_page_links_to_every_notebook():
    linked = {link for link in links_of(ROOT / "docs" / "notebooks.md") if link.endswith(".ipynb")}
    assert linked == {f"notebooks/{notebook.name}" for notebook in NOTEBOOKS}
