"""Random mutating programs, judged by finite differences of the same statements on NumPy arrays."""
