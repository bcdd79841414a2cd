"""Statistics: from scores to a lower bound on ε. No I/O, no global random state, no torch; one method per file."""
