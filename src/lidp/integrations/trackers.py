"""Log audits to experiment trackers: give one of these as ``watch=``.

    lidp.audit(target, claim=claim, watch=TensorBoard("runs/first"))

While the audit runs, the bound, the number of trials and the number of failed trials are logged. At the end the path of the
bound, the settings, the verdict, the HTML report and the JSON of the result follow. The path ends at the trial that refuted the
claim; the bound that was logged before may use later trials, if several finished together.
"""

from __future__ import annotations

import os
import tempfile
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from lidp._runtime.optional_packages import import_optional
from lidp.engine.progress import Progress
from lidp.errors import AuditFailed, InvalidArgument
from lidp.report.formats import Format
from lidp.result import AuditResult, Verdict

_MOST_POINTS = 500  # of a logged path
REPORT = "lidp-report.html"
RESULT = "lidp-result.json"


class Tracker(ABC):
    """A watch that logs an audit to a tracker; it may watch one audit after another.

    If the tracker cannot begin, the audit does not start. If it fails later, a warning says so and the audit goes on without it.
    """

    def __init__(self) -> None:
        self._begun = False
        self._lost = False

    def __call__(self, progress: Progress) -> None:
        if not self._begun:
            try:
                self._begin()
            except Exception as error:
                raise AuditFailed(f"{type(self).__name__} cannot begin: {type(error).__name__}: {error}") from error
            self._begun, self._lost = True, False
        self._attempt(lambda: self._log(_metrics_of(progress), progress.done))

    def finish(self, result: AuditResult | None) -> None:
        """Log the result, if there is one, and end the tracker's run."""
        if not self._begun:
            return
        self._begun = False
        if result is not None:
            self._attempt(lambda: self._log_result(result))
        status = "FAILED" if result is None else "KILLED" if result.unfinished else "FINISHED"
        self._lost = False  # even a tracker that has lost some values must be closed
        self._attempt(lambda: self._end(status))

    def _attempt(self, action: Callable[[], None]) -> None:
        if self._lost:
            return
        try:
            action()
        except Exception as error:  # noqa: BLE001  # of other people's code, and of networks
            self._lost = True
            reason = f"{type(error).__name__}: {error}"
            warnings.warn(f"{type(self).__name__} does not log this audit any further: {reason}", stacklevel=4)

    def _log_result(self, result: AuditResult) -> None:
        for trials, epsilon in _path_of(result):
            self._log_point(trials, epsilon)
        self._log_facts(_settings_of(result), _facts_of(result))
        with tempfile.TemporaryDirectory() as folder:
            report, data = Path(folder) / REPORT, Path(folder) / RESULT
            report.write_text(Format.HTML.render(result), encoding="utf-8")
            data.write_text(Format.JSON.render(result), encoding="utf-8")
            self._log_files([report, data], Format.MARKDOWN.render(result))

    @abstractmethod
    def _begin(self) -> None:
        """Begin a run of the tracker."""

    @abstractmethod
    def _log(self, metrics: Mapping[str, float], trials: int) -> None:
        """Log numbers after this many trials."""

    @abstractmethod
    def _log_point(self, trials: int, epsilon: float) -> None:
        """Log a point of the final path of the bound."""

    @abstractmethod
    def _log_facts(self, settings: Mapping[str, Any], facts: Mapping[str, Any]) -> None:
        """Log the settings of the audit, and the facts about its result."""

    @abstractmethod
    def _log_files(self, files: list[Path], markdown: str) -> None:
        """Keep files with the run; ``markdown`` is a summary for trackers that show text."""

    @abstractmethod
    def _end(self, status: str) -> None:
        """End the run: FINISHED, KILLED (interrupted) or FAILED (no result)."""


class MLflow(Tracker):
    """Log audits to MLflow (extra ``mlflow``), each as a run of an experiment.

    Args:
        tracking_uri: where MLflow keeps its runs, such as the address of a server or of a database; if left out, MLflow's own
            setting.
        experiment: the name of the experiment, which is made if there is none.
        run_name: the name of the runs.
        run_id: an existing run to log into; it is not ended.
    """

    def __init__(
        self,
        *,
        tracking_uri: str | None = None,
        experiment: str = "lidp",
        run_name: str | None = None,
        run_id: str | None = None,
    ) -> None:
        super().__init__()
        self._mlflow = import_optional("mlflow", purpose="this tracker", extra="mlflow")
        self._tracking_uri = tracking_uri
        self._client: Any = None
        self._experiment, self._run_name, self._given = experiment, run_name, run_id
        self.run_id = run_id
        """the run that the last audit was logged to"""

    def _begin(self) -> None:
        self._client = self._mlflow.MlflowClient(self._tracking_uri)
        if self._given is not None:
            self._client.get_run(self._given)  # raises if there is none
            return
        known = self._client.get_experiment_by_name(self._experiment)
        identifier = self._client.create_experiment(self._experiment) if known is None else known.experiment_id
        self.run_id = self._client.create_run(identifier, run_name=self._run_name).info.run_id

    def _log(self, metrics: Mapping[str, float], trials: int) -> None:
        for name, value in metrics.items():
            self._client.log_metric(self.run_id, name, value, step=trials)

    def _log_point(self, trials: int, epsilon: float) -> None:
        self._client.log_metric(self.run_id, "lidp/path", epsilon, step=trials)

    def _log_facts(self, settings: Mapping[str, Any], facts: Mapping[str, Any]) -> None:
        for name, value in settings.items():
            self._client.log_param(self.run_id, name, value)
        for name, value in facts.items():
            self._client.set_tag(self.run_id, name, value)

    def _log_files(self, files: list[Path], markdown: str) -> None:
        for file in files:
            self._client.log_artifact(self.run_id, str(file))

    def _end(self, status: str) -> None:
        if self._given is None:
            self._client.set_terminated(self.run_id, status)


class WandB(Tracker):
    """Log audits to Weights & Biases (extra ``wandb``), each as a run of a project.

    Args:
        project: the name of the project.
        folder: where runs are kept; ``wandb`` in the working directory if left out.
        mode: "offline" keeps runs on this machine, for ``wandb sync``, and switches off the error reports of wandb unless
            ``WANDB_ERROR_REPORTING`` is set; "online" sends runs.
        name: the name of the runs.
        run: an existing run to log into, from ``wandb.init``; it is not ended.
    """

    def __init__(
        self,
        *,
        project: str = "lidp",
        folder: str | Path | None = None,
        mode: str = "offline",
        name: str | None = None,
        run: Any = None,
    ) -> None:
        super().__init__()
        if mode not in ("offline", "online"):
            raise InvalidArgument(f'mode must be "offline" or "online", got {mode!r}')
        if mode == "offline":
            os.environ.setdefault(
                "WANDB_ERROR_REPORTING", "false"
            )  # wandb reads it when it is imported, and reports by default
        self._wandb = import_optional("wandb", purpose="this tracker", extra="wandb")
        self._options = {"project": project, "mode": mode, "name": name, "dir": None if folder is None else str(folder)}
        self._given = run
        self.run = run
        """the run that the last audit was logged to"""

    def _begin(self) -> None:
        if self._given is None:
            settings = self._wandb.Settings(console="off", silent=True, save_code=False)
            self.run = self._wandb.init(settings=settings, reinit="create_new", **self._options)
        for metric in ("lidp/epsilon", "lidp/failed_trials", "lidp/seconds"):
            self.run.define_metric(metric, step_metric="lidp/trials")
        self.run.define_metric("lidp/path", step_metric="lidp/path_trials")

    def _log(self, metrics: Mapping[str, float], trials: int) -> None:
        self.run.log({**metrics, "lidp/trials": trials})

    def _log_point(self, trials: int, epsilon: float) -> None:
        self.run.log({"lidp/path": epsilon, "lidp/path_trials": trials})

    def _log_facts(self, settings: Mapping[str, Any], facts: Mapping[str, Any]) -> None:
        self.run.config.update(dict(settings), allow_val_change=True)
        self.run.summary.update(dict(facts))

    def _log_files(self, files: list[Path], markdown: str) -> None:
        artifact = self._wandb.Artifact(f"lidp-report-{self.run.id}", type="privacy-audit")
        for file in files:
            artifact.add_file(str(file), policy="mutable")  # a copy: the file is temporary
        self.run.log_artifact(artifact)

    def _end(self, status: str) -> None:
        if self._given is None:
            self.run.finish(exit_code=0 if status == "FINISHED" else 1)


class TensorBoard(Tracker):
    """Log audits to TensorBoard (extra ``tensorboard``): curves, the summary as text, and the report as a file beside them.

    Args:
        folder: the folder of one audit; use another one for the next.
    """

    def __init__(self, folder: str | Path) -> None:
        super().__init__()
        import_optional("tensorboard", purpose="this tracker", extra="tensorboard")
        self._module = import_optional("torch.utils.tensorboard", purpose="this tracker", extra="tensorboard")
        self._folder = Path(folder)
        self._writer: Any = None

    def _begin(self) -> None:
        self._writer = self._module.SummaryWriter(str(self._folder))

    def _log(self, metrics: Mapping[str, float], trials: int) -> None:
        for name, value in metrics.items():
            self._writer.add_scalar(name, value, trials)
        self._writer.flush()

    def _log_point(self, trials: int, epsilon: float) -> None:
        self._writer.add_scalar("lidp/path", epsilon, trials)

    def _log_facts(self, settings: Mapping[str, Any], facts: Mapping[str, Any]) -> None:
        self._writer.add_text("lidp/verdict", str(facts["lidp.verdict"]))

    def _log_files(self, files: list[Path], markdown: str) -> None:
        self._writer.add_text("lidp/summary", markdown)
        for file in files:
            (self._folder / file.name).write_bytes(file.read_bytes())

    def _end(self, status: str) -> None:
        self._writer.close()


def _metrics_of(progress: Progress) -> dict[str, float]:
    metrics = {"lidp/failed_trials": float(progress.failed), "lidp/seconds": progress.seconds}
    return metrics if progress.epsilon is None else {"lidp/epsilon": progress.epsilon, **metrics}


def _path_of(result: AuditResult) -> list[tuple[int, float]]:
    """Return the path of the bound, with as many points as a tracker should get; the last one is the bound."""
    path = result.bound.path or ((result.bound.trials, result.bound.epsilon),)
    every = -(-len(path) // _MOST_POINTS)
    return [path[at] for at in range((len(path) - 1) % every, len(path), every)]


def _settings_of(result: AuditResult) -> dict[str, Any]:
    seed = {} if result.sealed else {"lidp.seed": result.seed}  # the seed of a seal would tell its coins
    return seed | {
        "lidp.target": result.target,
        "lidp.claimed_epsilon": result.claim.epsilon,
        "lidp.claimed_delta": result.claim.delta,
        "lidp.neighbours": str(result.claim.neighbours),
        "lidp.method": result.bound.method,
        "lidp.failure_probability": result.bound.failure_probability,
        "lidp.planned_trials": result.planned_trials,
    }


def _facts_of(result: AuditResult) -> dict[str, Any]:
    return {
        "lidp.verdict": str(result.verdict),
        "lidp.refuted": result.verdict is Verdict.REFUTED,
        "lidp.epsilon": result.bound.epsilon,
        "lidp.trials": result.bound.trials,
        "lidp.guarantee": str(result.bound.guarantee),
    }
