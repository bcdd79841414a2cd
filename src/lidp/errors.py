"""What can go wrong, as one tree.

    LidpError
    ├── InvalidArgument        a value outside its range (also a ValueError)
    │   ├── InvalidScores      scores or coins that cannot be read as such
    │   └── InvalidData        a data set that is missing, damaged or not what it should be
    ├── ClassNotImported       a store names a class of somebody's own that this program has not imported
    ├── MethodNotApplicable    the method has no guarantee for these scores (also a ValueError)
    ├── StoreError             a store that cannot be opened, or belongs to another audit
    └── AuditFailed            the audit could not run at all

Every message names the value that was found and what to do about it.
"""


class LidpError(Exception):
    """The root of every error this library raises on purpose."""


class InvalidArgument(LidpError, ValueError):
    """An argument lies outside the range in which the result would mean anything."""


class InvalidScores(InvalidArgument):
    """Scores or coins are not finite numbers of the right shape."""


class InvalidData(InvalidArgument):
    """A data set cannot be found or read, or does not hold what it should."""


class ClassNotImported(LidpError):
    """A store or witness names a method of somebody's own, and reading it imports no code."""


class MethodNotApplicable(LidpError, ValueError):
    """The method's guarantee does not extend to the design or size of these scores."""


class StoreError(LidpError):
    """The file of an audit cannot be opened, or belongs to another audit."""


class AuditFailed(LidpError):
    """The audit could not run: its preparation, its canaries or its target failed before any trial."""
