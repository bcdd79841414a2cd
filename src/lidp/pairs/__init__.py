"""Audit a mechanism as a black box on two neighbouring data sets: ``lidp.audit_pair``."""
