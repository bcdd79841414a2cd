"""Diagnosis: which part of a training deviates from its claim, from the evidence that transcripts keep beside scores."""

from lidp.diagnosis.diagnosis import Claimed, Diagnosis, Finding, Measurement, Part, Quantity
from lidp.diagnosis.measurements import diagnose, diagnose_result

__all__ = ["Claimed", "Diagnosis", "Finding", "Measurement", "Part", "Quantity", "diagnose", "diagnose_result"]
