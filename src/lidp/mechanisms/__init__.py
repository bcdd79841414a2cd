"""Mechanisms to audit: the Gaussian mechanism, and a catalogue of correct and broken mechanisms."""
