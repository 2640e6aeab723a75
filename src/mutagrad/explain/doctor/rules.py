"""PyTorch's rules, as 2.13 has them: what it refuses at a call, and what it refuses or gets wrong in backward."""
from __future__ import annotations

from typing import Any

from ...arrays import np
from ...base.modes import mode
from ...base.provenance import describe
from ...core.graph import Leaf
from ...core.storage import TensorBase
from ..torch_calls import tensors_of
from ..watching import Call
from . import transforms
from .books import Books
from .shadow import Node, Save, Shadow, Write, addresses, overlap, reached

SEVERAL = {"unbind", "split", "chunk", "split_with_sizes"}
NO_WRITE = {"requires_grad_", "retain_grad", "detach_", "share_memory_"}
QUIET = {"requires_grad.__get__", "grad.__get__", "data.__get__", "shape.__get__", "dtype.__get__", "device.__get__",
         "ndim.__get__", "layout.__get__", "detach", "tolist", "item", "__repr__", "__str__", "__format__", "__len__",
         "size", "dim", "numel", "stride", "is_contiguous", "element_size", "data_ptr"}
NOT_RECORDED = {"detach", "numpy", "item", "tolist", "requires_grad_", "register_hook", "retain_grad", "detach_"}
PLACED = {"__setitem__", "index_put_", "index_put", "index_copy_", "index_copy", "scatter_", "scatter", "put_", "put"}
# Those that take no operand that shares memory with what they write, not even the very same.
APART = {"index_put_", "index_copy_", "index_add_", "index_reduce_", "scatter_", "scatter_add_", "scatter_reduce_",
         "masked_scatter_"}
# Those that keep a number or a mask of their own, of which nobody else can see the memory.
KEEPERS = {"mul", "div", "true_divide", "mul_", "div_", "__rmul__", "__mul__", "__truediv__", "nn.functional.dropout"}
# Those that write their weight, if they have a max_norm, without recording it.
RENORMED = {"nn.functional.embedding", "nn.functional.embedding_bag", "embedding", "embedding_bag", "embedding_renorm_"}
# Layers as one call, whose products keep inputs and weights.
KEEP_ALL = {"nn.functional.multi_head_attention_forward", "ops.recurrent.network", "ops.recurrent.padded"}
# Those that PyTorch takes for the identity in backward, although their values are 0 and 1.
IDENTITIES = {"logical_and_", "logical_or_", "logical_xor_", "logical_not_"}
# Those whose backward computes with an operand as it is, which booleans do not bear.
NO_BOOLEANS = {"pow", "pow_", "__pow__", "logaddexp", "logaddexp2", "nn.functional.huber_loss",
               "nn.functional.soft_margin_loss"}
# Arguments that may not require a gradient.
NOT_DIFFERENTIABLE = {
    "nn.functional.binary_cross_entropy_with_logits": ("2", "6", "pos_weight"),
    "nn.functional.soft_margin_loss": ("1",), "nn.functional.nll_loss": ("2",), "nn.functional.cross_entropy": ("2",),
    "nn.functional.batch_norm": ("1", "2"), "nn.functional.instance_norm": ("1", "2"), "linalg.pinv": ("rtol", "atol"),
    "nn.functional.multi_margin_loss": ("4", "weight"), "nn.functional.binary_cross_entropy": ("2", "weight")}
# Those whose derivative looks at a value that it has kept only in this way.
LOOKS_AT = {
    **dict.fromkeys(("relu", "relu_", "nn.functional.relu", "nn.functional.leaky_relu"), lambda values: values > 0),
    **dict.fromkeys(("abs", "abs_", "absolute"), np.sign), "nan_to_num": np.isfinite}
# Those whose derivative PyTorch takes for zero where it is not defined.
ZERO_AT_ZERO = {"atan2"}
MANY = 64  # writes of one line to one tensor, from which on what PyTorch does for each of them is felt


# ------------------------------------------------------------------------------------------------------------ at a call

def before_call(doctor: Books, call: Call) -> None:
    """Note what PyTorch would refuse about a call, or get wrong because of it."""
    facts = call.notes
    if not _is_quiet(facts):
        for shadow in facts.shadows.values():
            _stale_view(doctor, call, shadow)
    needing = facts.recorded and any(s.requires_grad for s in facts.shadows.values())
    for slot in facts.written():
        _copy_what_is_not_counted(facts.shadows[slot])
        if needing and slot.partition(".")[0] == "out":
            doctor.findings.add("out_argument", call.where, name=facts.name)
        elif needing:
            refused_write(doctor, call, slot)
        _shared_elements(doctor, call, slot)
    if facts.name in ("__setitem__", "copy_"):
        _assigned(doctor, call, call.args[-1])
    if facts.name in PLACED:
        _duplicates(doctor, call)
    for slot in NOT_DIFFERENTIABLE.get(facts.name, ()):
        if slot in facts.shadows and facts.recorded and facts.shadows[slot].requires_grad:
            doctor.findings.add("not_differentiable", call.where, slot=slot, name=facts.name)
    if facts.name == "detach_" and "0" in facts.shadows and facts.shadows["0"].base is not None:
        doctor.findings.add("detach_of_view", call.where)
    _inference(doctor, call, needing)
    transforms.before_call(doctor, call)


def _copy_what_is_not_counted(target: Shadow) -> None:
    """Copy kept values before a write that does not count for them, to see whether it has changed what they say."""
    for save in list(target.memory.saves):
        if save.shadow.counter is not target.counter and save.unseen is None:
            save.keep_copy()


def _inference(doctor: Books, call: Call, needing: bool) -> None:
    """Note tensors of inference mode that are written or kept outside of it."""
    facts = call.notes
    if mode.now.inference:
        return
    for slot, shadow in facts.shadows.items():
        if shadow.inference and slot in facts.written():
            doctor.findings.add("inference_tensor", call.where, slot=slot, name=facts.name, does="writes to",
                                quote="Inplace update to inference tensor outside InferenceMode is not allowed")
        elif shadow.inference and needing and facts.known is not None and slot in facts.known.saves:
            doctor.findings.add("inference_tensor", call.where, slot=slot, name=facts.name, does="keeps for backward",
                                quote="Inference tensors cannot be saved for backward")


def _assigned(doctor: Books, call: Call, value: Any) -> None:
    if isinstance(value, (list, tuple)) or isinstance(value, np.ndarray) and value.ndim:
        doctor.findings.add("assigned_list", call.where, slot=str(len(call.args) - 1), what=type(value).__name__,
                            holds=_holds(value))


def _holds(value: Any) -> str:
    """Return what is in a list, which decides how it becomes a tensor."""
    if isinstance(value, np.ndarray):
        return "array"
    tensors = len(tensors_of({"": value}))
    return "tensors" if tensors == len(value) else "both" if tensors else "numbers"


HOW_MADE = {"several": "one of several that one call made", "no_grad": "made in no_grad",
            "function": "made by a Function"}


def _is_quiet(facts: Any) -> bool:
    """Whether a call does not ask how a tensor was made, because it has no derivative."""
    known = facts.known
    return facts.name in QUIET or known is not None and not known.differentiable.get("out", True)


def _stale_view(doctor: Books, call: Call, shadow: Shadow) -> None:
    if shadow.made and call.notes.recorded and shadow.is_stale:
        how = HOW_MADE[shadow.made]
        write = shadow.counter.first_after(shadow.at_version)
        doctor.findings.add("stale_view", call.where, None if write is None else write.where, how=how,
                            made=shadow.where, made_in=shadow.made,
                            write="" if write is None else f" ({describe(write.where)})")
        shadow.made = ""


MADE = {"several": "write_to_one_of_several_views", "no_grad": "write_to_view_made_in_no_grad",
        "function": "write_to_view_made_by_function"}


def refused_write(doctor: Books, call: Call, slot: str) -> None:
    """Note what PyTorch's `check_inplace` raises for."""
    name, target = call.notes.name, call.notes.shadows[slot]
    if name in RENORMED:
        return
    if target.made:
        doctor.findings.add(MADE[target.made], call.where, target.where, slot, name=name)
    elif target.requires_grad and (target.is_leaf if target.base is None else target.base.is_leaf):
        what = "a leaf" if target.base is None else "a view of a leaf"
        doctor.findings.add("write_to_leaf", call.where, slot=slot, name=name, what=what, shifts=_shifts(call),
                            given=target.level is not None)


def _shifts(call: Call) -> bool:
    """Return whether a write adds what has no gradient, so that derivatives are the same with it and without."""
    facts = call.notes
    return facts.name in ("add_", "sub_") and sum(shadow.requires_grad for shadow in facts.shadows.values()) == 1


# ------------------------------------------------------------------------------------------------------------- overlaps

def _shared_elements(doctor: Books, call: Call, slot: str) -> None:
    """Note an operand that is partly the memory that is written: PyTorch looks before it computes."""
    facts = call.notes
    if facts.name == "__setitem__" and is_basic(call.args[1]):
        _shared_by_item(doctor, call)
        return
    target = facts.tensors[slot]._array
    if facts.name in ("fill_", "masked_fill_", "index_fill_"):  # which read the one number first
        return
    if facts.name == "__setitem__":
        if isinstance(call.args[2], TensorBase) and not call.args[2]._array.ndim and _is_mask(call.args[1]):
            return
        target = _sliced(target, call.args[1])
    refused = ("partial", "full") if facts.name in APART or facts.name == "__setitem__" else ("partial",)
    for other, tensor in facts.tensors.items():
        if other == slot or not isinstance(tensor, TensorBase):
            continue
        status = _status(target, tensor._array)
        if status in refused:
            doctor.findings.add("overlapping_write", call.where, slot=other, name=facts.name)
        elif status == "hard" and facts.name not in APART and _reads_ahead(target, tensor._array):
            doctor.findings.add("overlapping_copy", call.where, slot=other, name=facts.name)


def _reads_ahead(target: Any, operand: Any) -> bool:
    """Return the same of elementwise work, whose operands are broadcast."""
    try:
        return _reads_what_it_wrote(target, np.broadcast_to(operand, target.shape))
    except ValueError:  # an operand of another kind, such as a matrix
        return False


def _shared_by_item(doctor: Books, call: Call) -> None:
    target, index, value = call.args[0], call.args[1], call.args[2]
    if not isinstance(value, TensorBase):
        return
    written = target._array[index]
    if not isinstance(written, np.ndarray) or value._array.size != written.size:  # then it is expanded first
        return
    status = _status(written, value._array)
    if status == "partial":
        doctor.findings.add("overlapping_write", call.where, slot="2", name="the assignment")
    elif status == "hard" and _reads_what_it_wrote(written, value._array.reshape(written.shape)):
        doctor.findings.add("overlapping_copy", call.where, slot="2", name="the assignment")


def _reads_what_it_wrote(target: Any, source: Any) -> bool:
    """Whether a copy, element by element in order, reads an element after it was written."""
    if target.size > 100_000 or not np.may_share_memory(target, source):
        return bool(np.may_share_memory(target, source))
    written, read = addresses(target), addresses(source)
    order = np.argsort(written, kind="stable")
    found = np.searchsorted(written[order], read).clip(max=written.size - 1)
    hit = written[order][found] == read
    return bool((hit & (order[found] < np.arange(read.size))).any())


def _is_mask(index: Any) -> bool:
    """Whether an index is one tensor of booleans, for which PyTorch fills in a single number."""
    return isinstance(index, TensorBase) and index._array.dtype.kind == "b"


def _sliced(array: Any, index: Any) -> Any:
    """Return the part of an array that PyTorch gives to index_put_: what slices and numbers in an index leave of it."""
    parts: list[Any] = []
    for part in index if isinstance(index, tuple) else (index,):
        mask = isinstance(part, TensorBase) and part._array.dtype.kind == "b"
        parts += [part] if is_basic(part) else [slice(None)] * (part._array.ndim if mask else 1)
    return array[tuple(parts)]


def is_basic(index: Any) -> bool:
    """Whether an index takes a view: numbers, slices, None and `...` alone."""
    parts = index if isinstance(index, tuple) else (index,)
    return all(part is None or part is ... or isinstance(part, (int, slice, np.integer)) for part in parts)


def _status(target: Any, other: Any) -> str:
    """PyTorch's answer to whether two arrays overlap: "none", "full", "partial", or "hard" where it does not look."""
    if not target.size or not other.size or not np.may_share_memory(target, other):
        return "none"
    if target is other:
        return "full"
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


# ----------------------------------------------------------------------------------------------------------- duplicates

def _duplicates(doctor: Books, call: Call) -> None:
    """Look whether a write whose gradient matters has an index that names an element twice."""
    facts = call.notes
    if call.kwargs.get("accumulate") or len(call.args) > 3 and call.args[3] is True and "index_put" in facts.name:
        return
    given = tensors_of({str(i): v for i, v in enumerate([*call.args[1:], *call.kwargs.values()])})
    values = [t for t in given.values() if t._array.dtype.kind in "fcV"]
    places = [t._array for t in given.values() if t._array.dtype.kind in "iu"]
    index = call.args[1] if isinstance(call.args[1], tuple) else (call.args[1],)
    places += [np.asarray(part) for part in index if isinstance(part, (list, np.ndarray)) and not _holds_tensors(part)]
    if not values or not places or not facts.recorded:
        return
    if doctor.shadow(values[-1]).requires_grad and _repeated(call, places):
        facts.repeats = _form(call, places, values[-1]._array, index)


def _form(call: Call, places: list[Any], value: Any, index: tuple[Any, ...]) -> dict[str, Any]:
    """Return what a rewrite of such a write has to know of it."""
    target, item = call.args[0]._array, call.notes.name == "__setitem__"
    dims = target.ndim - len(places) + 1
    rows = value.ndim == dims and len(value) == places[0].size
    if item:
        part = target[tuple(p._array if isinstance(p, TensorBase) else p for p in index)]
        dims, rows = part.ndim, value.shape == part.shape
    return {"flat": all(place.ndim == 1 for place in places) and value.ndim <= dims, "places": len(places),
            "rows": rows, "lists": [n for n, part in enumerate(index) if item and not isinstance(part, TensorBase)]}


def _holds_tensors(part: Any) -> bool:
    return bool(tensors_of({"": part})) or np.asarray(part).dtype.kind not in "iu"


def _repeated(call: Call, places: list[Any]) -> bool:
    if call.notes.name.startswith("scatter") and places[0].ndim > 1:
        dim = call.args[1] if len(call.args) > 1 and isinstance(call.args[1], int) else call.kwargs.get("dim", 0)
        rows = np.sort(np.moveaxis(places[0], dim, -1), axis=-1)
        return bool((rows[..., 1:] == rows[..., :-1]).any())
    columns = np.stack([a.reshape(-1) for a in np.broadcast_arrays(*places)], 1)
    return len(np.unique(columns, axis=0)) < len(columns)


# ----------------------------------------------------------------------------------------------------------- at a write

def after_write(doctor: Books, call: Call, slot: str, write: Write) -> None:
    """Note what a write costs PyTorch, and which saved values it changes without being counted for them."""
    shadow = call.notes.shadows[slot]
    for save in list(shadow.memory.saves):
        if save.shadow.counter is not shadow.counter and save.unseen is None and overlap(save.array, write.array) != []:
            save.unseen = write
    needing = call.notes.recorded and any(s.requires_grad for s in call.notes.shadows.values())
    base = (shadow.base or shadow) if needing else None
    if base is not None and (slot != "0" or call.notes.name == "__setitem__" or shadow.base is not None):
        counts = doctor.writes.setdefault(base, {})
        count = counts[call.where] = counts.get(call.where, 0) + 1
        if count == MANY:
            size = call.notes.tensors[slot]._storage.buffer.size
            value = call.args[-1]
            fits = isinstance(value, TensorBase) and value._array.shape == write.array.shape
            doctor.findings.add("quadratic_loop", call.where, slot=slot, size=size, fits=fits)


# ---------------------------------------------------------------------------------------------------------- in backward

def before_sweep(doctor: Books, call: Call) -> None:
    """Note what PyTorch's backward would refuse, or compute from values that have changed."""
    doctor.sweeps += 1
    roots, seeds, inputs, retain = _asked(call)
    for tensor, seed in zip(roots, seeds):
        if seed is None and tensor._array.size != 1:
            doctor.findings.add("backward_of_several", call.where, slot="0", name=call.notes.name,
                                shape=tuple(tensor._array.shape))
    if any(t.requires_grad and not doctor.shadow(t).requires_grad for t in roots):
        doctor.findings.add("no_history", call.where, name=call.notes.name)
    edges = [edge for edge in (doctor.shadow(t).edge() for t in roots) if edge is not None]
    wanted = None if inputs is None else [e for e in (doctor.shadow(t).edge() for t in inputs) if e is not None]
    visited = doctor.visiting = list(reached(edges, wanted))
    doctor.wrote_inside = False
    for node in visited:
        if node.freed_at is not None:
            saver = f"{node.name} ({describe(node.where)})"
            doctor.findings.add("backward_twice", call.where, node.freed_at, "0", saver=saver)
        else:
            visit(doctor, node)
        if not retain and (node.saves or node.keeps):
            node.freed_at = call.where
    call.notes.swept = edges, [save for node in visited for save in node.saves]


ARGUMENTS = {"backward": ("tensors", "gradients", "retain_graph", "create_graph", "inputs"),
             "autograd.backward": ("tensors", "gradients", "retain_graph", "create_graph", "grad_variables", "inputs"),
             "autograd.grad": ("tensors", "inputs", "gradients", "retain_graph", "create_graph")}
KNOWN_AS = {"gradient": "gradients", "grad_tensors": "gradients", "grad_outputs": "gradients", "outputs": "tensors"}


def _asked(call: Call) -> tuple[list[Any], list[Any], list[Any] | None, bool]:
    """Return the tensors to start from, their gradients, those that are asked for, and whether values are kept."""
    given = dict(zip(ARGUMENTS[call.notes.name], call.args))
    given |= {KNOWN_AS.get(name, name): value for name, value in call.kwargs.items()}
    roots, seeds, inputs = _listed(given.get("tensors")), _listed(given.get("gradients")), given.get("inputs")
    retain = given.get("retain_graph")
    keeps = bool(given.get("create_graph")) if retain is None else bool(retain)
    return roots, [*seeds, *[None] * (len(roots) - len(seeds))], None if inputs is None else _listed(inputs), keeps


def _listed(value: Any) -> list[Any]:
    if value is None or isinstance(value, TensorBase):
        return [] if value is None else [value]
    return [v for v in value if v is None or isinstance(v, TensorBase)]


def inner_sweep(doctor: Books, roots: list[Any], wanted: list[Any]) -> None:
    """Note the same of a sweep that is part of something else: of `torch.func`, or of a checkpoint."""
    edges = [doctor.edges.get(writer) or doctor.opaque(writer) for writer in roots if not isinstance(writer, Leaf)]
    ends = [edge for edge in map(doctor.edges.get, wanted) if edge is not None]
    for node in reached(edges, ends or None):
        visit(doctor, node)


def visit(doctor: Books, node: Node) -> None:
    """Note what PyTorch raises for, or gets wrong, when backward comes to a node."""
    saver = f"{node.name} ({describe(node.where)})"
    if node.always_raises:
        doctor.findings.add("always_raises", node.where, saver=saver)
    if node.repeats:  # PyTorch gives a gradient to values that are not there any more
        doctor.findings.add("duplicate_indices", node.where, slot="1", name=node.name, **node.repeats)
    if node.missing:
        doctor.findings.add("no_derivative", node.where, saver=saver)
    if node.name in IDENTITIES:
        doctor.findings.add("identity_gradient", node.where, saver=saver)
    if node.boolean:
        doctor.findings.add("boolean_operand", node.where, saver=saver)
    for save in node.saves:
        _look_at(doctor, save, saver)


def _look_at(doctor: Books, save: Save, saver: str) -> None:
    """Note a value that is not what it was when it was saved."""
    write, kind = save.unseen, ""
    counted = save.write()
    if counted is not None:
        write, kind = counted, save.kind
    facts = {"saver": saver, "kept": "the result" if save.slot.startswith("out") else "the operand",
             "function": save.function, "how": save.how}
    if not kind and _is_as_it_was(save):
        return
    if write is not None:
        doctor.findings.add(kind or write.kind, write.where, save.where, save.slot, name=write.name,
                            elements=_told(overlap(save.array, write.array)), inside=save.where in write.inside,
                            **facts)
    elif save.changed_by_numpy():
        doctor.findings.add("numpy_write", save.shadow.memory.exported_at or save.where, save.where, save.slot, **facts)


def _is_as_it_was(save: Save) -> bool:
    """Whether backward finds in a kept value what it has kept, so that writes which do not count do not matter."""
    if save.copy is None or save.copy.shape != save.array.shape:
        return False
    look = LOOKS_AT.get(save.function, np.asarray)
    return bool(np.array_equal(look(save.copy), look(save.array), equal_nan=save.array.dtype.kind in "fc"))


def _told(elements: list[tuple[int, ...]] | None) -> str:
    if elements is None or elements == [()]:
        return ""
    if not elements:
        return " (other elements of it: PyTorch counts writes to the memory as a whole)"
    shown = ", ".join(str(list(e)) if len(e) != 1 else str(e[0]) for e in elements[:6])
    return f" (elements {shown}{' ...' if len(elements) > 6 else ''})"

