"""The profiler: calls, their times and shapes, named blocks, steps, and the table."""
from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import mutagrad as mg
from mutagrad.autograd.profiler_util import EventList, FunctionEvent, FunctionEventAvg, _format_time
from mutagrad.torch_api.profiler import ProfilerActivity, profile, record_function, schedule, tensorboard_trace_handler


def names(profiler: profile) -> list[str]:
    return [event.name for event in profiler.function_events]


def test_calls_and_named_blocks() -> None:
    with profile(record_shapes=True) as prof:
        with record_function("block"):
            y = mg.ones(2, 3) * 2
        _ = mg.nn.functional.linear(y, mg.ones(4, 3))
    _ = y + 1
    assert names(prof) == ["block", "aten::ones", "aten::mul", "aten::ones", "aten::linear"]
    block, mul, linear = prof.events()[0], prof.events()[2], prof.events()[4]
    assert mul.input_shapes[0] == [2, 3] and linear.input_shapes == [[2, 3], [4, 3]]
    assert [child.name for child in block.cpu_children] == ["aten::ones", "aten::mul"] and mul.cpu_parent is block
    assert 0 <= block.self_cpu_time_total < block.cpu_time_total <= prof.total_average().cpu_time_total
    assert record_function("decorated")(lambda x: x + 1)(1) == 2


def test_table_and_trace(tmp_path: Path) -> None:
    with profile() as prof:
        for _ in range(3):
            _ = mg.ones(2) + 1
    lines = prof.key_averages().table(sort_by="count", row_limit=1, header="Title").splitlines()
    assert lines[0] == "Title" and lines[2].split()[0] == "Name" and lines[4].split()[-1] == "3" and str(prof) == prof.table()
    assert len(prof.key_averages(group_by_input_shape=True)) == 2 and prof.self_cpu_time_total > 0
    prof.export_chrome_trace(str(tmp_path / "trace.json"))
    assert len(json.loads((tmp_path / "trace.json").read_text())) == 6
    with pytest.raises(ValueError, match="sort by"):
        prof.table(sort_by="beauty")
    assert [_format_time(t) for t in (1.5, 2500.0, 3e6)] == ["1.500us", "2.500ms", "3.000s"]


def test_steps(tmp_path: Path) -> None:
    seen: list[Any] = []

    def ready(prof: profile) -> None:
        seen.append(names(prof))
        tensorboard_trace_handler(str(tmp_path))(prof)

    with profile(activities=[ProfilerActivity.CPU], schedule=schedule(wait=1, warmup=1, active=1, repeat=2, skip_first=1), on_trace_ready=ready) as prof:
        for i in range(10):
            _ = mg.full((1,), i) if i == 3 else mg.ones(i)
            prof.step()
    assert seen == [["aten::full"], ["aten::ones"]] and len(list(tmp_path.iterdir())) == 2


def test_switched_off() -> None:
    with profile(enabled=False) as prof:
        _ = mg.ones(1)
    assert not prof.function_events
    with pytest.warns(UserWarning, match="no device"):
        profile(activities=[ProfilerActivity.CUDA])
    with pytest.raises(TypeError, match="colour"):
        profile(colour="red")


def test_sums() -> None:
    total = FunctionEventAvg()
    for start, end in ((10, 15), (20, 30)):
        total += FunctionEvent(id=0, name="f", thread=0, start_us=start, end_us=end)
    assert (total.key, total.count, total.cpu_time_total, total.cpu_time, total.device_time_total) == ("f", 2, 15, 7.5, 0)
    with pytest.raises(ValueError, match="'g'"):
        total.add(FunctionEvent(id=0, name="g", thread=0, start_us=0, end_us=1))


def test_children_are_those_that_end_in_time() -> None:
    events = EventList(FunctionEvent(id=i, name="", thread=0, start_us=start, end_us=end) for i, (start, end) in enumerate([(0, 2), (1, 2), (1, 3)]))
    events._populate_cpu_children()
    assert [[child.id for child in event.cpu_children] for event in events] == [[], [], [1]]
