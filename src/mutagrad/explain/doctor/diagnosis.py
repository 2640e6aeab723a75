"""Follows a program call by call, and finds where PyTorch would raise or be wrong."""
from __future__ import annotations

from collections.abc import Callable, Iterable
from threading import get_ident
from types import TracebackType
from typing import Any
from weakref import ref

from ...arrays import np
from ...autograd.function import Applied
from ...base.counters import counters
from ...base.errors import ChangedSince, NotSupported, OverlapError, UnmarkedWrite
from ...base.modes import mode, push
from ...base.provenance import OURS, Where, calls_under_way, file_and_line, here, is_library
from ...core.graph import Leaf
from ...core.storage import TensorBase, memory_of
from ...core.sweep import OUTPUT
from ...optim.optimizer import register_optimizer_step_post_hook
from ...utils.checkpoint import Recomputed
from ..sweeping import SweepListener, listen, stop_listening
from ..torch_calls import by_slot, results_of, tensors_of
from ..torch_saves import Saved, arguments, saved_by, takes_inplace
from ..watching import Call, Watcher
from . import rules, transforms
from .books import Books
from .findings import RAISES
from .gradients import InsideBackward
from .keeping import frame_here, kept
from .shadow import Counter, Node, Save, Shadow, Write

SWEEPS = {"backward", "autograd.backward", "autograd.grad"}
APPLY = "autograd.Function.apply"
EXPORTS = {"numpy", "__array__", "from_numpy", "as_tensor", "asarray", "frombuffer", "from_dlpack", "untyped_storage",
           "storage", "data_ptr"}


# Errors of mutagrad's own, where PyTorch goes on.
ONLY_OURS = ((NotSupported, "not_supported"), (OverlapError, "overlapping_target"), (UnmarkedWrite, "not_marked_dirty"),
             (ChangedSince, "changed_before_recomputed"))


class Diagnosis(Books, Watcher, SweepListener):
    """Keeps PyTorch's books beside the program, and notes where they would not let it go on."""

    threads = True

    # -------------------------------------------------------------------------------------------------------- the calls

    def __enter__(self) -> Any:
        self._hook = register_optimizer_step_post_hook(self._after_step)
        listen(self)
        return super().__enter__()

    def _after_step(self, optimizer: Any, *_: Any) -> None:
        self.carefully(lambda: self.stepped(optimizer), "step")

    def __exit__(self, *error: Any) -> None:
        self._hook.remove()
        stop_listening(self)
        super().__exit__(*error)
        if error and isinstance(error[1], Exception):
            self.note_error(error[1], error[2])

    def note_error(self, error: Exception, frames: TracebackType | None) -> None:
        """Enter an error that ends the program: PyTorch raises there, too, unless only mutagrad lacks something."""
        kind = next((kind for of, kind in ONLY_OURS if isinstance(error, of)), "error")
        kind = "error" if getattr(error, "is_expanded", False) else kind
        where = last_of_user(frames)
        if any(found.torch == RAISES and found.place == file_and_line(where) for found in self.findings):
            return  # it is told already
        what = f"{type(error).__name__}: {getattr(error, 'what', error)}"
        self.findings.add(kind, where, name="this line", error=what, fix=getattr(error, "fix", ""))

    def before(self, call: Call) -> None:
        if not self.carefully(lambda: self._look(call), call.name):
            call.notes = None

    def after(self, call: Call) -> None:
        self._asked.discard(get_ident())
        if call.error is None and call.notes is not None:
            step = self._enter_grads if call.notes.name in SWEEPS else self._enter_in_books
            self.carefully(lambda: step(call), call.name)

    def sweep_began(self, where: Where, roots: Any, wanted: Any) -> None:
        if get_ident() in self._asked:  # it is the one that was asked for in so many words
            self._asked.discard(get_ident())
        elif mode.now.strong_zeros:  # else it is part of a forward derivative
            self.carefully(lambda: rules.inner_sweep(self, roots, wanted), "a sweep")

    def modes_inside(self, node: Any, g: Any) -> dict[str, Any]:
        if self.wrote_inside and isinstance(self.edges.get(node), Node):
            self.carefully(lambda: rules.visit(self, self.edges[node]), "a node")
        if isinstance(node.op, Recomputed):
            return {"function_modes": push(self)}
        if isinstance(node.op, Applied) or node.hooks:
            edge = self.edges.get(node)
            return {"function_modes": push(InsideBackward(self, edge, self.visiting, g))}
        return {}

    def visited(self, node: Any, facts: Any, began: int, ended: int) -> None:
        found = self.constants.get(node) if self.constants else None
        if found is not None:
            self.findings.add("taken_as_constant", found[1], name=found[0])

    def stayed_zero(self, node: Any) -> None:
        if node.op.name not in rules.ZERO_AT_ZERO:
            self.findings.add("nan_of_no_influence", node.where, slot="0", name=node.op.name)

    def carefully(self, step: Callable[[], None], name: str) -> bool:
        """Take a step without ever getting in the program's way: what goes wrong here is told in the report."""
        try:
            with self._lock:  # the books are one, whatever thread writes in them
                step()
        except Exception as error:
            self.stumbled.append(f"{name}: {type(error).__name__}: {error}")
            return False
        return True

    def _look(self, call: Call) -> None:
        name = short(call.name)
        transforms.begin(self, mode.now.transformed)
        tensors = tensors_of(by_slot(call.args[1:], {})) if name == APPLY else arguments(name, call.args, call.kwargs)
        shadows = {slot: self.shadow(t) for slot, t in tensors.items() if isinstance(t, TensorBase)}
        recorded = mode.now.recorded and not mode.now.inference and not name.startswith("nn.init.")
        call.notes = Facts(name, tensors, shadows, recorded)
        if name in SWEEPS:
            rules.before_sweep(self, call)
            self._asked.add(get_ident())
            return
        frame_here(self)
        call.notes.known = self._known(call, ["out"])
        rules.before_call(self, call)

    def _known(self, call: Call, results: Iterable[str]) -> Saved | None:
        facts = call.notes
        if call.name.endswith(("__get__", "__set__")):
            return None
        needs = self._needs if facts.recorded else _nothing
        layer = f"nn.functional.{facts.name}"
        if takes_inplace(layer):  # which the function of the same name outside of nn.functional does not
            return saved_by(layer, call.args, call.kwargs, needs, results)
        if facts.name in rules.KEEP_ALL:
            return Saved(frozenset(facts.tensors if any(map(needs, facts.tensors.values())) else ()))
        return (saved_by(facts.name, call.args, call.kwargs, needs, results)
                or saved_by(layer, call.args, call.kwargs, needs, results))

    def _needs(self, tensor: Any) -> bool:
        return isinstance(tensor, TensorBase) and self.shadow(tensor).requires_grad

    def _enter_grads(self, call: Call) -> None:
        """Enter derivatives that were recorded in turn: they keep what the operations that they are of have kept."""
        edges, saves = call.notes.swept
        for tensor in results_of(call.result).values():
            if isinstance(tensor, TensorBase) and tensor._storage.writer is not None:
                shadow = self.remember(tensor, Shadow(self.memory(tensor), Counter(), False, call.where))
                shadow.node = Node("the derivative", call.where, edges, saves)

    def _enter_in_books(self, call: Call) -> None:
        facts = call.notes
        results = {slot: t for slot, t in results_of(call.result).items() if isinstance(t, TensorBase)}
        if facts.known is not None:
            self._statistics(call)
        if facts.name == APPLY:
            self._dirty(call, results)
        elif len(results) > 1:
            facts.known = self._known(call, results)
        self._settle_writes(call, results)
        for slot, tensor in results.items():
            self._enter(call, slot, tensor)
        self._export(call)
        self._record(call, results)
        for tensor in (*facts.tensors.values(), *results.values()):
            if isinstance(tensor, TensorBase):
                self._note_writer(tensor)

    def _statistics(self, call: Call) -> None:
        """Enter what else a call has written, which is not counted: running statistics."""
        facts = call.notes
        for slot, tensor in facts.tensors.items():
            memory, now = facts.shadows[slot].memory, memory_of(tensor).version
            if memory.version != now and slot not in facts.written():
                facts.updated.add(slot)
                write = Write(facts.name, call.where, tensor._array, kind="running_statistics")
                self.uncounted(facts.shadows[slot], write)
            memory.version = now

    def _note_writer(self, tensor: TensorBase) -> None:
        shadow = self.shadow(tensor)
        writer = tensor._storage.writer
        if writer is not None and shadow.requires_grad:
            edge = (shadow.base or shadow).edge()
            if edge is not None:
                self.edges[writer] = edge
        if writer is not None and isinstance(writer, Leaf):
            self.leaves[id(tensor)] = ref(tensor)

    # ----------------------------------------------------------------------------------------------------------- writes

    def _settle_writes(self, call: Call, results: dict[str, Any]) -> None:
        """Count the writes that the call has made."""
        facts = call.notes
        facts.saves = [self._save(call, slot, facts.tensors[slot]) for slot in facts.read_before()]
        frame = frame_here(self)
        if frame is not None and frame.is_over(len(facts.saves)):
            return
        for slot, by in facts.written().items():
            shadow, tensor = facts.shadows[slot], facts.tensors[slot]
            write = Write(facts.name, call.where, _written_part(call, tensor), inside=calls_under_way())
            shadow.counter.add(write, by)
            shadow.memory.version = memory_of(tensor).version
            rules.after_write(self, call, slot, write)
        copied = counters.protected - facts.protected
        if copied > 0:
            self.findings.add("copied_saved_value", call.where, bytes=copied)

    def _save(self, call: Call, slot: str, tensor: TensorBase, name: str = "") -> Save:
        shadow = self.shadow(tensor)
        return Save(shadow, tensor._array, slot, call.where, name or call.notes.name, shadow.counter.version,
                    used=slot not in call.notes.updated)

    # ---------------------------------------------------------------------------------------------------------- results

    def _enter(self, call: Call, slot: str, tensor: TensorBase) -> None:
        """Make the shadow of a result: the argument's own, a view of it, or a new one."""
        facts = call.notes
        if id(tensor) in {id(t) for t in facts.tensors.values()}:
            return
        if facts.name == "detach" or call.name == "Tensor.data.__get__":
            source = facts.shadows["0"]
            counter = source.counter if facts.name == "detach" else Counter()
            self.remember(tensor, Shadow(source.memory, counter, False, call.where))
            return
        known = facts.known
        source = facts.shadows.get(known.views.get(slot, "")) if known is not None else None
        if source is not None and source.memory is not self.memory(tensor):
            source = None  # it may be a view, and is a copy here
        if source is None:
            source = next((facts.shadows[s] for s, t in facts.tensors.items()
                           if isinstance(t, TensorBase) and t._storage is tensor._storage), None)
        if source is None and facts.name == APPLY:
            source = next((s for s in facts.shadows.values() if s.memory is self.memory(tensor)), None)
        if source is None:
            leaf = isinstance(tensor._storage.writer, Leaf)
            made = self.remember(tensor, Shadow(self.memory(tensor), Counter(), leaf, call.where))
            made.inference = mode.now.inference
            made.slices = frozenset().union(*(shadow.slices for shadow in facts.shadows.values()))
            made.level = mode.now.transformed
        elif known is not None and slot in known.same:
            self.remember(tensor, source)
        else:
            self.remember(tensor, source.view(self._how_made(facts, slot), call.where))

    def _how_made(self, facts: Facts, slot: str) -> str:
        """Return which kind of view a result is, of those that PyTorch does not let be written."""
        if facts.name == APPLY:
            return "function"
        if facts.known is not None and slot in facts.known.multiple or facts.name in rules.SEVERAL:
            return "several"
        return "" if mode.now.recorded else "no_grad"

    def _export(self, call: Call) -> None:
        facts = call.notes
        if facts.name in EXPORTS:
            for shadow in facts.shadows.values() or [self.shadow(t) for t in results_of(call.result).values()]:
                shadow.memory.export(call.where)

    def _record(self, call: Call, results: dict[str, Any]) -> None:
        """Make the node of the call, with what PyTorch keeps, where something that it read requires a gradient."""
        facts = call.notes
        needing = [s for s in facts.shadows.values() if s.requires_grad]
        self._set_flags(call)
        if not facts.recorded or not needing or facts.name in rules.NOT_RECORDED or not (results or facts.written()):
            return
        edges = [edge for edge in (s.edge() for s in needing) if edge is not None]
        known = facts.known
        node = Node(facts.name, call.where, edges, facts.saves, known is not None and known.raises, facts.repeats,
                    known is not None and bool(known.missing), _is_refused_boolean(facts), facts.name in rules.KEEPERS)
        if facts.name == APPLY:
            self._save_of_function(call, node, results)
        elif known is None and not call.name.endswith("__get__"):
            self.unknown[facts.name] = self.unknown.get(facts.name, 0) + 1
        self._save_results(call, node, results)
        self._keep(node)
        for save in node.saves:
            save.shadow.memory.saves.add(save)
            if save.shadow.memory.exported_at is not None:
                save.keep_copy()
        for slot in facts.written():
            facts.shadows[slot].write(node)
        for slot, tensor in results.items():
            shadow = self.shadow(tensor)
            fresh = not any(shadow is s for s in facts.shadows.values()) and shadow.base is None
            differentiable = known.differentiable.get(slot, True) if known is not None else True
            writer = tensor._storage.writer
            if fresh and differentiable and (writer is not None or node.only_theirs):
                shadow.node = node
            elif fresh and not differentiable and writer is not None and not isinstance(writer, Leaf):
                self.constants[writer] = facts.name, call.where

    def _keep(self, node: Node) -> None:
        """Change what a node keeps to what it keeps in a block that says so, or for a forward derivative."""
        blocks = mode.now.saved_hooks
        if transforms.keeps_nothing(mode.now.transformed):
            node.saves = []
        elif blocks and node.saves:
            node.saves = kept(self, node.saves)

    def _save_results(self, call: Call, node: Node, results: dict[str, Any]) -> None:
        facts = call.notes
        if facts.known is None:
            return
        for slot in facts.known.saves:
            tensor = results.get(slot)
            if tensor is None and slot in facts.written():
                tensor = facts.tensors[slot]
            if tensor is not None:
                node.saves.append(self._save(call, slot, tensor))

    def _set_flags(self, call: Call) -> None:
        facts = call.notes
        if facts.name in ("requires_grad_", "requires_grad.__set__") and "0" in facts.shadows:
            wanted = call.args[1] if len(call.args) > 1 else call.kwargs.get("requires_grad", True)
            facts.shadows["0"].own_grad = bool(wanted)
        elif call.name == "Tensor.data.__set__":
            shadow = facts.shadows["0"]
            write = Write("data =", call.where, facts.tensors["0"]._array, kind="data_assigned")
            for save in list(shadow.memory.saves):
                if save.shadow is shadow and not save.slot.startswith("out"):
                    save.unseen = write
        elif facts.name == "detach_" and "0" in facts.shadows:
            facts.shadows["0"].node, facts.shadows["0"].own_grad = None, False

    def _dirty(self, call: Call, results: dict[str, Any]) -> None:
        """Find which arguments a Function of the user's has written: those that it returns."""
        facts = call.notes
        facts.dirty = {slot: 1 for slot, t in facts.tensors.items() if any(t is result for result in results.values())
                       and memory_of(t).version != facts.shadows[slot].memory.version}
        if facts.recorded and any(s.requires_grad for s in facts.shadows.values()):
            for slot in facts.dirty:
                rules.refused_write(self, call, slot)

    def _save_of_function(self, call: Call, node: Node, results: dict[str, Any]) -> None:
        """Add what a Function of the user's has kept: arguments or results that `save_for_backward` was given."""
        facts = call.notes
        made = next((_maker(t) for t in results.values() if _maker(t) is not None), None)
        if made is None:
            return
        given = {**facts.tensors, **results}
        for slot, tensor in facts.tensors.items():
            if any(tensor is kept for kept in vars(made.op.ctx).values()):
                save = self._save(call, slot, tensor, made.op.name)
                save.kind = "attribute_of_function"
                node.saves.append(save)
        for source, value in zip(made.op.ctx._sources, made.saved):
            slot = self._slot_of(source, value, given, results)
            if slot is not None:
                node.saves.append(self._save(call, slot, given[slot], made.op.name))

    def _slot_of(self, source: Any, value: Any, given: dict[str, Any], results: dict[str, Any]) -> str | None:
        """Find which argument or result a kept value is: by its number, or by what it looks like."""
        if isinstance(source, int):
            return f"out.{source}" if f"out.{source}" in results else "out"
        return next((slot for slot, t in given.items() if isinstance(t, TensorBase)
                     and t._array.shape == np.shape(value) and np.array_equal(t._array, value)), None)


class Facts:
    """What is known of a call before it is made."""

    def __init__(self, name: str, tensors: dict[str, Any], shadows: dict[str, Shadow], recorded: bool) -> None:
        self.name, self.tensors, self.shadows, self.recorded = name, tensors, shadows, recorded
        self.known: Saved | None = None
        self.saves: list[Save] = []
        self.dirty: dict[str, int] = {}
        self.updated: set[str] = set()  # running statistics, whose values a call that updates them does not use
        self.swept: tuple[list[Any], list[Save]] = [], []
        self.repeats: dict[str, Any] = {}  # of an index that names an element twice: what it is like
        self.protected = counters.protected

    def written(self) -> dict[str, int]:
        """Return which arguments the call writes, and by how much that raises their version."""
        if self.dirty:
            return self.dirty
        if self.known is not None and self.known.writes:
            return {slot: by for slot, by in self.known.writes.items() if slot in self.shadows}
        writes = self.name.endswith("_") and not self.name.endswith("__") or self.name == "__setitem__"
        found = {"0": 1} if writes and "0" in self.shadows and self.name not in rules.NO_WRITE else {}
        found |= {slot: 1 for slot in self.shadows if slot.partition(".")[0] == "out"}
        return found

    def read_before(self) -> list[str]:
        """Return the arguments that are kept as they were before the call."""
        if self.known is None:
            return []
        return [slot for slot in self.known.saves if slot in self.shadows and slot not in self.known.writes]


def _maker(tensor: Any) -> Any:
    """Return the node of the Function that a tensor is a result of."""
    writer = tensor._storage.writer
    if writer is not None and getattr(writer, "op", None) is OUTPUT:
        writer = writer[0]
    return writer if isinstance(getattr(writer, "op", None), Applied) else None


def _written_part(call: Call, tensor: TensorBase) -> Any:
    """Return the elements that a call writes, where these are a view; else all of the tensor."""
    if call.name == "Tensor.__setitem__" and rules.is_basic(call.args[1]):
        index = call.args[1] if isinstance(call.args[1], tuple) else (call.args[1],)
        return tensor._array[index if ... in index else (*index, ...)]  # or one element would be no array
    return tensor._array


def last_of_user(frames: TracebackType | None) -> Where:
    """Return where in the program an error was raised."""
    found = None
    while frames is not None:
        code = frames.tb_frame.f_code
        if code.co_filename not in OURS and not is_library(code.co_filename):
            found = code, frames.tb_lasti
        frames = frames.tb_next
    return found or here()


def _is_refused_boolean(facts: Facts) -> bool:
    """Whether PyTorch's derivative of a call raises for a boolean operand."""
    return facts.name in rules.NO_BOOLEANS and any(t._array.dtype.kind == "b" for t in facts.tensors.values())


def short(name: str) -> str:
    """Return the name of a function as the table has it."""
    return name.removeprefix("Tensor.")


def _nothing(_: Any) -> bool:
    return False
