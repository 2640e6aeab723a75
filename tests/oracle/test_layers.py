"""Layers beside PyTorch's: what its table of modules leaves out, the arguments of all, their first values, and nn.init."""
from __future__ import annotations

import inspect
import math
import warnings
from typing import Any, NamedTuple

import pytest

import mutagrad as mg

from .compare import attempt, difference, gradient_difference, ours, stands_for

torch = pytest.importorskip("torch", reason="make oracle installs it")

pytestmark = pytest.mark.oracle

MODULES = {name for name in dir(torch.nn) if inspect.isclass(getattr(torch.nn, name)) and issubclass(getattr(torch.nn, name), torch.nn.Module)}
CLAIMED = sorted(name for name in MODULES if hasattr(mg.nn, name))
LEFT_OUT = {
    "Container": "deprecated by PyTorch in 2017",
    "CrossMapLRN2d": "LocalResponseNorm is the same",
    "DataParallel": "several devices",
}


def test_what_is_left_out_is_named() -> None:
    assert {name for name in MODULES - set(CLAIMED) if not name.startswith("Lazy")} <= set(LEFT_OUT)


@pytest.mark.parametrize("name", CLAIMED)
def test_arguments(name: str) -> None:
    """Names, order and defaults of the constructor and of forward."""
    for method in ("__init__", "forward"):
        theirs, mine = (inspect.signature(getattr(getattr(lib.nn, name), method)).parameters for lib in (torch, mg))
        if any(p.kind == p.VAR_POSITIONAL for p in theirs.values()):
            continue
        for key in theirs:
            assert key in mine, f"{name}.{method} lacks {key}"
            left, right = theirs[key], mine[key]
            if not callable(left.default):
                assert left.default == right.default, f"{name}.{method}: {right}, not {left}"
            assert left.kind == right.kind, f"{name}.{method}: {right}"
        assert [key for key in mine if key in theirs] == list(theirs)


# -------------------------------------------------------------------------------------------------------------- the layers

def draw(*shape: int, seed: int = 0, needs: bool = True) -> Any:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).requires_grad_(needs)


def whole(high: int, *shape: int) -> Any:
    return torch.randint(0, high, shape, generator=torch.Generator().manual_seed(1))


class Case(NamedTuple):
    name: str
    arguments: tuple[Any, ...]
    settings: dict[str, Any]
    inputs: tuple[Any, ...]


def case(name: str, *arguments: Any, x: Any, **settings: Any) -> Case:
    return Case(name, arguments, settings, x if isinstance(x, tuple) else (x,))


image, sequence, volume = draw(2, 4, 6, 5), draw(2, 4, 7), draw(2, 4, 5, 4, 6)
CASES = [
    case("Identity", 54, unused=True, x=image),
    case("Flatten", x=image), case("Flatten", 0, 1, x=image), case("Flatten", 0, x=sequence),
    case("Unflatten", 1, (2, 2), x=image), case("Unflatten", -1, [5, 1], x=image),
    case("Upsample", scale_factor=2, x=image), case("Upsample", (7, 9), mode="bilinear", align_corners=True, x=image),
    case("Upsample", scale_factor=(2, 1.5), mode="bicubic", x=image), case("Upsample", size=9, mode="linear", x=sequence),
    case("UpsamplingNearest2d", scale_factor=3, x=image), case("UpsamplingBilinear2d", size=(3, 4), x=image),
    case("PixelShuffle", 2, x=image), case("PixelUnshuffle", 2, x=draw(1, 2, 4, 6)), case("ChannelShuffle", 2, x=image),
    case("Unfold", (2, 3), padding=1, stride=2, x=image), case("Fold", (4, 5), (2, 2), x=draw(1, 8, 12)), case("Fold", 4, 2, stride=2, x=draw(2, 8, 4)),
    case("CosineSimilarity", x=(sequence, draw(2, 4, 7, seed=3))), case("CosineSimilarity", dim=-1, eps=1e-3, x=(sequence, draw(2, 4, 7, seed=3))),
    case("PairwiseDistance", x=(draw(5, 3), draw(5, 3, seed=2))), case("PairwiseDistance", p=1, keepdim=True, x=(draw(5, 3), draw(5, 3, seed=2))),
    case("Hardsigmoid", x=sequence), case("RReLU", 0.1, 0.3, x=sequence), case("ReLU6", x=image), case("PReLU", 4, 0.1, x=image), case("SELU", x=image),
    case("Softmax2d", x=image), case("Hardtanh", -2, 0.5, x=image), case("Threshold", 0.1, -3, x=image), case("GELU", "tanh", x=image),
    case("Dropout", 0.0, x=image), case("AlphaDropout", 0.0, x=image), case("Dropout1d", 0.0, x=sequence), case("Dropout2d", 0.0, x=image),
    case("Dropout3d", 0.0, x=volume), case("FeatureAlphaDropout", 0.0, x=image),
    case("Embedding", 10, 3, padding_idx=-2, x=whole(10, 4, 2)), case("Embedding", 10, 3, max_norm=0.5, norm_type=1.0, x=whole(10, 4, 2)),
    case("Embedding", 10, 3, 1, scale_grad_by_freq=True, x=whole(3, 8)),
    case("EmbeddingBag", 10, 3, x=whole(10, 4, 2)), case("EmbeddingBag", 10, 3, mode="sum", padding_idx=0, x=(whole(10, 6), torch.tensor([0, 2, 4]))),
    case("EmbeddingBag", 10, 3, mode="max", include_last_offset=True, x=(whole(10, 6), torch.tensor([0, 2, 6]))),
    *(case(f"Conv{n}d", 4, 6, 3, padding=1, stride=2, groups=2, padding_mode=mode, x=x) for n, x in ((1, sequence), (2, image), (3, volume))
      for mode in ("zeros", "reflect", "replicate", "circular")),
    *(case("Conv2d", 4, 2, (4, 2), padding="same", dilation=(1, 3), bias=False, padding_mode=mode, x=image) for mode in ("zeros", "reflect", "circular")),
    case("Conv1d", 4, 2, 2, padding="valid", x=sequence), case("Conv2d", 4, 2, 2, padding="valid", padding_mode="reflect", x=image), case("Conv2d", 4, 2, 1, x=draw(4, 3, 3)),
    case("ConvTranspose1d", 4, 6, 3, 2, 1, 1, groups=2, x=sequence), case("ConvTranspose2d", 4, 3, 3, (2, 3), dilation=2, bias=False, x=image),
    case("ConvTranspose2d", 4, 3, 3, 2, x=(image, [14, 12])), case("ConvTranspose3d", 4, 2, 2, 2, x=volume), case("ConvTranspose1d", 4, 2, 3, 2, x=(sequence, [2, 2, 16])),
    case("ConvTranspose2d", 4, 3, 3, 2, x=(image, [99, 12])), case("ConvTranspose2d", 4, 3, 3, 2, x=(image, [1, 2, 3])),
    case("MaxPool2d", 2, 1, 1, 2, True, True, x=image), case("LPPool3d", 2, 2, x=volume), case("AvgPool2d", (2, 3), 1, (1, 1), True, False, 3, x=image),
    case("AdaptiveAvgPool2d", (3, None), x=image), case("AdaptiveMaxPool2d", 2, True, x=image),
    case("MaxUnpool2d", 2, x=torch.nn.functional.max_pool2d(draw(2, 3, 4, 6), 2, return_indices=True)),
    case("MaxUnpool1d", 2, 2, x=(*torch.nn.functional.max_pool1d(draw(3, 7), 2, return_indices=True), [7])),
    case("MaxUnpool3d", 2, x=torch.nn.functional.max_pool3d(draw(2, 4, 4, 6), 2, return_indices=True)),
    case("BatchNorm2d", 4, momentum=None, x=image), case("BatchNorm2d", 4, bias=False, x=image), case("BatchNorm1d", 4, affine=False, track_running_stats=False, x=sequence),
    case("BatchNorm2d", 4, x=sequence), case("BatchNorm1d", 5, x=sequence),
    case("InstanceNorm2d", 4, affine=True, track_running_stats=True, x=image), case("InstanceNorm1d", 4, x=draw(4, 7)), case("InstanceNorm2d", 3, affine=True, x=image),
    case("InstanceNorm2d", 3, x=image), case("InstanceNorm3d", 4, momentum=0.5, track_running_stats=True, x=volume),
    case("GroupNorm", 2, 4, bias=False, x=image), case("LayerNorm", [6, 5], bias=False, x=image), case("RMSNorm", 5, 1e-3, x=image), case("LocalResponseNorm", 3, 0.1, x=image),
    case("TripletMarginLoss", swap=True, x=(draw(5, 3), draw(5, 3, seed=2), draw(5, 3, seed=3))),
    case("TripletMarginWithDistanceLoss", margin=2.0, reduction="sum", x=(draw(5, 3), draw(5, 3, seed=2), draw(5, 3, seed=3))),
    case("NLLLoss2d", x=(image, whole(4, 2, 6, 5))), case("CrossEntropyLoss", label_smoothing=0.1, ignore_index=1, x=(image, whole(4, 2, 6, 5))),
    case("CrossEntropyLoss", torch.tensor([1.0, 2, 3, 4], dtype=torch.float64), reduction="sum", x=(image, whole(4, 2, 6, 5))),
    case("MSELoss", size_average=False, x=(image, draw(2, 4, 6, 5, seed=4))), case("L1Loss", reduce=False, x=(image, draw(2, 4, 6, 5, seed=4))),
    case("BCEWithLogitsLoss", pos_weight=torch.tensor([2.0], dtype=torch.float64), x=(draw(3), draw(3, seed=5, needs=False).sigmoid())),
    case("MultiMarginLoss", p=2, margin=0.5, x=(draw(3, 4), whole(4, 3))), case("KLDivLoss", reduction="batchmean", x=(draw(3, 4), draw(3, 4, seed=2).softmax(1).detach())),
    case("MultiMarginLoss", p=3, x=(draw(3, 4), whole(4, 3))), case("MSELoss", reduction="no", x=(draw(3), draw(3))),
    case("AdaptiveLogSoftmaxWithLoss", 8, 20, [4, 10], 2.0, x=(draw(12, 8), whole(20, 12))),
    case("AdaptiveLogSoftmaxWithLoss", 8, 20, [4], head_bias=True, x=(draw(8), torch.tensor(7))),
    case("AdaptiveLogSoftmaxWithLoss", 8, 20, [10, 4], x=(draw(12, 8), whole(20, 12))),
    case("Bilinear", 3, 4, 2, bias=False, x=(draw(2, 3), draw(2, 4))), case("Linear", 7, 2, False, x=sequence), case("Linear", 5, 2, x=sequence),
    case("Conv2d", 4, 6, 3, groups=3, x=image), case("Conv2d", 4, 6, 3, groups=0, x=image), case("Conv2d", 4, 6, 3, padding="some", x=image),
    case("Conv2d", 4, 6, 3, stride=2, padding="same", x=image), case("Conv2d", 4, 6, 3, padding_mode="other", x=image), case("Conv1d", 4, 6, 3, x=image),
    case("ConvTranspose2d", 4, 6, 3, padding_mode="circular", x=image), case("GroupNorm", 3, 4, x=image), case("Dropout", 1.5, x=image),
    case("Linear", -1, 2, x=image), case("FractionalMaxPool2d", 2, x=image), case("FractionalMaxPool2d", 2, output_ratio=2.0, x=image),
    case("TripletMarginLoss", margin=0, x=(draw(2, 2), draw(2, 2), draw(2, 2))), case("Unflatten", 1, 4, x=image),
    case("Softmax2d", x=draw(3, 3)), case("ReflectionPad2d", 1, x=draw(3, 3)), case("PixelShuffle", 3, x=image),
]


@pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])
@pytest.mark.parametrize("given", CASES, ids=[f"{i}-{c.name}" for i, c in enumerate(CASES)])
def test_layer(given: Case, training: bool) -> None:
    """The repr, the state by name, results, gradients and the state after; or an error that the same `except` catches."""
    if given.name == "RReLU" and training:
        pytest.skip("draws numbers of its own")
    torch.manual_seed(0)
    inputs = tuple(v.detach().clone().requires_grad_(v.requires_grad) if isinstance(v, torch.Tensor) else v for v in given.inputs)
    theirs, mine = [], []

    def call(lib: Any, made: list[Any], convert: Any) -> Any:
        made.append(getattr(lib.nn, given.name)(*map(convert, given.arguments), **{k: convert(v) for k, v in given.settings.items()}))
        made[0].to(lib.float64).train(training)
        if lib is mg:
            assert repr(made[0]) == repr(theirs[0])
            made[0].load_state_dict(ours(before))
        else:
            before.update({k: v.clone() for k, v in made[0].state_dict().items()})
        made.append(tuple(map(convert, inputs)))
        return made[0](*made[1])

    before: dict[str, Any] = {}
    expected, refused = attempt(lambda: call(torch, theirs, lambda v: v), quiet=True)
    found, error = attempt(lambda: call(mg, mine, ours), quiet=True)
    if refused is not None:
        assert error is not None and stands_for(refused, error), f"{error!r}, not {refused!r}"
        assert isinstance(error, mg.MutagradError), repr(error)
        return
    if error is not None:
        raise error
    assert not difference(expected, found)
    left, right = [(m[1], list(m[0].parameters())) for m in (theirs, mine)]
    assert not gradient_difference(expected, found, left, right, tolerance=(1e-7, 1e-7))  # PyTorch has a sixth in single precision
    after = theirs[0].state_dict(), mine[0].state_dict()
    assert list(after[0]) == list(after[1])
    assert not difference(list(after[0].values()), list(after[1].values()))


# ------------------------------------------------------------------------------------------------------------ first values

FRESH = {
    "Linear": (60, 70), "Bilinear": (20, 20, 20), "Conv1d": (20, 40, 5), "Conv2d": (20, 40, 5), "Conv3d": (8, 16, 5), "ConvTranspose1d": (20, 40, 5),
    "ConvTranspose2d": (20, 40, 5), "ConvTranspose3d": (16, 8, 5), "Embedding": (80, 50), "EmbeddingBag": (80, 50), "BatchNorm2d": (9,), "LayerNorm": (9,),
    "GroupNorm": (3, 9), "PReLU": (4,), "RMSNorm": (9,), "AdaptiveLogSoftmaxWithLoss": (40, 200, [30, 90]), "LinearCrossEntropyLoss": (40, 40),
}


@pytest.mark.parametrize("name", FRESH)
def test_first_values(name: str) -> None:
    """Mean, deviation and range of what a layer starts with."""
    torch.manual_seed(0)
    mg.manual_seed(0)
    theirs, mine = (getattr(lib.nn, name)(*FRESH[name]).state_dict() for lib in (torch, mg))
    for key in theirs:
        a, b = theirs[key].double(), mine[key].double()
        spread = max(a.std().item() if a.numel() > 1 else 0.0, 1e-9)
        assert b.mean().item() == pytest.approx(a.mean().item(), abs=8 * spread / math.sqrt(a.numel()))
        if a.numel() > 30:
            assert b.std().item() == pytest.approx(a.std().item(), rel=8 / math.sqrt(a.numel()), abs=1e-9)
            assert b.abs().max().item() == pytest.approx(a.abs().max().item(), rel=0.4 if "Embedding" in name else 0.2, abs=1e-9)


INIT = [
    ("uniform_", (-1.0, 3.0)), ("normal_", (1.0, 2.0)), ("trunc_normal_", (0.5, 1.0, -1.0, 1.0)), ("trunc_normal_", (0.0, 0.02)), ("constant_", (2.5,)), ("ones_", ()),
    ("zeros_", ()), ("eye_", ()), ("xavier_uniform_", (2.0,)), ("xavier_normal_", ()), ("kaiming_uniform_", (0.1, "fan_out")), ("kaiming_normal_", (0, "fan_in", "relu")),
    ("orthogonal_", (2.0,)), ("sparse_", (0.3, 0.5)),
]


@pytest.mark.parametrize(("name", "arguments"), INIT)
def test_init(name: str, arguments: tuple[Any, ...]) -> None:
    torch.manual_seed(0)
    mg.manual_seed(0)
    a, b = torch.empty(120, 90), mg.empty(120, 90)
    assert getattr(mg.nn.init, name)(b, *arguments) is b
    getattr(torch.nn.init, name)(a, *arguments)
    assert b.mean().item() == pytest.approx(a.mean().item(), abs=0.05 * a.std().item() + 1e-7)
    assert b.std().item() == pytest.approx(a.std().item(), rel=0.04, abs=1e-9)
    assert (b == 0).sum().item() == (a == 0).sum().item()
    if name == "orthogonal_":
        assert mg.allclose(b.T @ b, 4 * mg.eye(90), atol=1e-4)
    if name in ("constant_", "ones_", "zeros_", "eye_"):
        assert not difference(a, b)
    if name == "sparse_":
        assert (b == 0).sum(0).tolist() == (a == 0).sum(0).tolist()
    if name == "trunc_normal_":
        low, high = (*arguments, -2.0, 2.0)[2:4]
        assert low <= b.min().item() <= b.max().item() <= high


@pytest.mark.parametrize(("shape", "groups"), [((4, 2, 3), 1), ((6, 2, 3, 4), 3), ((2, 4, 3, 3, 3), 1), ((4, 2), 1), ((4, 2, 3), 3)])
def test_dirac(shape: tuple[int, ...], groups: int) -> None:
    a, b = torch.ones(shape), mg.ones(shape)
    _, refused = attempt(lambda: torch.nn.init.dirac_(a, groups))
    _, error = attempt(lambda: mg.nn.init.dirac_(b, groups))
    assert stands_for(refused, error) if refused is not None else error is None
    assert not difference(a, b)


GAINS = [("relu", None), ("leaky_relu", None), ("leaky_relu", 0.2), ("tanh", None), ("selu", None), ("conv2d", None), ("linear", None), ("sigmoid", None),
         ("conv_transpose3d", None), ("other", None), ("leaky_relu", "a"), ("leaky_relu", True)]


@pytest.mark.parametrize(("name", "value"), GAINS)
def test_calculate_gain(name: str, value: Any) -> None:
    expected, refused = attempt(lambda: torch.nn.init.calculate_gain(name, value))
    found, error = attempt(lambda: mg.nn.init.calculate_gain(name, value))
    assert (stands_for(refused, error) if refused is not None else found == expected), error


BAD_INIT = [("eye_", (3,), ()), ("xavier_uniform_", (3,), ()), ("kaiming_normal_", (3,), ()), ("kaiming_uniform_", (3, 3), (0, "fan")), ("orthogonal_", (3,), ()), ("sparse_", (3,), (0.1,)),
            ("kaiming_uniform_", (3, 3), (0, "fan_in", "other"))]


@pytest.mark.parametrize(("name", "shape", "arguments"), BAD_INIT)
def test_bad_init(name: str, shape: tuple[int, ...], arguments: tuple[Any, ...]) -> None:
    _, refused = attempt(lambda: getattr(torch.nn.init, name)(torch.ones(shape), *arguments))
    _, error = attempt(lambda: getattr(mg.nn.init, name)(mg.ones(shape), *arguments))
    assert refused is not None and isinstance(error, mg.MutagradError) and stands_for(refused, error), repr(error)


def test_init_of_a_generator_and_former_names() -> None:
    a, b = mg.empty(5, 5), mg.empty(5, 5)
    for name in ("uniform_", "normal_", "trunc_normal_", "xavier_uniform_", "xavier_normal_", "kaiming_uniform_", "kaiming_normal_", "orthogonal_"):
        getattr(mg.nn.init, name)(a, generator=mg.Generator().manual_seed(3))
        getattr(mg.nn.init, name)(b, generator=mg.Generator().manual_seed(3))
        assert mg.equal(a, b), name
    former = [name for name in mg.nn.init.__all__ if not name.endswith("_") and name != "calculate_gain"]
    assert all(hasattr(torch.nn.init, name) for name in former)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(FutureWarning, match="deprecated"):
            mg.nn.init.xavier_normal(a)
