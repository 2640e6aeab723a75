"""Docstrings of functions and classes that are made by a function, and so have no source that could hold one."""
from __future__ import annotations


def with_example(words: str, *lines: str) -> str:
    """Return a docstring: the words, and a session that shows a call and what it gives.

    >>> with_example("Return the number after x.", ">>> mg.after(1)", "2").splitlines()
    ['Return the number after x.', '', '>>> import mutagrad as mg', '>>> mg.after(1)', '2']
    """
    return "\n".join([words, "", ">>> import mutagrad as mg", *lines])
