# `make stubs` writes this file from src/mutagrad/amp.py.
# mypy: disable-error-code="misc, override, overload-overlap, assignment"

from mutagrad.torch_api.amp import (GradScaler as GradScaler, autocast as autocast, custom_bwd as custom_bwd,
    custom_fwd as custom_fwd, is_autocast_available as is_autocast_available)

