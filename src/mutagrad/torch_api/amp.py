"""Mixed precision: blocks in which products are computed in bfloat16, and what is sensitive in float32.

`autocast` for a device casts what is there as PyTorch's does: the arguments of functions under "lower" to its type,
those under "single" to float32, those under "widest" to the widest among them, and so those under "first", whose result
has the type of the first; everything else is computed in the type of its operands. For a device that is not there it
does nothing. `GradScaler` scales.
"""
from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from functools import cache, partial, reduce, wraps
from typing import TYPE_CHECKING, Any

from ..arrays.kinds import IN_USE, unknown
from ..autograd import no_grad
from ..base.errors import BadData, BadValue
from ..base.modes import Block, amend, mode
from ..base.sockets import socket
from ..core.dtypes import bfloat16, dtype, float16, float32, float64, int32, promote_types
from ..ops.create.create import tensor
from ..ops.math.elementwise import where
from ..ops.nn.recurrent import GRU
from ..ops.shape.shape import stack
from ..tensors.tensor import Tensor
from .control import cond
from .torch_function import NAMESPACES, watch

if TYPE_CHECKING:
    from ..optim.optimizer import Optimizer

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]

# What is cast, by where the function is.
_CASTS = {
    "lower": {
        "": """addbmm addmm baddbmm bmm chain_matmul conv1d conv2d conv3d conv_transpose1d conv_transpose2d
               conv_transpose3d einsum inner matmul mm prelu tensordot""",
        "linalg": "multi_dot vecdot",
        "nn.functional": "linear multi_head_attention_forward scaled_dot_product_attention"},
    "single": {
        "": """cdist cholesky cholesky_inverse cholesky_solve geqrf grid_sampler grid_sampler_2d grid_sampler_3d inverse
               lu_solve nanquantile orgqr ormqr pinverse polar prod qr quantile stft svd trace triangular_solve
               view_as_complex""",
        "fft": "fft fft2 fftn hfft ifft ifft2 ifftn ihfft irfft irfft2 irfftn rfft rfft2 rfftn",
        "linalg": """cholesky cholesky_ex cond eig eigh eigvals eigvalsh householder_product inv inv_ex lstsq
                     matrix_rank qr solve svd svdvals tensorinv tensorsolve""",
        "nn.functional": """
            adaptive_avg_pool3d adaptive_max_pool3d avg_pool3d binary_cross_entropy binary_cross_entropy_with_logits
            cosine_embedding_loss cross_entropy ctc_loss fractional_max_pool2d fractional_max_pool3d grid_sample
            hinge_embedding_loss huber_loss kl_div l1_loss margin_ranking_loss max_pool3d max_unpool2d max_unpool3d
            mse_loss multi_margin_loss multilabel_margin_loss nll_loss poisson_nll_loss smooth_l1_loss soft_margin_loss
            triplet_margin_loss"""},
    "first": {"nn.functional": "batch_norm group_norm instance_norm layer_norm rms_norm"},
    "pad": {"nn.functional": "pad"},
    "recurrent": {"ops.recurrent": "network padded"},
    "widest": {"": "cat concat concatenate index_copy stack",
               "ops.recurrent": "gru_cell lstm_cell rnn_relu_cell rnn_tanh_cell"},
}
_policies: dict[int, str] = {}  # by the function that computes


def is_autocast_available(device_type: str) -> bool:
    """Whether operations can be cast automatically on such a device.

    >>> import mutagrad as mg
    >>> mg.amp.is_autocast_available("cpu")
    True
    """
    return device_type == "cpu" or socket("devices").available(device_type)


class autocast(Block):
    """A context and a decorator in which products are computed in another type than that of their operands.

    >>> import mutagrad as mg
    >>> x = mg.ones(2, 2)
    >>> with mg.amp.autocast("cpu", dtype=mg.bfloat16):
    ...     (x @ x).dtype, (x * x).dtype
    (mutagrad.bfloat16, mutagrad.float32)
    """

    def __init__(self, device_type: str, dtype: dtype | None = None, enabled: bool = True,
                 cache_enabled: bool | None = None) -> None:
        if not isinstance(device_type, str):
            raise BadData(f"autocast: device_type must be a string, got {type(device_type).__name__}",
                          fix='autocast("cpu", enabled=False)')
        self.device = device_type
        self.fast_dtype = dtype or (float16 if device_type == "cuda" else _DEFAULTS["cpu"])
        if enabled and not is_autocast_available(device_type):
            warnings.warn(f"autocast: there is no device of type {device_type!r} here; it does nothing",
                          UserWarning, stacklevel=2)
            enabled = False
        if enabled and self.fast_dtype not in (bfloat16, float16):
            warnings.warn(f"autocast: operations are cast to bfloat16 or float16, not to {self.fast_dtype}; "
                          "it does nothing", UserWarning, stacklevel=2)
            enabled = False
        self._enabled = enabled

    def changes(self) -> dict[str, Any]:
        if not is_autocast_available(self.device):
            return {}
        return _casting(self.fast_dtype if self._enabled else None, self.device)

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def call(*arguments: Any, **settings: Any) -> Any:
            with self:
                return function(*arguments, **settings)

        return call


_DEFAULTS = {"cpu": bfloat16, "cuda": float16}


def _casting(lower: dtype | None, device: str) -> dict[str, Any]:
    """Return the modes in which products on a device are cast to this type; None: to none."""
    if lower is not None and not _policies:
        watch()
        for policy, places in _CASTS.items():
            for path, names in places.items():
                _policies.update({id(getattr(NAMESPACES[path], name).__wrapped__): policy for name in names.split()})
    return {"autocast_dtype": lower, "cast": None if lower is None else _caster(device)}


@cache
def _caster(device: str) -> Callable[..., Any]:
    """How calls are cast for tensors on a device of this type."""
    return partial(_cast, device)


def _cast(device: str, raw: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The function of its arguments in the type that it is computed in."""
    policy = _policies.get(id(raw))
    if policy == "pad":  # where it repeats what is there
        policy = "single" if {"reflect", "replicate"}.intersection((*args[2:3], kwargs.get("mode"))) else None
    elif policy == "recurrent":
        policy = "widest" if args[0] is GRU else "lower"
    if policy is None or kwargs.get("out") is not None:
        return raw(*args, **kwargs)
    given = (*args, *kwargs.values())
    if (device != "cpu" or IN_USE) and not any(x.device.type == device for x in _tensors(given)):
        return raw(*args, **kwargs)
    to = mode.now.autocast_dtype if policy == "lower" else float32 if policy == "single" else _widest(given)
    result = raw(*_in_type(args, to), **{name: _in_type(value, to) for name, value in kwargs.items()})
    return result.to(_tensors(given)[0].dtype) if policy == "first" and _tensors(given) else result


def _widest(values: Iterable[Any]) -> dtype:
    least: dtype = mode.now.autocast_dtype
    return reduce(promote_types, (x.dtype for x in _tensors(values)), least)


def _tensors(values: Iterable[Any]) -> list[Tensor]:
    inside = [_tensors(v) if isinstance(v, (list, tuple)) else [v] * _can_be_cast(v) for v in values]
    return [x for found in inside for x in found]


def _can_be_cast(value: Any) -> bool:
    return isinstance(value, Tensor) and value.is_floating_point() and value.dtype is not float64


def _in_type(value: Any, to: dtype) -> Any:
    if type(value) in (list, tuple):
        return type(value)(_in_type(v, to) for v in value)
    return value.to(to) if _can_be_cast(value) else value


def custom_fwd(fwd: Callable[..., Any] | None = None, *, device_type: str = "cuda",
               cast_inputs: dtype | None = None) -> Any:
    """Make a `forward` of a Function that casts its inputs to a type, and nothing else, where there is autocasting.

    >>> import mutagrad as mg
    >>> class Double(mg.autograd.Function):
    ...     @staticmethod
    ...     @mg.amp.custom_fwd(device_type="cpu")
    ...     def forward(ctx, x):
    ...         return 2 * x
    ...     @staticmethod
    ...     @mg.amp.custom_bwd(device_type="cpu")
    ...     def backward(ctx, g):
    ...         return 2 * g
    >>> x = mg.ones(2, requires_grad=True)
    >>> Double.apply(x).sum().backward()
    >>> x.grad
    tensor([2., 2.])
    """
    if fwd is None:
        return lambda function: custom_fwd(function, device_type=device_type, cast_inputs=cast_inputs)

    @wraps(fwd)
    def forward(*arguments: Any, **settings: Any) -> Any:
        if cast_inputs is None or not is_autocast_enabled(device_type):
            return fwd(*arguments, **settings)
        with autocast(device_type, enabled=False):
            cast = {name: _in_type(value, cast_inputs) for name, value in settings.items()}
            return fwd(*_in_type(arguments, cast_inputs), **cast)

    return forward


def custom_bwd(bwd: Callable[..., Any] | None = None, *, device_type: str = "cuda") -> Any:
    """Return the `backward` of such a Function as it is: its operands have the types that forward gave them.

    >>> import mutagrad as mg
    >>> class Double(mg.autograd.Function):
    ...     @staticmethod
    ...     @mg.amp.custom_fwd(device_type="cpu")
    ...     def forward(ctx, x):
    ...         return 2 * x
    ...     @staticmethod
    ...     @mg.amp.custom_bwd(device_type="cpu")
    ...     def backward(ctx, g):
    ...         return 2 * g
    >>> x = mg.ones(2, requires_grad=True)
    >>> Double.apply(x).sum().backward()
    >>> x.grad
    tensor([2., 2.])
    """
    return bwd if bwd is not None else lambda function: function


# ----------------------------------------------------------------------------------------------- what is asked about it

def is_autocast_enabled(device_type: str | None = None) -> bool:
    """Whether operations are cast in this block, on this device (on a GPU, if none is named).

    >>> import mutagrad as mg
    >>> mg.is_autocast_enabled()
    False
    """
    cast = mode.now.cast
    return cast is not None and cast is _caster(device_type or "cuda")


def is_autocast_cpu_enabled() -> bool:
    """Return whether autocast is on for the CPU.

    >>> import mutagrad as mg
    >>> mg.is_autocast_cpu_enabled()
    False
    """
    return is_autocast_enabled("cpu")


def set_autocast_enabled(device_type: str, enabled: bool) -> None:
    """Turn casting on or off for what follows, rather than for a block.

    >>> import mutagrad as mg
    >>> mg.set_autocast_enabled("cpu", False)
    >>> mg.is_autocast_enabled("cpu")
    False
    """
    if is_autocast_available(device_type):
        amend(**_casting(_DEFAULTS.get(device_type, bfloat16) if enabled else None, device_type))


def get_autocast_dtype(device_type: str) -> dtype:
    """Return the type that products are cast to on a device, in this block or by default.

    >>> import mutagrad as mg
    >>> mg.get_autocast_dtype("cpu")
    mutagrad.bfloat16
    """
    default = _DEFAULTS.get(device_type, float16)
    return mode.now.autocast_dtype or default if is_autocast_enabled(device_type) else default


def set_autocast_dtype(device_type: str, dtype: dtype) -> None:
    """Set the type that products will be cast to where none is given.

    >>> import mutagrad as mg
    >>> before = mg.get_autocast_dtype("cpu")
    >>> mg.set_autocast_dtype("cpu", mg.float16)
    >>> mg.get_autocast_dtype("cpu")
    mutagrad.float16
    >>> mg.set_autocast_dtype("cpu", before)
    """
    _DEFAULTS[device_type] = dtype


def get_autocast_cpu_dtype() -> dtype:
    """Return the type that autocast computes in on the CPU.

    >>> import mutagrad as mg
    >>> mg.get_autocast_cpu_dtype()
    mutagrad.bfloat16
    """
    return get_autocast_dtype("cpu")


def get_autocast_gpu_dtype() -> dtype:
    """Return the type that autocast computes in on a GPU.

    >>> import mutagrad as mg
    >>> mg.get_autocast_gpu_dtype()
    mutagrad.float16
    """
    return get_autocast_dtype("cuda")


def is_autocast_cache_enabled() -> bool:
    """Whether weights that were cast are kept for the next product: they are not.

    >>> import mutagrad as mg
    >>> mg.is_autocast_cache_enabled()
    False
    """
    return False


def clear_autocast_cache() -> None:
    """Do nothing: weights are cast anew each time, so nothing is cached.

    >>> import mutagrad as mg
    >>> mg.clear_autocast_cache() is None
    True
    """
    return None


class GradScaler:
    """Multiplies a loss so that small gradients do not vanish in half precision, and divides them before the step.

    Steps with infinite or undefined gradients are left out, and the factor shrinks; after many good steps it grows.

    >>> import mutagrad as mg
    >>> w = mg.ones(1, requires_grad=True)
    >>> optimizer = mg.optim.SGD([w], lr=0.1)
    >>> scaler = mg.amp.GradScaler("cpu", init_scale=8.)
    >>> scaler.scale(w.sum()).backward()
    >>> scaler.step(optimizer)
    >>> scaler.update()
    >>> w.detach()
    tensor([0.9000])
    """

    def __init__(self, device: str = "cuda", init_scale: float = 2.0**16, growth_factor: float = 2.0,
                 backoff_factor: float = 0.5, growth_interval: int = 2000, enabled: bool = True) -> None:
        if enabled and not is_autocast_available(device):
            warnings.warn(f"GradScaler: there is no device of type {device!r} here; it does nothing",
                          UserWarning, stacklevel=2)
            enabled = False
        if enabled and not (growth_factor > 1 and 0 < backoff_factor < 1):
            raise BadValue(f"GradScaler: growth_factor={growth_factor} must be above 1 and "
                           f"backoff_factor={backoff_factor} below", fix="GradScaler('cpu')")
        self._enabled = enabled
        # In memory, as in PyTorch, so that a compiled step changes them.
        self._scale, self._growth_tracker = [tensor(v, dtype=kind, device=device if enabled else "cpu")
                                             for v, kind in ((float(init_scale), float32), (0, int32))]
        self._growth_factor, self._backoff_factor = growth_factor, backoff_factor
        self._growth_interval = growth_interval
        self._found: dict[int, Any] = {}  # by optimizer: whether its gradients, divided, have an infinity or a nan

    def is_enabled(self) -> bool:
        """Return whether it does anything.

        >>> import mutagrad as mg
        >>> scaler = mg.amp.GradScaler("cpu", init_scale=8.)
        >>> scaler.is_enabled()
        True
        """
        return self._enabled

    def scale(self, outputs: Any) -> Any:
        """Return the loss, or several, times the factor.

        >>> import mutagrad as mg
        >>> scaler = mg.amp.GradScaler("cpu", init_scale=8.)
        >>> scaler.scale(mg.tensor(2.))
        tensor(16.)
        """
        if not self._enabled:
            return outputs
        return type(outputs)(map(self.scale, outputs)) if isinstance(outputs, (list, tuple)) else outputs * self._scale

    def unscale_(self, optimizer: Optimizer) -> None:
        """Divide the gradients of an optimizer's parameters by the factor, to clip them for example.

        >>> import mutagrad as mg
        >>> w = mg.ones(1, requires_grad=True)
        >>> optimizer = mg.optim.SGD([w], lr=0.1)
        >>> scaler = mg.amp.GradScaler("cpu", init_scale=8.)
        >>> scaler.scale(w.sum()).backward()
        >>> scaler.unscale_(optimizer)
        >>> w.grad
        tensor([1.])
        """
        if not self._enabled:
            return
        if id(optimizer) in self._found:
            raise BadValue("unscale_: the gradients of this optimizer are divided already",
                           fix="scaler.update() after each step")
        grads = [p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
        once = self._scale.double().reciprocal().float()
        with no_grad():
            for grad in grads:
                grad.detach().mul_(once)
            found = [grad.detach().isfinite().logical_not().any() for grad in grads]
            self._found[id(optimizer)] = stack(found).any() if found else tensor(False)

    def step(self, optimizer: Optimizer, *arguments: Any, **settings: Any) -> Any:
        """Take the optimizer's step, unless a gradient is infinite or undefined.

        >>> import mutagrad as mg
        >>> w = mg.ones(1, requires_grad=True)
        >>> optimizer = mg.optim.SGD([w], lr=0.1)
        >>> scaler = mg.amp.GradScaler("cpu", init_scale=8.)
        >>> scaler.scale(w.sum()).backward()
        >>> scaler.step(optimizer)
        >>> w.detach()
        tensor([0.9000])
        """
        if not self._enabled:
            return optimizer.step(*arguments, **settings)
        if id(optimizer) not in self._found:
            self.unscale_(optimizer)
        found = self._found[id(optimizer)]
        if not unknown(found._array):
            return None if found else optimizer.step(*arguments, **settings)
        return cond(found, lambda: None, lambda: [optimizer.step(*arguments, **settings)].clear())

    def update(self, new_scale: float | Tensor | None = None) -> None:
        """Set the factor for the next step.

        >>> import mutagrad as mg
        >>> scaler = mg.amp.GradScaler("cpu", init_scale=8.)
        >>> scaler.update(2.)
        >>> scaler.get_scale()
        2.0
        """
        if not self._enabled:
            return
        with no_grad():
            self._update(new_scale)
        self._found.clear()

    def _update(self, new_scale: float | Tensor | None) -> None:
        scale, tracker = self._scale, self._growth_tracker
        if new_scale is not None:
            scale.fill_(new_scale)
            return
        bad = stack(list(self._found.values())).any() if self._found else tensor(False)
        larger = scale * self._growth_factor
        grows = bad.logical_not() & (tracker + 1 == self._growth_interval)
        tracker.copy_(where(bad | grows, 0, tracker + 1))
        scale.copy_(where(bad, scale * self._backoff_factor, where(grows & larger.isfinite(), larger, scale)))

    def get_scale(self) -> float:
        """Return the factor.

        >>> import mutagrad as mg
        >>> scaler = mg.amp.GradScaler("cpu", init_scale=8.)
        >>> scaler.get_scale()
        8.0
        """
        return self._scale.item() if self._enabled else 1.0

    def get_growth_factor(self) -> float:
        """Return by what the factor grows after so many good steps.

        >>> import mutagrad as mg
        >>> scaler = mg.amp.GradScaler("cpu", init_scale=8.)
        >>> scaler.get_growth_factor()
        2.0
        """
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Set by what the factor grows.

        >>> import mutagrad as mg
        >>> scaler = mg.amp.GradScaler("cpu", init_scale=8.)
        >>> scaler.set_growth_factor(4.)
        >>> scaler.get_growth_factor()
        4.0
        """
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """Return by what the factor shrinks after a step that was left out.

        >>> import mutagrad as mg
        >>> scaler = mg.amp.GradScaler("cpu", init_scale=8.)
        >>> scaler.get_backoff_factor()
        0.5
        """
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Set by what the factor shrinks.

        >>> import mutagrad as mg
        >>> scaler = mg.amp.GradScaler("cpu", init_scale=8.)
        >>> scaler.set_backoff_factor(0.25)
        >>> scaler.get_backoff_factor()
        0.25
        """
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """Return after how many good steps the factor grows.

        >>> import mutagrad as mg
        >>> scaler = mg.amp.GradScaler("cpu", init_scale=8.)
        >>> scaler.get_growth_interval()
        2000
        """
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Set after how many good steps the factor grows.

        >>> import mutagrad as mg
        >>> scaler = mg.amp.GradScaler("cpu", init_scale=8.)
        >>> scaler.set_growth_interval(10)
        >>> scaler.get_growth_interval()
        10
        """
        self._growth_interval = new_interval

    def state_dict(self) -> dict[str, Any]:
        """Return the factor and the settings, to go on from.

        >>> import mutagrad as mg
        >>> scaler = mg.amp.GradScaler("cpu", init_scale=8.)
        >>> scaler.state_dict()["scale"]
        8.0
        """
        if not self._enabled:
            return {}
        return {"scale": self._scale.item(), "growth_factor": self._growth_factor,
                "backoff_factor": self._backoff_factor, "growth_interval": self._growth_interval,
                "_growth_tracker": self._growth_tracker.item()}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over what `state_dict` gave.

        >>> import mutagrad as mg
        >>> scaler = mg.amp.GradScaler("cpu", init_scale=8.)
        >>> scaler.load_state_dict({**scaler.state_dict(), "scale": 2.})
        >>> scaler.get_scale()
        2.0
        """
        if not self._enabled:
            return
        if not state_dict:
            raise BadValue("load_state_dict: the state is empty",
                           why="it was saved from a scaler that was not enabled", fix="GradScaler(enabled=False)")
        self._scale.fill_(state_dict["scale"])
        self._growth_tracker.fill_(state_dict["_growth_tracker"])
        self._growth_factor, self._backoff_factor = state_dict["growth_factor"], state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
