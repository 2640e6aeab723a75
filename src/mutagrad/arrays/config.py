"""What arrays are computed by on this machine."""
from __future__ import annotations

import platform

from .compiled import library
from .compiled.compiler import ALL, choice, folder, has_numba
from .numpy import np
from .threads import get_num_threads


def show_config() -> None:
    """Print what arrays are computed by: NumPy, its BLAS, threads, and the kernels that were compiled so far."""
    print("\n".join(f"{name:10} {text}" for name, text in config()))


def config() -> list[tuple[str, str]]:
    from importlib import metadata  # which loads half as much as NumPy

    blas = np.show_config(mode="dicts").get("Build Dependencies", {}).get("blas", {})
    made = [kernel for kernel in ALL if kernel.is_made()]
    failed = [kernel for kernel in ALL if kernel.error is not None]
    numba = f"Numba {metadata.version('numba')}" if has_numba() else "no Numba (pip install 'mutagrad[fast]')"
    found = [("Python", platform.python_version()),
             ("NumPy", f"{np.__version__}, {blas.get('name')} {blas.get('version')}"),
             ("threads", str(get_num_threads())),
             ("kernels", f"{choice.name!r}; {numba}"),
             ("", f"{len(made)} of the {len(ALL)} that were asked for are compiled, kept in {folder() or 'no folder'}")]
    return found + [("failed", f"{kernel.name}: {kernel.error}") for kernel in failed]


def warm_up() -> int:
    """Compile the kernels that are written out, and load those that were before; return how many there are."""
    return sum(kernel.is_made() for kernel in library.warm_up())


def cpu_capability() -> str:
    """Return the widest vector instructions that NumPy's loops use here, under PyTorch's name for them."""
    core = np._core if hasattr(np, "_core") else np.core
    has = core._multiarray_umath.__cpu_features__
    if has.get("AVX512F") and has.get("AVX512BW") and has.get("AVX512DQ") and has.get("AVX512VL"):
        return "AVX512"
    if has.get("AVX2") and has.get("FMA3"):
        return "AVX2"
    return next((name for name in ("VSX", "SVE") if has.get(name)), "DEFAULT")
