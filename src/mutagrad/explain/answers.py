"""What `why` answers with: a text for people, and its parts for programs."""
from __future__ import annotations

from collections.abc import Sequence

SHOWN = 8  # stages of the way

Stage = tuple[str, str, float]  # place, operation, and norm of the gradient of what it computed


class Why:
    """An answer. `print` it; its parts are for programs.

    `cause` is one word: "ok"; "overwritten", "detached", "no_grad", "item", "numpy", "tensor" or "no_derivative", where
    something was cut off; "zero", "dead", "cancelled", "hook" or "function", where nothing but zeros came; "vanished",
    "exploded" or "nan"; "not_reached", "not_swept", "not_asked", "cleared", "not_leaf", "failed"; "integer",
    "does_not_require_grad"; "unknown". `where` is the file and line of it, `fix` the corrected code, `stages` the way
    from the loss to the tensor: place, operation and norm of the gradient.
    """

    def __init__(self, cause: str, verdict: str, *, place: str = "", lines: Sequence[str] = (), fix: str = "",
                 stages: Sequence[Stage] = ()) -> None:
        self.cause, self.verdict, self.fix, self.stages = cause, verdict, fix, list(stages)
        self.place, self.lines = place, list(lines)

    @property
    def where(self) -> str:
        """The file and the line, or nothing."""
        parts = self.place.partition("\n")[0].split(":")
        number = next((i for i, part in enumerate(parts) if i and part.strip().isdigit()), None)
        return "" if number is None else ":".join(parts[:number + 1])

    def __str__(self) -> str:
        rows = [self.verdict]
        rows += [f"  at {line}" if not i else f"     {line}" for i, line in enumerate(self.place.splitlines())]
        rows += [f"  {line}" for line in self.lines]
        if self.stages and self.cause in ("vanished", "exploded", "nan", "ok"):
            rows += ["  the norm of the gradient on its way from the loss:", *_table(self.stages)]
        rows += [f"  fix: {self.fix}"] if self.fix else []
        return "\n".join(rows)

    __repr__ = __str__


class WhyModel(dict[str, Why]):
    """The answers for all parameters of a model, by name; printed, a line for each."""

    def __str__(self) -> str:
        width = max(map(len, self), default=0)
        return "\n".join(f"{name:{width}}  {answer.cause:12} {answer.verdict}" for name, answer in self.items())

    __repr__ = __str__


def _table(stages: Sequence[Stage]) -> list[str]:
    shown, more = list(stages), len(stages) - SHOWN
    if more > 0:
        shown[SHOWN // 2:-SHOWN // 2] = [(f"... {more} more", "", -1.0)]
    return [f"    {'' if size < 0 else f'{size:.3g}':>9}  {op:12} {place}".rstrip() for place, op, size in shown]
