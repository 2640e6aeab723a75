"""Arguments of the wrong kind are refused with an error that says so, or taken; nothing of the inside comes out."""
from __future__ import annotations

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
