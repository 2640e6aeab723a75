"""With NumPy alone: nothing optional is imported before it is needed, and what needs it says how to get it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import mutagrad as mg

OPTIONAL = ("scipy", "ml_dtypes", "safetensors", "tqdm", "matplotlib", "sklearn", "PIL", "torch", "array_api_strict", "array_api_compat")

# What each extra is needed for. (Every operation of the table of samples is asked below.)
NEEDS = {
    "bfloat16": [
        "mg.zeros(2, dtype=mg.bfloat16)", "mg.tensor([1.0], dtype=mg.bfloat16)", "mg.arange(3, dtype=mg.bfloat16)", "mg.randn(2, dtype=mg.bfloat16)", "x.bfloat16()", "x.to(mg.bfloat16)",
        "x.type('torch.BFloat16Tensor')", "x.view(mg.bfloat16)", "x.sum(dtype=mg.bfloat16)", "mg.softmax(x, 0, dtype=mg.bfloat16)", "mg.BFloat16Tensor(2)", "mg.BFloat16Storage(2)",
        "mg.empty(2, dtype=mg.bfloat16, device='meta')", "mg.frombuffer(bytearray(4), dtype=mg.bfloat16)", "nn.Linear(2, 2).bfloat16()", "nn.Linear(2, 2, dtype=mg.bfloat16)",
        "mg.array_api.zeros(2, dtype=mg.bfloat16)", "mg.set_default_dtype(mg.bfloat16)", "mg.autocast('cpu')(lambda: x @ x)()", "mg.testing.make_tensor((2,), dtype=mg.bfloat16, device='cpu')",
        "mg.load(io.BytesIO(SHORT))"],
    "scipy": [
        "mg.digamma(x)", "mg.zeros(2).erfinv_()", "mg.polygamma(1, x)", "mg.special.i0e(x)", "mg.special.zeta(x, x)", "mg.special.airy_ai(x)", "mg.igamma(x, x)", "mg.lgamma(leaf).sum().backward()",
        "mg.special.legendre_polynomial_p(x / 3, 2000)", "mg.linalg.ldl_factor(mg.eye(3))", "mg.linalg.ldl_solve(mg.eye(3), mg.zeros(3, dtype=mg.int32), mg.eye(3))", "mg.quasirandom.SobolEngine(2).draw(2)",
        "D.Normal(0.0, 1.0).icdf(x / 2)", "D.Beta(x, x).entropy()", "D.Gamma(leaf, x).rsample().sum().backward()", "D.Gamma(x, x).cdf(x)", "D.VonMises(x, x).log_prob(x)"],
}
ALONE = [
    "nn.init.trunc_normal_(mg.zeros(5)), D.VonMises(x, x).sample()", "mg.erf(x), mg.erfc(x), mg.lgamma(x), mg.special.xlogy(x, x), mg.special.legendre_polynomial_p(x, 3)", "nn.functional.gelu(leaf).sum().backward()", "mg.linalg.lu(mg.eye(40))",
    "mg.linalg.solve_triangular(mg.eye(40), mg.eye(40), upper=True)", "mg.matrix_exp(mg.eye(3))", "mg.kaiser_window(5)", "D.Normal(0.0, 1.0).cdf(x)", "D.Wishart(mg.tensor(4.0), mg.eye(3)).sample()",
    "mg.finfo(mg.bfloat16).max, mg.bfloat16.itemsize, mg.promote_types(mg.bfloat16, mg.int8)", "list(mg.utils.data.progress([1]))", "nn.Embedding(3, 2)(mg.zeros(5, dtype=mg.int64)).sum().backward()",
    "mg.save({'x': x}, io.BytesIO())", "mg.zeros(2, dtype=mg.get_default_dtype())"]

PROGRAM = """
import sys
sys.modules.update(dict.fromkeys(OPTIONAL))  # to import one of these is now an ImportError
import io, json, warnings, zipfile
import mutagrad as mg
from mutagrad import distributions as D, nn
from mutagrad.errors import MissingExtra

def outcome(call):
    try:
        call()
    except MissingExtra as error:
        return error.fix
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""
"""

ASK = """
SHORT = io.BytesIO()
with zipfile.ZipFile(SHORT, "w") as archive:
    archive.writestr("archive/data.pkl", b"\\x80\\x02ctorch._utils\\n_rebuild_tensor_v2\\n((X\\x07\\x00\\x00\\x00storagectorch\\nBFloat16Storage\\n"
                     b"X\\x01\\x00\\x00\\x000X\\x03\\x00\\x00\\x00cpuK\\x01tQK\\x00K\\x01\\x85K\\x01\\x85\\x89ccollections\\nOrderedDict\\n)RtR.")
    archive.writestr("archive/data/0", b"ab")
    archive.writestr("archive/version", b"3")
SHORT = SHORT.getvalue()
x, leaf = mg.ones(3), mg.ones(3, requires_grad=True)
print(json.dumps({call: outcome(lambda: eval(call)) for call in CALLS}))
"""

WALK = """
sys.path.insert(0, TESTS)
from samples import SAMPLES

def once(sample, form):
    tensors = [mg.tensor(a, requires_grad=sample.grad) for a in sample.arrays()]
    for result in sample.call(mg, tensors, form):
        if isinstance(result, mg.Tensor) and result.requires_grad and not result.is_complex():
            return result.sum().backward()

print(json.dumps({f"{sample} as a {kind}": outcome(lambda: once(sample, form)) for sample in SAMPLES for kind, form in sample.forms(mg).items()}))
"""


def run(program: str, **names: object) -> dict[str, str]:
    source = "".join(f"{name} = {value!r}\n" for name, value in {"OPTIONAL": OPTIONAL, **names}.items()) + PROGRAM + program
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_importing_mutagrad_imports_numpy_and_the_standard_library() -> None:
    code = "import sys; import mutagrad; print(*sorted({name.partition('.')[0] for name in sys.modules} - set(sys.stdlib_module_names)))"
    done = subprocess.run([sys.executable, "-S", "-c", f"import sys; sys.path[:] = {sys.path!r}; {code}"], capture_output=True, text=True, check=True)
    assert {name for name in done.stdout.split() if not name.startswith("_")} == {"mutagrad", "numpy"}, done.stdout


@pytest.mark.parametrize("extra", NEEDS)
def test_what_needs_an_extra_names_it(extra: str) -> None:
    wrong = {call: said for call, said in run(ASK, CALLS=NEEDS[extra]).items() if said != f"pip install 'mutagrad[{extra}]'"}
    assert not wrong


def test_what_numpy_alone_computes() -> None:
    assert not {call: said for call, said in run(ASK, CALLS=ALONE).items() if said}


def test_every_operation_works_or_names_the_extra() -> None:
    found = run(WALK, TESTS=str(Path(__file__).parent))
    assert not {call: said for call, said in found.items() if said and said != "pip install 'mutagrad[scipy]'"}
    assert 0.9 < sum(not said for said in found.values()) / len(found) < 1


def test_a_scipy_that_is_too_old_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    lapack = pytest.importorskip("scipy.linalg.lapack", reason="pip install 'mutagrad[scipy]'")
    monkeypatch.delattr(lapack, "ssytrf")
    with pytest.raises(mg.errors.MissingExtra, match=r"ldl_factor: needs SciPy 1\.15"):
        mg.linalg.ldl_factor(mg.eye(3))
