"""Whether `empty` fills what it gives, where deterministic algorithms are asked for: here it never does."""
from __future__ import annotations

fill_uninitialized_memory = True
