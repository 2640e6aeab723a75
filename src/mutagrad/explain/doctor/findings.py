"""What doctor finds: each place of a program where PyTorch would do something else than the program means."""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ...base.provenance import Where, file_and_line

RAISES, WRONG, SLOW, FINE = "raises", "wrong", "slow", "fine"


class Kind(NamedTuple):
    """A kind of finding: what PyTorch does, in which words, and how the program is written for it."""

    torch: str
    says: str
    quote: str  # of PyTorch's error, where it raises
    advice: str


KINDS = {
    "write_to_leaf": Kind(
        RAISES, "{name} writes to {what} that requires a gradient",
        "{what} Variable that requires grad is being used in an in-place operation",
        "write to a copy, y = x.clone(), and go on with y; or, where no gradient of the write is meant (an "
        "initialisation, an update), write inside `with torch.no_grad():`"),
    "write_to_one_of_several_views": Kind(
        RAISES, "{name} writes to a view that was returned together with others (unbind, split, chunk, unpacking, a "
        "loop over rows)", "Output 0 of Unbind is a view and is being modified inplace",
        "take the views one by one: x[i] can be written"),
    "write_to_view_made_in_no_grad": Kind(
        RAISES, "{name} writes to a view that was made in no_grad",
        "A view was created in no_grad mode and is being modified inplace with grad mode enabled",
        "make the view where it is written: both inside no_grad, or both outside"),
    "write_to_view_made_by_function": Kind(
        RAISES, "{name} writes to what a Function of the program returned, which is a view of its input",
        "Output 0 of ... is a view and is being modified inplace. This view was created inside a custom Function",
        "return a copy from the Function's forward, or clone() its result before writing"),
    "stale_view": Kind(
        RAISES, "reads a view, {how}, whose memory was written since{write}",
        "... is a view and its base or another view of its base has been modified inplace",
        "take the view anew after the write, by x[i] instead of unbind, split, chunk or unpacking"),
    "out_argument": Kind(
        RAISES, "{name} writes its result to out= while a gradient is recorded",
        "functions with out=... arguments don't support automatic differentiation", "y.copy_(torch.{name}(x))"),
    "assigned_list": Kind(
        RAISES, "assigns a {what} to part of a tensor", "can't assign a {what} to a torch.FloatTensor",
        "x[i] = torch.tensor([...]), or torch.stack([...]) where these are tensors"),
    "overlapping_write": Kind(
        RAISES, "{name} reads memory that it writes",
        "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory "
        "location", "clone() what is read"),
    "overlapping_copy": Kind(
        WRONG, "{name} reads elements that it overwrites itself: in PyTorch some may be read after they were written",
        "", "clone() what is read: x[1:] += x[:-1].clone()"),
    "duplicate_indices": Kind(
        WRONG, "{name} writes some elements more than once: the last value stays (PyTorch does not promise even that), "
        "and PyTorch gives a gradient to every value, those that were overwritten, too", "",
        "make the indices unique; or add, by index_add_, scatter_add_ or index_put_(..., accumulate=True)"),
    "overwritten_saved_value": Kind(
        RAISES, "{name} changes a value that {saver} has kept for backward{elements}",
        "one of the variables needed for gradient computation has been modified by an inplace operation",
        "clone() {kept} where it is saved, or write out of place here"),
    "data_write": Kind(
        WRONG, "{name} changes, through .data, a value that {saver} has kept for backward{elements}: PyTorch does not "
        "count such writes, and its gradient is silently that of the new value", "",
        "clone() {kept} where it is saved, or write after backward()"),
    "data_assigned": Kind(
        WRONG, "assigns other memory to .data of a tensor that {saver} has kept for backward: PyTorch's gradient is "
        "silently that of the new values", "", "clone() {kept} where it is saved, or assign after backward()"),
    "fused_step": Kind(
        WRONG, "the fused optimizer changes a parameter that {saver} has kept for backward, and PyTorch does not count "
        "its writes: its gradient is silently that of the new value", "", "call backward() before step()"),
    "attribute_of_function": Kind(
        WRONG, "{name} changes a value that {saver} has kept as an attribute of ctx: PyTorch does not look whether it "
        "was written, and its gradient is silently that of the new value", "", "ctx.save_for_backward(...)"),
    "inference_tensor": Kind(
        RAISES, "{name} {does} a tensor that was made in inference mode", "{quote}",
        "clone() it outside of inference mode, or make it in no_grad"),
    "detach_of_view": Kind(
        RAISES, "detaches a view in place", "Can't detach views in-place. Use detach() instead",
        "y = y.detach()"),
    "no_derivative": Kind(
        RAISES, "goes back through {saver}, of which PyTorch has no derivative",
        "derivative for ... is not implemented", "write it by operations that have one"),
    "not_differentiable": Kind(
        RAISES, "{name} is given an argument that requires a gradient, of which PyTorch has no derivative",
        "The function '...' is not differentiable with respect to argument '...'. This input cannot have requires_grad "
        "True", "detach() it; or write the loss by operations that have a derivative"),
    "boolean_operand": Kind(
        RAISES, "goes back through {saver}, whose derivative computes with a boolean operand",
        "Subtraction, the `-` operator, with a bool tensor is not supported", "mask.float(), or mask.to(x.dtype)"),
    "identity_gradient": Kind(
        WRONG, "goes back through {saver}, which PyTorch takes for the identity: its gradient is silently not zero", "",
        "x = x.logical_and(y).to(x.dtype), out of place; it has no gradient"),
    "taken_as_constant": Kind(
        WRONG, "{name} has no derivative in PyTorch, which says nothing of it: its result is silently a constant, and "
        "what it was computed from gets no gradient through it", "",
        "write it by operations that have one, or as a torch.autograd.Function"),
    "no_history": Kind(
        RAISES, "{name} of what has no history in PyTorch: a function that it takes for a constant led to it",
        "element 0 of tensors does not require grad and does not have a grad_fn",
        "write that function by operations that have a derivative, or as a torch.autograd.Function"),
    "write_to_gradient": Kind(
        RAISES, "{name} writes to a gradient of which all elements are the same memory, as that of sum() is",
        "unsupported operation: more than one element of the written-to tensor refers to a single memory location",
        "g = g.clone() before writing, or compute out of place"),
    "write_to_some_of_gradient": Kind(
        WRONG, "{name} writes to some elements of a gradient of which all are the same memory, as that of sum() is: "
        "PyTorch changes all of them", "", "g = g.clone() before writing, or torch.where(mask, 0, g)"),
    "changed_before_recomputed": Kind(
        WRONG, "what a checkpointed function reads has changed since it ran: mutagrad refuses that, and PyTorch's "
        "gradient is silently that of what it computes the second time", "",
        "pass it as an argument, or change it after backward()"),
    "numpy_write": Kind(
        WRONG, "NumPy, which shares this memory, changes a value that {saver} has kept for backward: PyTorch does not "
        "see it, and its gradient is silently that of the new value", "",
        "clone() {kept} where it is saved, or give NumPy a copy"),
    "backward_of_several": Kind(
        RAISES, "{name} of a tensor of shape {shape} without a gradient to start from",
        "grad can be implicitly created only for scalar outputs", "y.sum().backward()"),
    "backward_twice": Kind(
        RAISES, "goes back through {saver}, whose values an earlier backward has freed",
        "Trying to backward through the graph a second time",
        "retain_graph=True in the earlier backward; or compute the shared part again; or detach() the state that is "
        "carried from one step to the next"),
    "always_raises": Kind(
        RAISES, "backward through {saver}, which writes a value that it keeps itself",
        "one of the variables needed for gradient computation has been modified by an inplace operation",
        "compute it out of place"),
    "captured_write": Kind(
        RAISES, "{name} writes to a tensor from outside of the function that {by} differentiates",
        "During a grad (vjp, jvp, grad, etc) transform, the function provided attempted to call in-place operation "
        "that would mutate a captured Tensor",
        "return the value and write it outside; or pass the tensor as an argument"),
    "unmapped_write": Kind(
        RAISES, "{name} writes what differs from slice to slice to a tensor that all slices of vmap share",
        "vmap: inplace arithmetic(self, *extra_args) is not possible because there exists a Tensor `other` in "
        "extra_args that has more elements than `self`",
        "make it from a mapped tensor, x.new_zeros(...) instead of torch.zeros(...), or write out of place"),
    "value_of_slice": Kind(
        RAISES, "{name} asks vmap for a value that differs from slice to slice",
        "vmap: It looks like you're either (1) calling .item() on a Tensor or (2) attempting to use a Tensor in some "
        "data-dependent control flow", "torch.where(condition, a, b) for an `if`; sums for a loop that ends early"),
    "saved_and_rewritten": Kind(
        WRONG, "{name} changes a value that {saver} has kept for backward{elements}, where {how}: PyTorch does not "
        "look whether such values were written, and its gradient is silently that of the new one", "",
        "clone() {kept} where it is saved, or write out of place here"),
    "running_statistics": Kind(
        WRONG, "{name} updates running statistics that {saver} has kept for backward: PyTorch does not count such "
        "writes, and its gradient is silently that of the new ones", "",
        "call backward() before the next call in training mode"),
    "not_marked_dirty": Kind(
        WRONG, "a Function's forward changes its argument, and does not say so: mutagrad refuses it, and PyTorch's "
        "gradient is silently that of a program which does not change it", "",
        "ctx.mark_dirty(x) and return x, or write to a copy"),
    "nan_of_no_influence": Kind(
        WRONG, "the derivative of {name} is infinite or undefined for elements that have no influence (a branch of "
        "where that is not taken, a mask): PyTorch's gradient of them is nan, 0 times infinity", "",
        "give {name} a harmless argument there: torch.where(mask, {name}(torch.where(mask, x, 1.)), other)"),
    "overlapping_target": Kind(
        WRONG, "{name} writes through a view of which several elements are the same memory: mutagrad refuses it, and "
        "PyTorch's values and gradient are silently those of some order of writes", "",
        "write to what the view is of, or to a clone() of the view"),
    "error": Kind(RAISES, "{name} raises {error}", "", "{fix}"),
    "not_supported": Kind(
        FINE, "mutagrad cannot run this, so what comes after it was not looked at: {error}", "", "{fix}"),
    "quadratic_loop": Kind(
        SLOW, "writes again and again into a tensor of {size} elements that is part of the graph: for every such write "
        "PyTorch's backward copies the gradient of the whole tensor", "",
        "collect the parts in a list, and torch.stack or torch.cat them at the end"),
    "copied_saved_value": Kind(
        FINE, "mutagrad copies {bytes} bytes aside here, because the write destroys values that are kept for backward",
        "", "clone() once, or write out of place, if that is many"),
    "no_gradient": Kind(FINE, "{name} has no gradient at the end: {why}", "", "{fix}"),
    "zero_gradient": Kind(FINE, "the gradient of {name} is zero everywhere at the end: {why}", "", "{fix}"),
}


@dataclass(eq=False)
class Finding:
    """One place: what happens there, what PyTorch makes of it, and how to write it for PyTorch."""

    kind: str
    where: Where
    saved_where: Where | None = None
    slot: str = ""  # which operand of the call at `saved_where` (or `where`) is concerned
    facts: dict[str, Any] = field(default_factory=dict)  # what stands in the text
    count: int = 1
    diff: str = ""  # of the user's lines
    also: list[Finding] = field(default_factory=list)  # of the same lines, but of other calls or operands in them

    @property
    def torch(self) -> str:
        return KINDS[self.kind].torch

    @property
    def message(self) -> str:
        kind = KINDS[self.kind]
        quote = f': PyTorch raises "{kind.quote.format(**self.facts)}"' if kind.quote else ""
        return kind.says.format(**self.facts) + quote

    @property
    def advice(self) -> str:
        return KINDS[self.kind].advice.format(**self.facts)

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

    def add(self, kind: str, where: Where, saved_where: Where | None = None, slot: str = "", **facts: Any) -> None:
        made = Finding(kind, where, saved_where, slot, facts)
        found = self.by_place.setdefault((kind, made.place, made.saved_at), made)
        if found is not made:
            found.count += 1
            if all((f.where, f.saved_where, f.slot) != (where, saved_where, slot) for f in (found, *found.also)):
                found.also.append(made)
            if "bytes" in facts:
                found.facts["bytes"] += facts["bytes"]

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.by_place.values())

    def __len__(self) -> int:
        return len(self.by_place)

    @property
    def verdict(self) -> str:
        """What PyTorch would do with the program: "raises", "wrong" or "accepts"."""
        found = {finding.torch for finding in self}
        return RAISES if RAISES in found else WRONG if WRONG in found else "accepts"
