"""The shadows of all tensors of a program, and of the memories that they share."""
from __future__ import annotations

from threading import RLock
from typing import Any
from weakref import WeakKeyDictionary, WeakSet, WeakValueDictionary, ref

from ...base.modes import mode
from ...base.provenance import Where, here
from ...core.graph import Leaf
from ...core.storage import TensorBase, memory_of
from .findings import Findings
from .shadow import Counter, Frame, Memory, Node, Shadow, Write, overlap, slices_of


class Books:
    """What PyTorch would know of each tensor that a program has met, and what was found about it."""

    def __init__(self) -> None:
        self.findings = Findings()
        self._lock = RLock()
        self.unknown: dict[str, int] = {}  # functions of which it is not known what PyTorch keeps
        self.sweeps = 0
        self.wrote_inside = False  # code of the program's that it runs has written to something
        self.visiting: list[Node] = []  # the nodes of the sweep that was asked for last
        self.stumbled: list[str] = []  # what doctor itself could not do
        self._asked: set[int] = set()  # threads that are about to run a sweep which was looked at
        self.levels: WeakSet[Any] = WeakSet()  # calls of functions for their derivatives that have begun
        self.frames: WeakKeyDictionary[Any, Frame] = WeakKeyDictionary()  # of checkpoints
        self._updated_at: Where | None = None
        self._shadows: dict[int, tuple[Any, Shadow]] = {}
        self._memories: dict[int, tuple[Any, Memory]] = {}  # by their buffers
        self.edges: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
        # Of what PyTorch takes for a constant: by which function, at which line.
        self.constants: WeakKeyDictionary[Any, tuple[str, Where]] = WeakKeyDictionary()
        # By storages, which may be gone: look whether the memory is the same.
        self._bases: WeakValueDictionary[int, Shadow] = WeakValueDictionary()
        self.leaves: dict[int, Any] = {}
        # How often a line has written to a tensor.
        self.writes: WeakKeyDictionary[Shadow, dict[Where, int]] = WeakKeyDictionary()

    def shadow(self, tensor: TensorBase, caught_up: bool = True) -> Shadow:
        """Return what PyTorch would know of a tensor; of one that is met for the first time, what it looks like."""
        entry = self._shadows.get(id(tensor))
        found = entry[1] if entry is not None and entry[0]() is tensor else self._meet(tensor)
        if caught_up:
            self._catch_up(found, tensor)
        else:
            found.memory.version = memory_of(tensor).version
        return found

    def _meet(self, tensor: TensorBase) -> Shadow:
        writer = tensor._storage.writer
        known = None if tensor._offset is None else self._bases.get(id(tensor._storage))
        if known is not None and known.memory is self.memory(tensor):  # `a, b = x` gives views of x, unseen
            return self.remember(tensor, known.view("several", here()))
        found = Shadow(self.memory(tensor), Counter(), writer is not None, here())
        found.slices, found.level = slices_of(tensor._array), mode.now.transformed
        if writer is not None and not isinstance(writer, Leaf):
            found.node = self.opaque(writer)
            found.own_grad = False
        return self.remember(tensor, found)

    def remember(self, tensor: TensorBase, shadow: Shadow) -> Shadow:
        number, shadows = id(tensor), self._shadows
        shadows[number] = ref(tensor, lambda _: shadows.pop(number, None)), shadow
        if shadow.base is None:
            self._bases[id(tensor._storage)] = shadow
        return shadow

    def memory(self, tensor: TensorBase) -> Memory:
        root, memories = memory_of(tensor), self._memories
        number = id(root.buffer)
        entry = memories.get(number)
        if entry is None or entry[0]() is not root.buffer:
            entry = memories[number] = ref(root.buffer, lambda _: memories.pop(number, None)), Memory(root.version)
        return entry[1]

    def _catch_up(self, shadow: Shadow, tensor: TensorBase) -> None:
        """Note a write that was not seen as a call: an optimizer's, or one inside of something that is not watched."""
        version = memory_of(tensor).version
        if version != shadow.memory.version:
            shadow.memory.version = version
            shadow.counter.add(Write("an update", self._updated_at or here(), tensor._array))

    def opaque(self, writer: Any) -> Node:
        """Return the node of something that was not seen being made, with the inputs that mutagrad knows of."""
        pending: list[Any] = [writer]
        made: dict[Any, Node] = {}
        while pending:
            one = pending[-1]
            missing = [w for w in one.inputs if w is not None and w not in self.edges and w not in made
                       and not isinstance(w, Leaf)]
            if missing:
                pending.extend(missing)
                continue
            pending.pop()
            if one not in made:
                inputs = [self._edge_of(w, made) for w in one.inputs if w is not None]
                made[one] = Node(getattr(one.op, "name", "leaf"), one.where, [i for i in inputs if i is not None])
        for w, node in made.items():
            self.edges[w] = node
        return made[writer]

    def _edge_of(self, writer: Any, made: dict[Any, Node]) -> Any:
        if isinstance(writer, Leaf):
            tensor = writer.tensor()
            return None if tensor is None else self.shadow(tensor).edge()
        return made.get(writer) or self.edges.get(writer)

    def stepped(self, optimizer: Any) -> None:
        """Look at the parameters after an optimizer's step."""
        where = self._updated_at = here()
        for group in optimizer.param_groups:
            for p in group["params"]:
                if group.get("fused"):  # whose writes PyTorch does not count
                    shadow = self.shadow(p, caught_up=False)
                    self.uncounted(shadow, Write("step", where, p._array, kind="fused_step"))
                self.shadow(p)
        self._updated_at = None

    def uncounted(self, shadow: Shadow, write: Write) -> None:
        """Enter a write that the tensors which share a counter do not see."""
        for save in list(shadow.memory.saves):
            if save.used and save.unseen is None and overlap(save.array, write.array) != []:
                save.unseen = write
