"""Loads NumPy, asking the threads of its OpenBLAS to sleep soon after a product.

By default they go on asking for work for tens of milliseconds and keep other threads off the cores: a step of training
a small GPT on two cores then takes twice the processor time, and a gelu after a product as long with two threads as
with one. OpenBLAS reads its setting from the environment, once, when it is loaded; so the variable is set for as long
as NumPy is being loaded, and the environment is left as it was. A value that the user has set stays; where NumPy is
loaded already, nothing happens.
"""
import os
import sys

TIMEOUT = "OPENBLAS_THREAD_TIMEOUT"  # for how many processor cycles they ask for work, as a power of two

_ours = "numpy" not in sys.modules and TIMEOUT not in os.environ
if _ours:
    os.environ[TIMEOUT] = "14"
try:
    import numpy
finally:
    if _ours:
        os.environ.pop(TIMEOUT, None)

__all__ = ["numpy"]
