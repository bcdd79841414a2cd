"""Methods of lidp and of users as plain data: stored, read, and never imported by reading."""

import functools
import json
import re
import subprocess
import sys
from dataclasses import dataclass, make_dataclass
from enum import StrEnum
from pathlib import Path

import numpy as np
import pytest

import lidp
from lidp import METHODS, Claim, ClassNotImported, CoinWager, InvalidArgument, LeaveOneOut, StoreError, Wilson
from lidp.cli.app import run as command
from lidp.stats.citations import bibtex
from lidp.stats.storable import Storable, code_digest, from_plain, to_plain
from tests.sample_targets import LEAKY, InterruptedAfter
from tests.stats.every_method import method_with_defaults
from tests.stats.own_methods import Hoeffding, MeanOfTuning

AUDIT = {"claim": Claim(0.05, 1e-5), "design": LeaveOneOut(3, 3), "trials": 60, "seed": 1, "stop_when": "never"}
MODULE = Path(__file__).parent / "own_methods.py"


def through_json(value, classes=()):
    return from_plain(json.loads(json.dumps(to_plain(value))), classes=classes)


def method_class(module="somewhere", name="Mine", doc="", **namespace):
    """Return a method class as a module of that name would define it."""
    body = {"__module__": module, "name": "mine", "bound": Hoeffding.bound, "guarantee": Hoeffding.guarantee, **namespace}
    made = make_dataclass(name, [("size", int, 3)], bases=(lidp.Method,), namespace=body, frozen=True)
    made.__module__, made.__doc__ = module, doc
    return made


@pytest.mark.parametrize(
    "method",
    [
        *(method_with_defaults(name) for name in METHODS),
        Wilson(order=4, threshold=lidp.UnionThreshold((0.0, 1.0))),
        lidp.GaussianDP(lidp.Bernstein(2), threshold=lidp.SplitThreshold(0.3, lidp.CentralGrid(9))),
        Hoeffding(0.5),
        Wilson(threshold=MeanOfTuning(7)),
    ],
    ids=str,
)
def test_method_survives_json(method):
    assert through_json(method) == method
    assert type(through_json(method)) is type(method)


def test_class_of_lidp_is_stored_by_its_bare_name():
    assert to_plain(CoinWager())["kind"] == "CoinWager"
    assert to_plain(CoinWager())["direction"] == "both"


def test_class_of_a_user_is_stored_by_module_name_and_code():
    plain = to_plain(Hoeffding(0.5))
    assert plain == {
        "class": "tests.stats.own_methods:Hoeffding",
        "code": code_digest(Hoeffding),
        "parameters": {"threshold": 0.5},
    }


def test_class_with_the_name_of_one_of_lidps_replaces_nothing():
    impostor = method_class("lidp.stats.coin_wager", "CoinWager")
    assert type(from_plain(to_plain(CoinWager()))) is CoinWager
    assert to_plain(impostor())["class"] == "lidp.stats.coin_wager:CoinWager"
    assert type(through_json(impostor())) is impostor
    assert type(from_plain(to_plain(CoinWager()), classes=[impostor])) is CoinWager


@pytest.mark.parametrize("through", ["bound", "audit"])
def test_method_with_the_name_of_one_of_lidps_is_refused(through):
    impostor = method_class(name="Impostor")
    impostor.name = "wilson"
    scores = lidp.Scores(inserted=[[1.0]], held_out=[[0.0]])
    calls = {
        "bound": lambda: lidp.bound(scores, impostor(), delta=0),
        "audit": lambda: lidp.audit(LEAKY, method=impostor(), **AUDIT),
    }
    with pytest.raises(InvalidArgument, match="somewhere:Impostor has the name 'wilson' of one of lidp's methods"):
        calls[through]()


def test_class_of_the_same_module_and_name_but_other_code_is_not_used():
    first = method_class(limit=1)
    plain = to_plain(first())
    second = method_class(limit=2)
    assert type(from_plain(plain)) is first
    assert type(from_plain(to_plain(second()))) is second
    stale = plain | {"code": "0" * 16}
    with pytest.raises(ClassNotImported, match=r"is not the one that was stored.*methods=\[Mine\], or --import somewhere"):
        from_plain(stale)
    assert type(from_plain(stale, classes=[second])) is second


def test_two_given_classes_of_one_name_are_refused():
    with pytest.raises(InvalidArgument, match="two different classes are both called somewhere:Mine"):
        from_plain({}, classes=[method_class(), method_class()])


def test_digest_ignores_words_and_sees_code():
    def other(self, scores, *, delta, failure_probability):
        """Return no bound."""

    assert code_digest(method_class(doc="One.")) == code_digest(method_class(doc="Two.", summary="Three.", works=()))
    assert code_digest(method_class(bound=other)) != code_digest(method_class())
    assert code_digest(method_class(limit=2)) != code_digest(method_class(limit=1))


def _function(z=1.96, *, limit=3):
    return z in {1, limit}


def _other_default(z=0.1, *, limit=3):
    return z in {1, limit}


def _other_keyword(z=1.96, *, limit=4):
    return z in {1, limit}


def _closure(z):
    def inner(self):
        return z

    return inner


def _literal_set(z=1.96, *, limit=3):
    return z in {1, 2} or limit


def _other_literal_set(z=1.96, *, limit=3):
    return z in {1, 3} or limit


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (_function, _other_default),
        (_function, _other_keyword),
        (_closure(1), _closure(2)),
        (_literal_set, _other_literal_set),
        (functools.cached_property(_closure(1)), functools.cached_property(_closure(2))),
        (functools.lru_cache(_closure(1)), functools.lru_cache(_closure(2))),
        ([1], [2]),
        (type("Inner", (), {"z": 1}), type("Inner", (), {"z": 2})),
    ],
)
def test_digest_sees_everything_that_changes_a_method(one, other):
    def with_part(part):
        return type("Mine", (Storable,), {"part": part, "__module__": "mine"})

    if callable(one) and hasattr(one, "__name__"):
        other.__name__ = one.__name__
    assert code_digest(with_part(one)) == code_digest(with_part(one))
    assert code_digest(with_part(one)) != code_digest(with_part(other))


def test_class_that_has_moved_is_found_if_it_is_given():
    plain = to_plain(method_class("__main__")())
    moved = method_class("library", limit=1)
    assert type(from_plain(plain, classes=[moved])) is moved


def test_only_storable_classes_are_made():
    plain = {"class": "subprocess:Popen", "code": "", "parameters": {"args": "false"}}
    with pytest.raises(ClassNotImported, match="the class subprocess:Popen is not imported, and reading imports no code"):
        from_plain(plain)
    with pytest.raises(InvalidArgument, match="must be classes of methods"):
        from_plain(plain, classes=[subprocess.Popen])


@pytest.mark.parametrize(
    "plain", [{"kind": "Magic"}, {"kind": "Method"}, {}, {"class": "a:B"}, {"class": "a:B", "code": "", "parameters": 3}]
)
def test_data_that_describes_no_object_is_refused(plain):
    with pytest.raises(InvalidArgument, match="unknown method|class, code and parameters"):
        from_plain(plain)


class Colour(StrEnum):
    RED = "red"


@dataclass(frozen=True)
class Anything(Storable):
    value: object


@pytest.mark.parametrize("value", [float("nan"), float("inf"), [1], {"a": 1}, {1, 2}, object(), lidp.METHODS])
def test_parameter_that_json_cannot_keep_is_refused(value):
    with pytest.raises(InvalidArgument, match="a store cannot keep"):
        to_plain(Anything(value))


@pytest.mark.parametrize("value", [None, True, 3, 0.1, "text", (), (1, (2.0, "three")), Anything((Anything(1),))])
def test_parameter_that_json_can_keep_survives(value):
    assert through_json(Anything(value)) == Anything(value)


def test_enumeration_survives_if_its_class_accepts_the_text():
    assert through_json(Anything(Colour.RED)) == Anything("red")


def test_class_that_changes_when_it_is_read_is_refused():
    @dataclass(frozen=True)
    class Doubling(Storable):
        value: int

        def __post_init__(self):
            object.__setattr__(self, "value", 2 * self.value)

    with pytest.raises(InvalidArgument, match=r"Doubling\(value=2\) becomes .*Doubling\(value=4\)"):
        to_plain(Doubling(1))


@pytest.mark.parametrize("method", [Hoeffding(-0.05), Wilson(threshold=MeanOfTuning())], ids=str)
def test_audit_with_a_users_class_is_resumed_read_reported_and_cited(method, tmp_path):
    path = tmp_path / "a.db"
    with pytest.raises(lidp.AuditInterrupted):
        lidp.audit(LEAKY, method=method, store=path, executor=InterruptedAfter(20), **AUDIT)
    result = lidp.audit(LEAKY, method=method, store=path, **AUDIT)
    assert result == lidp.audit(LEAKY, method=method, **AUDIT)
    assert result.verdict == "refuted"
    assert lidp.result_of(path).bound == result.bound
    assert lidp.result_of(path).method == method
    assert lidp.recheck(json.loads(json.dumps(result.witness()))) == result.bound
    assert bibtex([lidp.result_of(path).method]) == bibtex([type(method)])
    page = lidp.write_report(result, tmp_path / "a.html").read_text(encoding="utf-8")
    assert method.name in page
    assert all(text in page for text in method.describe_rates(result.bound).values())


def test_audit_is_not_resumed_with_a_method_of_other_code(tmp_path):
    path = tmp_path / "a.db"
    lidp.audit(LEAKY, method=method_class(threshold=0.0, direction="forward", limit=1)(), store=path, **AUDIT)
    with pytest.raises(StoreError, match="belongs to another audit: method was"):
        lidp.audit(LEAKY, method=method_class(threshold=0.0, direction="forward", limit=2)(), store=path, **AUDIT)


@pytest.fixture
def foreign_store(tmp_path, monkeypatch, request):
    """A store whose method is defined in a module that writes a file when it is imported."""
    module = "methods_of_" + re.sub(r"\W", "_", request.node.name)  # imported in one test only
    text = f"from pathlib import Path\nPath('imported').touch()\n{MODULE.read_text(encoding='utf-8')}"
    (tmp_path / f"{module}.py").write_text(text, encoding="utf-8")
    script = (
        f"import lidp, json, {module}\nfrom tests.sample_targets import LEAKY\nfrom tests.stats.test_storable import AUDIT\n"
        f"result = lidp.audit(LEAKY, method={module}.Hoeffding(-0.05), store='a.db', **AUDIT)\n"
        "open('w.json', 'w').write(json.dumps(result.witness()))\n"
    )
    root = str(Path(__file__).parent.parent.parent)
    subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:0] = [{root!r}, '.']\n{script}"], check=True, cwd=tmp_path
    )
    (tmp_path / "imported").unlink()
    monkeypatch.chdir(tmp_path)
    return module


COMMANDS = {
    "report": ["report", "a.db"],
    "compare": ["compare", "a.db", "a.db"],
    "bound": ["bound", "a.db"],
    "cite": ["cite", "a.db"],
    "witness": ["witness", "w.json"],
}


@pytest.mark.parametrize("name", COMMANDS)
def test_command_imports_the_module_of_a_stored_method_only_if_told_to(name, foreign_store, capsys):
    arguments = COMMANDS[name]
    assert command(arguments) == 2
    error = capsys.readouterr().err
    assert f"{foreign_store}:Hoeffding is not imported" in error
    assert f"--import {foreign_store}" in error
    assert not Path("imported").exists()
    for module in (foreign_store, f"{foreign_store}.py"):
        assert command([*arguments, "--import", module]) == (1 if name == "witness" else 0)
        assert Path("imported").exists()
        capsys.readouterr()


def test_commands_know_an_imported_method_by_its_name(foreign_store, capsys):
    np.savez("scores.npz", inserted=np.ones((100, 2)), held_out=np.zeros((100, 2)))
    arguments = ["bound", "scores.npz", "--delta", "1e-5", "--method", "hoeffding"]
    assert command(arguments) == 2
    assert "unknown method 'hoeffding'" in capsys.readouterr().err
    assert command([*arguments, "--import", foreign_store]) == 0
    assert "hoeffding(threshold=0.0)" in capsys.readouterr().out
    assert command([*arguments, "--import", foreign_store, "--direction", "backward"]) == 2
    assert "hoeffding takes no --direction" in capsys.readouterr().err
    audited = ["audit-dpsgd", "--epsilon", "2", "--records", "200", "--epochs", "1", "--canaries", "2", "--trials", "4"]
    audited += ["--design", "leave-one-out", "--pilots", "2", "--method", "hoeffding", "--quiet"]
    assert command(audited) == 2
    assert "unknown method 'hoeffding'" in capsys.readouterr().err
    assert command([*audited, "--import", foreign_store]) == 0
    assert "method     hoeffding" in capsys.readouterr().out
    assert command(["cite", "hoeffding", "--import", foreign_store]) == 0
    assert capsys.readouterr().out == bibtex([Hoeffding]) + "\n"


def test_reading_a_store_imports_no_module(foreign_store):
    for read in (lambda: lidp.result_of("a.db"), lambda: lidp.recheck(json.loads(Path("w.json").read_text()))):
        with pytest.raises(ClassNotImported, match=f"Import {foreign_store} first"):
            read()
    assert not Path("imported").exists()
    assert foreign_store not in sys.modules
    assert lidp.result_of("a.db", methods=[Hoeffding]).method == Hoeffding(-0.05)


@pytest.mark.parametrize("module", ["no_such_module", "json"])
def test_import_of_a_module_without_methods_is_refused(module, foreign_store, capsys):
    assert command(["report", "a.db", "--import", module]) == 2
    assert module in capsys.readouterr().err


def test_resume_imports_the_module_of_the_method(tmp_path, capsys):
    path = tmp_path / "a.db"
    options = AUDIT | {
        "method": Hoeffding(-0.05),
        "store": path,
        "target_spec": lidp.TargetSpec("python", {"path": "tests.sample_targets:LEAKY"}),
    }
    with pytest.raises(lidp.AuditInterrupted):
        lidp.audit(LEAKY, executor=InterruptedAfter(20), **options)
    assert command(["resume", str(path), "--trust", "--quiet", "--import", "tests.stats.own_methods"]) == 1
    assert "refuted" in capsys.readouterr().out
    assert lidp.result_of(path) == lidp.audit(LEAKY, method=Hoeffding(-0.05), **AUDIT)
