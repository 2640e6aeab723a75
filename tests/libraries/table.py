"""Libraries that are written for PyTorch: versions, what they need besides it, and where their own tests are."""
from __future__ import annotations

from typing import NamedTuple


class Library(NamedTuple):
    name: str  # on PyPI
    version: str
    tests: str  # paths below the suite's folder, and options of pytest
    home: str = ""  # the repository that has the tests, where the archive on PyPI has none
    needs: str = ""  # packages besides NumPy, SciPy and pytest; those that would bring PyTorch are installed without theirs
    bar: float = 1.0  # share of the tests that pass under PyTorch
    settings: dict[str, str] = {}  # environment variables


_OF_GPYTORCH = ("jaxtyping==0.3.11 mpmath scikit-learn joblib narwhals threadpoolctl linear_operator==0.6.1 "
                "typing_extensions wadler_lindig")
# A covariance of 22,000 x 22,000, and its Cholesky factor: 6 GB, and minutes with PyTorch as well.
_LARGE = "test/sampling/test_get_sampler.py::TestGetSampler::test_get_sampler"
LIBRARIES = (
    Library("torchdiffeq", "0.2.5", "tests", "https://github.com/rtqichen/torchdiffeq"),
    Library("pytorch-minimize", "0.1.0", "tests"),
    Library("einops", "0.8.2", "einops/tests", needs="parameterized jax jaxlib opt_einsum", settings={"EINOPS_TEST_BACKENDS": "numpy,torch"}),
    Library("entmax", "1.3", "entmax", "https://github.com/deep-spin/entmax"),
    Library("skorch", "1.4.0", "skorch/tests", "https://github.com/skorch-dev/skorch",
            "scikit-learn tabulate tqdm pandas safetensors"),
    Library("zuko", "1.6.0", "tests", "https://github.com/probabilists/zuko"),
    Library("higher", "0.2.1", "tests", "https://github.com/facebookresearch/higher", "parameterized"),
    Library("xitorch", "0.5.1", "xitorch/_tests", "https://github.com/xitorch/xitorch"),
    Library("torchsde", "0.2.6", "tests", needs="boltons trampoline"),
    Library("linear_operator", "0.6.1", "test", needs=_OF_GPYTORCH, bar=0.98),
    Library("gpytorch", "1.15.2", "test", needs=_OF_GPYTORCH, bar=0.98),
    Library("botorch", "0.18.1", f"test --deselect {_LARGE}", "https://github.com/meta-pytorch/botorch",
            f"{_OF_GPYTORCH} gpytorch==1.15.2 pyre_extensions multipledispatch typing-inspect mypy_extensions opt_einsum "
            "tqdm jax<0.10 jaxlib<0.10 numpyro", 0.98),
    Library("pyro-ppl", "1.9.2", "tests", "https://github.com/pyro-ppl/pyro", "pyro-api opt_einsum tqdm networkx pandas", 0.98),
    Library("captum", "0.9.0", "tests", "https://github.com/pytorch/captum", "matplotlib tqdm parameterized", 0.98),
    Library("kornia", "0.9.0", "tests", "https://github.com/kornia/kornia", "kornia_rs packaging", 0.98),
    Library("torch_geometric", "2.8.1", "test/nn test/utils test/data", "https://github.com/pyg-team/pytorch_geometric",
            "aiohttp fsspec jinja2 psutil pyparsing requests tqdm xxhash pandas", 0.98),
)
