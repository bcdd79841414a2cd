"""Contract suites for extensions of lidp: methods, canaries, targets, executors and stores of your own.

Each suite is a class with a method ``make`` to define, for pytest:

    class TestMine(lidp.testing.MethodContract):
        def make(self):
            return Mine()

and a function that runs it without pytest: ``check_method(Mine())``. :func:`check_audit` takes an audit with such an extension
through store, interruption, resumption, report and citation. lidp's own tests use the same suites. ``import lidp`` does not import
this package, and pytest is not needed for it.
"""

from lidp.testing.audits import check_audit
from lidp.testing.canaries import CanaryContract, check_canaries
from lidp.testing.contract import Contract, ContractViolated
from lidp.testing.executors import ExecutorContract, check_executor
from lidp.testing.methods import MethodContract, check_method
from lidp.testing.stores import StoreContract, check_store
from lidp.testing.targets import TargetContract, check_target

__all__ = [
    "CanaryContract",
    "Contract",
    "ContractViolated",
    "ExecutorContract",
    "MethodContract",
    "StoreContract",
    "TargetContract",
    "check_audit",
    "check_canaries",
    "check_executor",
    "check_method",
    "check_store",
    "check_target",
]
