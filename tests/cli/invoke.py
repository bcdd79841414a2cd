"""Run lidp in this process, as if typed."""

from lidp.cli.app import run


def lidp(capsys, *arguments):
    """Run a command; return its exit code, stdout and stderr."""
    code = run([str(argument) for argument in arguments])
    out, err = capsys.readouterr()
    return code, out, err
