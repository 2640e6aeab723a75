"""Switches for products and attention on NVIDIA's GPUs, which are not there: they can be set, and change nothing."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace

matmul = SimpleNamespace(allow_tf32=False, allow_fp16_reduced_precision_reduction=True,
                         allow_bf16_reduced_precision_reduction=True, allow_fp16_accumulation=False)
cufft_plan_cache = SimpleNamespace(size=0, max_size=0, clear=lambda: None)
preferred_linalg = "default"
_attention = {"flash": True, "mem_efficient": True, "math": True, "cudnn": True}


def is_built() -> bool:
    return False


def _switch(kind: str) -> tuple[Callable[[bool], None], Callable[[], bool]]:
    def enable(enabled: bool) -> None:
        _attention[kind] = bool(enabled)

    return enable, lambda: _attention[kind]


enable_flash_sdp, flash_sdp_enabled = _switch("flash")
enable_mem_efficient_sdp, mem_efficient_sdp_enabled = _switch("mem_efficient")
enable_math_sdp, math_sdp_enabled = _switch("math")
enable_cudnn_sdp, cudnn_sdp_enabled = _switch("cudnn")


@contextmanager
def sdp_kernel(enable_flash: bool = True, enable_math: bool = True, enable_mem_efficient: bool = True,
               enable_cudnn: bool = True) -> Iterator[None]:
    """Choose kernels of attention for a while."""
    before = dict(_attention)
    _attention.update(flash=enable_flash, math=enable_math, mem_efficient=enable_mem_efficient, cudnn=enable_cudnn)
    try:
        yield
    finally:
        _attention.update(before)


def preferred_linalg_library(backend: str | None = None) -> str:
    """Remember which library factorizes on a GPU; return it."""
    global preferred_linalg
    preferred_linalg = backend or preferred_linalg
    return preferred_linalg
