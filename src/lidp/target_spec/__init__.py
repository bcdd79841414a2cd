"""Say how a target is loaded, as a plain value that a store can keep."""

from lidp.target_spec.spec import TargetSpec

__all__ = ["TargetSpec"]
