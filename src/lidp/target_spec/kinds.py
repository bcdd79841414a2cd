"""The kinds of targets that a ``TargetSpec`` can name, with the options of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Kind:
    """What is known of a kind of targets without loading one.

    Attributes:
        command: the subcommand of ``lidp`` that audits such targets.
        loader: ``module:function`` of the function that loads one, called with the options and the claim. It is imported when
            it is called: reading a spec must not import a training library.
        options: the type of each option.
        required: options that may not be left out.
        argument: the option that the command takes as its argument; None if it takes none.
        prefix: what is written before that argument.
        derived: options that the command does not take, because it derives them: from the design, the store or its folder.
        runs_code: whether the options name code that is run.
        paths: options that hold a path.
    """

    command: str
    loader: str
    options: Mapping[str, type]
    required: tuple[str, ...] = ()
    argument: str | None = None
    prefix: str = ""
    derived: tuple[str, ...] = ()
    runs_code: bool = False
    paths: tuple[str, ...] = ()


_DPSGD_OPTIONS: Mapping[str, type] = {
    "canaries": int,
    "preset": str,
    "data": str,
    "records": int,
    "epochs": float,
    "batch_size": float,
    "learning_rate": float,
    "hidden": str,
    "clip_norm": float,
    "random_start": bool,
    "sampling": str,
    "accountant": str,
    "canary": str,
    "scores": str,
    "pilots": int,
    "fault": str,
    "true_noise": float,
}
_PROGRAM_OPTIONS: Mapping[str, type] = {
    "command": str,
    "data": str,
    "folder": str,
    "canary": str,
    "pilots": int,
    "time_limit": float,
    "logs": str,
}

KINDS: Mapping[str, Kind] = {
    "python": Kind(
        command="audit",
        loader="lidp.target_spec.python_path:load_target",
        options={"path": str},
        required=("path",),
        argument="path",
        runs_code=True,
        paths=("path",),
    ),
    "built-in": Kind(
        command="audit",
        loader="lidp.target_spec.built_in:load_gaussian",
        options={"name": str},
        required=("name",),
        argument="name",
    ),
    "dpsgd": Kind(
        command="audit-dpsgd",
        loader="lidp.training.dpsgd_spec:load_dpsgd",
        options=_DPSGD_OPTIONS,
        required=("canaries",),
        derived=("canaries",),
        paths=("data",),
    ),
    "program": Kind(
        command="audit-program",
        loader="lidp.integrations.program_spec:load_program",
        options=_PROGRAM_OPTIONS,
        required=("command", "data", "folder"),
        argument="command",
        derived=("folder", "logs"),
        runs_code=True,
        paths=("data", "folder", "logs"),
    ),
    "pair": Kind(
        command="audit-pair",
        loader="lidp.target_spec.python_path:load_pair",
        options={"path": str},
        required=("path",),
        argument="path",
        runs_code=True,
        paths=("path",),
    ),
    "catalogue": Kind(
        command="audit-pair",
        loader="lidp.target_spec.built_in:load_catalogue_entry",
        options={"name": str},
        required=("name",),
        argument="name",
        prefix="catalogue:",
    ),
    "training": Kind(
        command="audit",
        loader="lidp.training.catalogue.spec:load_training",
        options={"name": str},
        required=("name",),
        argument="name",
        prefix="catalogue:",
    ),
}
