"""``TargetSpec`` as a value: comparing, storing, describing and repeating a target without loading it."""

import copy
import os
import pickle
import shlex
import subprocess
import sys

import numpy as np
import pytest
import typer

import lidp
from lidp import Claim, InvalidArgument, PairTarget, Target, TargetSpec
from lidp.cli.app import app
from lidp.target_spec.kinds import KINDS

PROGRAM = {"command": "train {data} {out}", "data": "/data/x.npz", "folder": "/work"}
SPECS = [
    TargetSpec("python", {"path": "mine.py:target"}),
    TargetSpec("python", {"path": "-odd name.py:a;b"}),
    TargetSpec("python", {"path": "not\udcffdecodable.py:target"}),
    TargetSpec("built-in", {"name": "gaussian"}),
    TargetSpec("dpsgd", {"canaries": 8}),
    TargetSpec("dpsgd", {"canaries": 8, "epochs": 0.1, "records": 100, "random_start": True, "hidden": "7,5"}),
    TargetSpec("program", PROGRAM),
    TargetSpec("program", {**PROGRAM, "pilots": 0, "time_limit": 2.5, "logs": "/logs"}),
    TargetSpec("pair", {"path": "package.module:pair"}),
    TargetSpec("catalogue", {"name": "svt3"}),
    TargetSpec("training", {"name": "batch-norm"}),
]


def test_every_kind_is_tested():
    assert {spec.kind for spec in SPECS} == set(KINDS)


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_a_spec_survives_json_pickle_and_copy(spec):
    for same in (
        TargetSpec.from_json(spec.to_json()),
        TargetSpec.from_dict(spec.to_dict()),
        pickle.loads(pickle.dumps(spec)),  # noqa: S301
        copy.deepcopy(spec),
    ):
        assert same == spec
        assert hash(same) == hash(spec)
    assert [other for other in SPECS if other == spec] == [spec]


def test_a_spec_cannot_be_changed():
    given = {"path": "mine.py:target"}
    spec = TargetSpec("python", given)
    given["path"] = "os:system"
    assert spec.options["path"] == "mine.py:target"
    with pytest.raises(TypeError):
        spec.options["path"] = "os:system"
    with pytest.raises(AttributeError):
        spec.kind = "pair"


@pytest.mark.parametrize("text", ["", "{", "7", "[]", "null", '{"kind": "python"}', "[" * 100_000])
def test_text_that_is_no_spec_is_refused(text):
    with pytest.raises(InvalidArgument, match="a target spec must"):
        TargetSpec.from_json(text)


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_the_command_line_reads_the_options_back(spec):
    program, name, *words = shlex.split(spec.to_command({"epsilon": 2.0, "seed": 3}))
    typed = typer.main.get_command(app).commands[name].make_context(name, words).params
    assert (program, typed["epsilon"], typed["seed"]) == ("lidp", 2.0, 3)
    kind = KINDS[spec.kind]
    for option, value in spec.options.items():
        if option == kind.argument:
            argument = typed["target" if "target" in typed else "program_command"]
            assert argument == f"{kind.prefix}{value}"
        elif option not in kind.derived:
            assert typed[option] == value


def test_which_specs_run_code_and_depend_on_the_folder():
    assert {kind for kind in KINDS if KINDS[kind].runs_code} == {"python", "pair", "program"}
    for kind in ("python", "pair"):
        assert TargetSpec(kind, {"path": "mine.py:target"}).depends_on_folder
        assert TargetSpec(kind, {"path": "package.module:target"}).depends_on_folder
        assert not TargetSpec(kind, {"path": "/folder/mine.py:target"}).depends_on_folder
    assert not TargetSpec("program", PROGRAM).depends_on_folder
    for option in ("data", "folder", "logs"):
        assert TargetSpec("program", {**PROGRAM, option: "here"}).depends_on_folder


READING = """
import sys
from lidp import TargetSpec
for text in sys.argv[1:]:
    spec = TargetSpec.from_json(text)
    str(spec), spec.to_command(), spec.runs_code, spec.depends_on_folder
print([name for name in ("torch", "numba", "scipy", "telltale", "lidp.training", "lidp.mechanisms") if name in sys.modules])
"""


def test_reading_specs_imports_neither_targets_nor_libraries_for_training(tmp_path):
    (tmp_path / "telltale.py").write_text("raise SystemExit('was run')")
    texts = [spec.to_json() for spec in (*SPECS, TargetSpec("python", {"path": "telltale:x"}))]
    environment = {"PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    words = [sys.executable, "-c", READING, *texts]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_loading_makes_the_target_of_each_kind(tmp_path):
    (tmp_path / "mine.py").write_text(
        "import lidp\nfrom tests.sample_targets import LEAKY as target\npair = (lambda data, rng: data, 0, 1)\n"
    )
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "x.npz", x=rng.standard_normal((40, 3)), y=np.arange(40) % 2)
    options = {"command": "true {data} {out}", "data": str(tmp_path / "x.npz"), "folder": str(tmp_path)}
    claim = Claim(2, 1e-5)
    targets = [
        TargetSpec("python", {"path": f"{tmp_path / 'mine.py'}:target"}),
        TargetSpec("built-in", {"name": "gaussian-half-noise"}),
        TargetSpec("dpsgd", {"canaries": 4, "data": str(tmp_path / "x.npz"), "epochs": 1, "batch_size": 20}),
        TargetSpec("program", {**options, "canary": "blank", "time_limit": 3}),
    ]
    assert all(isinstance(spec.load(claim), Target) for spec in targets)
    assert targets[3].load(claim).mechanism.time_limit == 3
    pair = TargetSpec("pair", {"path": f"{tmp_path / 'mine.py'}:pair"})
    assert isinstance(pair.load(claim), PairTarget)
    assert pair.load(claim).name == pair.options["path"]


def test_a_result_carries_the_spec_as_plain_data():
    spec = TargetSpec("python", {"path": "tests.sample_targets:LEAKY"})
    result = lidp.audit(spec.load(Claim(1)), claim=Claim(1), trials=2, design=lidp.CoinFlip(2), target_spec=spec)
    assert result.configuration["target_spec"] == {"kind": "python", "options": {"path": "tests.sample_targets:LEAKY"}}
