"""What a report of a bug should say about the machine."""
from __future__ import annotations

import os
import platform
import sys
from importlib import metadata
from typing import NamedTuple

from ..arrays import np
from .version import __version__

__all__ = ["SystemEnv", "get_env_info", "get_pretty_env_info", "main"]

LIBRARIES = ("numpy", "scipy", "ml_dtypes", "safetensors", "torch")


class SystemEnv(NamedTuple):
    """Versions and the machine."""

    torch_version: str
    is_debug_build: bool
    cuda_compiled_version: str
    os: str
    machine: str
    processors: int
    libc_version: str
    python_version: str
    python_platform: str
    is_cuda_available: bool
    numpy_config: str
    pip_packages: str


def _installed(name: str) -> str | None:
    try:
        return f"{name}=={metadata.version(name)}"
    except metadata.PackageNotFoundError:
        return None


def get_env_info() -> SystemEnv:
    """Return versions and the machine, one by one."""
    blas = np.show_config(mode="dicts").get("Build Dependencies", {}).get("blas", {})
    return SystemEnv(__version__, False, "None", platform.platform(), platform.machine(), os.cpu_count() or 1,
                     "-".join(platform.libc_ver()), sys.version.replace("\n", " "), sys.platform, False,
                     f"blas {blas.get('name')} {blas.get('version')}",
                     "\n".join(found for found in map(_installed, LIBRARIES) if found) or "N/A")


def get_pretty_env_info() -> str:
    """Return the same as text, a line or more for each."""
    info = get_env_info()
    lines = [("mutagrad version", info.torch_version), ("Is debug build", info.is_debug_build),
             ("CUDA used to build", info.cuda_compiled_version), ("", ""),
             ("OS", info.os), ("Machine", info.machine), ("Processors", info.processors),
             ("Libc version", info.libc_version), ("", ""),
             ("Python version", info.python_version), ("Python platform", info.python_platform),
             ("Python executable", sys.executable), ("Is CUDA available", info.is_cuda_available),
             ("NumPy", info.numpy_config), ("Order of bytes", sys.byteorder), ("", "")]
    rows = [f"{name}: {value}" if name else "" for name, value in lines]
    packages = [f"[pip3] {line}" for line in info.pip_packages.splitlines()]
    return "\n".join([*rows, "Versions of relevant libraries:", *packages])


def main() -> None:
    """Print it."""
    print(get_pretty_env_info())


if __name__ == "__main__":
    main()
