"""Settings of a compiler, which programs write as attributes: `torch._dynamo.config.suppress_errors = True`."""
from __future__ import annotations

suppress_errors = False
