"""Libraries that are written for PyTorch: versions, what they need besides it, and where their tests or a script are."""
from __future__ import annotations

from typing import NamedTuple


class Library(NamedTuple):
    name: str  # on PyPI
    version: str
    tests: str = ""  # paths below the suite's folder, and options of pytest; "|" between parts that are run one after the other
    home: str = ""  # the repository that has the tests, where the archive on PyPI has none
    needs: str = ""  # packages besides NumPy, SciPy and pytest; those that would bring PyTorch are installed without theirs
    bar: float = 1.0  # share of the tests that pass under PyTorch
    settings: dict[str, str] = {}  # environment variables
    script: str = ""  # in place of tests: a program in scripts/ that ends with an error unless its numbers are PyTorch's


_OF_GPYTORCH = ("jaxtyping==0.3.11 mpmath scikit-learn joblib cloudpickle narwhals threadpoolctl linear_operator==0.6.1 "
                "typing_extensions wadler_lindig")
_OF_GEOMETRIC = ("aiohttp aiohappyeyeballs aiosignal attrs frozenlist multidict propcache yarl typing_extensions "
                 "requests certifi charset-normalizer idna urllib3 jinja2 markupsafe pandas python-dateutil")
_OF_IMAGES = "torchvision==0.28.0 pillow pyyaml safetensors huggingface_hub==2.4.0 filelock fsspec packaging tqdm typing_extensions"
# A covariance of 22,000 x 22,000, and its Cholesky factor: 6 GB, and minutes with PyTorch as well.
_LARGE = "test/sampling/test_get_sampler.py::TestGetSampler::test_get_sampler"
# JAX, which draws the samples of fully Bayesian models, keeps all that it compiles in maps of memory, of which Linux allows a
# process 65,530: past that its compiler dies. So these have processes of their own, and one file has two.
_BY_JAX = tuple(f"test/models/test_fully_bayesian{name}.py" for name in ("", "_multitask"))
_BOTORCH = " | ".join((f"test {' '.join(f'--ignore={file}' for file in _BY_JAX)} --deselect {_LARGE}",
                       f"{_BY_JAX[0]} -k Linear", f"{_BY_JAX[0]} --deselect {_BY_JAX[0]}::TestFullyBayesianLinear", _BY_JAX[1]))
# Pyro's own unit stage. What needs a program that is not installed (graphviz, a C++ compiler) fails under PyTorch, too.
_PYRO = " | ".join(f"{part} --stage=unit --timeout=300" for part in (
    "tests/ops tests/poutine tests/params tests/nn tests/optim tests/pyroapi tests/test_generic.py tests/test_primitives.py "
    "tests/test_settings.py tests/test_util.py", "tests/distributions", "tests/infer --ignore=tests/infer/mcmc", "tests/infer/mcmc"))
_CAPTUM = "tests --ignore=tests/insights --timeout=300"  # captum.insights was dropped before 0.9.0
# Without models that 0.9.0 does not have, and without benchmarks. What needs weights from the network fails under PyTorch, too.
_KORNIA = "tests --ignore=tests/models/qwen25 --ignore=tests/models/sam3 --ignore=tests/performance --timeout=300"
_OF_CAPTUM = ("matplotlib contourpy cycler fonttools kiwisolver pyparsing python-dateutil six pillow tqdm parameterized scikit-learn cloudpickle "
              "joblib threadpoolctl typing_extensions pytest-timeout")
LIBRARIES = (
    Library("torchdiffeq", "0.2.5", "tests -o python_files=*_tests.py", "https://github.com/rtqichen/torchdiffeq"),
    Library("pytorch-minimize", "0.1.0", "tests"),
    Library("einops", "0.8.2", "einops/tests", needs="parameterized jax jaxlib opt_einsum", settings={"EINOPS_TEST_BACKENDS": "numpy,torch"}),
    Library("entmax", "1.3", "entmax", "https://github.com/deep-spin/entmax"),
    # Without the tests of language models, which they bring from the network; and without one that asks by which of
    # PyTorch's own functions Python's pickle restores a tensor: here it is another one, which needs no file in the pickle.
    Library("skorch", "1.4.0", "skorch/tests -o addopts= --ignore=skorch/tests/llm "
            "--deselect=skorch/tests/test_net.py::TestNeuralNet::test_torch_load_kwargs_forwarded_to_torch_load_unpickle",
            "https://github.com/skorch-dev/skorch",
            "scikit-learn joblib threadpoolctl narwhals cloudpickle tabulate tqdm pandas python-dateutil six safetensors "
            "flaky tokenizers"),
    Library("zuko", "1.6.0", "tests", "https://github.com/probabilists/zuko"),
    Library("higher", "0.2.1", "tests", "https://github.com/facebookresearch/higher", "parameterized"),
    Library("xitorch", "0.5.1", "xitorch/_tests", "https://github.com/xitorch/xitorch"),
    # Its tests skip what needs a GPU by a parameter that pytest dropped in version 8. (Its archive on PyPI lacks some of them.)
    Library("torchsde", "0.2.6", "tests", "https://github.com/google-research/torchsde", "boltons trampoline pytest==7.4.4"),
    Library("linear_operator", "0.6.1", "test", needs=_OF_GPYTORCH, bar=0.98),
    Library("gpytorch", "1.15.2", "test", needs=_OF_GPYTORCH, bar=0.98),
    Library("botorch", "0.18.1", _BOTORCH, "https://github.com/meta-pytorch/botorch",
            f"{_OF_GPYTORCH} gpytorch==1.15.2 pyre_extensions multipledispatch typing-inspect mypy_extensions opt_einsum "
            "tqdm jax<0.10 jaxlib<0.10 numpyro", 0.98),
    Library("pyro-ppl", "1.9.2", _PYRO, "https://github.com/pyro-ppl/pyro",
            # Numba: with NumPy alone, numbers from gamma and Poisson distributions are drawn one by one.
            "pyro-api opt_einsum tqdm networkx pandas python-dateutil six typing_extensions pytest-timeout numba", 0.98),
    Library("captum", "0.9.0", _CAPTUM, "https://github.com/pytorch/captum", _OF_CAPTUM, 0.98),
    Library("kornia", "0.9.0", _KORNIA, "https://github.com/kornia/kornia",
            "kornia_rs packaging pillow requests certifi charset-normalizer idna urllib3 pytest-timeout typing_extensions", 0.98),
    Library("torch_geometric", "2.8.1", "test/nn test/utils test/data", "https://github.com/pyg-team/pytorch_geometric",
            f"{_OF_GEOMETRIC} fsspec psutil pyparsing tqdm xxhash jax jaxlib opt_einsum", 0.98),
    Library("e3nn", "0.6.0", needs="sympy mpmath opt_einsum opt_einsum_fx packaging", script="e3nn_network.py"),
    Library("tensordict", "0.15.3", needs="cloudpickle pyvers", script="tensordict_ensemble.py"),
    Library("torchrl", "0.14.1", needs="cloudpickle pyvers packaging tensordict==0.14.3", script="torchrl_ppo.py"),
    Library("torchvision", "0.28.0", needs="pillow tqdm", script="torchvision_resnet.py"),
    Library("timm", "1.0.31", needs=_OF_IMAGES, script="timm_training.py"),
    Library("open_clip_torch", "3.3.0", needs=f"{_OF_IMAGES} timm==1.0.31 regex ftfy wcwidth", script="open_clip_pairs.py"),
)
