"""`mutagrad.trace()`: what it records of calls, storages, saved values and sweeps; and that it changes and keeps nothing."""
from __future__ import annotations

import gc
import json
import re
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mutagrad as mg
from fuzz.generator import generate
from mutagrad.base.errors import BadArgument, BadValue, ModeError
from mutagrad.core import backward
from mutagrad.core.evidence import SWEEPS
from mutagrad.explain import tracing
from mutagrad.explain.page import page_data
from mutagrad.explain.recording import Event
from mutagrad.explain.sweeping import WatchedSweep
from mutagrad.explain.tracing import Trace
from mutagrad.tensors.tensor import Tensor


def names(t: Trace, *kinds: str) -> list[str]:
    return [event.name for event in t.events if event.kind in kinds]


def one(t: Trace, name: str, kind: str | None = None) -> Event:
    found = [event for event in t.events if event.name == name and (kind is None or event.kind == kind)]
    assert len(found) == 1, (name, t.events)
    return found[0]


def data_of(t: Trace) -> Any:
    return page_data(t.recording)


# ------------------------------------------------------------------------------------------------------------- the name


def test_trace_of_a_matrix_is_still_pytorchs() -> None:
    x = mg.arange(9.).reshape(3, 3)
    assert mg.trace(x).item() == mg.trace(input=x).item() == x.trace().item() == 12
    out = mg.empty(())
    assert mg.trace(x, out=out) is out and out.item() == 12
    with pytest.raises(BadArgument, match="max_events"):
        mg.trace(x, max_events=3)
    with pytest.raises(RuntimeError, match="expects a matrix"):
        mg.trace(mg.ones(3))


@pytest.mark.parametrize("given, error", [(1, BadValue), (-5, BadValue), (2.5, BadArgument), (True, BadArgument), ("9", BadArgument)])
def test_a_bad_limit_is_an_error(given: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="max_events"):
        mg.trace(max_events=given)
    with pytest.raises(TypeError, match="colour"):
        mg.trace(colour=3)


# --------------------------------------------------------------------------------------------------------------- events


def test_writes_reads_and_new_storages() -> None:
    x = mg.tensor([1., 2., 3.], requires_grad=True)
    with mg.trace() as t:
        y = x * 2
        y[1] = 5.
        y[1:].mul_(3)
        z = y.sum()
    assert names(t, "new", "write", "view") == ["mul", "x[i] =", "x[i]", "mul_", "sum"]
    made, item, part, total = one(t, "mul"), one(t, "x[i] ="), one(t, "mul_"), one(t, "sum")
    lane = made.writes[0].lane
    assert [(touch.lane, touch.low, touch.high, touch.versions) for touch in item.writes] == [(lane, 4, 8, (0, 1))]
    assert [(touch.lane, touch.low, touch.high, touch.versions) for touch in part.writes] == [(lane, 4, 12, (1, 2))]
    assert total.reads == (lane,) and item.index == "1" and item.values == [2., 5., 6.] and total.values == 35.
    assert lane.shape == (3,) and lane.bytes == 12 and lane.born == made.number and made.reads[0].leaf and made.reads[0].born is None
    assert made.line.endswith("y = x * 2") and "test_trace.py:" in made.line
    del z


@pytest.mark.parametrize("index, low, high", [(0, 0, 16), ((1, 2), 24, 28), ((slice(None), 1), 4, 40), ((..., slice(2, 3)), 8, 44), (-1, 32, 48), ((1, slice(1, 3)), 20, 28)])
@pytest.mark.parametrize("recorded", [True, False])
def test_the_window_of_a_write(index: Any, low: int, high: int, recorded: bool) -> None:
    y = mg.zeros(3, 4) + mg.zeros((), requires_grad=recorded)
    with mg.trace() as t:
        y[index] = 1.
    touch, = one(t, "x[i] =").writes
    assert (touch.low, touch.high) == (low, high)


def test_writes_by_functions_whose_names_do_not_say_so() -> None:
    norm = mg.nn.BatchNorm1d(2)
    out = mg.empty(3)
    with mg.trace() as t:
        norm(mg.randn(4, 2))
        mg.exp(mg.ones(3), out=out)
    assert len(one(t, "batch_norm").writes) == 3  # the running mean and variance, and the result
    assert one(t, "exp").kind == "write" and one(t, "exp").writes[0].versions == (0, 1)


def test_writes_that_no_call_shows() -> None:
    x = mg.ones(3)
    with mg.trace() as t:
        x.exp()
        memory = x._storage
        memory.version += 1  # as a write inside of the package does
        x.exp()
    assert [event.kind for event in t.events] == ["new", "unseen", "new"]
    assert t.events[1].writes[0].versions == (0, 1)


def test_optimizers_are_seen() -> None:
    model = mg.nn.Linear(2, 1)
    optimizer = mg.optim.SGD(model.parameters(), lr=0.1)
    with mg.trace() as t:
        model(mg.ones(4, 2)).sum().backward()
        optimizer.step()
    step = one(t, "SGD.step")
    assert step.kind == "step" and len(step.writes) == 2 and step.line.endswith("optimizer.step()")
    assert all(after == before + 1 for _, _, _, (before, after) in step.writes)


def test_questions_are_no_events() -> None:
    x = mg.ones(3)
    with mg.trace() as t:
        x.shape, x.dtype, x.requires_grad, x.size(), x.dim(), len(x), x.numel(), x.is_contiguous()
    assert t.events == []


def test_errors_are_noted_and_passed_on() -> None:
    with pytest.raises(RuntimeError, match="broadcast"), mg.trace() as t:
        mg.ones(3) + mg.ones(4)
    event = one(t, "add")
    assert event.error is not None and "broadcast" in event.error
    assert t.error is not None and t.error.startswith("ShapeError") and t.findings[0].title == "raised"


def test_a_failure_of_the_recorder_is_not_the_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise KeyError("ours")

    monkeypatch.setattr(tracing, "not_finite", fail)
    x = mg.ones(3, requires_grad=True)
    with mg.trace() as t:
        (x * 2).sum().backward()
    assert x.grad is not None and x.grad.tolist() == [2., 2., 2.] and t.unrecorded == 2 and t.failure == "KeyError: 'ours'"
    assert t.html and t.sweeps == 1


def test_element_loops_over_large_tensors_stay_linear() -> None:
    y = mg.zeros(2_000_000)
    y[5] = float("nan")
    with mg.trace() as t:
        for i in range(300):
            y[i] = 1.
    assert t.events[-1].seconds < 1 and not any(event.wrong for event in t.events)  # all of it is not looked at


# --------------------------------------------------------------------------------------------------------- saved values


def test_who_saved_what_and_who_overwrote_it() -> None:
    x, w = mg.ones(100, requires_grad=True), mg.full((100,), 2.)
    with mg.trace() as t:
        y = x * w
        w.zero_()
        y.sum().backward()
    saver, writer = one(t, "mul", "new"), one(t, "zero_")
    saved, = saver.saves
    assert saved.lane is writer.writes[0].lane and saved.bytes == 400 and not saved.copied and saved.name == "operand 2"
    assert writer.overwrites == (saver.number,) and writer.copied == 400
    finding = next(f for f in t.findings if f.title == "overwrites a saved value")
    assert finding.event == writer.number and "w.zero_()" in finding.text and "y = x * w" in finding.text and "400 bytes" in finding.text
    assert x.grad is not None and x.grad.tolist() == [2.] * 100


def overwrites(program: Callable[[Tensor], Any]) -> list[str]:
    x = mg.rand(6, 6, requires_grad=True)
    with mg.trace() as t:
        keep = program(x)
    del keep
    return [event.name for event in t.events if event.overwrites]


def saved_column(x: Tensor) -> Any:
    w = mg.rand(6, 6)
    y = x[:, 0] * w[:, 0]
    w[:, 1] = 0.  # beside it, though its bytes lie between
    return y


def saved_column_hit(x: Tensor) -> Any:
    w = mg.rand(6, 6)
    y = x[:, 0] * w[:, 0]
    w[2, 0] = 0.
    return y


def picked_beside(x: Tensor) -> Any:
    w = x[0] * 2
    y = w[1:3] * w[1:3]
    w[mg.tensor([0, 5])] = x[1, :2]
    return y


def picked(x: Tensor) -> Any:
    w = x[0] * 2
    y = w[1:3] * w[1:3]
    w[mg.tensor([0, 2])] = x[1, :2]
    return y


def overwritten_once(x: Tensor) -> Any:
    w = mg.rand(6, 6)
    y = x * w
    w.zero_()
    w.fill_(1.)
    return y


def nobody_needs_it(x: Tensor) -> Any:
    w = mg.rand(6, 6)
    y = x * w
    del y
    w.zero_()


def freed_by_backward(x: Tensor) -> Any:
    w = mg.rand(6, 6)
    (x * w).sum().backward()
    w.zero_()


def own_result(x: Tensor) -> Any:
    y = x.exp()
    y.mul_(2)
    return y


@pytest.mark.parametrize("program, found", [(saved_column, []), (saved_column_hit, ["x[i] ="]), (picked_beside, []), (picked, ["x[i] ="]), (overwritten_once, ["zero_"]), (nobody_needs_it, []),
                                            (freed_by_backward, []), (own_result, ["mul_"])])
def test_only_what_is_still_needed_and_hit_counts(program: Callable[[Tensor], Any], found: list[str]) -> None:
    assert overwrites(program) == found


def test_what_is_overwritten_before_anything_read_it() -> None:
    x = mg.ones(3, requires_grad=True)
    with mg.trace() as t:
        y = x * 2
        y[:] = 1.
        z = x * 3
        z.sum()
        z[:] = 1.
    buried = [event for event in t.events if event.buries is not None]
    assert [(event.line.rpartition(": ")[2], event.buries) for event in buried] == [("y[:] = 1.", t.events[0].number)]
    assert any(f.title == "overwritten unread" and "y = x * 2" in f.text for f in t.findings)


# ---------------------------------------------------------------------------------------------------------- the sweeps


def test_backward_is_the_mirror_image() -> None:
    x = mg.tensor([3., 4.], requires_grad=True)
    with mg.trace() as t:
        y = x * 2
        y[0] = 1.
        loss = (y * y).sum()
        loss.backward()
    visits = [event for event in t.events if event.kind == "backward"]
    assert [event.name for event in visits] == ["sum", "mul", "copy", "mul", "leaf"]
    assert [event.adjoint.norm for event in visits if event.adjoint] == pytest.approx([1, 2 ** 0.5, 2, 16, 32])
    by_number = {event.number: event for event in t.events}
    assert [by_number[event.forward].line.rpartition(": ")[2] for event in visits if event.forward] == [
        "loss = (y * y).sum()", "loss = (y * y).sum()", "y[0] = 1.", "y = x * 2"]
    assert visits[-1].lane is t.events[0].reads[0]
    sweep = one(t, "backward", "sweep")
    assert sweep.number < visits[0].number and {event.sweep for event in visits} == {sweep.sweep} == {1}
    assert data_of(t)["totals"][0]["backward"] >= 0


def test_grad_and_second_derivatives_are_sweeps_too() -> None:
    x = mg.tensor(2., requires_grad=True)
    with mg.trace() as t:
        g, = mg.autograd.grad(x ** 3, x, create_graph=True)
        mg.autograd.grad(g, x)
    assert t.sweeps == 2 and [event.sweep for event in t.events if event.kind == "sweep"] == [1, 2]
    leaves = [event.adjoint.norm for event in t.events if event.name == "leaf" and event.adjoint]
    assert leaves == [12., 12.]


def test_where_a_gradient_vanishes_explodes_or_is_no_number() -> None:
    def found(scale: float, steps: int) -> list[str]:
        x = mg.ones(2, requires_grad=True)
        with mg.autograd.set_nan_policy("ignore"), mg.trace() as t:
            y = x
            for _ in range(steps):
                y = y * scale
            y.sum().backward()
        return [finding.title for finding in t.findings]

    assert found(0.1, 12) == ["vanished"] and found(10., 12) == ["exploded"] and found(0., 2) == ["zero gradient"] and found(1., 5) == []
    assert "nan gradient" in found(float("nan"), 2) and "not finite" in found(float("nan"), 2)
    assert found(float("inf"), 1)[:1] == ["not finite"]


def test_the_first_that_is_not_finite() -> None:
    with mg.trace() as t:
        x = mg.tensor([1., 0.])
        y = x.log()
        y.exp()
    finding, = [finding for finding in t.findings if finding.title == "not finite"]
    assert "y = x.log()" in finding.text and "1 of its elements" in finding.text


def test_infinities_that_are_given_or_handed_on_are_no_finding() -> None:
    x = mg.ones(3, 3)
    with mg.trace() as t:
        mask = mg.triu(mg.full((3, 3), float("-inf")), 1)
        (x + mask).softmax(-1)
        mg.empty(3).fill_(float("nan")).add_(1)
        y = mg.zeros(3)
        y[:] = mg.tensor([float("inf")] * 3)
    assert t.findings == []
    assert "torch" not in [lane["name"] for lane in data_of(t)["lanes"]] and "mg" not in [lane["name"] for lane in data_of(t)["lanes"]]


@pytest.mark.parametrize("seed", range(40))
def test_the_gradients_of_random_programs_are_the_same(seed: int) -> None:
    program = generate(seed)

    def run() -> list[Any]:
        scope: dict[str, Any] = {}
        exec(compile(program.source, f"<program {seed}>", "exec"), scope)
        return [value.grad.numpy().copy() for value in scope.values() if isinstance(value, Tensor) and value.grad is not None]

    try:
        expected = run()
    except Exception as error:
        with pytest.raises(type(error)), mg.trace():
            run()
        return
    with mg.trace() as t:
        found = run()
    assert len(found) == len(expected) and all(np.array_equal(a, b, equal_nan=True) for a, b in zip(found, expected))
    assert t.html and t.unrecorded == 0, t.failure


# ------------------------------------------------------------------------------------------------- nothing stays behind


def test_nothing_is_kept_alive() -> None:
    with mg.trace() as t:
        x = mg.ones(1000, requires_grad=True)
        y = x.exp()
        z = (y * x).sum()
        z.backward()
        held = [weakref.ref(value) for value in (x, y, z, y._storage.buffer, z.grad_fn)]
        live = t.live
        del x, y, z
        SWEEPS.clear()  # what is remembered for `why`
        gc.collect()
        assert [reference() for reference in held] == [None] * 5
        mg.ones(1)
    assert live >= 8000 and t.live < 100 and t.peak >= 8000
    lanes = {lane["number"]: lane for lane in data_of(t)["lanes"]}
    assert lanes[1]["died"] is not None and lanes[1]["name"] == "x"


def test_the_engine_and_methods_are_as_before_when_it_is_off() -> None:
    with mg.trace():
        pass
    engine, write, modes = backward.SWEEP, Tensor.__dict__["__setitem__"], backward.mode.now.function_modes
    assert not issubclass(engine, WatchedSweep)
    with pytest.raises(ZeroDivisionError), mg.trace() as t, mg.profile():
        assert issubclass(backward.SWEEP, WatchedSweep)  # type: ignore[unreachable]
        _ = 1 / 0
    assert (backward.SWEEP, Tensor.__dict__["__setitem__"], backward.mode.now.function_modes) == (engine, write, modes)
    mg.ones(3, requires_grad=True).sum().backward()
    assert t.events == []


def test_a_program_that_traces_nothing_does_not_load_it() -> None:
    import subprocess
    import sys
    program = ("import sys, mutagrad as mg; x = mg.ones(3, requires_grad=True); (x * 2).sum().backward(); mg.trace(mg.eye(2)); "
               "print(sorted(m for m in sys.modules if 'explain' in m), mg.core.backward.SWEEP.__name__ if hasattr(mg, 'core') else '')")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("[]"), done.stdout


@pytest.mark.parametrize("other", [None, "a", [1.], {}, object()])
def test_comparisons_with_anything_are_as_without_it(other: Any) -> None:
    x = mg.ones(3)
    with mg.trace():
        assert (x != other) is True and (other != x) is True and (x == other) is False


def test_entering_again_goes_on() -> None:
    with mg.trace() as t:
        mg.ones(1)
        with t:
            mg.ones(2)
        mg.ones(3)
    mg.ones(4)
    with t:
        mg.ones(5)
    assert [event.shape for event in t.events] == [(1,), (2,), (3,), (5,)]
    with pytest.raises(ModeError):
        t.__exit__(None, None, None)


def test_traces_inside_of_each_other_see_the_same() -> None:
    with mg.trace() as outer, mg.trace() as inner:
        x = mg.ones(2, requires_grad=True)
        (x * 2).sum().backward()
    assert [(e.kind, e.name) for e in outer.events] == [(e.kind, e.name) for e in inner.events] and len(inner.events) == 7


def test_threads() -> None:
    together = threading.Barrier(4)

    def work() -> None:
        together.wait(10)  # or the number of a thread that has ended is another's
        x = mg.ones(2, requires_grad=True)
        (x * 2).sum().backward()
        together.wait(10)

    before, begun = threading.Event(), threading.Event()
    old = threading.Thread(target=lambda: (mg.zeros(1), begun.set(), before.wait(10), mg.zeros(77)))
    old.start()
    begun.wait(10)
    with mg.trace() as t, mg.profile() as p:
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        before.set()
        old.join()
    assert len({event.thread for event in t.events}) == 4 and t.sweeps == 4 and len(names(t, "backward")) == 12
    assert not any(event.shape == (77,) for event in t.events)  # it was there before
    assert {row.operation: row.calls for row in p.by_operation()} == {"ones": 4, "mul": 4, "sum": 4, "backward": 4}
    later = threading.Thread(target=lambda: mg.ones(78, requires_grad=True).sum().backward())
    later.start()
    later.join()
    assert t.sweeps == 4


# ------------------------------------------------------------------------------------------------------ too many events


def test_beyond_the_limit_the_middle_is_added_up_by_line() -> None:
    x = mg.ones(3)
    with mg.trace(max_events=100) as t:
        for _ in range(300):
            x.mul_(1.)
        y = x.log()
        y.sub_(float("inf"))
        for _ in range(300):
            x.add_(0.)
    assert t.count == 602 and len(t.events) == 101  # the one that is not finite is kept
    assert [event.number for event in t.events[:50]] == list(range(1, 51)) and [event.number for event in t.events[-50:]] == list(range(553, 603))
    data = data_of(t)
    assert data["folded"] == 501 and data["limit"] == 100
    assert sorted((total["calls"], total["folded"]) for total in data["totals"]) == [(1, 0), (1, 1), (300, 250), (300, 250)]
    assert t.findings[0].title == "not finite"


# -------------------------------------------------------------------------------------------------------------- the page


def test_the_page_is_one_file_that_asks_for_no_other(tmp_path: Any) -> None:
    with mg.trace(title="</script><b>") as t:
        x = mg.tensor([float("nan"), 1.])
        x.exp()
    t.save(tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert text == t.html and "/*" + "DATA*/" not in text and "</script><b>" not in text
    assert not re.search(r"""(src|href)\s*=|https?://|@import|url\(""", re.sub(r'<script id="data".*?</script>', "", text, flags=re.S))
    data = json.loads(re.search(r'<script id="data" type="application/json">(.*?)</script>', text, re.S)[1])  # type: ignore[index]
    assert data["title"] == "</script><b>" and data["details"]["1"]["values"] == ["nan", 1.0]


def test_what_storages_are_called() -> None:
    def inside(given: Tensor) -> Tensor:
        made = given * 2
        return made.exp() + 1

    with mg.trace() as t:
        inside(mg.ones(3))
    names = [lane["name"] for lane in data_of(t)["lanes"]]
    assert names[1] == "made" and (names == ["given", "made", "made.exp()", "made.exp() + 1"] or not hasattr(inside.__code__, "co_positions"))


def test_parameters_are_leaves_and_have_the_names_of_the_model() -> None:
    class Net(mg.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = mg.nn.Linear(2, 3)

    with mg.trace() as t:
        net = Net()
        net.inner(mg.ones(1, 2)).sum().backward()
    lanes = {lane["name"]: lane for lane in data_of(t)["lanes"]}
    assert lanes["self.inner"]["leaf"] and sum(lane["leaf"] for lane in data_of(t)["lanes"]) == 2


def test_the_text_and_the_notebook() -> None:
    with mg.trace() as t:
        x = mg.ones(3, requires_grad=True)
        (x * 0).sum().backward()
    assert repr(t).startswith("<trace of 7 events on 3 storages, 1 backward,") and "the gradient is zero at the leaf x" in repr(t)
    assert "by the derivative of mul at" in repr(t)
    assert t._repr_html_().startswith("<iframe srcdoc=") and "&lt;canvas" in t._repr_html_()


@pytest.mark.parametrize("program", ["mg.vmap(lambda a: (a * 2).sum())(mg.ones(3, 2))", "mg.func.grad(lambda a: (a ** 2).sum())(mg.ones(3))",
                                     "mg.ones(2, dtype=mg.complex64).abs()", "mg.zeros(0).sum()", "mg.ones(2, device='meta') * 2",
                                     "mg.eye(3).to_sparse() @ mg.ones(3, 1)", "mg.ones(3, dtype=mg.bfloat16) * 2", "mg.stack([mg.ones(2)] * 3).unbind()",
                                     "mg.utils.checkpoint.checkpoint(lambda a: a.exp().sum(), mg.ones(2, requires_grad=True), use_reentrant=False).backward()",
                                     "mg.tensor([True]).any()", "mg.tensor(2**62) + 1", "mg.ones(2, 3).T.numpy()", "mg.ones(3).expand(2, 3).sum()"])
def test_every_kind_of_tensor(program: str) -> None:
    with mg.trace() as t, mg.profile() as p:
        eval(program, {"mg": mg})
    assert t.html and str(p) and t.unrecorded == 0, t.failure


def test_a_sweep_whose_beginning_is_not_shown_has_not_exploded() -> None:
    with mg.trace(max_events=60) as t:
        w, state = mg.ones(2, requires_grad=True), mg.zeros(2)
        for _ in range(200):
            state = state * 0.5 + w
        state.sum().backward()
    assert not {"exploded", "vanished"} & {found.title for found in t.findings}
