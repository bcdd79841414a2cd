"""Protect the process: signals, worker processes, global generators, calls of user code, untrusted files and text."""
