"""The audit engine: the plan, and the loop from trials to a result."""
