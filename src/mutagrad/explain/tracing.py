"""`with mutagrad.trace() as t:` records what a program does to memory, and `t.save("trace.html")` shows it.

>>> import mutagrad as mg
>>> x = mg.tensor([1., 2., 3.], requires_grad=True)
>>> with mg.trace() as t:
...     y = x * 2
...     y[0] = 5.
...     y.sum().backward()
>>> [(event.kind, event.name) for event in t.events][:4]
[('new', 'mul'), ('write', 'x[i] ='), ('new', 'sum'), ('sweep', 'backward')]
>>> [event.adjoint.norm for event in t.events if event.name == "mul" and event.kind == "backward"]
[1.4142135623730951]
"""
from __future__ import annotations

import html
import re
import threading
from collections import deque
from collections.abc import Callable
from functools import lru_cache
from time import perf_counter_ns
from typing import Any
from weakref import WeakKeyDictionary, ref

from ..base.counters import counters
from ..base.errors import BadArgument, BadValue
from ..base.locks import new_lock
from ..base.provenance import Where, here, user_frame
from ..core.graph import Leaf, Node, Writer, next_order
from ..core.storage import TensorBase, memory_of
from ..optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook
from .calls import Part, distinct, is_told, new_nodes, part_of, short_name, tensors_in, written_part
from .findings import Finding, findings
from .page import page
from .recorder import Recorder
from .recording import Event, Events, Lane, Recording, Touch, Unread
from .saving import note_saved, overwritten
from .sources import global_name
from .values import Facts, not_finite, small_copy
from .watching import Call

# Calls that write to what they are given without reading it.
_ONLY_WRITE = """
    __setitem__ bernoulli_ cauchy_ copy_ exponential_ fill_ geometric_ log_normal_ normal_ random_ set_ uniform_
    zero_"""
ONLY_WRITE = frozenset(f"Tensor.{name}" for name in _ONLY_WRITE.split())


# Memory as it is found, and gradients, of which sweeps tell.
NOT_COMPUTED = re.compile(r"(new_)?empty|resize_|\.").match
# Elements up to which all of a tensor is looked at where only part was written: a loop over a large one stays linear.
LITTLE = 4096
_lock = new_lock()


class Trace(Recorder):
    """Records every call, storage and backward sweep in a block, on this thread and those that begin in it.

    Beyond `max_events` only the first and the last half are kept one by one, and what lies between by line.
    """

    wants_facts = True

    def __init__(self, *, max_events: int = 50_000, title: str = "") -> None:
        if isinstance(max_events, bool) or not isinstance(max_events, int):
            raise BadArgument(f"trace: max_events must be an integer, not {type(max_events).__name__}",
                              fix="mutagrad.trace(max_events=50_000); of a matrix: mutagrad.trace(x)")
        if max_events < 2:
            raise BadValue(f"trace: max_events must be at least 2, not {max_events}")
        super().__init__()
        self.title = title
        self.began = perf_counter_ns()
        self.ended: int | None = None
        self.error: str | None = None
        self.live = self.peak = self.sweeps = 0
        self.unrecorded, self.failure = 0, ""  # what could not be noted, and why
        self._events = Events(max_events)
        self._numbers = self._lanes = 0
        self._by_buffer: dict[int, Lane] = {}
        self._gone: deque[Lane] = deque()
        self._made: WeakKeyDictionary[Node, tuple[int, Lane | None]] = WeakKeyDictionary()
        self._inside: dict[int, list[Event]] = {}  # the calls and sweeps that each thread is in
        self._steps: dict[int, tuple[Event, list[tuple[Any, int]]]] = {}
        self._hooks: list[Any] = []

    # ---------------------------------------------------------------------------------------------------- the block

    def begin(self) -> None:
        self._hooks.append(register_optimizer_step_pre_hook(self._before_step))
        self._hooks.append(register_optimizer_step_post_hook(self._after_step))
        self.ended = None

    def end(self) -> None:
        self.ended = perf_counter_ns()
        while self._hooks:
            self._hooks.pop().remove()

    def __enter__(self) -> Trace:
        self.began = self.began if self._events.count else perf_counter_ns()
        return super().__enter__()  # type: ignore[no-any-return]

    def __exit__(self, *error: Any) -> None:
        self.note_error(error[1] if len(error) > 1 else None)
        super().__exit__(*error)

    def note_error(self, error: BaseException | None) -> None:
        """Remember what ended the program; to end by `sys.exit()` is no error."""
        if error is not None and not (isinstance(error, SystemExit) and not error.code):
            self.error = f"{type(error).__name__}: {error}"

    # ------------------------------------------------------------------------------------------------------- the calls

    def before(self, call: Call) -> None:
        if self.ended is None and is_told(call.name, call.args):
            self._safely(self._before, call)

    def after(self, call: Call) -> None:
        if call.notes is not None:
            self._safely(self._after, call)

    def _safely(self, function: Callable[..., None], *arguments: Any) -> None:
        """Note something. A failure of ours is counted, and shown by the page: it must not become the program's."""
        try:
            function(*arguments)
        except Exception as error:
            self.unrecorded += 1
            self.failure = self.failure or f"{type(error).__name__}: {error}"

    def _before(self, call: Call) -> None:
        given = distinct(tensors_in([call.args, call.kwargs]))
        with _lock:
            for tensor in given:
                self._lane(tensor, seen=True)
            event = self._begin("read", short_name(call.name), call.where, call.thread)
            self._name_operands(call)
        call.notes = (event, [(t, memory_of(t), memory_of(t).version, t._storage.writer) for t in given],
                      next_order(), counters.protected)

    def _after(self, call: Call) -> None:
        event, given, mark, protected = call.notes
        with _lock:
            event.began, event.ended = call.began, call.ended
            event.copied = counters.protected - protected
            event.error = None if call.error is None else f"{type(call.error).__name__}: {call.error}"
            self._leave(event)
            results = distinct(tensors_in(call.result)) if call.error is None else []
            self._note_reads(event, call, given)
            self._note_writes(event, call, given, mark)
            self._note_results(event, results, {id(memory) for _, memory, _, _ in given})
            self._note_nodes(event, given, results, mark)
            self._show(event, results, given)
            self._finish(event)

    def _name_operands(self, call: Call) -> None:
        for position, value in enumerate(call.args):
            for tensor in distinct(tensors_in(value, 0)):
                lane = self._lane(tensor)
                if lane is not None and lane.seen_as is None and tensor._offset is None:
                    lane.seen_as = call.where, call.name, position

    def _note_reads(self, event: Event, call: Call, given: list[Any]) -> None:
        target = call.args[0] if call.args and call.name in ONLY_WRITE else call.kwargs.get("out")
        event.reads = tuple(dict.fromkeys(self._lane(tensor) for tensor, *_ in given if tensor is not target))
        for lane in event.reads:
            lane.last_write = None

    def _note_writes(self, event: Event, call: Call, given: list[Any], mark: int) -> None:
        index = call.args[1] if call.name == "Tensor.__setitem__" and len(call.args) > 1 else None
        for tensor, memory, version, _ in given:
            lane = self._lane(tensor)
            if memory.version != version and all(touch.lane is not lane for touch in event.writes):
                writer = tensor._storage.writer
                node = writer if isinstance(writer, Node) and writer.order < mark else None
                part = written_part(tensor, node, index)
                event.kind, event.index = "write", "" if index is None else _index_text(index)
                event.overwrites += overwritten(lane, part, event.number)
                self._note_unread(event, lane, part, node is not None)
                self._touch(event, lane, part.low, part.high, version, memory.version)

    def _note_unread(self, event: Event, lane: Lane, part: Part, recorded: bool) -> None:
        before = lane.last_write
        if before is not None and part.low <= before.low and before.high <= part.high:
            event.buries = before.event
        lane.last_write = Unread(event.number, part.low, part.high) if recorded else None

    def _note_results(self, event: Event, results: list[TensorBase], known: set[int]) -> None:
        for tensor in results:
            memory = memory_of(tensor)
            new = self._known(memory.buffer) is None
            lane = self._lane(tensor)
            if new and id(memory) not in known:
                event.kind, lane.born = "new" if event.kind == "read" else event.kind, event.number
                lane.site = None if event.where is None else (event.where, event.name)
                self._touch(event, lane, 0, lane.bytes, 0, memory.version)
            elif event.kind == "read":
                event.kind = "view"
                event.reads += () if lane in event.reads else (lane,)

    def _note_nodes(self, event: Event, given: list[Any], results: list[TensorBase], mark: int) -> None:
        changed = [tensor for tensor, memory, version, _ in given if memory.version != version]
        nodes = new_nodes([*results, *changed], mark)
        event.nodes = len(nodes)
        for node in nodes:
            written = next((self._lane(t) for t in (*results, *changed) if t._storage.writer is node), None)
            self._made[node] = event.number, written or (event.writes[0].lane if event.writes else None)
            event.saves += note_saved(node, event.number, given, results, self._lane)
        if event.kind == "new" and nodes and len(event.writes) == 1:
            lane = event.writes[0].lane
            lane.last_write = Unread(event.number, 0, lane.bytes)

    def _show(self, event: Event, results: list[TensorBase], given: list[Any]) -> None:
        shown: Any = next(iter((*results, *(tensor for tensor, *_ in given))), None)
        if shown is None:
            return
        event.shape, event.dtype = tuple(shown._array.shape), _type_name(shown._array.dtype)
        if event.writes:
            event.values = small_copy(shown)
            self._note_not_finite(event, shown)

    def _note_not_finite(self, event: Event, shown: Any) -> None:
        """Count nan and inf where they are first computed: not in what was given, handed on or never set."""
        wrote = sum(touch.high - touch.low for touch in event.writes)
        if 2 * wrote < shown._array.nbytes and shown._array.size > LITTLE:
            return
        found = not_finite(shown)
        if found and event.reads and not any(lane.wrong for lane in event.reads) and not NOT_COMPUTED(event.name):
            event.wrong = found
        for touch in event.writes:
            touch.lane.wrong = found > 0

    # ------------------------------------------------------------------------------------------------- the optimizers

    def _before_step(self, optimizer: Any, *_: Any) -> None:
        thread = threading.get_ident()
        if self.ended is not None or not self._is_mine(thread):
            return
        with _lock:
            given = [p for group in optimizer.param_groups for p in group["params"]]
            for tensor in given:
                self._lane(tensor, seen=True)
            event = self._begin("step", f"{type(optimizer).__name__}.step", here(), thread)
            self._steps[id(optimizer)] = event, [(p, memory_of(p).version) for p in given]

    def _after_step(self, optimizer: Any, *_: Any) -> None:
        event, given = self._steps.pop(id(optimizer), (None, []))
        if event is None:
            return
        with _lock:
            event.ended = perf_counter_ns()
            self._leave(event)
            for tensor, version in given:
                memory = memory_of(tensor)
                if memory.version != version:
                    part = part_of(tensor)
                    lane = self._lane(tensor)
                    event.overwrites += overwritten(lane, part, event.number)
                    self._touch(event, lane, part.low, part.high, version, memory.version)
            self._finish(event)

    # ------------------------------------------------------------------------------------------------------ the sweeps

    def sweep_began(self, where: Where, roots: Any, wanted: Any) -> None:
        thread = threading.get_ident()
        if self.ended is None and self._is_mine(thread):
            with _lock:
                inside = self._inside.setdefault(thread, [])
                if inside and inside[-1].sweep is None and inside[-1].kind == "read":
                    event = inside[-1]  # the call of backward() itself
                    inside.append(event)
                else:
                    event = self._begin("sweep", "grad", where, thread)
                self.sweeps += 1
                event.kind, event.sweep = "sweep", self.sweeps

    def sweep_ended(self) -> None:
        inside = self._inside.get(threading.get_ident(), [])
        if inside and inside[-1].kind == "sweep":
            event = inside.pop()
            event.ended = perf_counter_ns()
            if event not in inside:
                self._finish(event)

    def visited(self, node: Writer, facts: Facts | None, began: int, ended: int) -> None:
        self._safely(self._visited, node, facts, began, ended)

    def _visited(self, node: Writer, facts: Facts | None, began: int, ended: int) -> None:
        thread = threading.get_ident()
        inside = self._inside.get(thread, [])
        if self.ended is not None or not inside or inside[-1].kind != "sweep":
            return
        with _lock:
            if isinstance(node, Node):
                event = self._new("backward", node.op.name, node.where, thread, began)
                event.forward, event.lane = self._made.get(node, (None, None))
            else:
                event = self._new("backward", "leaf", None, thread, began)
                tensor = node.tensor() if isinstance(node, Leaf) else None
                event.lane = None if tensor is None else self._lane(tensor)
            event.ended, event.adjoint, event.sweep, event.live = ended, facts, inside[-1].sweep, self.live
            if event.where is not None:
                self._events.line(event.where).backward += ended - began

    # ---------------------------------------------------------------------------------------------------- bookkeeping

    def _is_mine(self, thread: int) -> bool:
        """Whether a thread is recorded: it is in a call, or would be asked about its next one."""
        return bool(self._inside.get(thread)) or self.is_asked()

    def _new(self, kind: str, name: str, where: Where | None, thread: int, began: int) -> Event:
        self._numbers += 1
        event = Event(self._numbers, kind, name, where, thread, began)
        self._events.add(event)
        return event

    def _begin(self, kind: str, name: str, where: Where, thread: int) -> Event:
        event = self._new(kind, name, where, thread, perf_counter_ns())
        self._inside.setdefault(thread, []).append(event)
        return event

    def _leave(self, event: Event) -> None:
        """Note that a thread is no longer in a call, nor in any that an interrupt has ended unnoticed inside of it."""
        inside = self._inside[event.thread]
        while inside and inside.pop() is not event:
            pass

    def _finish(self, event: Event) -> None:
        self._settle()
        event.live = self.live
        if event.where is not None:
            total = self._events.line(event.where)
            total.calls, total.nodes = total.calls + 1, total.nodes + event.nodes
            total.forward += event.ended - event.began if event.kind != "sweep" else 0
            total.copied += event.copied
            total.bytes += sum(touch.lane.bytes for touch in event.writes if touch.lane.born == event.number)
            total.names[event.name] = total.names.get(event.name, 0) + 1

    def _touch(self, event: Event, lane: Lane, low: int, high: int, before: int, after: int) -> None:
        event.writes = (*event.writes, Touch(lane, low, high, (before, after)))
        lane.version = after

    def _lane(self, tensor: TensorBase, seen: bool = False) -> Lane:
        """Return the lane of a tensor's memory; with `seen`, note that it was written since it was last looked at."""
        memory = memory_of(tensor)
        buffer = memory.buffer
        lane = self._known(buffer)
        if lane is None:
            lane = self._new_lane(buffer, memory.version)
            lane.name = global_name(tensor, user_frame().f_globals) if seen else ""
        if seen and lane.version != memory.version:
            event = self._new("unseen", "written outside of calls", None, threading.get_ident(), perf_counter_ns())
            self._touch(event, lane, 0, lane.bytes, lane.version, memory.version)
            event.live, lane.last_write = self.live, None
        lane.leaf = lane.leaf or memory.leaf is not None or tensor._storage.leaf is not None
        return lane

    def _known(self, buffer: Any) -> Lane | None:
        """Return the lane of a buffer; another one that was at its place before it is gone."""
        lane = self._by_buffer.get(id(buffer))
        return lane if lane is not None and lane.reference() is buffer else None

    def _new_lane(self, buffer: Any, version: int) -> Lane:
        self._lanes += 1
        lane = Lane(self._lanes, tuple(buffer.shape), _type_name(buffer.dtype), int(buffer.nbytes), version)
        self._by_buffer[id(buffer)] = lane
        lane.key, lane.reference = id(buffer), ref(buffer, lambda _: self._gone.append(lane))
        self.live += lane.bytes
        self.peak = max(self.peak, self.live)
        return lane

    def _settle(self) -> None:
        """Take note of the memory that is gone."""
        while self._gone:
            lane = self._gone.popleft()
            lane.died = self._numbers
            self.live -= lane.bytes
            if self._by_buffer.get(lane.key) is lane:
                del self._by_buffer[lane.key]

    # ----------------------------------------------------------------------------------------------------- the answers

    @property
    def events(self) -> list[Event]:
        """What happened, in order; beyond `max_events` the first and the last half of it."""
        return sorted(self._events, key=lambda event: event.number)

    @property
    def count(self) -> int:
        """How many events there were, kept or not."""
        return self._events.count

    @property
    def storages(self) -> int:
        """How many storages were seen."""
        return self._lanes

    @property
    def findings(self) -> list[Finding]:
        """What is worth looking at first."""
        return findings(self.events)

    @property
    def recording(self) -> Recording:
        """All that the page shows."""
        return Recording(self.title, self.error, self.began, self.ended, self.storages, self.sweeps, self.peak,
                         self._events, self.events, self.unrecorded, self.failure)

    @property
    def html(self) -> str:
        """The page: one file that needs no other."""
        return page(self.recording)

    def save(self, path: Any) -> None:
        """Write the page to a file."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.html)

    def __repr__(self) -> str:
        rows = [f"<trace of {self.count} events on {self.storages} storages, {self.sweeps} backward, "
                f"{self.peak} bytes at most>"]
        return "\n".join([*rows, *(f"  {finding.text}" for finding in self.findings[:5])])

    def _repr_html_(self) -> str:
        return (f'<iframe srcdoc="{html.escape(self.html)}" style="width:100%;height:720px;border:0" '
                'title="mutagrad trace"></iframe>')


def _index_text(index: Any) -> str:
    """Return an index as a program writes it, cut where it is long."""
    parts = index if isinstance(index, tuple) else (index,)
    text = ", ".join(_index_part(part) for part in parts)
    return text if len(text) <= 60 else text[:57] + "..."


def _index_part(part: Any) -> str:
    if isinstance(part, slice):
        ends = ["" if end is None else _index_part(end) for end in (part.start, part.stop, part.step)]
        return ":".join(ends if part.step is not None else ends[:2])
    if isinstance(part, TensorBase):
        values = small_copy(part)
        return f"tensor of shape {tuple(part._array.shape)}" if values is None else str(values)
    return "..." if part is ... else repr(part)


_type_name = lru_cache(64)(str)
