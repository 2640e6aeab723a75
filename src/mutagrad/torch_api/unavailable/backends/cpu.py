"""What the processor can do."""
from __future__ import annotations

from ....arrays.config import cpu_capability


def get_cpu_capability() -> str:
    """Return the widest vector instructions that are used: "AVX512", "AVX2" or "DEFAULT", for example."""
    return cpu_capability()
