"""Contract suites for extensions of lidp: methods, canaries, targets, executors and stores of your own.

Each suite is a class with a method ``make`` to define, for pytest:

    class TestMine(lidp.testing.MethodContract):
        def make(self):
            return Mine()

and a function that runs it without pytest: ``check_method(Mine())``. lidp's own tests use the same suites. ``import lidp`` does
not import this package.
"""

from lidp.testing.contract import Contract, ContractViolated
from lidp.testing.methods import MethodContract, check_method

__all__ = ["Contract", "ContractViolated", "MethodContract", "check_method"]
