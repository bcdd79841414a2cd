"""Audit training code of any kind: Python functions, external programs, PyTorch loops, Opacus."""
