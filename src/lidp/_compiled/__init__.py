"""All loops that numba compiles. Import these modules inside functions, because importing numba is slow."""
