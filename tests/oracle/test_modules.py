"""PyTorch's own table of modules with its own sample inputs: every entry whose name we have must do what it does there.

For each sample: the same repr and the same state, by name, shape and type; then, with PyTorch's state loaded into ours, in training
and outside it: results, gradients of inputs and parameters, and the state afterwards. Then the table's bad inputs.
"""
from __future__ import annotations

import random
import warnings
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest

import mutagrad as mg

from .compare import attempt, difference, gradient_difference, ours, stands_for, tensors

torch = pytest.importorskip("torch", reason="make oracle installs it")
pytest.importorskip("expecttest", reason="PyTorch's table imports it; make oracle installs it")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from torch.testing._internal.common_modules import module_db

pytestmark = pytest.mark.oracle

LARGEST = 20000  # elements in a sample
MOST = 12  # samples of an entry, mode and type, taken evenly from all
# Draws numbers of its own in training: there only shape and type are compared.
RANDOM_IN_TRAINING = {"nn.Transformer", "nn.TransformerEncoder", "nn.TransformerEncoderLayer", "nn.TransformerDecoderLayer"}
ALWAYS_RANDOM = {"nn.FractionalMaxPool2d", "nn.FractionalMaxPool3d"}
TOLERANCE = 1e-7, 1e-8
# Differences that are meant: words of the failure, and the reason.
DELIBERATE = {
    "nn.CTCLoss": ("gradient [0]", "PyTorch gives the gradient for what log_softmax was taken of, not for its result"),
    "nn.FractionalMaxPool3d": ("expects random samples of shape", "more random samples than items are refused"),
    "nn.LinearCrossEntropyLoss": ("options are not supported", "the logits are computed at once, not in chunks"),
    **{f"nn.LPPool{n}d": ("not [nan", "a zero adjoint stays zero where a derivative is undefined") for n in (1, 2, 3)},
}

# Bad inputs that are good here: PyTorch's error, and the reason.
LENIENT = {"expected scalar type \\w+ but found \\w+": "a weight of another type is converted"}


def our_class(name: str) -> Any:
    return getattr(mg.nn, name.removeprefix("nn."), None)


CLAIMED = [info for info in module_db if our_class(info.name) is not None]


def argument(value: Any) -> Any:
    """The same value for mutagrad, also functions and types of PyTorch's."""
    if isinstance(value, torch.nn.Module):
        return pair_of(value)
    if callable(value) and getattr(value, "__module__", "").startswith("torch") and hasattr(mg.nn.functional, getattr(value, "__name__", "")):
        return getattr(mg.nn.functional, value.__name__)
    if isinstance(value, (tuple, list)) and not isinstance(value, torch.Size):
        return type(value)(argument(v) for v in value)
    if isinstance(value, dict):
        return {k: argument(v) for k, v in value.items()}
    return ours(value)


def pair_of(module: Any) -> Any:
    """Ours of the same class and settings as a small module of PyTorch's that a sample holds."""
    settings = {name: getattr(module, name) for name in ("normalized_shape", "eps", "elementwise_affine") if hasattr(module, name)}
    if isinstance(module, torch.nn.TransformerEncoderLayer):
        attention = module.self_attn
        settings = {"d_model": attention.embed_dim, "nhead": attention.num_heads, "dim_feedforward": module.linear1.out_features,
                    "dropout": module.dropout.p, "activation": argument(module.activation), "layer_norm_eps": module.norm1.eps,
                    "batch_first": attention.batch_first, "norm_first": module.norm_first, "bias": module.linear1.bias is not None}
    made = our_class(type(module).__name__)(**settings, dtype=ours(next(module.parameters()).dtype))
    made.load_state_dict(ours(dict(module.state_dict())))
    return made


def samples(info: Any, dtype: Any, training: bool) -> Iterator[Any]:
    torch.manual_seed(0)
    random.seed(0)
    drawn = info.module_inputs_func(info, device="cpu", dtype=dtype, requires_grad=True, training=training)
    small = [s for s in drawn if s.forward_input is not None
             and sum(t.numel() for t in tensors((s.forward_input.args, s.forward_input.kwargs))) <= LARGEST]
    return iter(small[::len(small) // MOST + 1])


def leaf(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.detach().clone().requires_grad_(value.requires_grad)
    if isinstance(value, (tuple, list)):
        return type(value)(map(leaf, value))
    return {k: leaf(v) for k, v in value.items()} if isinstance(value, dict) else value


def make_both(info: Any, sample: Any, dtype: Any) -> tuple[Any, Any]:
    given = sample.constructor_input
    taken = {} if "dtype" not in info.module_cls.__init__.__code__.co_varnames and not given.kwargs.get("dtype") else {"dtype": dtype}
    settings = {**taken, **given.kwargs}
    theirs, refused = attempt(lambda: info.module_cls(*given.args, **settings), quiet=True)
    if refused is not None:
        theirs = info.module_cls(*given.args, **given.kwargs)
    theirs = theirs.to(dtype)
    mine = our_class(info.name)(*argument(tuple(given.args)), **argument(dict(given.kwargs))).to(ours(dtype))
    return theirs, mine


def state_difference(theirs: Any, mine: Any) -> str:
    left, right = theirs.state_dict(), mine.state_dict()
    if list(left) != list(right):
        return f"state_dict {list(right)}, not {list(left)}"
    return next((f"{name}: {text}" for name in left if (text := difference(left[name], right[name], tolerance=TOLERANCE))), "")


def judge(info: Any, sample: Any, dtype: Any, training: bool) -> str:
    """What is different, in words; nothing if all is the same."""
    theirs, mine = make_both(info, sample, dtype)
    if repr(mine) != repr(theirs):
        return f"repr {mine!r}, not {theirs!r}"
    if info.is_lazy:  # the first call gives it its shapes, and ours gets them from the state
        with torch.no_grad():
            theirs(*sample.forward_input.args)
        mine.load_state_dict(ours(dict(theirs.state_dict())))
    kinds = [[(k, tuple(v.shape), str(v.dtype).split(".")[-1]) for k, v in m.state_dict().items()] for m in (theirs, mine)]
    if kinds[0] != kinds[1]:
        return f"state {kinds[1]}, not {kinds[0]}"
    mine.load_state_dict(ours(dict(theirs.state_dict())))
    theirs.train(training), mine.train(training)
    arguments = leaf((tuple(sample.forward_input.args), dict(sample.forward_input.kwargs)))
    our_arguments = argument(deepcopy(arguments))
    expected, refused = attempt(lambda: theirs(*arguments[0], **arguments[1]), quiet=True)
    found, error = attempt(lambda: mine(*our_arguments[0], **our_arguments[1]), quiet=True)
    if refused is not None or error is not None:
        return "" if refused is not None and error is not None and stands_for(refused, error) else f"{error!r}, not {refused!r}"
    if info.name in ALWAYS_RANDOM or training and info.name in RANDOM_IN_TRAINING:
        return "" if [t.shape for t in tensors(expected)] == [t.shape for t in tensors(found)] else "shapes"
    if text := difference(expected, found, tolerance=TOLERANCE):
        return text
    left, right = (*arguments, list(theirs.parameters())), (*our_arguments, list(mine.parameters()))
    if repr(mine) != repr(theirs):
        return f"repr afterwards {mine!r}, not {theirs!r}"
    return gradient_difference(expected, found, left, right, tolerance=TOLERANCE) or state_difference(theirs, mine)


@pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])
@pytest.mark.parametrize("info", CLAIMED, ids=lambda info: info.name)
def test_module(info: Any, training: bool) -> None:
    failures = []
    count = 0
    for sample in samples(info, torch.float64, training):
        count += 1
        text = judge(info, sample, torch.float64, training)
        if text and DELIBERATE.get(info.name, ("\n",))[0] not in text:
            given = sample.constructor_input
            failures.append(f"{info.name}(*{given.args}, **{given.kwargs}): {text}"[:400])
    assert count
    assert not failures, f"{len(failures)} of {count}\n" + "\n".join(failures[:4])


def bad_samples(info: Any) -> list[Any]:
    torch.manual_seed(0)
    return list(info.module_error_inputs_func(info, device="cpu", dtype=torch.float64, requires_grad=False, training=True))


@pytest.mark.parametrize("info", [info for info in CLAIMED if info.module_error_inputs_func is not None], ids=lambda info: info.name)
def test_bad_input(info: Any) -> None:
    for bad in bad_samples(info):
        given = bad.module_error_input
        if bad.error_regex in LENIENT:
            continue

        def call(given: Any = given, at_forward: bool = "FORWARD" in str(bad.error_on)) -> Any:
            made = our_class(info.name)(*argument(tuple(given.constructor_input.args)), **argument(dict(given.constructor_input.kwargs)))
            if at_forward:
                made(*argument(tuple(given.forward_input.args)), **argument(dict(given.forward_input.kwargs)))

        _, error = attempt(call)
        assert isinstance(error, bad.error_type), f"{info.name} {given.constructor_input.args} {given.constructor_input.kwargs}: {error!r}, not {bad.error_type}"
