"""Trackers, on the files that the real packages write."""

import json
import struct
import sys

import pytest

import lidp
from lidp.integrations.trackers import REPORT, RESULT, MLflow, TensorBoard, Tracker, WandB
from tests.report.results import case
from tests.report.test_page import Page
from tests.sample_targets import LEAKY

CLAIM = lidp.Claim(1.0, 1e-5)


def audit(watch, **options):
    return lidp.audit(LEAKY, claim=CLAIM, design=lidp.CoinFlip(8), trials=40, watch=watch, **options)


class Diary(Tracker):
    """A tracker that keeps what it is told, and fails where it is told to."""

    def __init__(self, failing=""):
        super().__init__()
        self.failing, self.entries = failing, []

    def _write(self, name, *values):
        self.entries.append((name, *values))
        if name == self.failing:
            raise OSError("no space")

    def named(self, name):
        return [entry[1:] for entry in self.entries if entry[0] == name]

    def _begin(self):
        self._write("begin")

    def _log(self, metrics, trials):
        self._write("log", metrics, trials)

    def _log_point(self, trials, epsilon):
        self._write("point", trials, epsilon)

    def _log_facts(self, settings, facts):
        self._write("facts", settings, facts)

    def _log_files(self, files, markdown):
        self._write("files", {file.name: file.read_text(encoding="utf-8") for file in files}, markdown)

    def _end(self, status):
        self._write("end", status)


def test_a_tracker_gets_progress_path_verdict_and_report():
    diary = Diary()
    result = audit(diary)
    assert diary.entries[0] == ("begin",)
    assert all("lidp/failed_trials" in metrics for metrics, _ in diary.named("log"))
    assert diary.named("point") == list(result.bound.path)
    ((settings, facts),) = diary.named("facts")
    assert settings["lidp.claimed_epsilon"] == 1.0
    assert (facts["lidp.verdict"], facts["lidp.epsilon"]) == ("refuted", result.bound.epsilon)
    ((files, markdown),) = diary.named("files")
    assert float(Page(files[REPORT]).values["bound.epsilon"][0][0]) == result.bound.epsilon
    assert lidp.AuditResult.from_json(files[RESULT]) == result
    assert markdown.startswith("## ❌ leaky")
    assert diary.entries[-1] == ("end", "FINISHED")


def test_a_tracker_can_watch_one_audit_after_another():
    diary = Diary()
    audit(diary)
    audit(diary, seed=1)
    assert len(diary.named("begin")) == len(diary.named("end")) == 2


def test_a_tracker_that_cannot_begin_keeps_the_audit_from_starting():
    with pytest.raises(lidp.AuditFailed, match="Diary cannot begin: OSError: no space"):
        audit(Diary("begin"))


@pytest.mark.parametrize("failing", ["log", "point", "facts", "files"])
def test_a_tracker_that_fails_later_is_closed_and_the_result_kept(failing):
    diary = Diary(failing)
    with pytest.warns(UserWarning, match="Diary does not log this audit any further: OSError: no space"):
        result = audit(diary)
    assert result.verdict is lidp.Verdict.REFUTED
    assert len(diary.named(failing)) == 1
    assert diary.entries[-1] == ("end", "FINISHED")


def test_an_interrupted_audit_and_one_without_a_result_are_marked():
    diary = Diary()
    diary(lidp.Progress(1, 40, None, 1.0, 0.1, 0))
    diary.finish(case("coins", "coin-wager", claim=9.0, planned=100))
    assert diary.entries[-1] == ("end", "KILLED")
    diary(lidp.Progress(1, 40, None, 1.0, 0.1, 0))
    diary.finish(None)
    assert diary.entries[-1] == ("end", "FAILED")
    assert "lidp/epsilon" not in diary.named("log")[0][0]


def test_a_method_without_a_path_logs_its_bound():
    diary, result = Diary(), case("leave", "wilson")
    diary(lidp.Progress(48, 48, None, 1.0, 0.1, 0))
    diary.finish(result)
    assert diary.named("point") == [(48, result.bound.epsilon)]


@pytest.mark.parametrize(
    ("package", "make", "extra"),
    [
        ("mlflow", MLflow, "mlflow"),
        ("wandb", WandB, "wandb"),
        ("tensorboard", lambda: TensorBoard("x"), "tensorboard"),
    ],
)
def test_a_missing_package_is_named_with_its_extra(monkeypatch, package, make, extra):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(lidp.InvalidArgument, match=rf"pip install 'lidp\[{extra}\]'"):
        make()


def test_mlflow_has_the_run_with_path_verdict_and_report(tmp_path, monkeypatch):
    mlflow = pytest.importorskip("mlflow", reason="needs the extra mlflow")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")  # newer versions want a database
    place = (tmp_path / "runs").as_uri()
    watch = MLflow(tracking_uri=place, experiment="privacy")
    result = audit(watch)
    client = mlflow.MlflowClient(place)
    run = client.get_run(watch.run_id)
    assert client.get_experiment(run.info.experiment_id).name == "privacy"
    assert (run.info.status, run.data.tags["lidp.verdict"]) == ("FINISHED", "refuted")
    assert float(run.data.params["lidp.claimed_delta"]) == 1e-5
    path = client.get_metric_history(watch.run_id, "lidp/path")
    assert sorted((point.step, point.value) for point in path) == list(result.bound.path)
    assert client.get_metric_history(watch.run_id, "lidp/epsilon")
    kept = client.download_artifacts(watch.run_id, RESULT, str(tmp_path))
    with open(kept, encoding="utf-8") as file:  # noqa: PTH123
        assert json.load(file)["verdict"] == "refuted"
    assert {file.path for file in client.list_artifacts(watch.run_id)} == {REPORT, RESULT}


def test_mlflow_leaves_a_given_run_open(tmp_path, monkeypatch):
    mlflow = pytest.importorskip("mlflow", reason="needs the extra mlflow")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    place = (tmp_path / "runs").as_uri()
    client = mlflow.MlflowClient(place)
    given = client.create_run(client.create_experiment("mine")).info.run_id
    audit(MLflow(tracking_uri=place, run_id=given))
    run = client.get_run(given)
    assert (run.info.status, run.data.tags["lidp.verdict"]) == ("RUNNING", "refuted")
    with pytest.raises(lidp.AuditFailed, match="MLflow cannot begin"):
        audit(MLflow(tracking_uri=place, run_id="0" * 32))


def wandb_records(file):
    """Yield the records of an offline run: a log of blocks in LevelDB's format, after a header of 7 bytes."""
    from wandb.proto.wandb_internal_pb2 import Record

    data, at, record = file.read_bytes(), 7, b""
    while at + 7 <= len(data):
        room = 32768 - at % 32768
        if room < 7:
            at += room
            continue
        _, length, kind = struct.unpack_from("<IHB", data, at)
        record += data[at + 7 : at + 7 + length]
        at += 7 + length
        if kind in (1, 4):
            yield Record.FromString(record)
            record = b""


def test_wandb_has_the_offline_run_with_path_verdict_and_report(tmp_path, monkeypatch):
    pytest.importorskip("wandb", reason="needs the extra wandb")
    for name in ("WANDB_CACHE_DIR", "WANDB_DATA_DIR", "WANDB_CONFIG_DIR"):
        monkeypatch.setenv(name, str(tmp_path / name))
    result = audit(WandB(folder=tmp_path, project="privacy"))
    (file,) = tmp_path.glob("wandb/offline-run-*/run-*.wandb")
    records = list(wandb_records(file))
    logged = [
        {item.key or "/".join(item.nested_key): json.loads(item.value_json) for item in record.history.item}
        for record in records
        if record.HasField("history")
    ]
    path = [(row["lidp/path_trials"], row["lidp/path"]) for row in logged if "lidp/path" in row]
    assert path == list(result.bound.path)
    assert any("lidp/epsilon" in row for row in logged)
    updates = [item for record in records if record.HasField("summary") for item in record.summary.update]
    facts = {item.key or item.nested_key[0]: json.loads(item.value_json) for item in updates}
    assert facts["lidp.verdict"] == "refuted"
    artifacts = [record.request.log_artifact.artifact if record.HasField("request") else record.artifact
                 for record in records if record.HasField("artifact") or record.request.HasField("log_artifact")]  # fmt: skip
    assert {entry.path for entry in artifacts[0].manifest.contents} == {REPORT, RESULT}


def test_wandb_knows_two_modes():
    with pytest.raises(lidp.InvalidArgument, match="mode must be"):
        WandB(mode="disabled")


def test_tensorboard_has_curves_verdict_and_report(tmp_path):
    pytest.importorskip("torch", reason="needs the extra tensorboard")
    pytest.importorskip("tensorboard", reason="needs the extra tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    result = audit(TensorBoard(tmp_path / "run"))
    events = EventAccumulator(str(tmp_path / "run"))
    events.Reload()
    path = [(event.step, event.value) for event in events.Scalars("lidp/path")]
    assert path == [(trials, pytest.approx(epsilon)) for trials, epsilon in result.bound.path]
    assert events.Scalars("lidp/epsilon")
    (verdict,) = events.Tensors("lidp/verdict/text_summary")
    assert verdict.tensor_proto.string_val[0] == b"refuted"
    assert lidp.AuditResult.from_json((tmp_path / "run" / RESULT).read_text(encoding="utf-8")) == result
    assert (tmp_path / "run" / REPORT).exists()


def test_tensorboard_in_an_impossible_place_keeps_the_audit_from_starting(tmp_path):
    pytest.importorskip("tensorboard", reason="needs the extra tensorboard")
    (tmp_path / "file").write_text("")
    with pytest.raises(lidp.AuditFailed, match="TensorBoard cannot begin"):
        audit(TensorBoard(tmp_path / "file" / "run"))
