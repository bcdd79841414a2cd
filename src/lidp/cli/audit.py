"""``lidp audit``: run a whole audit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from lidp._runtime.terminal_text import printable
from lidp.claim import Claim, Neighbours
from lidp.cli import command_options, options, pair_audits, training_options
from lidp.cli.output import stdout_kept_for_results
from lidp.cli.running import Running
from lidp.cli.targets import BUILT_IN, load_target
from lidp.cli.watching import Watch, watching
from lidp.designs import CoinFlip, Design, LeaveOneOut, ReplaceOne
from lidp.engine.audit import audit
from lidp.engine.audit_pair import audit_pair
from lidp.errors import InvalidArgument
from lidp.result import AuditInterrupted, AuditResult, Verdict
from lidp.training.presets import PRESETS

HELP = f"""Audit a mechanism: plant canaries, run it, bound ε, compare with the claim.

TARGET is a lidp.Target: path/file.py:object or package.module:object; or built in: {", ".join(BUILT_IN)}.

The target dpsgd trains models by DP-SGD with the noise that the claim takes (δ is 1e-5 if left out); --preset to --fault are for
it.
Presets: {", ".join(PRESETS)}; the last needs no data.

With --pair the target is a mechanism and two neighbouring data sets, audited by --runs of it: a lidp.PairTarget or a tuple
(mechanism, d0, d1). catalogue:NAME is one of the mechanisms that "lidp catalogue" lists; catalogue --all is all of them,
each with the failure probability to itself.

With --command a program of yours is the target: it trains on the .npz file {{data}} (x and y; --data says from what, canaries are
added) and writes a loss for each of its canary_x and canary_y to {{out}}. A run that fails or passes --time-limit is an outcome
like any other; what it printed is kept in STORE.logs.

With --store the audit can be interrupted and resumed. The exit code is 0 if the claim is not refuted, 1 if it is, 2 for bad
usage, bad input or an audit that could not run, 130 if it was interrupted.
"""


_FOR_CANARIES = (
    "design", "canaries", "trials", "method", "workers", "time_limit", "retry",
    "executor", "ray_address", "cpus_per_trial", "gpus_per_trial",
)  # fmt: skip


def command(
    context: typer.Context,
    epsilon: options.ClaimedEpsilon,
    target: Annotated[str, typer.Argument(help="What to audit.", show_default=False)] = "",
    program: command_options.Command = None,
    delta: Annotated[float | None, typer.Option(help="The claimed δ.", show_default="0, for dpsgd 1e-5")] = None,
    design: Annotated[str, typer.Option(help="coin-flip, leave-one-out or replace-one.")] = "coin-flip",
    canaries: Annotated[int, typer.Option(help="Canaries a trial.")] = 64,
    trials: Annotated[int, typer.Option(help="The budget: trials at most.")] = 256,
    method: Annotated[str | None, typer.Option(help="A method's name.", show_default="the design's")] = None,
    failure_probability: options.FailureProbability = 0.05,
    neighbours: Annotated[str, typer.Option(help="add-remove or replace-one, for coin flips.")] = "add-remove",
    seed: Annotated[int, typer.Option(help="Same seed, same result.")] = 0,
    workers: options.Workers = 1,
    store: Annotated[
        Path | None, typer.Option(help="Where to keep trials; resumes if it exists.", show_default=False)
    ] = None,
    stop_when: Annotated[
        str | None, typer.Option(help="refuted or never.", show_default="refuted, if the method allows")
    ] = None,
    time_limit: options.TimeLimit = None,
    retry: options.Retry = False,
    executor: options.Executor = "local",
    ray_address: options.RayAddress = None,
    cpus_per_trial: options.CpusPerTrial = None,
    gpus_per_trial: options.GpusPerTrial = None,
    report: options.Report = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
    preset: training_options.Preset = None,
    canary: training_options.Canary = None,
    data: training_options.Data = None,
    download: training_options.Download = False,
    records: training_options.Records = None,
    epochs: training_options.Epochs = None,
    batch_size: training_options.BatchSize = None,
    learning_rate: training_options.LearningRate = None,
    hidden: training_options.Hidden = None,
    clip_norm: training_options.ClipNorm = None,
    random_start: training_options.RandomStart = False,
    start: training_options.Start = None,
    sampling: training_options.Sampling = None,
    accountant: training_options.Accountant = None,
    pilots: training_options.Pilots = None,
    scores: training_options.Scores = None,
    fault: training_options.Fault = None,
    pair: Annotated[bool, typer.Option("--pair", help="The target is a mechanism and two data sets.")] = False,
    runs: Annotated[int, typer.Option(help="The budget of --pair: runs at most.")] = 50_000,
    every: Annotated[bool, typer.Option("--all", help="All mechanisms of the catalogue.")] = False,
) -> int:
    trained: dict[str, object] = {"preset": preset, "canary": canary, "data": data, "download": download or None}
    trained |= {"records": records, "epochs": epochs, "batch-size": batch_size, "learning-rate": learning_rate}
    trained |= {"hidden": hidden, "clip-norm": clip_norm, "random-start": random_start or None, "start": start}
    trained |= {"sampling": sampling, "accountant": accountant, "pilots": pilots, "scores": scores, "fault": fault}
    if bool(target) == (program is not None):
        raise InvalidArgument("give either a TARGET or --command, what to audit")
    if delta is None:
        delta = training_options.DELTA if target == training_options.NAME else 0.0
    if pair_audits.is_pair(target, pair):
        pair_audits.refuse(
            _given(context, "store"), "for audits with canaries; --report FILE.html keeps the result of --pair"
        )
        pair_audits.refuse({**trained, **_given(context, *_FOR_CANARIES)}, "for audits with canaries, not for --pair")
        claim = Claim(epsilon, delta, neighbours)  # type: ignore[arg-type]  # a name is checked there
        if every or target == pair_audits.CATALOGUE_NAME:
            pair_audits.refuse(_given(context, "report", "stop_when", "as_json"), "for one mechanism, not for all")
            return _catalogue(target, every, claim, runs, failure_probability, seed, quiet)

        def run_pair(watch: Watch | None) -> AuditResult:
            return audit_pair(
                pair_audits.load_pair(target, claim),
                claim=claim,
                runs=runs,
                failure_probability=failure_probability,
                seed=seed,
                stop_when=stop_when or "refuted",
                watch=watch,
                origin=target,
            )

        return finish(run_pair, again="run the same command again", store=None, report=report, as_json=as_json, quiet=quiet)
    pair_audits.refuse(_given(context, "runs"), "for --pair")
    if every:
        raise InvalidArgument("--all is for the target catalogue")
    if program is None:
        target = training_options.as_text(target, canaries, trained)
    else:  # the limit is the program's own: it ends what the program has started, too
        target, time_limit = command_options.as_text(program, store, time_limit, trained), None
    layout = _design(design, canaries, neighbours)
    claim = Claim(epsilon, delta, layout.neighbours)
    running = Running(workers, time_limit, retry, executor, ray_address, cpus_per_trial, gpus_per_trial)
    chosen = running.chosen()
    kept = None if store is None else store.absolute()  # whatever code is loaded may change the working directory

    def run(watch: Watch | None) -> AuditResult:
        return audit(
            load_target(target, claim, download=download),
            claim=claim,
            design=layout,
            trials=trials,
            method=method,
            failure_probability=failure_probability,
            seed=seed,
            store=kept,
            stop_when=stop_when,
            executor=chosen,
            watch=watch,
            origin=target,
        )

    return finish(run, again=running.again(store), store=store, report=report, as_json=as_json, quiet=quiet)


def _given(context: typer.Context, *names: str) -> dict[str, bool]:
    """Which of some options were typed."""
    typed = {name: context.get_parameter_source(name) for name in names}
    return {
        {"as_json": "json"}.get(name, name).replace("_", "-"): source is not None and source.name == "COMMANDLINE"
        for name, source in typed.items()
    }


def _catalogue(
    target: str, every: bool, claim: Claim, runs: int, failure_probability: float, seed: int, quiet: bool
) -> int:
    if not every or target != pair_audits.CATALOGUE_NAME:
        raise InvalidArgument("lidp audit catalogue --all audits all of the catalogue, lidp audit catalogue:NAME one of it")
    with watching(quiet=quiet) as watch:
        found = pair_audits.audit_catalogue(claim, runs, failure_probability, seed, watch=watch)
    pair_audits.show_catalogue(found)
    return pair_audits.code_of(found)


def finish(
    run: Callable[[Watch | None], AuditResult],
    *,
    again: str,
    store: Path | None,
    report: Path | None,
    as_json: bool,
    quiet: bool,
) -> int:
    """Run and watch, show the result, and turn it into an exit code."""
    if report is not None:
        options.check_report(report, *([] if store is None else [store]))
        report = report.absolute()  # a mechanism may change the working directory
    try:
        # What a mechanism prints must not get between the lines of the result.
        with stdout_kept_for_results(), watching(quiet=quiet) as watch:
            result = run(watch)
    except AuditInterrupted as interrupt:
        if interrupt.result is not None and not as_json:
            typer.echo(printable(str(interrupt.result)))
        typer.echo(f"lidp: interrupted; to go on: {again}", err=True)
        return 130
    typer.echo(
        result.to_json(indent=2) if as_json else printable(str(result))
    )  # first: a page that fails must not cost the verdict
    if report is not None and report.suffix.lower() in (".html", ".htm"):
        from lidp.report.page import write_report  # here, so that other commands do not wait for it

        write_report(result, report)
    elif report is not None:
        report.write_text(result.to_json(indent=2) + "\n", encoding="utf-8")
    return 1 if result.verdict is Verdict.REFUTED else 0


def _design(name: str, canaries: int, neighbours: str) -> Design:
    relation = Claim(0, 0, neighbours).neighbours  # type: ignore[arg-type]  # a name is checked there
    if name == "coin-flip":
        return CoinFlip(canaries, relation)
    if relation is not Neighbours.ADD_REMOVE:
        raise InvalidArgument("--neighbours is for coin flips; leave-one-out and replace-one say it themselves")
    if name == "leave-one-out":
        return LeaveOneOut(canaries, canaries)
    if name == "replace-one":
        return ReplaceOne(canaries, canaries)
    raise InvalidArgument(f"design must be coin-flip, leave-one-out or replace-one, got {name!r}")
