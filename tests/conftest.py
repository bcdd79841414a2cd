"""Settings for all tests."""

from hypothesis import settings

# The same examples on every run and every machine, whatever earlier runs found, however slow the machine is.
settings.register_profile("lidp", deadline=None, derandomize=True, database=None)
settings.load_profile("lidp")
