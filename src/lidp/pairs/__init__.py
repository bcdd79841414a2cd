"""Auditing any mechanism as a black box, by two neighbouring data sets: ``lidp.audit_pair``."""
