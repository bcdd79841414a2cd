"""The audit engine: the plan of an audit, and the loop from trials to a result."""
