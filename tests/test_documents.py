"""The programs of the five articles in ../shared/seeds, run unchanged with `torch` standing for mutagrad."""
import contextlib
import io
import pathlib
import re
import sys

import pytest

import mutagrad as mg

FOLDER = pathlib.Path(__file__).parents[2] / "shared" / "seeds"
ARTICLES = sorted(FOLDER.glob("*.txt"))

pytestmark = [pytest.mark.smoke, pytest.mark.skipif(not ARTICLES, reason=f"the articles are not at {FOLDER.name}/ beside the checkout")]


def blocks(number):
    text = next(p for p in ARTICLES if p.name.startswith(number)).read_text()
    return re.findall(r"```python\n(.*?)```", text, re.S)


@pytest.fixture(autouse=True)
def as_torch(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", mg)
    monkeypatch.setitem(sys.modules, "torch.autograd", mg.autograd)


def run(number, block):
    """The program's variables and what it printed."""
    variables: dict = {}
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(blocks(number)[block - 1], f"{number}:{block}", "exec"), variables)
    assert "Error" not in printed.getvalue()
    return variables


def test_there_are_sixteen():
    assert [len(blocks(f"00{i}")) for i in range(5)] == [3, 3, 4, 3, 3]


def test_index_put_with_static_indices():
    assert run("000", 1)["x"].grad.tolist() == [1, 0, 1, 0, 1]


@pytest.mark.parametrize("block", [2, 3])
def test_index_put_with_computed_indices(block):
    found = run("000", block)
    expected = mg.ones(5)
    expected[mg.argmax(found["y"])] = 0.0
    assert found["x"].grad.tolist() == expected.tolist()


@pytest.mark.parametrize("block, gradient", [(1, [2, 2, 2]), (2, [2, 3, 3]), (3, [1, 1, 1])])
def test_in_place_errors(block, gradient):
    assert run("001", block)["x"].grad.tolist() == gradient


def differences(loss, leaf, step=1e-6):
    """Central differences of `loss`, in float64, at the leaf's values."""
    point = leaf.detach().double()
    found = mg.zeros_like(point)
    for i in range(point.numel()):
        up, down = point.clone(), point.clone()
        up.view(-1)[i] += step
        down.view(-1)[i] -= step
        found.view(-1)[i] = (loss(up) - loss(down)) / (2 * step)
    return found


@pytest.mark.parametrize("block, leaf, function, arguments", [
    (1, "image_tensor", "incorrect_normalize_channels", ()), (2, "image_tensor", "correct_normalize_channels", ()),
    (3, "test_tensor", "incorrect_thresholding", (0.5,)), (4, "test_tensor", "correct_thresholding", (0.5,))])
def test_unpacked_tensors(block, leaf, function, arguments):
    found = run("002", block)
    small = mg.rand(2, 3, 3, dtype=mg.float64) if block < 3 else mg.randn(4, 4, dtype=mg.float64)
    x = small.clone().requires_grad_()
    (found[function](x.clone(), *arguments).sum() ** 2).mean().backward()
    expected = differences(lambda v: (found[function](v.clone(), *arguments).sum() ** 2).mean().item(), small)
    assert mg.allclose(x.grad, expected, rtol=1e-4, atol=1e-4)
    assert found[leaf].grad is not None and found[leaf].grad.isfinite().all()


def test_modify_values():
    assert run("003", 1)["x"].grad.tolist() == [2, 2, 2]
    found = run("003", 2)
    assert found["x"].grad.tolist() == [2 if v > 0 else 1 for v in found["x"].tolist()]
    assert found["x"].grad.shape == (3,)
    assert run("003", 3)["x"].grad.tolist() == pytest.approx([0.2, 0, 0.2, 0, 0.2])


def test_computation_graph():
    found = run("004", 1)
    assert found["x"].grad.item() == found["y"].grad.item() == 1
    found = run("004", 2)
    assert found["x"].grad.tolist() == found["x_copy"].grad.tolist() == [1.0]
    assert run("004", 3)["x"].grad.tolist() == [0, 1, 0]
