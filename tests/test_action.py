"""The GitHub Action and the example workflow: they are well formed, and the action's script does what it says."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests import commands
from tests.pages import ROOT, blocks_of
from tests.waiting import PATIENCE

yaml = pytest.importorskip("yaml", reason="PyYAML comes with the extra docs")
ACTION = ROOT / ".github" / "actions" / "lidp-audit" / "action.yml"
WORKFLOW = ROOT / "examples" / "ci" / "privacy.yml"
BADGE = ROOT / "examples" / "ci" / "badge-steps.yml"


def loaded(path):
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def steps_of(workflow):
    return [step for job in workflow["jobs"].values() for step in job["steps"]]


def audit_step():
    return next(step for step in loaded(ACTION)["runs"]["steps"] if step.get("id") == "audit")


def audit(folder, arguments):
    """Run the script of the action as a runner does, in ``folder``; return the exit code and the two files that it writes to."""
    summary, output = folder / "summary", folder / "output"
    environment = os.environ | {
        "LIDP_ARGUMENTS": arguments,
        "LIDP_FOLDER": "my reports",
        "GITHUB_STEP_SUMMARY": str(summary),
        "GITHUB_OUTPUT": str(output),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]),
    }
    run = ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", audit_step()["run"]]
    ended = subprocess.run(run, cwd=folder, env=environment, check=False, capture_output=True, timeout=PATIENCE)
    return ended.returncode, summary.read_text(encoding="utf-8"), output.read_text(encoding="utf-8")


@pytest.mark.slow_after_first
@pytest.mark.parametrize(("target", "code", "icon"), [("LEAKY", 1, "❌"), ("SILENT", 0, "✅")])
def test_the_action_writes_all_reports_and_ends_with_the_code_of_the_audit(tmp_path, target, code, icon):
    arguments = f"audit tests.sample_targets:{target} --epsilon 1 --delta '1e-5' --canaries 8 --trials 60 --quiet"
    ended, summary, output = audit(tmp_path, arguments)
    assert (ended, output) == (code, f"exit-code={code}\n")
    assert summary.startswith(f"## {icon} {target.lower()}: ")
    reports = tmp_path / "my reports"
    assert {file.name for file in reports.iterdir()} >= {
        "audit.db",
        "audit.html",
        "audit.md",
        "audit.json",
        "audit.xml",
        "audit.svg",
    }
    root = ET.fromstring((reports / "audit.xml").read_text(encoding="utf-8"))  # noqa: S314  # our own
    assert root.attrib["failures"] == str(code)


def test_an_audit_that_cannot_run_fails_the_job_and_says_so(tmp_path):
    ended, summary, output = audit(tmp_path, "audit tests.sample_targets:NONE --epsilon 1")
    assert (ended, output) == (2, "exit-code=2\n")
    assert "did not finish (exit code 2)" in summary
    assert "\n    lidp: tests.sample_targets has no 'NONE'" in summary


def test_arguments_are_not_run_by_the_shell(tmp_path):
    ended, _, _ = audit(tmp_path, f"audit '$(touch {tmp_path / 'made'})' --epsilon 1; touch {tmp_path / 'made'}")
    assert ended == 2
    assert not (tmp_path / "made").exists()


def test_inputs_reach_scripts_through_the_environment_only():
    for step in loaded(ACTION)["runs"]["steps"]:
        assert "${{" not in step["run"]
        assert step["shell"] == "bash"


def test_the_workflow_gives_the_action_what_it_takes():
    (used,) = (step for step in steps_of(loaded(WORKFLOW)) if step.get("uses", "").startswith("./"))
    assert ROOT / used["uses"] == ACTION.parent
    inputs = loaded(ACTION)["inputs"]
    assert set(used["with"]) <= set(inputs)
    assert {name for name, given in inputs.items() if given.get("required")} <= set(used["with"])
    commands.check(["lidp", *shlex.split(used["with"]["arguments"])])


def test_the_options_of_pytest_in_the_workflow_exist():
    (run,) = (step["run"] for step in steps_of(loaded(WORKFLOW)) if "pytest --dp" in step.get("run", ""))
    source = (ROOT / "src" / "pytest_lidp" / "__init__.py").read_text(encoding="utf-8")
    for option in re.findall(r"--dp-[\w-]+", run):
        assert f'"{option}"' in source
    for budget in re.findall(r"'(nightly|quick)'", run):
        assert budget in source


def test_the_page_shows_the_workflow_as_it_is():
    workflow, badge = (block for block in blocks_of(ROOT / "docs" / "ci.md") if block.kind == "yaml")
    assert workflow.text == WORKFLOW.read_text(encoding="utf-8")
    assert badge.text == BADGE.read_text(encoding="utf-8")


def test_the_step_of_the_page_publishes_the_badge_alone_on_a_branch_of_its_own(tmp_path):
    (step,) = loaded(BADGE)
    remote, checkout = tmp_path / "remote", tmp_path / "checkout"

    def git(*words, folder=tmp_path):
        return subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True, text=True).stdout  # noqa: S607

    git("init", "-q", "--bare", str(remote))
    git("clone", "-q", str(remote), str(checkout))
    (checkout / "mine.py").write_text("x = 1\n")
    git("add", ".", folder=checkout)
    git("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "Begin", folder=checkout)
    (checkout / "lidp-audit").mkdir()
    for badge in ("<svg>1</svg>", "<svg>2</svg>"):
        (checkout / "lidp-audit" / "audit.svg").write_text(badge)
        subprocess.run(["bash", "-ec", step["run"]], cwd=checkout, check=True, capture_output=True)  # noqa: S607
        assert git("ls-tree", "--name-only", "badges", folder=remote).split() == ["privacy.svg"]
        assert git("show", "badges:privacy.svg", folder=remote) == badge
        git("checkout", "-q", "--detach", folder=checkout)
        git("branch", "-qD", "badges", folder=checkout)
