"""In which module each write was made: noted by hooks while a model runs, or told by the parameters that it read.

A node does not know its module, and making it know would cost every operation. While a function runs for its picture,
hooks note the counter of nodes at each call of a module, so that a write belongs to the calls that its number lies in.
Of a graph that was made before, the names of parameters say where the writes are that read them; any other lies in
what the nearest of those before and after it have in common.
"""
from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from threading import get_ident
from typing import Any, NamedTuple

from ..core.graph import Leaf, next_order
from ..nn.module import Module, register_module_forward_hook, register_module_forward_pre_hook
from .recorded import Recorded

Path = tuple[str, ...]


class Call(NamedTuple):
    """A module that was called: the calls around it and itself, the numbers of nodes in between, and its class."""

    path: Path
    first: int
    last: int
    kind: str


def on_this_thread(hook: Callable[..., None]) -> Callable[..., None]:
    """Return a hook that calls this one on the thread it was made on: hooks of all modules see those of others, too."""
    thread = get_ident()
    return lambda *arguments: hook(*arguments) if get_ident() == thread else None


class CallRecorder:
    """A block in which all calls of modules are noted."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self._open: list[tuple[Path, int]] = []
        self._times: Counter[Path] = Counter()
        self._names: dict[Module, str] = {}

    def __enter__(self) -> CallRecorder:
        self._hooks = (register_module_forward_pre_hook(on_this_thread(self._enter)),
                       register_module_forward_hook(on_this_thread(self._leave), always_call=True))
        return self

    def __exit__(self, *error: object) -> None:
        for hook in self._hooks:
            hook.remove()

    def _enter(self, module: Module, inputs: Any) -> None:
        if module not in self._names:
            self._names.update({inner: path for path, inner in module.named_modules()})
        path = (*(self._open[-1][0] if self._open else ()), self._name(module))
        self._times[path] += 1
        again = f" (call {self._times[path]})" if self._times[path] > 1 else ""
        self._open.append(((*path[:-1], path[-1] + again), next_order()))

    def _name(self, module: Module) -> str:
        """The name that it has in the outermost module that was called; that one goes by its class."""
        return self._names[module] or type(module).__name__

    def _leave(self, module: Module, inputs: Any, output: Any) -> None:
        path, first = self._open.pop()
        self.calls.append(Call(path, first, next_order(), type(module).__name__))


def paths_by_calls(graph: Recorded, calls: list[Call]) -> list[Path]:
    """Return for each write the calls that it was made in, the outermost first."""
    paths: list[Path] = [()] * len(graph.writes)
    events = sorted([(-c.first, 1, c.path) for c in calls] + [(-c.last, 0, c.path[:-1]) for c in calls])
    now: Path = ()
    at = 0
    for k, node in enumerate(graph.writes):
        while at < len(events) and events[at][0] < -node.order:
            now, at = events[at][2], at + 1
        paths[k] = now
    return paths


def paths_by_parameters(graph: Recorded, names: Mapping[Leaf, str]) -> list[Path]:
    """Return for each write the modules of the parameters that it read, or of those read around it."""
    known: list[Path | None] = []
    for node in graph.writes:
        owners = [tuple(names[w].split(".")[:-1]) for w in node if isinstance(w, Leaf) and w in names]
        known.append(max(owners, key=len) if owners else None)
    before, after = _carried(known), _carried(known[::-1])[::-1]
    return [_spelled(_common(b, a)) for b, a in zip(before, after)]


def _spelled(path: Path) -> Path:
    """Return a path whose parts are the full names of the modules on it."""
    return tuple(".".join(path[:i + 1]) for i in range(len(path)))


def _carried(paths: list[Path | None]) -> list[Path]:
    found: list[Path] = []
    last: Path = ()
    for path in paths:
        last = last if path is None else path
        found.append(last)
    return found


def _common(one: Path, other: Path) -> Path:
    length = next((i for i, (a, b) in enumerate(zip(one, other)) if a != b), min(len(one), len(other)))
    return one[:length]


def common_depth(paths: list[Path]) -> int:
    """Return how many modules all paths begin with: folding those would leave a single box."""
    inside = [path for path in paths if path]
    common = inside[0] if inside else ()
    for path in inside:
        common = _common(common, path)
    return len(common)
