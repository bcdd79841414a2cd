"""Audits of other people's training: any function or program that trains, PyTorch loops, Opacus."""
