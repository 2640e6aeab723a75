"""One table of every operation: how it is called, on what, and what NumPy says that it computes. One file for each room."""

from importlib import import_module
from pathlib import Path

from .base import SAMPLES, UNSAMPLED, Array, Sample, listed, named, words
from .core import ALIASES, CASTS, DTYPES, INPUT_TYPES, KINKS, PROMOTE_TYPES, RESULT_TYPES, WITH_NUMBER, WITH_ZERO_DIM

CORE = {s.name for s in SAMPLES}
for file in sorted(Path(__file__).parent.glob("[a-z]*.py")):
    import_module(f"{__name__}.{file.stem}")

__all__ = ["ALIASES", "CASTS", "CORE", "DTYPES", "INPUT_TYPES", "KINKS", "PROMOTE_TYPES", "RESULT_TYPES", "SAMPLES", "UNSAMPLED", "WITH_NUMBER", "WITH_ZERO_DIM",
           "Array", "Sample", "listed", "named", "words"]
