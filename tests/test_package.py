"""The package as a whole: what importing it costs, and what it offers."""

import subprocess
import sys

import lidp

HEAVY = ("torch", "matplotlib", "pandas", "numba", "ray", "scipy.stats", "scipy", "typer", "rich", "jinja2")


def test_import_is_light():
    code = f"import sys, lidp; print([m for m in {HEAVY!r} if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def loaded_by(code):
    out = subprocess.run(
        [sys.executable, "-c", f"import sys, lidp; {code}; print(*sys.modules)"], capture_output=True, text=True
    )
    return set(out.stdout.split())


def test_import_loads_nothing_of_lidp_but_the_package():
    """Counted, not timed: a busy machine has no clock to go by."""
    loaded = loaded_by("pass")
    assert {name for name in loaded if name.partition(".")[0] == "lidp"} == {"lidp"}
    assert "numpy" not in loaded


def test_bounding_scores_loads_few_modules_beside_those_of_numpy():
    others = loaded_by("lidp.Scores, lidp.bound") - loaded_by("import numpy")
    assert 10 < len({name for name in others if name.partition(".")[0] == "lidp"}) < 62
    assert len({name for name in others if name.partition(".")[0] != "lidp"}) < 40


def test_modules_of_the_core_are_attributes_without_an_import_of_their_own():
    code = (
        "import lidp; print(lidp.errors.StoreError is lidp.StoreError, hasattr(lidp.stats, 'wilson'), hasattr(lidp, 'x'))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "True True False\n"


def test_a_method_is_known_as_lidps_own_however_it_is_imported():
    code = "from lidp.stats.wilson import Wilson; from lidp.stats.storable import is_lidps_own; print(is_lidps_own(Wilson))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "True\n"


def test_all_names_exist_and_are_sorted():
    assert all(hasattr(lidp, name) for name in lidp.__all__)
    assert len(set(lidp.__all__)) == len(lidp.__all__)


def test_public_names_are_declared():
    import types

    public = {
        name for name, value in vars(lidp).items() if not name.startswith("_") and not isinstance(value, types.ModuleType)
    }
    assert public - {"Any", "TYPE_CHECKING", "import_module"} <= set(lidp.__all__)


def test_the_plain_maximum_does_not_exist():
    assert not [name for name in lidp.__all__ if "max" in name.lower() or "best" in name.lower()]


def test_completion_knows_the_public_names_and_no_others():
    assert dir(lidp) == sorted(lidp.__all__)
