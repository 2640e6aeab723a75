"""Arguments of the wrong kind are refused with an error that says so, or taken; nothing of the inside comes out."""
from __future__ import annotations

from typing import Any

import pytest

import mutagrad as mg
from wrong_kinds import Mistake, expressions, mistakes, names

# Where PyTorch raises these, too: what was looked for is not there, and two things that should be alike are not.
ITS_NATURE = {"get_parameter(": AttributeError, "assert_close(": AssertionError}


def outcome(mistake: Mistake) -> Exception | None:
    try:
        mistake.attempt(mg)
    except Exception as error:
        return error
    return None


@pytest.mark.parametrize("expression", expressions())
def test_the_right_kinds_are_taken(expression: str) -> None:
    eval(expression, names(mg))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("expression", expressions())
def test_a_wrong_kind_raises_no_error_from_inside(expression: str) -> None:
    own = next((kind for words, kind in ITS_NATURE.items() if words in expression), None)
    for mistake in mistakes(expression):
        error = outcome(mistake)
        if error is None or isinstance(error, mg.MutagradError) or own is not None and isinstance(error, own):
            continue
        # Python's own errors for a signature, or for what cannot be ordered or counted, say what is wrong.
        assert isinstance(error, (TypeError, ValueError)), f"{mistake.text} with {mistake.wrong}: {error!r}"


class _Elsewhere:
    """What counts as a tensor of PyTorch's: by the name of its class. As an index, one of several elements raises."""

    def __index__(self) -> int:
        raise TypeError("only integer tensors of a single element can be converted to an index")


_Elsewhere.__module__, _Elsewhere.__qualname__ = "torch", "Tensor"


@pytest.mark.parametrize("call", [
    lambda x, y: mg.stack([x, y]), lambda x, y: x.copy_(y), lambda x, y: x[y], lambda x, y: mg.equal(x, y), lambda x, y: mg.nn.Parameter(y),
    lambda x, y: mg.optim.SGD([y]), lambda x, y: x.backward(y), lambda x, y: mg.autograd.grad(x, [y]), lambda x, y: setattr(x, "grad", y),
    lambda x, y: mg.nn.Linear(2, 1)(y), lambda x, y: x.index_select(0, y), lambda x, y: mg.nn.init.zeros_(y)])
def test_tensors_of_another_library_are_called_by_its_name(call: Any) -> None:
    with pytest.raises((mg.MutagradError, TypeError), match="PyTorch's"):
        call(mg.ones(2, requires_grad=True) * 2, _Elsewhere())
