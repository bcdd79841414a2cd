"""What importing ``lidp.testing`` costs, and who does it."""

import subprocess
import sys


def loaded_by(statement):
    code = f"import sys; {statement}; print(*sys.modules)"
    return set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split())


def test_lidp_does_not_import_its_contract_suites():
    assert not [name for name in loaded_by("import lidp") if name.startswith("lidp.testing")]


def test_contract_suites_do_not_need_pytest():
    modules = loaded_by("import lidp.testing")
    assert "lidp.testing.methods" in modules
    assert not {"pytest", "_pytest", "torch", "ray", "matplotlib", "pandas", "scipy.stats"} & modules
