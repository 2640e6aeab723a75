"""Kernels that Numba compiles, over NumPy's: one pass over memory instead of several, on several threads."""
