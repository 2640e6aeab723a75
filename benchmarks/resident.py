"""What the operating system says of this process's memory (Linux only)."""

from __future__ import annotations

import re


def status(field: str) -> int:
    """Bytes: of VmRSS, what is resident now; of VmHWM, the peak."""
    with open("/proc/self/status") as file:
        return 1024 * int(re.search(rf"{field}:\s+(\d+)", file.read())[1])
