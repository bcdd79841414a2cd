"""All loops that numba compiles. Import these modules inside functions: numba is slow to import."""
