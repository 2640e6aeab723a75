"""What doctor has found: each place of a program where PyTorch would do something else than the program means."""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ...base.provenance import Where, file_and_line

RAISES, WRONG, SLOW, FINE = "raises", "wrong", "slow", "fine"


@dataclass(eq=False)
class Finding:
    """One place: what happens there, what PyTorch makes of it, and how to write it for PyTorch."""

    kind: str
    torch: str
    where: Where
    message: str
    saved_where: Where | None = None
    advice: str = ""
    slot: str = ""  # which operand of the call at `saved_where` (or `where`) is concerned
    count: int = 1
    diff: str = ""
    details: dict[str, Any] = field(default_factory=dict)

    @property
    def place(self) -> tuple[str, int]:
        return file_and_line(self.where)

    @property
    def saved_at(self) -> str | None:
        return None if self.saved_where is None else "{}:{}".format(*file_and_line(self.saved_where))

    def as_dict(self) -> dict[str, Any]:
        file, line = self.place
        return {"kind": self.kind, "torch": self.torch, "file": file, "line": line, "saved_at": self.saved_at,
                "message": self.message, "fix": self.diff or self.advice or None, "count": self.count}


class Findings:
    """All findings of a run, one for each place, in the order in which they were met."""

    def __init__(self) -> None:
        self.by_place: dict[tuple[Any, ...], Finding] = {}

    def add(self, finding: Finding) -> None:
        key = finding.kind, finding.place, finding.saved_at
        if key in self.by_place:
            self.by_place[key].count += 1
        else:
            self.by_place[key] = finding

    def __iter__(self) -> Any:
        return iter(self.by_place.values())

    def __len__(self) -> int:
        return len(self.by_place)

    @property
    def verdict(self) -> str:
        """What PyTorch would do with the program: "raises", "wrong" or "accepts"."""
        found = {finding.torch for finding in self}
        return RAISES if RAISES in found else WRONG if WRONG in found else "accepts"
