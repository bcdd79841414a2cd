"""The command ``lidp``. One file per subcommand."""

from __future__ import annotations

import sys

from lidp.cli.app import run


def main() -> None:
    """Entry point of the command."""
    sys.exit(run(sys.argv[1:]))
