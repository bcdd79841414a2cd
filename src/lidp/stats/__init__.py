"""Statistics: from scores to a lower bound on ε. No I/O, no global random state, no torch; one method per file."""

from lidp.stats import registry as registry  # declares which classes are lidp's own, before any of them is stored or read
