"""Whether `empty` fills what it gives, where deterministic algorithms are asked for. It gives what is there either way."""
from __future__ import annotations

fill_uninitialized_memory = True
