"""Mechanisms to audit."""
