"""``lidp audit-dpsgd``: train models by DP-SGD and audit them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer

from lidp import checks
from lidp.claim import Claim, Neighbours
from lidp.cli.executor_options import ExecutorOptions
from lidp.cli.option_groups import with_option_groups
from lidp.cli.options import EXIT_CODES, CanaryOptions, Delta, Epsilon, OutputOptions, Store
from lidp.cli.running import run_canary_audit
from lidp.target_spec import TargetSpec
from lidp.training.presets import PRESETS

HELP = f"""Audit models that are trained by DP-SGD. Their noise is the one that the claim requires.
Presets: {", ".join(PRESETS)}. The last one needs no --data. {EXIT_CODES}
"""
_BY_PRESET = "by preset"


@dataclass(frozen=True)
class DpsgdClaimOptions:
    """A claim for DP-SGD, from which its noise is calculated, and so the whole privacy curve. It needs a δ above 0."""

    epsilon: Epsilon
    delta: Delta = 1e-5

    def build(self, neighbours: Neighbours | str) -> Claim:
        """Return the claim about this neighbour relation."""
        return Claim(self.epsilon, self.delta, checks.member(Neighbours, neighbours=neighbours))


@dataclass(frozen=True)
class DpsgdOptions:
    """How models are trained, which canaries are planted, and how they are scored."""

    preset: Annotated[str | None, typer.Option(help="Data, model and schedule.", show_default="purchases")] = None
    data: Annotated[str | None, typer.Option(help="Folder of the preset's data, or an .npz file.", show_default=False)] = (
        None
    )
    records: Annotated[int | None, typer.Option(help="Number of training records to use.", show_default="all")] = None
    epochs: Annotated[float | None, typer.Option(help="Passes over the data.", show_default=_BY_PRESET)] = None
    batch_size: Annotated[float | None, typer.Option(help="Expected batch size.", show_default=_BY_PRESET)] = None
    learning_rate: Annotated[float | None, typer.Option(help="Learning rate.", show_default=_BY_PRESET)] = None
    hidden: Annotated[
        str | None, typer.Option(help="Sizes of hidden layers (256,256) or none.", show_default=_BY_PRESET)
    ] = None
    clip_norm: Annotated[float | None, typer.Option(help="Gradient clipping norm.", show_default=_BY_PRESET)] = None
    random_start: Annotated[bool, typer.Option("--random-start", help="Draw new initial parameters for each model.")] = (
        False
    )
    sampling: Annotated[
        str | None,
        typer.Option(help="poisson (default), or shuffle: not covered by the accountant.", show_default=False),
    ] = None
    accountant: Annotated[str | None, typer.Option(help="pld or rdp.", show_default="pld")] = None
    fault: Annotated[
        str | None, typer.Option(help="Break the training: little-noise, no-clipping or wrong-rate.", show_default=False)
    ] = None
    true_noise: Annotated[
        float | None,
        typer.Option(help="Share of the required noise that is added.", show_default="1"),
    ] = None
    canary: Annotated[
        str | None,
        typer.Option(
            help="random-gradient (default), dirac-gradient, tail-example, mislabelled, blank.", show_default=False
        ),
    ] = None
    scores: Annotated[
        str | None,
        typer.Option(
            help="centred (default), transcript, raw, self-normalised, decorrelated.",
            show_default=False,
        ),
    ] = None
    pilots: Annotated[
        int | None, typer.Option(help="Pilot models, to centre scores.", show_default="4; 32 for examples")
    ] = None

    def build_spec(self, canaries: int) -> TargetSpec:
        """Return the spec of the target with this number of canaries per trial.

        The path of the data is made absolute, so that the audit can be resumed from any folder. Links are kept, because the
        name of the file says what is in it.
        """
        given = {name: value for name, value in asdict(self).items() if value is not None and value is not False}
        if self.data:
            given["data"] = str(Path(self.data).absolute())
        return TargetSpec("dpsgd", {"canaries": canaries, **given})


@with_option_groups
def command(
    *,
    claim: DpsgdClaimOptions,
    dpsgd: DpsgdOptions,
    download: Annotated[bool, typer.Option("--download", help="Download the preset's data if they are missing.")] = False,
    canaries: CanaryOptions,
    store: Store = None,
    executor: ExecutorOptions,
    output: OutputOptions,
) -> int:
    spec = dpsgd.build_spec(canaries.canaries)
    if download:
        from lidp.training.dpsgd_spec import load_dpsgd_data

        load_dpsgd_data(spec.options, download=True)
    return run_canary_audit(spec, claim, canaries, store, executor, output)
