"""Libraries that are written for PyTorch: versions, what they need besides it, and where their own tests are."""
from __future__ import annotations

from typing import NamedTuple


class Library(NamedTuple):
    name: str  # on PyPI
    version: str
    tests: str  # paths below the suite's folder, and options of pytest; "|" between parts that are run one after the other
    home: str = ""  # the repository that has the tests, where the archive on PyPI has none
    needs: str = ""  # packages besides NumPy, SciPy and pytest; those that would bring PyTorch are installed without theirs
    bar: float = 1.0  # share of the tests that pass under PyTorch
    settings: dict[str, str] = {}  # environment variables


_OF_GPYTORCH = "jaxtyping==0.3.11 mpmath scikit-learn linear_operator==0.6.1 typing_extensions wadler_lindig"
# Pyro's own unit stage. What needs a program that is not installed (graphviz, a C++ compiler) fails under PyTorch, too.
_PYRO = " | ".join(f"{part} --stage=unit --timeout=300" for part in (
    "tests/ops tests/poutine tests/params tests/nn tests/optim tests/pyroapi tests/test_generic.py tests/test_primitives.py "
    "tests/test_settings.py tests/test_util.py", "tests/distributions", "tests/infer --ignore=tests/infer/mcmc", "tests/infer/mcmc"))
_CAPTUM = "tests --ignore=tests/insights --timeout=300"  # captum.insights was dropped before 0.9.0
# Without models that 0.9.0 does not have, and without benchmarks. What needs weights from the network fails under PyTorch, too.
_KORNIA = "tests --ignore=tests/models/qwen25 --ignore=tests/models/sam3 --ignore=tests/performance --timeout=300"
_OF_CAPTUM = ("matplotlib contourpy cycler fonttools kiwisolver pyparsing python-dateutil six pillow tqdm parameterized scikit-learn "
              "joblib threadpoolctl typing_extensions pytest-timeout")
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
    Library("botorch", "0.18.1", "test", "https://github.com/pytorch/botorch",
            f"{_OF_GPYTORCH} gpytorch==1.15.2 pyro-ppl==1.9.2 pyro-api pyre_extensions multipledispatch opt_einsum tqdm "
            "typing-inspect", 0.98),
    Library("pyro-ppl", "1.9.2", _PYRO, "https://github.com/pyro-ppl/pyro",
            "pyro-api opt_einsum tqdm networkx pandas python-dateutil six typing_extensions pytest-timeout", 0.98),
    Library("captum", "0.9.0", _CAPTUM, "https://github.com/pytorch/captum", _OF_CAPTUM, 0.98),
    Library("kornia", "0.9.0", _KORNIA, "https://github.com/kornia/kornia",
            "kornia_rs packaging pillow requests certifi charset-normalizer idna urllib3 pytest-timeout", 0.98),
    Library("torch_geometric", "2.8.1", "test/nn test/utils test/data", "https://github.com/pyg-team/pytorch_geometric",
            "aiohttp fsspec jinja2 psutil pyparsing requests tqdm xxhash pandas", 0.98),
)
