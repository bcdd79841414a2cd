"""``ExecutorOptions``: where trials run, and what happens if they take too long or their worker dies.

The place never changes the result. A trial that exceeds the time limit is recorded as failed, which does.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from lidp.errors import InvalidArgument
from lidp.trials.executors import Executor, choose_executor
from lidp.trials.ray_executor import Ray


@dataclass(frozen=True)
class ExecutorOptions:
    """Where trials run: processes of this machine, or a Ray cluster."""

    workers: Annotated[int, typer.Option(help="Processes to run trials in.")] = 1
    time_limit: Annotated[
        float | None,
        typer.Option(help="Maximum seconds per trial (audit-pair: per block of runs).", show_default=False),
    ] = None
    retry: Annotated[
        bool, typer.Option("--retry", help="Rerun a trial whose worker died; all randomness must be from rng.")
    ] = False
    executor: Annotated[str, typer.Option(help="local or ray.")] = "local"
    ray_address: Annotated[
        str | None, typer.Option(help="Ray cluster: auto or host:port.", show_default="a new local one")
    ] = None
    cpus_per_trial: Annotated[float | None, typer.Option(help="Cores per trial on Ray.", show_default="1")] = None
    gpus_per_trial: Annotated[float | None, typer.Option(help="GPUs per trial on Ray.", show_default="0")] = None

    def build(self) -> Executor:
        """Return the executor.

        Raises:
            InvalidArgument: if the options contradict each other.
        """
        ray_options = {
            "--ray-address": self.ray_address,
            "--cpus-per-trial": self.cpus_per_trial,
            "--gpus-per-trial": self.gpus_per_trial,
        }
        if self.executor == "local":
            for name, value in ray_options.items():
                if value is not None:
                    raise InvalidArgument(f"{name} is for --executor ray")
            return choose_executor(self.workers, self.time_limit, self.retry)
        if self.executor != "ray":
            raise InvalidArgument(f"executor must be local or ray, got {self.executor!r}")
        if self.workers != 1:
            raise InvalidArgument("--workers is for --executor local; with ray, trials run wherever --cpus-per-trial fits")
        cpus = 1.0 if self.cpus_per_trial is None else self.cpus_per_trial
        return Ray(self.ray_address, cpus, self.gpus_per_trial or 0.0, self.time_limit, self.retry)

    def resume_command(self, store: Path) -> str:
        """Return the command that resumes an interrupted audit with these executor options."""
        words = ["lidp", "resume", str(store)]
        words += ["--executor", self.executor] if self.executor != "local" else []
        words += ["--ray-address", self.ray_address] if self.ray_address is not None else []
        words += ["--cpus-per-trial", f"{self.cpus_per_trial:g}"] if self.cpus_per_trial is not None else []
        words += ["--gpus-per-trial", f"{self.gpus_per_trial:g}"] if self.gpus_per_trial is not None else []
        words += ["--workers", str(self.workers)] if self.workers != 1 else []
        words += ["--time-limit", f"{self.time_limit:g}"] if self.time_limit is not None else []
        words += ["--retry"] if self.retry else []
        return shlex.join(words)
