"""Who runs the trials, as the options say."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

from lidp.errors import InvalidArgument
from lidp.trials.executors import Executor, choose_executor
from lidp.trials.ray_executor import Ray


@dataclass(frozen=True)
class Running:
    """The options of ``lidp audit`` and ``lidp resume`` that say who runs the trials. They never change the result."""

    workers: int
    time_limit: float | None
    retry: bool
    executor: str
    ray_address: str | None
    cpus_per_trial: float | None
    gpus_per_trial: float | None

    def chosen(self) -> Executor:
        """The executor.

        Raises:
            InvalidArgument: if the options do not fit together.
        """
        for_ray = {
            "--ray-address": self.ray_address,
            "--cpus-per-trial": self.cpus_per_trial,
            "--gpus-per-trial": self.gpus_per_trial,
        }
        if self.executor == "local":
            for name, value in for_ray.items():
                if value is not None:
                    raise InvalidArgument(f"{name} is for --executor ray")
            return choose_executor(self.workers, self.time_limit, self.retry)
        if self.executor != "ray":
            raise InvalidArgument(f"executor must be local or ray, got {self.executor!r}")
        if self.workers != 1:
            raise InvalidArgument("--workers is for --executor local; with ray, trials run wherever --cpus-per-trial fits")
        cpus = 1.0 if self.cpus_per_trial is None else self.cpus_per_trial
        return Ray(self.ray_address, cpus, self.gpus_per_trial or 0.0, self.time_limit, self.retry)

    def again(self, store: Path | None) -> str:
        """The command that goes on after an interrupt."""
        if store is None:
            return "nothing was stored; use --store to be able to resume"
        options = [f"--executor {self.executor}"] if self.executor != "local" else []
        options += [f"--ray-address {shlex.quote(self.ray_address)}"] if self.ray_address is not None else []
        options += [f"--cpus-per-trial {self.cpus_per_trial:g}"] if self.cpus_per_trial is not None else []
        options += [f"--gpus-per-trial {self.gpus_per_trial:g}"] if self.gpus_per_trial is not None else []
        options += [f"--workers {self.workers}"] if self.workers != 1 else []
        options += [f"--time-limit {self.time_limit:g}"] if self.time_limit is not None else []
        options += ["--retry"] if self.retry else []
        return " ".join(["lidp resume", shlex.quote(str(store)), *options])
