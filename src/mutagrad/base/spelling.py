"""Which name was meant by one that does not exist. Loaded when one is asked for."""
from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def hint(name: str, known: Iterable[str]) -> str:
    """Return what Python adds to an AttributeError, or nothing; for modules of more names than Python looks at (750).

    >>> hint("sofmax", ["softmax", "softplus"])
    ". Did you mean: 'softmax'?"
    """
    if name.startswith("_"):
        return ""
    like = [k for k in known if abs(len(k) - len(name)) < 3 and set(k[:2]) & set(name[:2])]  # libraries probe: be quick
    close = get_close_matches(name, like, 1, 0.7)
    return f". Did you mean: {close[0]!r}?" if close else ""
