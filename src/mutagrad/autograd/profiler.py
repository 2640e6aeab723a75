"""`mutagrad.profiler` under the name that it had first."""
from __future__ import annotations

from ..profiler import emit_itt, emit_nvtx, profile, record_function

__all__ = ["emit_itt", "emit_nvtx", "profile", "record_function"]
