"""Asks OpenBLAS's threads to sleep soon after a product. To be imported before NumPy, whose BLAS reads the environment once.

By default they go on asking for work for tens of milliseconds and keep other threads off the cores: a gelu after a product
then takes as long with two threads as with one. What the user has set stays; where NumPy is loaded already, nothing happens.
"""
import os
import sys

TIMEOUT = "OPENBLAS_THREAD_TIMEOUT"  # for how many processor cycles they ask for work, as a power of two

if "numpy" not in sys.modules:
    os.environ.setdefault(TIMEOUT, "14")
