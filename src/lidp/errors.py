"""The exceptions of lidp, as one tree.

    LidpError
    ├── InvalidArgument        a value outside its range (also a ValueError)
    │   ├── InvalidScores      scores or coins of a wrong type or shape
    │   └── InvalidData        a data set that is missing, damaged or of other content
    ├── ClassNotImported       a store names a class of somebody's own that this program has not imported
    ├── MissingScores          a result that was read from JSON without its scores is asked for something that needs them
    ├── MethodNotApplicable    the method has no guarantee for these scores (also a ValueError)
    ├── StoreError             a store that cannot be read or written, or belongs to another audit
    ├── SealError              a seal or a receipt that is incomplete, changed, or does not allow what is asked
    └── AuditFailed            the audit cannot run

Every message names the invalid value and the remedy.
"""


class LidpError(Exception):
    """Base class of all errors that lidp raises deliberately."""


class InvalidArgument(LidpError, ValueError):
    """An argument is outside the range in which a result is meaningful."""


class InvalidScores(InvalidArgument):
    """Scores or coins are not finite numbers of the right shape."""


class InvalidData(InvalidArgument):
    """A data set cannot be found or read, or has other content than expected."""


class ClassNotImported(LidpError):
    """A store or witness names a method of somebody's own, and reading it imports no code."""


class MissingScores(LidpError):
    """A result was read from JSON without its scores, and they are needed."""


class MethodNotApplicable(LidpError, ValueError):
    """The guarantee of the method does not cover the design or size of these scores."""


class StoreError(LidpError):
    """The store of an audit cannot be read or written, or belongs to another audit."""


class SealError(LidpError):
    """A seal or a receipt is incomplete or was changed, or does not allow what is asked, such as a further look."""


class AuditFailed(LidpError):
    """The audit cannot run: its preparation, its canaries, its target or lidp itself failed outside the mechanism."""
