"""Does a broken engine get caught? Each mechanism is switched off in turn, and the fuzz programs must then come out wrong."""
import itertools
from types import SimpleNamespace

import pytest

import mutagrad.arrays.parallel
import mutagrad.autograd.function
import mutagrad.autograd.nodes
import mutagrad.core.arithmetic
import mutagrad.core.backward
import mutagrad.core.indexing
import mutagrad.core.storage
import mutagrad.core.write
import mutagrad.ops.math.complex
import mutagrad.utils.checkpoint
from fuzz.judge import count_failures
from fuzz.settings import in_pieces
from mutagrad.base.modes import Modes, mode
from mutagrad.core.factory import CODEGEN_GLOBALS, view_of
from mutagrad.core.op import TABLE

SEEDS = range(300)
ROOMS_SEEDS = range(100)  # programs with all operations are longer
FAMILY_SEEDS = range(150)


def patch(monkeypatch, name, value, *modules):
    """Replaces a function under its name in every module that imported it, and in the generated code."""
    for module in modules:
        monkeypatch.setattr(module, name, value)
    if name in CODEGEN_GLOBALS:
        monkeypatch.setitem(CODEGEN_GLOBALS, name, value)


def save_everything_by_reference(monkeypatch):
    """Small values are copied when they are saved; the programs are small, so turn that off to let records do the work."""
    patch(monkeypatch, "SMALL", -1, mutagrad.core.storage)


def no_clearing(monkeypatch):
    take = mutagrad.core.arithmetic.Arithmetic.take
    monkeypatch.setattr(mutagrad.core.arithmetic.Arithmetic, "take", lambda self, buffer, window, clear: take(self, buffer, window, False))


def no_moving_aside(monkeypatch):
    save_everything_by_reference(monkeypatch)
    patch(monkeypatch, "move_aside", lambda memory, tensor: None, mutagrad.core.storage, mutagrad.core.write, mutagrad.core.indexing)


def no_program_order(monkeypatch):
    patch(monkeypatch, "next_order", itertools.count().__next__, mutagrad.core.write)


def no_constant_writes(monkeypatch):
    begin = mutagrad.core.write.begin_write

    def begin_write(op, target, tensors, *rest, **settings):
        constant = all(t._storage.writer is None for t in tensors)
        return begin(op, target, tensors, *rest, **{**settings, "record": not constant})

    patch(monkeypatch, "begin_write", begin_write, mutagrad.core.write, mutagrad.core.indexing)


def wrong_factor(monkeypatch):
    op = TABLE["sin"]
    right = op.reverse
    monkeypatch.setattr(op, "reverse", lambda xp, g, saved, inputs: tuple(1.01 * gx for gx in right(xp, g, saved, inputs)))


def weak_zeros(monkeypatch):
    monkeypatch.setattr(mode, "now", Modes(mode.now, strong_zeros=False))


def the_wrong_part(monkeypatch):
    """The values are those of the imaginary parts; what becomes part of the graph is the window of the real ones."""
    monkeypatch.setattr(mutagrad.ops.math.complex, "imag", lambda z: view_of(z, z._array.imag, z._offset or 0))


def no_conjugation(monkeypatch):
    monkeypatch.setattr(TABLE["mul"], "conjugate", TABLE["mul"])


def lists_without_history(monkeypatch):
    """What is assigned as a list is written as data."""
    monkeypatch.setattr(mutagrad.core.indexing, "_has_history", lambda values: False)


def aliases_untold(monkeypatch):
    """Histories over one memory do not hear of each other's writes, and leaves that were written without a record do not begin anew."""
    patch(monkeypatch, "tell_aliases", lambda target, node: None, mutagrad.core.write, mutagrad.autograd.function)


def saved_values_handed_out(monkeypatch):
    """Who asks for a saved value gets it, and not a copy."""
    save_everything_by_reference(monkeypatch)
    patch(monkeypatch, "snapshot", lambda node, slot: node.saved[slot], mutagrad.autograd.function, mutagrad.autograd.nodes)


def saved_views_without_history(monkeypatch):
    """A saved value comes back as a constant, where it was seen through a window."""
    restored = mutagrad.autograd.function.with_history

    def with_history(value, writer, window, shared=True):
        return restored(value, writer if window is None else None, None, shared)

    monkeypatch.setattr(mutagrad.autograd.function, "with_history", with_history)


def windows_turned_without_their_leaf(monkeypatch):
    """A leaf is looked at otherwise, and its gradient is not."""
    def become(tensor, view):
        other = view(tensor)
        tensor._array, tensor._offset = other._array, other._offset
        return tensor

    monkeypatch.setattr(mutagrad.tensors.tensor, "become", become)


def hooks_in_place_unheard(monkeypatch):
    """In a recorded sweep, a hook is shown a copy, and only what it returns counts."""
    monkeypatch.setattr(mutagrad.core.arithmetic, "memory_of", lambda tensor: SimpleNamespace(version=0))


def added_to_expanded_gradients(monkeypatch):
    monkeypatch.setattr(mutagrad.core.backward, "overlaps_itself", lambda *geometry: False)


def regions_not_compared(monkeypatch):
    """What is computed again is taken for what was computed."""
    monkeypatch.setattr(mutagrad.utils.checkpoint.Recomputed, "_compare", lambda self, *given: None)


def operands_read_too_late(monkeypatch):
    """Operands that overlap the target are read after parts of it were written."""
    monkeypatch.setattr(mutagrad.arrays.parallel, "read_first", lambda vector, target: vector)


# Of which programs some must fail; unbroken, none does (fuzz/test_fuzz.py).
FAMILIES = {
    lists_without_history: {"families": ("aliases",)}, aliases_untold: {"families": ("aliases",)}, saved_values_handed_out: {"families": ("aliases",)},
    saved_views_without_history: {"families": ("aliases",), "order": 2}, windows_turned_without_their_leaf: {"families": ("aliases",)},
    hooks_in_place_unheard: {"families": ("hooks",), "order": 2}, added_to_expanded_gradients: {"families": ("hooks",)},
    regions_not_compared: {"families": ("regions",)}, operands_read_too_late: {"around": lambda: in_pieces(0)}}


def test_nothing_fails_unbroken():
    """Here of a few; fuzz/test_fuzz.py has all of them."""
    assert count_failures(SEEDS[:50]) == 0
    assert count_failures(ROOMS_SEEDS[:20], families=("rooms",)) == 0


@pytest.mark.parametrize("sabotage", FAMILIES, ids=lambda f: f.__name__)
def test_each_sabotage_is_caught_by_its_family(monkeypatch, sabotage):
    sabotage(monkeypatch)
    assert count_failures(FAMILY_SEEDS, **FAMILIES[sabotage], enough=3) == 3


def test_nothing_fails_with_everything_saved_by_reference(monkeypatch):
    save_everything_by_reference(monkeypatch)
    assert count_failures(range(1000)) == 0
    assert count_failures(range(1_000_000, 1_000_100), order=2) == 0
    assert count_failures(range(200), families=("rooms",)) == 0


@pytest.mark.parametrize("sabotage", [no_clearing, no_moving_aside, no_program_order, no_constant_writes, wrong_factor])
def test_each_sabotage_is_caught(monkeypatch, sabotage):
    sabotage(monkeypatch)
    assert count_failures(SEEDS, enough=5) == 5


@pytest.mark.parametrize("sabotage", [no_moving_aside, weak_zeros, the_wrong_part, no_conjugation])
def test_each_sabotage_is_caught_with_all_operations(monkeypatch, sabotage):
    sabotage(monkeypatch)
    assert count_failures(ROOMS_SEEDS, families=("rooms",), enough=5) == 5
