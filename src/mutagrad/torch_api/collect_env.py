"""What a report of a bug should say about the machine."""
from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Callable, Sequence
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


def run(command: str | Sequence[str]) -> tuple[int, str, str]:
    """Return the exit status of a command, and what it has written to standard output and error."""
    try:
        done = subprocess.run(command, shell=isinstance(command, str), capture_output=True, text=True, errors="replace")
    except FileNotFoundError as error:
        return 127, "", str(error)
    return done.returncode, done.stdout.strip(), done.stderr.strip()


def get_cpu_info(run_lambda: Callable[[str], tuple[int, str, str]]) -> str:
    """Return what the system says of the processor: a name and a value, separated by a colon, on each line."""
    status, said, _ = run_lambda("lscpu")
    return f"Architecture: {platform.machine()}\nModel name: {platform.processor()}" if status else said


def get_gpu_info(run_lambda: Callable[[str], tuple[int, str, str]]) -> None:
    """Return None: computation is on the CPU."""


get_nvidia_driver_version = get_gpu_info


def get_gcc_version(run_lambda: Callable[[str], tuple[int, str, str]]) -> str | None:
    """Return the version of the C compiler that there is, or None."""
    status, said, _ = run_lambda("gcc --version")
    return None if status else said.partition("\n")[0].removeprefix("gcc ")


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
