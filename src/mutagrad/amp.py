"""Mixed precision. Here everything is computed in the type of its operands, and nothing casts behind the program's back.

`autocast` for a device that is not there does nothing, as in PyTorch; for the CPU it refuses, rather than compute in another
precision than it promises. `GradScaler` scales.
"""
from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from .backends import np
from .dtypes import bfloat16, float16, float32
from .errors import BadArgument, BadValue, NotSupported

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]


def is_autocast_available(device_type: str) -> bool:
    """Whether operations can be cast automatically on such a device: they cannot."""
    return False


class autocast:
    """A context and a decorator that lets what is in it compute in the types it is given.

    >>> import mutagrad as mg
    >>> with mg.amp.autocast("cpu", enabled=False):
    ...     (mg.ones(2) * 2).dtype
    mutagrad.float32
    """

    def __init__(self, device_type: str, dtype: Any = None, enabled: bool = True, cache_enabled: bool | None = None) -> None:
        if not isinstance(device_type, str):
            raise BadArgument(f"autocast: device_type must be a string, got {type(device_type).__name__}", fix='autocast("cpu", enabled=False)')
        self.device, self.fast_dtype = device_type, dtype or (float16 if device_type == "cuda" else bfloat16)
        if enabled and device_type != "cpu":
            warnings.warn(f"autocast: there is no device of type {device_type!r} here; it does nothing", UserWarning, stacklevel=2)
        elif enabled and self.fast_dtype is not float32:
            raise NotSupported(f"autocast: operations are not cast to {self.fast_dtype} automatically",
                               why="everything is computed in the type of its operands",
                               fix=f"model.to({self.fast_dtype}), or autocast({device_type!r}, enabled=False)")

    def __enter__(self) -> autocast:
        return self

    def __exit__(self, *exception: Any) -> None:
        return None

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        return function


def custom_fwd(fwd: Any = None, *, device_type: str = "cuda", cast_inputs: Any = None) -> Any:
    """The function itself: what it does in an autocast region never happens. A decorator, with or without arguments."""
    return fwd if fwd is not None else lambda function: function


def custom_bwd(bwd: Any = None, *, device_type: str = "cuda") -> Any:
    return bwd if bwd is not None else lambda function: function


class GradScaler:
    """Multiplies a loss so that small gradients do not vanish in half precision, and divides them before the step.

    Steps with infinite or undefined gradients are left out, and the factor shrinks; after many good steps it grows.
    """

    def __init__(self, device: str = "cuda", init_scale: float = 2.0**16, growth_factor: float = 2.0, backoff_factor: float = 0.5,
                 growth_interval: int = 2000, enabled: bool = True) -> None:
        if enabled and device != "cpu":
            warnings.warn(f"GradScaler: there is no device of type {device!r} here; it does nothing", UserWarning, stacklevel=2)
            enabled = False
        if enabled and not (growth_factor > 1 and 0 < backoff_factor < 1):
            raise BadValue(f"GradScaler: growth_factor={growth_factor} must be above 1 and backoff_factor={backoff_factor} below", fix="GradScaler('cpu')")
        self._enabled, self._scale, self._good_steps = enabled, float(init_scale), 0
        self._growth_factor, self._backoff_factor, self._growth_interval = growth_factor, backoff_factor, growth_interval
        self._found: dict[int, bool] = {}  # by optimizer: whether its gradients, divided, have an infinity or a nan

    def is_enabled(self) -> bool:
        return self._enabled

    def scale(self, outputs: Any) -> Any:
        """The loss, or several, times the factor."""
        if not self._enabled:
            return outputs
        return type(outputs)(map(self.scale, outputs)) if isinstance(outputs, (list, tuple)) else outputs * self._scale

    def unscale_(self, optimizer: Any) -> None:
        """Divides the gradients of an optimizer's parameters by the factor, to clip them for example."""
        if not self._enabled:
            return
        if id(optimizer) in self._found:
            raise BadValue("unscale_: the gradients of this optimizer are divided already", fix="scaler.update() after each step")
        grads = [p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
        for grad in grads:
            grad.detach().mul_(1 / self._scale)
        self._found[id(optimizer)] = any(not np.isfinite(grad._array).all() for grad in grads)

    def step(self, optimizer: Any, *arguments: Any, **settings: Any) -> Any:
        """The optimizer's step, unless a gradient is infinite or undefined."""
        if self._enabled and id(optimizer) not in self._found:
            self.unscale_(optimizer)
        return None if self._found.get(id(optimizer)) else optimizer.step(*arguments, **settings)

    def update(self, new_scale: Any = None) -> None:
        """Sets the factor for the next step."""
        if not self._enabled:
            return
        if new_scale is not None:
            self._scale = float(new_scale)
        elif any(self._found.values()):
            self._scale, self._good_steps = self._scale * self._backoff_factor, 0
        else:
            self._good_steps += 1
            if self._good_steps == self._growth_interval:
                self._scale, self._good_steps = self._scale * self._growth_factor, 0
        self._found.clear()

    def get_scale(self) -> float:
        return self._scale if self._enabled else 1.0

    def get_growth_factor(self) -> float:
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        self._growth_interval = new_interval

    def state_dict(self) -> dict[str, Any]:
        if not self._enabled:
            return {}
        return {"scale": self._scale, "growth_factor": self._growth_factor, "backoff_factor": self._backoff_factor,
                "growth_interval": self._growth_interval, "_growth_tracker": self._good_steps}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        if not self._enabled:
            return
        if not state_dict:
            raise BadValue("load_state_dict: the state is empty", why="it was saved from a scaler that was not enabled", fix="GradScaler(enabled=False)")
        self._scale, self._good_steps = state_dict["scale"], state_dict["_growth_tracker"]
        self._growth_factor, self._backoff_factor = state_dict["growth_factor"], state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
