"""How long a statement takes.

>>> from mutagrad.utils.benchmark import Timer
>>> found = Timer("x + 1", globals={"x": 1}).timeit(100)
>>> found.number_per_run, found.mean > 0
(100, True)
"""
from __future__ import annotations

import statistics
import textwrap
import timeit
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ..base.errors import BadValue

__all__ = ["Measurement", "Timer", "timer"]

timer = timeit.default_timer
_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns"))


@dataclass(repr=False)
class Measurement:
    """Seconds that runs of a statement took, each of `number_per_run` executions."""

    number_per_run: int
    raw_times: list[float]
    stmt: str = ""
    label: str | None = None
    sub_label: str | None = None
    description: str | None = None
    num_threads: int = 1
    metadata: dict[Any, Any] = field(default_factory=dict)

    @property
    def times(self) -> list[float]:
        """Seconds for one execution, in each run."""
        return [t / self.number_per_run for t in self.raw_times]

    @property
    def mean(self) -> float:
        return statistics.fmean(self.times)

    @property
    def median(self) -> float:
        return statistics.median(self.times)

    @property
    def iqr(self) -> float:
        """How far apart the quarters are, between which half of the runs lie."""
        if len(self.times) < 2:
            return 0.0
        low, _, high = statistics.quantiles(self.times, n=4, method="inclusive")
        return high - low

    @property
    def title(self) -> str:
        return ": ".join(part for part in (self.label or self.stmt.strip(), self.sub_label, self.description) if part)

    def __repr__(self) -> str:
        unit, name = next(((u, n) for u, n in _UNITS if self.median >= u), _UNITS[-1])
        runs = "1 measurement" if len(self.times) == 1 else f"{len(self.times)} measurements"
        kind = f"{type(self).__module__}.{type(self).__name__}"
        return (f"<{kind}>\n{self.title}\n"
                f"  Median: {self.median / unit:.2f} {name}\n  IQR:    {self.iqr / unit:.2f} {name}\n"
                f"  {runs}, {self.number_per_run} runs per measurement, {self.num_threads} thread")


class Timer:
    """Runs a statement many times, after `setup` and with these globals."""

    def __init__(self, stmt: str = "pass", setup: str = "pass", global_setup: str = "",
                 timer: Callable[[], float] = timer, globals: dict[str, Any] | None = None, label: str | None = None,
                 sub_label: str | None = None, description: str | None = None, env: str | None = None,
                 num_threads: int = 1, language: Any = "python") -> None:
        if str(language).lower() not in ("python", "py", "language.python") or global_setup:
            raise BadValue(f"Timer: language={language!r}", why="statements are Python's", fix="language='python'")
        self._stmt = textwrap.dedent(stmt).strip()
        self._about = {"stmt": self._stmt, "label": label, "sub_label": sub_label, "description": description,
                       "num_threads": num_threads}
        self._timer = timeit.Timer(self._stmt, textwrap.dedent(setup).strip(), timer, dict(globals or {}))

    def _measured(self, number: int, times: list[float]) -> Measurement:
        return Measurement(number, times, **self._about)  # type: ignore[arg-type]

    def timeit(self, number: int = 1_000_000) -> Measurement:
        """Time one run of so many executions, after a short one to warm up."""
        self._timer.timeit(max(number // 100, 2))
        return self._measured(number, [self._timer.timeit(number)])

    def repeat(self, repeat: int = 5, number: int = 1_000_000) -> Measurement:
        """Time several runs of so many executions."""
        return self._measured(number, self._timer.repeat(repeat, number))

    def blocked_autorange(self, callback: Callable[[int, float], None] | None = None,
                          min_run_time: float = 0.2) -> Measurement:
        """Time runs of at least so many seconds in all, each long enough for the clock."""
        number = 1
        while (taken := self._timer.timeit(number)) < min_run_time / 1000 and number < 1_000_000_000:
            number *= 10
        times: list[float] = []
        while not times or sum(times) < min_run_time:
            taken = self._timer.timeit(number)
            times.append(taken)
            if callback is not None:
                callback(number, taken)
        return self._measured(number, times)

    def adaptive_autorange(self, threshold: float = 0.1, *, min_run_time: float = 0.01, max_run_time: float = 10.0,
                           callback: Callable[[int, float], None] | None = None) -> Measurement:
        """Time runs until half of them lie closer together than `threshold` times their median, or the time is up."""
        found = self.blocked_autorange(callback, min_run_time)
        times = found.raw_times
        while sum(times) < max_run_time and (len(times) < 4 or found.iqr > threshold * found.median):
            times.append(self._timer.timeit(found.number_per_run))
            if callback is not None:
                callback(found.number_per_run, times[-1])
        return found
