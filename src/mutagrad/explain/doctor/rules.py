"""PyTorch's rules, as it states them in 2.13: what it refuses at a call, and what it refuses or gets wrong in backward."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...arrays import np
from ...base.provenance import describe
from ...core.storage import TensorBase
from ..torch_saves import tensors_of
from ..watching import Call
from .findings import RAISES, SLOW, WRONG, Finding
from .shadow import Node, Save, Shadow, Write, overlap, reached

if TYPE_CHECKING:
    from .diagnosis import Diagnosis

SEVERAL = {"unbind", "split", "chunk", "tensor_split", "hsplit", "vsplit", "dsplit", "split_with_sizes"}
NO_WRITE = {"requires_grad_", "retain_grad", "detach_", "share_memory_", "is_set_to"}
NOT_RECORDED = {"detach", "numpy", "item", "tolist", "requires_grad_", "register_hook", "retain_grad", "detach_"}
PLACED = {"__setitem__", "index_put_", "index_put", "index_copy_", "index_copy", "scatter_", "scatter", "put_", "put",
          "index_fill_", "masked_scatter_", "select_scatter", "take"}
MANY = 64  # writes of one line to one tensor, from which on what PyTorch does for each of them is felt


# ------------------------------------------------------------------------------------------------------------ at a call

def before_call(doctor: Diagnosis, call: Call) -> None:
    """Note what PyTorch would refuse about a call, or get wrong because of it."""
    facts = call.notes
    for shadow in facts.shadows.values():
        _stale_view(doctor, call, shadow)
    needing = facts.recorded and any(s.requires_grad for s in facts.shadows.values())
    written = facts.written(call)
    for slot in written:
        if slot == "out":
            if needing:
                _refused_out(doctor, call)
        elif needing:
            _refused_write(doctor, call, slot)
        _shared_elements(doctor, call, slot)
    if facts.name == "__setitem__" and isinstance(call.args[2], (list, tuple, np.ndarray)) and not _is_number(call.args[2]):
        _refused_value(doctor, call)
    if facts.name in PLACED:
        _duplicates(doctor, call)


def _is_number(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.ndim == 0


def _stale_view(doctor: Diagnosis, call: Call, shadow: Shadow) -> None:
    if shadow.made and call.notes.recorded and shadow.is_stale:
        how = "one of several that one call made" if shadow.made == "several" else "made in no_grad"
        write = shadow.counter.first_after(shadow.at_version)
        doctor.findings.add(Finding(
            "stale_view", RAISES, call.where,
            f"reads a view, {how}, whose memory was written since{_at(write)}: PyTorch raises \"... is a view and its base "
            "or another view of its base has been modified inplace\"",
            saved_where=None if write is None else write.where,
            advice="take the views anew after the write, one by one (x[i] instead of unbind, split, chunk or unpacking)"))
        shadow.made = ""


def _at(write: Write | None) -> str:
    return "" if write is None else f" ({describe(write.where)})"


def _refused_write(doctor: Diagnosis, call: Call, slot: str) -> None:
    """PyTorch's `check_inplace`."""
    facts = call.notes
    target = facts.shadows[slot]
    if target.made == "several":
        doctor.findings.add(Finding(
            "write_to_one_of_several_views", RAISES, call.where,
            f"{facts.name} writes to a view that a call returned together with others (unbind, split, chunk, unpacking, a "
            "loop over rows): PyTorch raises \"Output 0 of UnbindBackward0 is a view and is being modified inplace\"",
            saved_where=target.where, slot=slot, advice="index instead: x[i] is a view that can be written"))
    elif target.made == "no_grad":
        doctor.findings.add(Finding(
            "write_to_view_made_in_no_grad", RAISES, call.where,
            f"{facts.name} writes to a view that was made in no_grad: PyTorch raises \"A view was created in no_grad mode "
            "and is being modified inplace with grad mode enabled\"", saved_where=target.where, slot=slot,
            advice="make the view where it is written: both inside no_grad, or both outside"))
    elif target.requires_grad and target.base is not None and target.base.is_leaf:
        _leaf(doctor, call, slot, "a view of a leaf")
    elif target.requires_grad and target.base is None and target.is_leaf:
        _leaf(doctor, call, slot, "a leaf")


def _leaf(doctor: Diagnosis, call: Call, slot: str, what: str) -> None:
    doctor.findings.add(Finding(
        "write_to_leaf", RAISES, call.where,
        f"{call.notes.name} writes to {what} that requires a gradient: PyTorch raises \"{what} Variable that requires grad "
        "is being used in an in-place operation\"", slot=slot,
        advice="write to a copy, y = x.clone(), and go on with y; or, where no gradient of the write is meant (an "
               "initialisation, an update), inside `with torch.no_grad():`"))


def _refused_out(doctor: Diagnosis, call: Call) -> None:
    doctor.findings.add(Finding(
        "out_argument", RAISES, call.where,
        f"{call.notes.name}: PyTorch raises \"functions with out=... arguments don't support automatic differentiation\"",
        advice="y = torch.f(x), or y.copy_(torch.f(x))"))


def _refused_value(doctor: Diagnosis, call: Call) -> None:
    kind = type(call.args[2]).__name__
    doctor.findings.add(Finding(
        "assigned_list", RAISES, call.where, f"assigns a {kind}: PyTorch raises \"can't assign a {kind} to a "
        "torch.FloatTensor\"", slot="2", advice="x[i] = torch.tensor([...]), or torch.stack([...]) of tensors"))


def _shared_elements(doctor: Diagnosis, call: Call, slot: str) -> None:
    """Note an operand that is partly the memory that is written: PyTorch's check before it computes elementwise."""
    facts = call.notes
    target = facts.tensors[slot]
    if facts.name == "__setitem__":
        _shared_by_item(doctor, call)
        return
    for other, tensor in facts.tensors.items():
        if other != slot and isinstance(tensor, TensorBase) and _status(target._array, tensor._array) == "partial":
            _refused_overlap(doctor, call, other)


def _shared_by_item(doctor: Diagnosis, call: Call) -> None:
    target, index, value = call.args[0], call.args[1], call.args[2]
    if not isinstance(value, TensorBase) or not np.may_share_memory(target._array, value._array):
        return
    if any(isinstance(t, TensorBase) for t in tensors_of({"1": index}).values()):
        return
    status = _status(target._array[_plain(index)], value._array)
    if status == "partial":
        _refused_overlap(doctor, call, "2")
    elif status == "hard" and np.shares_memory(target._array[_plain(index)], value._array):
        doctor.findings.add(Finding(
            "overlapping_write", WRONG, call.where,
            "assigns elements that the assignment itself overwrites: in PyTorch some may be read after they were written",
            slot="2", advice="x[...] = x[...].clone()"))


def _plain(index: Any) -> Any:
    return tuple(np.asarray(i) if isinstance(i, list) else i for i in index) if isinstance(index, tuple) else index


def _refused_overlap(doctor: Diagnosis, call: Call, slot: str) -> None:
    doctor.findings.add(Finding(
        "overlapping_write", RAISES, call.where,
        f"{call.notes.name} reads memory that it writes: PyTorch raises \"unsupported operation: some elements of the input "
        "tensor and the written-to tensor refer to a single memory location\"", slot=slot,
        advice="clone() what is read"))


def _status(target: Any, other: Any) -> str:
    """PyTorch's answer to whether two arrays overlap: "none", "full", "partial", or "hard" where it does not look."""
    if not target.size or not other.size or not np.may_share_memory(target, other):
        return "none"
    if not _is_dense(target) or not _is_dense(other):
        return "hard"
    mine, theirs = _range(target), _range(other)
    if mine == theirs:
        return "full" if target.strides == other.strides else "partial"
    return "partial" if mine[0] < theirs[1] and theirs[0] < mine[1] else "none"


def _is_dense(array: Any) -> bool:
    """Whether the elements fill one stretch of memory, in some order."""
    expected = array.itemsize
    for step, n in sorted((step, n) for step, n in zip(array.strides, array.shape) if n != 1):
        if step != expected:
            return False
        expected *= n
    return True


def _range(array: Any) -> tuple[int, int]:
    start = array.__array_interface__["data"][0]
    return start, start + array.size * array.itemsize


def _duplicates(doctor: Diagnosis, call: Call) -> None:
    """Note an index that writes an element twice: PyTorch gives the gradient to values that are not there any more."""
    facts = call.notes
    if call.kwargs.get("accumulate") or len(call.args) > 3 and call.args[3] is True and "index_put" in facts.name:
        return
    places, value = _index_and_value(call)
    if not isinstance(value, TensorBase) or not facts.recorded or not doctor.shadow(value).requires_grad:
        return
    if value._array.size > 1 and _has_duplicates(call, places):
        doctor.findings.add(Finding(
            "duplicate_indices", WRONG, call.where,
            f"{facts.name} writes some elements more than once: the last value stays (PyTorch promises not even that), and "
            "PyTorch gives every value the gradient, those that were overwritten, too", slot="1",
            advice="make the indices unique; or add, with index_add_, scatter_add_ or index_put_(..., accumulate=True)"))


def _index_and_value(call: Call) -> tuple[list[Any], Any]:
    given = [*call.args[1:], *call.kwargs.values()]
    tensors = list(tensors_of({str(i): v for i, v in enumerate(given)}).values())
    places = [t for t in tensors if t.dtype.is_floating_point is False and not t.dtype.is_complex]
    values = [t for t in tensors if t.dtype.is_floating_point or t.dtype.is_complex]
    return places, values[-1] if values else None


def _has_duplicates(call: Call, places: list[Any]) -> bool:
    arrays = [t._array for t in places if t._array.dtype.kind != "b"]
    if not arrays:
        return False
    if call.notes.name.startswith("scatter") and arrays[0].ndim > 1:
        dim = call.args[1] if isinstance(call.args[1], int) else call.kwargs.get("dim", 0)
        moved = np.moveaxis(arrays[0], dim, -1)
        rows = np.sort(moved.reshape(-1, moved.shape[-1]), axis=1)
        return bool((rows[:, 1:] == rows[:, :-1]).any())
    columns = np.stack([a.reshape(-1) for a in np.broadcast_arrays(*arrays)], 1)
    return len(np.unique(columns, axis=0)) < len(columns)


def uncounted(shadow: Shadow, write: Write) -> None:
    """Mark what is saved of a memory by tensors that do not count this write: `.data` has a counter of its own."""
    for save in list(shadow.memory.saves):
        if save.shadow.counter is not shadow.counter and save.unseen is None and overlap(save.array, write.array) != []:
            save.unseen = write


# ------------------------------------------------------------------------------------------------------------- in backward

def before_sweep(doctor: Diagnosis, call: Call) -> None:
    """Note what PyTorch's backward would refuse, or compute from values that have changed."""
    roots, given, inputs, retain = _asked(call)
    shadows = [doctor.shadow(t) for t in roots]
    for tensor, seed in zip(roots, given):
        if seed is None and tensor._array.size != 1:
            doctor.findings.add(Finding(
                "backward_of_several", RAISES, call.where,
                f"{call.notes.name} of a tensor of shape {tuple(tensor.shape)}: PyTorch raises \"grad can be implicitly "
                "created only for scalar outputs\"", slot="0", advice="y.sum().backward()"))
    edges = [edge for edge in (s.edge() for s in shadows) if edge is not None]
    wanted = None if inputs is None else [e for e in (doctor.shadow(t).edge() for t in inputs) if e is not None]
    for node in reached(edges, wanted):
        _visit(doctor, call, node)
        if not retain and node.saves:
            node.freed_at = call.where


def _asked(call: Call) -> tuple[list[Any], list[Any], list[Any] | None, bool]:
    """Return the tensors to start from, their gradients, those that are asked for, and whether values are kept."""
    names = ("self", "gradient", "retain_graph", "create_graph", "inputs")
    if call.notes.name == "autograd.backward":
        names = ("tensors", "grad_tensors", "retain_graph", "create_graph", "grad_variables", "inputs")
    elif call.notes.name == "autograd.grad":
        names = ("outputs", "inputs", "grad_outputs", "retain_graph", "create_graph")
    given = dict(zip(names, call.args)) | call.kwargs
    roots = _listed(given.get(names[0]))
    seeds = _listed(given.get("gradient", given.get("grad_tensors", given.get("grad_outputs"))))
    inputs = given.get("inputs")
    retain = given.get("retain_graph")
    keeps = bool(given.get("create_graph")) if retain is None else bool(retain)
    seeds = [*seeds, *[None] * (len(roots) - len(seeds))]
    return roots, seeds, None if inputs is None else _listed(inputs), keeps


def _listed(value: Any) -> list[Any]:
    if value is None:
        return []
    return [value] if isinstance(value, TensorBase) else [v for v in value if v is None or isinstance(v, TensorBase)]


def _visit(doctor: Diagnosis, call: Call, node: Node) -> None:
    if node.freed_at is not None:
        doctor.findings.add(Finding(
            "backward_twice", RAISES, call.where,
            f"goes back through {node.name} ({describe(node.where)}), whose values an earlier backward freed "
            f"({describe(node.freed_at)}): PyTorch raises \"Trying to backward through the graph a second time\"",
            saved_where=node.freed_at, slot="0", advice="retain_graph=True in the earlier backward; or compute the shared "
            "part again; or detach() the state that is carried from one step to the next"))
        return
    for save in node.saves:
        if save.shadow.counter.version != save.version:
            _overwritten(doctor, save)
        elif save.unseen is not None:
            _overwritten_unseen(doctor, save, save.unseen, "data_write", "through .data, which PyTorch does not count")
        elif save.changed_by_numpy():
            where = save.shadow.memory.exported_at or save.where
            _overwritten_unseen(doctor, save, Write("NumPy", where, save.array), "numpy_write",
                                "by NumPy, which shares the memory and which PyTorch does not see")


def _overwritten(doctor: Diagnosis, save: Save) -> None:
    write = save.shadow.counter.first_after(save.version)
    where = save.where if write is None else write.where
    name = "a write" if write is None else write.name
    concerned = None if write is None else overlap(save.array, write.array)
    doctor.findings.add(Finding(
        "overwritten_saved_value", RAISES, where,
        f"{name} changes a value that {save.function} ({describe(save.where)}) has kept for backward{_told(concerned)}: PyTorch "
        "raises \"one of the variables needed for gradient computation has been modified by an inplace operation\"",
        saved_where=save.where, slot=save.slot, advice=_advice(save, name), details={"elements": concerned}))


def _told(elements: list[tuple[int, ...]] | None) -> str:
    if elements is None:
        return ""
    if not elements:
        return " (other elements of it: PyTorch counts writes to the whole memory)"
    shown = ", ".join(str(list(e)) if len(e) != 1 else str(e[0]) for e in elements[:6])
    return f" (elements {shown}{' ...' if len(elements) > 6 else ''})" if elements != [()] else ""


def _advice(save: Save, name: str) -> str:
    what = "the result" if save.slot.startswith("out") else "its operand"
    return f"clone() {what} where it is saved, or write out of place instead of {name}"


def _overwritten_unseen(doctor: Diagnosis, save: Save, write: Write, kind: str, how: str) -> None:
    doctor.findings.add(Finding(
        kind, WRONG, write.where,
        f"changes, {how}, a value that {save.function} ({describe(save.where)}) has kept for backward: PyTorch's gradient is "
        "silently that of the new value", saved_where=save.where, slot=save.slot,
        advice="write inside `with torch.no_grad():` after backward(), or clone() what is saved",
        details={"elements": overlap(save.array, write.array)}))


def slow_loop(doctor: Diagnosis, call: Call, count: int, size: int) -> None:
    """Note a loop of small writes to one tensor, each of which costs PyTorch a copy of all of its gradient."""
    doctor.findings.add(Finding(
        "quadratic_loop", SLOW, call.where,
        f"writes {count} times or more into a tensor of {size} elements that is part of the graph: for each write PyTorch's "
        "backward copies the gradient of the whole tensor", slot="0",
        advice="collect the parts in a list and torch.stack (or torch.cat) them at the end"))
