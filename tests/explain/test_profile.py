"""`mutagrad.profile()`: what each operation costs at each line, forward and backward."""
from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import mutagrad as mg
from mutagrad.core import backward
from mutagrad.explain.profile import Row, profile, seconds, size, table


def rows(p: profile) -> dict[str, Row]:
    found = {row.operation: row for row in p.rows}
    assert len(found) == len(p.rows)
    return found


def test_each_operation_at_its_line() -> None:
    x, w, before = mg.ones(1000, requires_grad=True), mg.ones(1000), mg.stats()
    with mg.profile() as p:
        y = x * w
        w.zero_()
        for _ in range(3):
            y = y + 1
        y.sum().backward()
    found = rows(p)
    assert {name: (row.calls, row.nodes) for name, row in found.items()} == {"mul": (1, 1), "zero_": (1, 0), "add": (3, 3), "sum": (1, 1), "backward": (1, 0)}
    assert found["mul"].line.endswith("y = x * w") and found["add"].line.endswith("y = y + 1")
    assert {name: row.allocated for name, row in found.items()} == {"mul": 4000, "zero_": 0, "add": 12000, "sum": 4,
                                                                       "backward": (mg.stats() - before).allocated}
    assert found["zero_"].protected == 4000 and sum(row.protected for row in p.rows) == 4000
    assert all(row.backward > 0 for row in (found["mul"], found["add"], found["sum"])) and found["zero_"].backward == found["backward"].backward == 0
    assert all(row.forward > 0 and row.total == row.forward + row.backward for row in p.rows)
    assert [row.total for row in p.rows] == sorted((row.total for row in p.rows), reverse=True)


def test_the_time_of_backward_is_not_counted_twice() -> None:
    x = mg.ones(300_000, requires_grad=True)
    with mg.profile() as p:
        y = x
        for _ in range(20):
            y = y.exp().log()
        y.sum().backward()
    found = rows(p)
    assert found["backward"].forward < sum(row.backward for row in p.rows)


def test_adjoint_buffers_belong_to_the_line_that_made_the_node() -> None:
    x = mg.ones(1000, requires_grad=True)
    before = mg.stats()
    with mg.profile() as p:
        y = x * 1
        y[0] = y[1] * 2
        y.sum().backward()
    spent = (mg.stats() - before).allocated
    assert spent > 0 and sum(row.allocated for row in p.rows) == 4000 + 4 + 4 + spent


def test_sums_by_line_and_by_operation() -> None:
    x = mg.ones(3)
    with mg.profile() as p:
        x.exp().log()
        x.exp()
    assert [(row.operation, row.calls) for row in sorted(p.by_operation())] == [("exp", 2), ("log", 1)]
    assert sorted((row.operation, row.calls, row.line.rpartition(": ")[2]) for row in p.by_line()) == [("exp", 1, "x.exp()"), ("exp, log", 2, "x.exp().log()")]


def test_blocks_inside_of_blocks_each_see_everything() -> None:
    x = mg.ones(3, requires_grad=True)
    with mg.profile() as outer:
        x.exp()
        with mg.profile() as inner:
            x.log().sum().backward()
        x.exp()
    assert {row.operation: row.calls for row in outer.by_operation()} == {"exp": 2, "log": 1, "sum": 1, "backward": 1}
    assert {row.operation: row.calls for row in inner.by_operation()} == {"log": 1, "sum": 1, "backward": 1}
    assert rows(inner)["log"].backward > 0 and {row.operation: row for row in outer.by_operation()}["log"].backward > 0


def test_as_a_decorator_that_calls_itself() -> None:
    p = mg.profile()

    @p
    def down(n: int) -> Any:
        x = mg.ones(2).exp()
        return down(n - 1) if n else x

    down(2)
    down(1)
    assert {row.operation: row.calls for row in p.by_operation()} == {"ones": 5, "exp": 5}


def test_an_exception_ends_it_and_is_passed_on() -> None:
    engine = backward.SWEEP
    with pytest.raises(KeyError), mg.profile() as p:
        mg.ones(3).exp()
        raise KeyError(1)
    mg.ones(4).exp()
    assert rows(p)["exp"].calls == 1 and backward.SWEEP is engine


def test_a_call_that_raises_counts() -> None:
    with mg.profile() as p, pytest.raises(RuntimeError):
        mg.ones(3) + mg.ones(4)
    assert rows(p)["add"].calls == 1


def test_nodes_from_before_are_on_their_line() -> None:
    x = mg.ones(3, requires_grad=True)
    y = x.exp()
    with mg.profile() as p:
        y.sum().backward()
    assert rows(p)["exp"].calls == 0 and rows(p)["exp"].backward > 0 and rows(p)["exp"].line.endswith("y = x.exp()")


def test_the_table() -> None:
    with mg.profile() as p:
        mg.ones(300).exp()
    lines = str(p).splitlines()
    assert lines[0].split() == ["operation", "calls", "total", "forward", "backward", "allocated", "protected", "nodes", "line"]
    assert len(lines) == 4 and lines[-1].startswith("total") and "1.2 KiB" in str(p) and "2.3 KiB" in lines[-1]
    assert len({line.index("  ", 10) > 0 for line in lines}) == 1 and repr(p).startswith("<profile of 2 calls, ")
    assert p._repr_html_().startswith("<pre>") and str(mg.profile()).split()[0] == "operation" and table([]).count("\n") == 0


def test_numbers_as_people_write_them() -> None:
    assert [seconds(value) for value in (0, 1.5e-6, 2.5e-3, 3.25)] == ["0.0 µs", "1.5 µs", "2.50 ms", "3.25 s"]
    assert [size(value) for value in (0, 1023, 1024, 1 << 20, 3 << 30)] == ["0 B", "1023 B", "1.0 KiB", "1.0 MiB", "3.0 GiB"]


def test_the_chrome_trace(tmp_path: Path) -> None:
    x = mg.ones(3, requires_grad=True)
    with mg.profile(max_events=4) as p:
        y = x.exp()
        y.sum().backward()
    p.save(tmp_path / "profile.json")
    found = json.loads((tmp_path / "profile.json").read_text())
    events = found["traceEvents"]
    assert [(event["name"], event["cat"], event["ph"]) for event in events] == [
        ("exp", "forward", "X"), ("sum", "forward", "X"), ("sum backward", "backward", "X"), ("exp backward", "backward", "X")]
    assert found["otherData"] == {"dropped": 1} and all(event["dur"] >= 0 and event["ts"] >= 0 for event in events)
    assert re.search(r"test_profile\.py:\d+$", events[0]["args"]["line"]) and events[0]["args"]["source"] == "y = x.exp()"
    assert events[3]["args"] == events[0]["args"]


def test_gradients_are_the_same() -> None:
    def gradient() -> Any:
        x = mg.arange(6., requires_grad=True)
        y = x * 2
        y[1:3] = y[2:4].exp()
        y[0] = 1.
        (y * y).sum().backward()
        return x.grad

    expected = gradient()
    with mg.profile():
        assert mg.equal(gradient(), expected)
