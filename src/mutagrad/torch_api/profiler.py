"""Where a program spends its time: how often each public function was called, and how long it took.

>>> import mutagrad as mg
>>> with mg.profiler.profile() as prof:
...     _ = mg.ones(2) * 3
>>> [(event.key, event.count) for event in prof.key_averages()]
[('aten::ones', 1), ('aten::mul', 1)]
"""
from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable, Iterable
from contextlib import ContextDecorator
from enum import Enum
from time import perf_counter_ns
from typing import Any

from ..autograd.profiler_util import EventList, FunctionEvent, FunctionEventAvg
from ..base.errors import BadArgument, ModeError, NotSupported
from ..base.modes import Block, mode, push
from . import torch_function

__all__ = ["ProfilerAction", "ProfilerActivity", "emit_itt", "emit_nvtx", "profile", "record_function", "schedule",
           "supported_activities", "tensorboard_trace_handler"]


class ProfilerActivity(Enum):
    """Where the time of a program goes.

    >>> import mutagrad as mg
    >>> mg.profiler.ProfilerActivity.CPU.name
    'CPU'
    """

    CPU, XPU, MTIA, CUDA, HPU, PrivateUse1 = range(6)


class ProfilerAction(Enum):
    """What a profiler does during one step.

    >>> import mutagrad as mg
    >>> [action.name for action in mg.profiler.ProfilerAction]
    ['NONE', 'WARMUP', 'RECORD', 'RECORD_AND_SAVE']
    """

    NONE, WARMUP, RECORD, RECORD_AND_SAVE = range(4)


def supported_activities() -> set[ProfilerActivity]:
    """Return what can be measured.

    >>> import mutagrad as mg
    >>> [activity.name for activity in mg.profiler.supported_activities()]
    ['CPU']
    """
    return {ProfilerActivity.CPU}


class record_function(ContextDecorator):
    """A name for a part of a program, in a block or a decorator: an event of the profiler, if one is measuring.

    >>> import mutagrad as mg
    >>> with mg.profiler.profile() as p:
    ...     with mg.profiler.record_function("mine"):
    ...         x = mg.ones(2)
    >>> "mine" in [event.key for event in p.key_averages()]
    True
    """

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name, self.args = name, args
        self._began: list[int] = []

    def __enter__(self) -> record_function:
        self._began.append(perf_counter_ns())
        return self

    def __exit__(self, *exception: Any) -> None:
        if not self._began:
            raise ModeError("record_function: left without having been entered", fix="with record_function(name): ...")
        began = self._began.pop()
        for profiler in mode.now.profilers:
            profiler._saw(self.name, began)


def _check(arguments: dict[str, Any]) -> None:
    for name in ("profile_memory", "with_stack", "with_flops", "with_modules", "execution_trace_observer"):
        if arguments.pop(name, None):
            raise NotSupported(f"profile: {name} is not supported",
                               why="calls and their times are all that is measured", fix=f"leave {name} out")
    unknown = set(arguments) - {"use_cuda", "use_device", "use_kineto", "use_cpu", "experimental_config", "acc_events",
                                "post_processing_timeout_s"}
    if unknown:
        raise BadArgument(f"profile: unexpected arguments {sorted(unknown)}")
    if arguments.get("use_cuda") or arguments.get("use_device"):
        warnings.warn("profile: there is no device to measure; only the CPU is", stacklevel=3)


class profile(ContextDecorator, Block):
    """Measures the calls of public functions on this thread, in a block or from `start()` to `stop()`.

    >>> import mutagrad as mg
    >>> with mg.profiler.profile() as p:
    ...     x = mg.ones(2) * 2
    >>> sorted(event.key for event in p.key_averages())
    ['aten::mul', 'aten::ones']
    """

    def __init__(self, enabled: bool = True, *, activities: Iterable[ProfilerActivity] | None = None,
                 record_shapes: bool = False, schedule: Callable[[int], ProfilerAction] | None = None,
                 on_trace_ready: Callable[[profile], Any] | None = None, **settings: Any) -> None:
        _check(settings)
        if activities is not None and set(activities) - supported_activities():
            warnings.warn("profile: there is no device to measure; only the CPU is", stacklevel=2)
        self.enabled, self.record_shapes = enabled, record_shapes
        self.schedule, self.on_trace_ready = schedule, on_trace_ready
        self.step_num = 0
        self._events: list[FunctionEvent] = []
        self._measuring = False

    # ------------------------------------------------------------------------------------------------------- measuring

    def changes(self) -> dict[str, Any]:
        return {"profilers": push(self), "function_modes": push(self)}

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, *exception: Any) -> None:
        self.stop()

    def start(self) -> None:
        """Begin to measure, if the schedule does not say otherwise.

        >>> import mutagrad as mg
        >>> p = mg.profiler.profile()
        >>> p.start()
        >>> x = mg.ones(2)
        >>> p.stop()
        >>> len(p.events()) >= 1
        True
        """
        if self.enabled and self._action() in (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE):
            self._begin()

    def stop(self) -> None:
        """End it, and hand over what was measured.

        >>> import mutagrad as mg
        >>> p = mg.profiler.profile()
        >>> p.start()
        >>> x = mg.ones(2)
        >>> p.stop()
        >>> len(p.events()) >= 1
        True
        """
        if self._measuring:
            self._end()
            if self.on_trace_ready is not None:
                self.on_trace_ready(self)

    def step(self) -> None:
        """Say that the next step of the program begins.

        >>> import mutagrad as mg
        >>> plan = mg.profiler.schedule(wait=1, warmup=0, active=1, repeat=1)
        >>> with mg.profiler.profile(schedule=plan, on_trace_ready=lambda p: print("measured")) as p:
        ...     for _ in range(3):
        ...         x = mg.ones(2)
        ...         p.step()
        measured
        """
        before = self._action()
        self.step_num += 1
        now = self._action() in (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)
        if self._measuring and (before is ProfilerAction.RECORD_AND_SAVE or not now):
            self.stop()
        if self.enabled and now and not self._measuring:
            self._events = []
            self._begin()

    def _action(self) -> ProfilerAction:
        return ProfilerAction.RECORD if self.schedule is None else self.schedule(self.step_num)

    def _begin(self) -> None:
        torch_function.watch()
        self._measuring = True
        self.enter()

    def _end(self) -> None:
        self._measuring = False
        try:
            self.leave()
        finally:
            self.function_events._populate_cpu_children()

    def __torch_function__(self, func: Callable[..., Any], types: Iterable[type], args: tuple[Any, ...] = (),
                           kwargs: dict[str, Any] | None = None) -> Any:
        name = torch_function.NAMES.get(func, "").rpartition(".")[2]
        began = perf_counter_ns()
        result = func(*args, **(kwargs or {}))
        if name and not name.startswith("__"):
            shapes = [list(getattr(x, "shape", ())) for x in args] if self.record_shapes else None
            self._saw(f"aten::{name}", began, shapes)
        return result

    def _saw(self, name: str, began: int, shapes: list[list[int]] | None = None) -> None:
        number, now = len(self._events), perf_counter_ns()
        self._events.append(FunctionEvent(number, name, threading.get_ident(), began / 1000, now / 1000,
                                          input_shapes=shapes))

    # ------------------------------------------------------------------------------------------------------ the answers

    @property
    def function_events(self) -> EventList:
        """All that was measured, in the order in which it began."""
        return EventList(sorted(self._events, key=lambda event: event.time_range.start))

    def events(self) -> EventList:
        """Return all that was measured, in the order in which it began.

        >>> import mutagrad as mg
        >>> with mg.profiler.profile() as p:
        ...     x = mg.ones(2) * 2
        >>> len(p.events()) >= 2
        True
        """
        return self.function_events

    def key_averages(self, group_by_input_shape: bool = False, group_by_stack_n: int = 0) -> EventList:
        """Return the calls summed by name, or by name and the shapes of their arguments.

        >>> import mutagrad as mg
        >>> with mg.profiler.profile() as p:
        ...     x = mg.ones(2) * 2
        >>> sorted((event.key, event.count) for event in p.key_averages())
        [('aten::mul', 1), ('aten::ones', 1)]
        """
        return self.function_events.key_averages(group_by_input_shape)

    def total_average(self) -> FunctionEventAvg:
        """Return all calls together.

        >>> import mutagrad as mg
        >>> with mg.profiler.profile() as p:
        ...     x = mg.ones(2) * 2
        >>> p.total_average().count >= 2
        True
        """
        return self.function_events.total_average()

    def table(self, *arguments: Any, **settings: Any) -> str:
        """Return the calls as text, one a line.

        >>> import mutagrad as mg
        >>> with mg.profiler.profile() as p:
        ...     x = mg.ones(2) * 2
        >>> "mul" in p.table()
        True
        """
        return self.function_events.table(*arguments, **settings)

    def __str__(self) -> str:
        return self.table()

    @property
    def self_cpu_time_total(self) -> float:
        return self.function_events.self_cpu_time_total

    def export_chrome_trace(self, path: str) -> None:
        """Write what was measured for Chrome's viewer of traces.

        >>> import mutagrad as mg
        >>> with mg.profiler.profile() as p:
        ...     x = mg.ones(2) * 2
        >>> import os, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     p.export_chrome_trace(f"{folder}/trace.json")
        ...     os.listdir(folder)
        ['trace.json']
        """
        self.function_events.export_chrome_trace(path)


class emit_nvtx(ContextDecorator):
    """Marks for the profiler of a device, which is not there: it refuses to start; `enabled=False` is as in PyTorch."""

    def __init__(self, enabled: bool = True, record_shapes: bool = False) -> None:
        if enabled:
            raise NotSupported("emit_nvtx: there is no profiler of devices", fix="mutagrad.profiler.profile()")

    def __enter__(self) -> emit_nvtx:
        return self

    def __exit__(self, *exception: Any) -> None:
        return None


emit_itt = emit_nvtx


def kineto_available() -> bool:
    """Whether PyTorch's own profiler is there: it is not."""
    return False


def schedule(*, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0,
             skip_first_wait: int = 0) -> Callable[[int], ProfilerAction]:
    """Return when to measure, by the step: `active` ones after `wait` and `warmup`, and so on, or `repeat` times.

    >>> import mutagrad as mg
    >>> when = mg.profiler.schedule(wait=1, warmup=1, active=2)
    >>> [when(step).name for step in range(4)]
    ['NONE', 'WARMUP', 'RECORD', 'RECORD_AND_SAVE']
    """
    cycle = wait + warmup + active

    def action(step: int) -> ProfilerAction:
        place = step - skip_first
        if skip_first_wait and place >= 0:
            place += wait  # the first time there is no waiting
        if place < 0 or repeat and place >= repeat * cycle:
            return ProfilerAction.NONE
        place %= cycle
        if place < wait:
            return ProfilerAction.NONE
        if place < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD_AND_SAVE if place == cycle - 1 else ProfilerAction.RECORD

    return action


def tensorboard_trace_handler(dir_name: str, worker_name: str | None = None,
                              use_gzip: bool = False) -> Callable[[profile], None]:
    """Return an `on_trace_ready` that writes what was measured into a folder.

    >>> import mutagrad as mg
    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with mg.profiler.profile(on_trace_ready=mg.profiler.tensorboard_trace_handler(folder)):
    ...         x = mg.ones(2)
    ...     len(os.listdir(folder))
    1
    """
    if use_gzip:
        raise NotSupported("tensorboard_trace_handler: use_gzip is not supported", fix="gzip the files afterwards")

    def handle(profiler: profile) -> None:
        os.makedirs(dir_name, exist_ok=True)
        name = f"{worker_name or os.getpid()}.{perf_counter_ns()}.pt.trace.json"
        profiler.export_chrome_trace(os.path.join(dir_name, name))

    return handle
