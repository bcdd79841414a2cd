"""Options of the command that choose an executor."""

import pytest

from lidp.cli.app import run as run_command


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--executor", "slurm"], "executor must be local or ray, got 'slurm'"),
        (["--ray-address", "auto"], "--ray-address is for --executor ray"),
        (["--cpus-per-trial", "2"], "--cpus-per-trial is for --executor ray"),
        (["--gpus-per-trial", "0"], "--gpus-per-trial is for --executor ray"),
        (["--executor", "ray", "--workers", "2"], "--workers is for --executor local"),
        (["--executor", "ray", "--cpus-per-trial", "0"], "cpus_per_trial must be above 0"),
    ],
)
def test_options_that_do_not_fit_together_are_one_line(capsys, options, message):
    for arguments in (["audit", "tests.sample_targets:LEAKY", "--epsilon", "1"], ["resume", "a.db"]):
        assert run_command([*arguments, *options]) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert err.startswith(f"lidp: {message}")
        assert err.count("\n") == 1
