"""`mutagrad.summary`: the table of a model's layers, and that the model is afterwards what it was."""
from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from html.parser import HTMLParser
from typing import Any

import pytest

import mutagrad as mg
import mutagrad.nn.functional as F
from mutagrad import nn
from mutagrad.base.errors import BadArgument, BadValue
from mutagrad.explain.summary import Layer, Summary
from mutagrad.nn import module as module_file


def row(found: Summary, name: str) -> Layer:
    return next(layer for layer in found.layers if layer.name == name)


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3)
        self.bn = nn.BatchNorm2d(8)
        self.act = nn.ReLU()
        self.block = nn.Sequential(nn.Conv2d(8, 8, 3, padding=1), nn.ReLU())
        self.fc = nn.Linear(8, 4)
        self.tied = nn.Linear(8, 4)
        self.tied.weight = self.fc.weight
        self.unused = nn.Linear(2, 2)
        self.conv.weight.requires_grad_(False)

    def forward(self, x: mg.Tensor, scale: float = 1.) -> Any:
        x = self.act(self.bn(self.conv(x)))
        x = self.block(self.block(x))
        x = self.act(x.mean((2, 3))) * scale
        return {"logits": self.fc(x), "others": (x, self.tied(x))}


def test_rows_and_totals() -> None:
    found = mg.summary(Net(), mg.ones(2, 3, 6, 6))
    assert [(layer.label, layer.kind, layer.depth, layer.calls) for layer in found.layers] == [
        ("", "Net", 0, 1), ("conv", "Conv2d", 1, 1), ("bn", "BatchNorm2d", 1, 1), ("act", "ReLU", 1, 2), ("block", "Sequential", 1, 2),
        ("0", "Conv2d", 2, 2), ("1", "ReLU", 2, 2), ("fc", "Linear", 1, 1), ("tied", "Linear", 1, 1)]
    conv = row(found, "conv")
    assert (conv.parameters, conv.trainable, conv.bytes, conv.outputs) == (224, 8, 896, ["(2, 8, 4, 4)"])
    assert conv.multiply_adds == 2 * 8 * 16 * 27 and row(found, "block.0").multiply_adds == 2 * 2 * 8 * 16 * 72 and row(found, "fc").multiply_adds == 2 * 8 * 4
    assert row(found, "fc").parameters == 36 and row(found, "tied").parameters == 4, "the weight is counted once"
    assert row(found, "act").outputs == ["(2, 8, 4, 4)", "(2, 8)"] and row(found, "").outputs == ["logits: (2, 4), others: [(2, 8), (2, 4)]"]
    model = Net()
    assert found.parameters == sum(p.numel() for p in model.parameters()) and found.trainable == found.parameters - 216 and found.frozen == 216
    assert found.buffers == 17 and found.bytes == 4 * found.parameters + 4 * 16 + 8
    assert sum(layer.parameters for layer in found.layers) == found.parameters and found.not_called == ["unused"]


def test_text_and_html() -> None:
    found = mg.summary(Net(), mg.ones(2, 3, 6, 6))
    lines = str(found).splitlines()
    assert lines[0].split() == ["layer", "output", "parameters", "frozen", "bytes", "multiply-adds"] and repr(found) == str(found)
    assert any(line.startswith("  block: Sequential ×2") for line in lines) and any(line.startswith("    0: Conv2d ×2") for line in lines)
    assert "parameters: 870, 654 trainable, 216 frozen and 17 in buffers" in str(found) and "not called themselves: unused" in str(found)
    assert "frozen" not in str(mg.summary(nn.Linear(2, 2), mg.ones(1, 2)))

    class Cells(HTMLParser):
        found: list[str] = []

        def handle_data(self, data: str) -> None:
            self.found.append(data)

    Cells().feed(found._repr_html_())
    assert {"  block: Sequential ×2", "frozen", "216"} <= set(Cells.found)


def test_ways_to_give_input() -> None:
    outputs = [["(2, 4)"]]
    linear = nn.Linear(3, 4)
    for found in (mg.summary(linear, mg.ones(2, 3)), mg.summary(linear, (2, 3)), mg.summary(linear, input_size=(2, 3)), mg.summary(linear, [mg.ones(2, 3)]),
                  mg.summary(linear, input_data=mg.ones(2, 3)), mg.summary(linear, input_data={"input": mg.ones(2, 3)}), mg.summary(linear, input=mg.ones(2, 3)), mg.summary(linear, input_size=[(2, 3)])):
        assert [layer.outputs for layer in found.layers] == outputs
    double = mg.summary(nn.Linear(3, 4).double(), (2, 3))
    assert double.output_bytes == 64, "ones are of the model's type"
    assert row(mg.summary(nn.Embedding(9, 5), (7,), dtype=mg.int64), "").outputs == ["(7, 5)"]
    assert row(mg.summary(nn.Bilinear(2, 3, 4), [(5, 2), (5, 3)]), "").multiply_adds == 5 * 4 * 6
    assert row(mg.summary(Net(), mg.ones(1, 3, 6, 6), scale=2.), "").outputs and "scale: float" in str(mg.summary(Net(), (1, 3, 6, 6), scale=2.))
    with mg.device("meta"):
        meta = nn.Linear(100_000, 1000)
    assert mg.summary(meta, (1, 100_000)).parameters == 100_001_000
    with pytest.raises(BadArgument, match="not function"):
        mg.summary(F.relu, mg.ones(2))  # type: ignore[arg-type]
    with pytest.raises(BadValue, match="input_size"):
        mg.summary(linear, input_size="2, 3")


def test_without_input_there_are_parameters_only() -> None:
    found = mg.summary(Net())
    assert str(found).splitlines()[0].split() == ["layer", "parameters", "frozen", "bytes"]
    assert [layer.name for layer in found.layers] == ["", "conv", "bn", "act", "block", "block.0", "block.1", "fc", "tied", "unused"]
    assert found.parameters == 870 and not found.not_called


def test_depth_folds_counts() -> None:
    found = mg.summary(Net(), mg.ones(2, 3, 6, 6), depth=1)
    assert "block.0" not in [layer.name for layer in found.layers] and row(found, "block").parameters == 584 and row(found, "block").multiply_adds == 36864
    only = mg.summary(Net(), mg.ones(2, 3, 6, 6), depth=0)
    assert [layer.parameters for layer in only.layers] == [870] and only.parameters == 870


def test_known_layers_count_as_the_flop_counter_does() -> None:
    models: list[tuple[nn.Module, tuple[Any, ...]]] = [
        (nn.Linear(3, 4), (mg.ones(2, 5, 3),)), (nn.Conv1d(4, 6, 3, groups=2), (mg.ones(2, 4, 9),)), (nn.Conv2d(3, 4, 3, stride=2), (mg.ones(2, 3, 9, 9),)),
        (nn.ConvTranspose2d(3, 4, 3), (mg.ones(2, 3, 5, 5),)), (nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 5)), (mg.ones(2, 3),))]
    for model, inputs in models:
        with mg.utils.flop_counter.FlopCounterMode(display=False) as counter, mg.no_grad():
            model(*inputs)
        assert mg.summary(model, *inputs).multiply_adds == counter.get_total_flops() // 2 > 0, model


def test_recurrent_layers_and_attention() -> None:
    lstm = nn.LSTM(3, 4, num_layers=2, bidirectional=True)
    assert mg.summary(lstm, mg.ones(5, 2, 3)).multiply_adds == 5 * 2 * sum(p.numel() for n, p in lstm.named_parameters() if "weight" in n)
    assert mg.summary(nn.GRUCell(3, 4), mg.ones(2, 3)).multiply_adds == 2 * 12 * 7
    for batch_first, shapes in ((False, ((5, 2, 8), (7, 2, 8))), (True, ((2, 5, 8), (2, 7, 8)))):
        q, k = map(mg.ones, shapes)
        found = mg.summary(nn.MultiheadAttention(8, 2, batch_first=batch_first), q, k, k)
        assert found.multiply_adds == 2 * (5 * 64 + 7 * 64 + 7 * 64 + 2 * 5 * 7 * 8 + 5 * 64)
    assert mg.summary(nn.Transformer(8, 2, 1, 1, 16), mg.ones(5, 2, 8), mg.ones(4, 2, 8)).parameters > 0


# -------------------------------------------------------------------------------------------------------- afterwards

class Counting(nn.Module):
    """Changes all that it can when it is called."""

    def __init__(self, fails: bool = False) -> None:
        super().__init__()
        self.bn = nn.BatchNorm1d(3)
        self.bn.eval()
        self.drop = nn.Dropout(0.5)
        self.register_buffer("seen", mg.zeros(1))
        self.calls, self.fails = 0, fails

    def forward(self, x: mg.Tensor) -> mg.Tensor:
        self.seen += 1
        self.calls += 1
        self.last = x
        self.register_buffer("more", x)
        x = F.dropout(self.drop(self.bn(x)), 0.5, training=True)
        if self.fails:
            raise ValueError("on purpose")
        return x


@pytest.mark.parametrize("fails", [False, True])
def test_the_model_is_what_it_was(fails: bool) -> None:
    model = Counting(fails)
    model.train()
    model.bn.eval()
    before = {**model.state_dict()}
    mg.manual_seed(0)
    state = mg.get_rng_state().tolist()
    if fails:
        with pytest.raises(BadValue, match=r"Counting, called with \(2, 3\), failed: on purpose"):
            mg.summary(model, mg.ones(2, 3))
    else:
        mg.summary(model, mg.ones(2, 3))
    assert (model.training, model.bn.training, model.drop.training) == (True, False, True)
    assert model.calls == 0 and not hasattr(model, "last") and not hasattr(model, "more")
    assert list(model.state_dict()) == list(before) and all(mg.equal(a, b) for a, b in zip(before.values(), model.state_dict().values()))
    assert model.seen.item() == 0 and model.seen is model._buffers["seen"]
    assert mg.get_rng_state().tolist() == state and mg.is_grad_enabled()
    assert not module_file._global_forward_hooks and not module_file._global_forward_pre_hooks
    assert not model._forward_hooks and all(p.grad is None for p in model.parameters())


def test_an_error_names_the_layer_and_what_came_before() -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.Sequential(nn.ReLU(), nn.Linear(5, 2)))
    with pytest.raises(BadValue) as caught:
        mg.summary(model, mg.ones(2, 3))
    assert caught.value.what.startswith("summary: 1.1 (Linear), called with (2, 4), failed: ") and "(2, 4)" in caught.value.why
    assert "1.0 (ReLU) had returned (2, 4)" in caught.value.why and isinstance(caught.value.__cause__, RuntimeError)
    with pytest.raises(BadValue, match="failed") as missing:
        mg.summary(nn.Bilinear(2, 3, 4), mg.ones(2, 2))
    assert isinstance(missing.value.__cause__, TypeError)


def test_interrupts_pass_and_leave_nothing() -> None:
    class Interrupted(nn.Module):
        def forward(self, x: mg.Tensor) -> mg.Tensor:
            raise KeyboardInterrupt

    model = Interrupted()
    with pytest.raises(KeyboardInterrupt):
        mg.summary(model, mg.ones(2))
    assert model.training and mg.is_grad_enabled() and not module_file._global_forward_pre_hooks


def test_an_error_that_the_model_catches_does_not_disturb() -> None:
    class Tries(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.Linear(9, 9), nn.Linear(3, 2)

        def forward(self, x: mg.Tensor) -> mg.Tensor:
            try:
                return self.first(x)
            except RuntimeError:
                return self.second(x)

    found = mg.summary(Tries(), mg.ones(1, 3))
    assert [(layer.name, layer.depth, layer.outputs) for layer in found.layers] == [("", 0, ["(1, 2)"]), ("first", 1, []), ("second", 1, ["(1, 2)"])]


def test_of_two_failures_the_one_that_nobody_caught_is_named() -> None:
    class Tries(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner, self.second = nn.Sequential(nn.Linear(9, 9)), nn.Linear(8, 2)

        def forward(self, x: mg.Tensor) -> mg.Tensor:
            try:
                self.inner(x)
            except RuntimeError:
                x = nn.ReLU()(x)
            return self.second(x)

    with pytest.raises(BadValue, match=r"second \(Linear\), called with \(1, 3\), failed"):
        mg.summary(Tries(), mg.ones(1, 3))


def test_a_module_that_two_others_share() -> None:
    shared = nn.Linear(3, 3)
    found = mg.summary(nn.Sequential(nn.Sequential(shared), nn.Sequential(shared)), mg.ones(1, 3))
    assert found.parameters == 12 and [layer.shared for layer in found.layers] == [False, False, False, False, True]
    assert found.multiply_adds == 18 and "(shared)" in str(found)


def test_models_on_other_threads_are_not_seen() -> None:
    class Starts(nn.Module):
        def forward(self, x: mg.Tensor) -> mg.Tensor:
            with ThreadPoolExecutor(1) as pool:
                return x * pool.submit(other, x).result()

    other = nn.Linear(3, 3)
    assert [layer.kind for layer in mg.summary(Starts(), mg.ones(1, 3)).layers] == ["Starts"]
    assert [box.title for box in mg.draw(Starts(), mg.ones(1, 3)).boxes] == ["linear_bias", "mul"]


def test_lazy_modules_and_modules_made_on_the_way() -> None:
    class Makes(nn.Module):
        def forward(self, x: mg.Tensor) -> mg.Tensor:
            return nn.ReLU()(x)

    found = mg.summary(nn.Sequential(nn.LazyLinear(4), Makes()), mg.ones(2, 3))
    assert found.parameters == 16 and [layer.kind for layer in found.layers] == ["Sequential", "Linear", "Makes", "ReLU"]
    assert mg.summary(nn.LazyLinear(4)).parameters == 0


def test_a_summary_costs_nothing_later() -> None:
    """The flop counter would make every function of the package ask whether somebody counts."""
    import subprocess
    import sys
    program = ("import mutagrad as mg\nmul = mg.Tensor.__mul__\nmg.summary(mg.nn.Linear(2, 2), mg.ones(1, 2))\nprint(mg.Tensor.__mul__ is mul)")
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60).stdout == "True\n"
