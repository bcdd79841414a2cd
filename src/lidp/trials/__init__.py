"""Run one trial, decide which trials run next (the dispatcher), and run many (the executors)."""
