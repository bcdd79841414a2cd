"""Read what ``lidp reproduce`` wrote."""

from pathlib import Path


def files_in(folder):
    """Return the table, figure and summary of an experiment by name, without the stores of its cells."""
    return {
        path.name: path.read_bytes() for path in sorted(Path(folder).iterdir()) if path.suffix in (".csv", ".svg", ".json")
    }
