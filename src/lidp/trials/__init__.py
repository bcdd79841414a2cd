"""Running trials: one trial, and executors that run many."""
