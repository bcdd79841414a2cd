"""The command ``lidp``. One file per subcommand."""

from __future__ import annotations

import io
import os
import signal
import sys

from lidp.cli.app import run
from lidp.cli.output import end_of_results


def main() -> None:
    """Entry point of the command."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # ε on a terminal that cannot show it
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # a polite end keeps what is done, as Ctrl-C does
    code = run(sys.argv[1:])
    try:
        sys.stdout.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nothing more to be written there
        code = 0 if isinstance(error, BrokenPipeError) else 2
        if code:
            sys.stderr.write(f"lidp: cannot write the result: {error.strerror}\n")
    end_of_results()
    sys.exit(code)
