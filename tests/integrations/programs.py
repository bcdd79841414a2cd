"""Programs that train, as commands."""

import sys
from pathlib import Path

PROGRAM = f"{sys.executable} {Path(__file__).parent / 'trainer_program.py'} --data {{data}} --out {{out}} --seed {{seed}}"
HANGS_ONCE = """
if [ ! -e "$1" ]; then
    touch "$1"
    tail -f "$1"  # never ends, and has the name of the file on its command line
fi
{ echo "$3"; seq 2 "$4"; } > "$2"
"""


def program_that_hangs_once(folder):
    """Return a command that hangs in its first run, in a child process. Other runs take milliseconds: a shell starts at once.

    COUNT in it is to be replaced by the number of losses that it writes.
    """
    (folder / "hangs_once.sh").write_text(HANGS_ONCE)
    return f"sh {folder / 'hangs_once.sh'} {folder / 'hung'} {{out}} {{seed}} COUNT {{data}}"
