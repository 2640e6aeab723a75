"""nn: modules, parameters, containers and layers, without PyTorch. tests/oracle compares them with it."""
from __future__ import annotations

import copy
import gc
import inspect
import pickle
import weakref
from typing import Any

import pytest

import mutagrad as mg
from mutagrad import nn
from mutagrad.autograd import gradcheck

# One way to make and to call every layer: arguments of the constructor, shapes of the inputs.
LAYERS: dict[str, tuple[tuple[Any, ...], tuple[Any, ...]]] = {
    "Identity": ((), ((2, 3),)), "Linear": ((3, 2), ((2, 3),)), "Bilinear": ((3, 2, 4), ((2, 3), (2, 2))), "LazyLinear": ((2,), ((2, 3),)),
    **{f"Conv{n}d": ((2, 4, 2, 1, 1, 1, 2), ((1, 2, *(3, 4, 3)[:n]),)) for n in (1, 2, 3)},
    **{f"ConvTranspose{n}d": ((2, 4, 2, 2, 1, 1, 2), ((1, 2, *(3, 2, 3)[:n]),)) for n in (1, 2, 3)},
    **{f"LazyConv{n}d": ((4, 2), ((1, 2, *(3, 4, 3)[:n]),)) for n in (1, 2, 3)}, **{f"LazyConvTranspose{n}d": ((4, 2), ((1, 2, *(3, 2, 3)[:n]),)) for n in (1, 2, 3)},
    **{f"{lazy}{kind}Norm{n}d": (() if lazy else (2,), ((3, 2, *(3, 2, 2)[:n]),)) for kind in ("Batch", "Instance") for n in (1, 2, 3) for lazy in ("", "Lazy")},
    **{f"MaxPool{n}d": ((2,), ((1, 2, *(5, 4, 4)[:n]),)) for n in (1, 2, 3)}, **{f"AvgPool{n}d": ((2, 1), ((1, 2, *(5, 4, 4)[:n]),)) for n in (1, 2, 3)},
    **{f"LPPool{n}d": ((2, 2), ((1, 2, *(5, 4, 4)[:n]),)) for n in (1, 2, 3)}, **{f"AdaptiveAvgPool{n}d": ((3,), ((1, 2, *(5, 4, 4)[:n]),)) for n in (1, 2, 3)},
    **{f"AdaptiveMaxPool{n}d": ((3,), ((1, 2, *(5, 4, 4)[:n]),)) for n in (1, 2, 3)}, **{f"FractionalMaxPool{n}d": ((2, 3), ((1, 2, *(5, 6, 6)[:n]),)) for n in (2, 3)},
    **{f"{kind}Pad{n}d": ((1,), ((1, 2, *(3, 4, 3)[:n]),)) for kind in ("Zero", "Reflection", "Replication", "Circular") for n in (1, 2, 3)},
    **{f"ConstantPad{n}d": ((1, 2.5), ((1, 2, *(3, 4, 3)[:n]),)) for n in (1, 2, 3)},
    "GroupNorm": ((2, 4), ((2, 4, 3),)), "LayerNorm": ((3,), ((2, 3),)), "RMSNorm": (((2, 3),), ((2, 2, 3),)), "LocalResponseNorm": ((2,), ((2, 4, 3),)),
    **dict.fromkeys(("ReLU", "ReLU6", "LeakyReLU", "PReLU", "ELU", "SELU", "CELU", "GELU", "SiLU", "Mish", "Softplus", "Softsign", "Sigmoid", "Tanh", "LogSigmoid", "Hardsigmoid", "Hardswish", "Hardtanh", "Hardshrink", "Softshrink", "Tanhshrink", "Softmax2d"), ((), ((2, 4, 3, 3),))),
    "RReLU": ((0.2, 0.2), ((2, 3),)), "Threshold": ((0.1, 3.0), ((2, 3),)), "GLU": ((1,), ((2, 4),)), **dict.fromkeys(("Softmax", "LogSoftmax", "Softmin"), ((1,), ((2, 3),))),
    **dict.fromkeys(("Dropout", "Dropout2d", "AlphaDropout", "FeatureAlphaDropout"), ((0.0,), ((2, 3, 2, 2),))), "Dropout1d": ((0.0,), ((2, 3, 2),)),
    "Dropout3d": ((0.0,), ((2, 3, 2, 2, 2),)),
    "Flatten": ((), ((2, 3, 2),)), "Unflatten": ((1, (2, 2)), ((2, 4),)), "Upsample": ((None, 2.0), ((1, 2, 3),)), "UpsamplingNearest2d": ((None, 2.0), ((1, 2, 2, 2),)),
    "UpsamplingBilinear2d": ((None, 2.0), ((1, 2, 2, 2),)), "PixelShuffle": ((2,), ((1, 4, 2, 3),)), "PixelUnshuffle": ((2,), ((1, 1, 4, 2),)),
    "ChannelShuffle": ((2,), ((1, 4, 2),)), "Unfold": ((2,), ((1, 2, 3, 3),)), "Fold": ((3, 2), ((1, 8, 4),)), "CosineSimilarity": ((), ((2, 3), (2, 3))),
    "PairwiseDistance": ((), ((2, 3), (2, 3))), **dict.fromkeys(("MSELoss", "L1Loss", "SmoothL1Loss", "HuberLoss", "PoissonNLLLoss", "KLDivLoss"), ((), ((2, 3), (2, 3)))),
    "TripletMarginLoss": ((), ((2, 3), (2, 3), (2, 3))), "TripletMarginWithDistanceLoss": ((), ((2, 3), (2, 3), (2, 3))),
}


def draw(*shape: int, seed: int = 0) -> Any:
    return mg.randn(*shape, generator=mg.Generator().manual_seed(seed), dtype=mg.float64).requires_grad_()


@pytest.mark.parametrize("name", LAYERS)
def test_layer(name: str) -> None:
    """Runs, has the right gradient for inputs and parameters, and survives copying, pickling and a round trip of its state."""
    mg.manual_seed(0)
    arguments, shapes = LAYERS[name]
    layer = getattr(nn, name)(*arguments).double()
    inputs = [draw(*shape, seed=i + 5) for i, shape in enumerate(shapes)]
    layer(*inputs)
    layer.eval()
    samples = {"_random_samples": mg.rand(1, 2, int(name[-2]), dtype=mg.float64)} if name.startswith("Fractional") else {}
    layer = getattr(nn, name)(*arguments, **samples).double() if samples else layer
    if name == "KLDivLoss":
        inputs[1] = inputs[1].detach().softmax(1)
    expected = layer(*inputs)
    tried = copy.deepcopy(layer)

    def call(*values: Any) -> Any:
        for path, value in zip(dict(layer.named_parameters()), values[len(inputs):]):
            owner, _, key = path.rpartition(".")
            tried.get_submodule(owner)._parameters[key] = value
        return tried(*values[:len(inputs)])

    assert gradcheck(call, (*inputs, *layer.parameters()))
    for other in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert repr(other) == repr(layer)
        assert mg.equal(other(*inputs), expected)
    other = getattr(nn, name)(*arguments, **samples).double().eval()
    other.load_state_dict(layer.state_dict())
    assert mg.equal(other(*inputs), expected)


def test_every_name_is_a_name_of_nn() -> None:
    assert len(set(nn.__all__)) == len(nn.__all__)
    assert all(hasattr(nn, name) for name in nn.__all__)
    made = {name for name in nn.__all__ if inspect.isclass(getattr(nn, name)) and issubclass(getattr(nn, name), nn.Module)}
    assert all(getattr(nn, name).__doc__ for name in made)
    assert nn.modules.conv.Conv2d is nn.Conv2d and nn.modules.module.Module is nn.Module and nn.parameter.Parameter is nn.Parameter


def test_state_is_loaded_whole_or_not_at_all() -> None:
    model = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 2))
    before = {k: v.clone() for k, v in model.state_dict().items()}
    for wrong in ({"1.bias": mg.ones(5)}, {"1.bias": 3.0}):
        with pytest.raises(RuntimeError, match=r"1\.bias"):
            model.load_state_dict({**{k: v + 1 for k, v in before.items()}, **wrong})
        assert all(mg.equal(v, before[k]) for k, v in model.state_dict().items())


def test_state_names_everything_that_does_not_fit() -> None:
    with pytest.raises(RuntimeError) as caught:
        nn.Linear(2, 3).load_state_dict({"weight": mg.ones(9, 9), "other": mg.ones(1)})
    text = str(caught.value)
    assert "Missing key" in text and '"bias"' in text and "Unexpected key" in text and '"other"' in text and "size mismatch for weight" in text


def test_state_shares_memory_and_loading_is_not_recorded() -> None:
    layer = nn.Linear(2, 2)
    layer.state_dict()["weight"].fill_(7)
    assert layer.weight.tolist() == [[7, 7], [7, 7]]
    layer.load_state_dict(nn.Linear(2, 2).state_dict())
    assert layer.weight.is_leaf and layer.weight.requires_grad


BAD = [
    (lambda: nn.Linear(-1, 2), RuntimeError), (lambda: nn.Linear(2.5, 2), TypeError), (lambda: nn.Linear(3, 2)([1.0, 2.0, 3.0]), TypeError),
    (lambda: nn.Linear(3, 2)(mg.ones(4)), RuntimeError), (lambda: nn.Linear(3, 2, device="cuda"), NotImplementedError), (lambda: nn.Linear(3, 2, dtype="nothing"), TypeError),
    (lambda: nn.Conv2d(3, 4, 2, groups=2), ValueError), (lambda: nn.Conv2d(3, 4, 0), ValueError), (lambda: nn.Conv2d(3, 4, (1, 2, 3)), ValueError),
    (lambda: nn.Conv2d(3, 4, 2.5), TypeError), (lambda: nn.Conv2d(3, 4, 2, padding=-1), ValueError), (lambda: nn.Conv2d(3, 4, 2, padding="all"), ValueError),
    (lambda: nn.Embedding(3, 2, padding_idx=3), AssertionError), (lambda: nn.Embedding(-3, 2), ValueError), (lambda: nn.Embedding(3, 2)(mg.tensor([3])), IndexError),
    (lambda: nn.Embedding.from_pretrained(mg.ones(3)), ValueError), (lambda: nn.Embedding.from_pretrained([[1.0]]), TypeError), (lambda: nn.Dropout(-0.1), ValueError),
    (lambda: nn.BatchNorm2d(3)(mg.ones(2, 3)), ValueError), (lambda: nn.SyncBatchNorm(3, process_group=1), NotImplementedError), (lambda: nn.GroupNorm(2, 3), ValueError),
    (lambda: nn.Conv2d(3, 4, 2, stride=0)(mg.ones(3, 4, 4)), RuntimeError), (lambda: nn.Hardtanh(1, 0), ValueError), (lambda: nn.PReLU(0), ValueError),
    (lambda: nn.ReLU().cuda(), NotImplementedError), (lambda: nn.ReLU().share_memory(), NotImplementedError), (lambda: nn.Linear(1, 1).to("cuda"), NotImplementedError),
    (lambda: nn.Parameter([1.0]), TypeError), (lambda: nn.Sequential(3), TypeError), (lambda: nn.ModuleList([3]), TypeError), (lambda: nn.Sequential(nn.ReLU()) * 0, ValueError),
    (lambda: nn.ReLU()(3.0), TypeError), (lambda: nn.MSELoss(reduction="most")(mg.ones(1), mg.ones(1)), ValueError), (lambda: nn.Unflatten("C", (1, 2)), TypeError),
    (lambda: nn.LazyConv2d(4, 3)(mg.ones(3)), RuntimeError), (lambda: nn.LazyLinear(4).weight.shape, RuntimeError), (lambda: nn.init.eye_([1.0]), TypeError),
    (lambda: nn.MultiMarginLoss(p=3), ValueError), (lambda: nn.AdaptiveLogSoftmaxWithLoss(4, 10, [3, 2]), ValueError), (lambda: nn.ConstantPad2d((1, 2, 3), 0), ValueError),
]


@pytest.mark.parametrize(("call", "kind"), BAD, ids=range(len(BAD)))
def test_bad_input(call: Any, kind: type[Exception]) -> None:
    with pytest.raises(kind) as caught:
        call()
    assert isinstance(caught.value, mg.MutagradError)


def test_a_failed_batch_is_not_counted() -> None:
    norm = nn.BatchNorm1d(3)
    with pytest.raises(ValueError):
        norm(mg.ones(1, 3))
    assert norm.num_batches_tracked.item() == 0 and norm.running_mean.tolist() == [0, 0, 0]


def test_an_empty_batch_leaves_the_running_statistics() -> None:
    norm = nn.BatchNorm1d(3)
    norm(mg.ones(0, 3))
    assert norm.running_mean.tolist() == [0, 0, 0] and norm.running_var.tolist() == [1, 1, 1]


def test_a_module_dies_with_its_last_reference() -> None:
    layer = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    layer.register_forward_hook(lambda module, inputs, out: None)
    layer(mg.ones(1, 2)).sum().backward()
    gone = weakref.ref(layer)
    del layer
    gc.collect()
    assert gone() is None


def test_in_place_layers_write_and_differentiate() -> None:
    x = draw(3, 4)
    y = x * 1
    for layer in (nn.ReLU(True), nn.LeakyReLU(0.1, True), nn.Hardtanh(inplace=True), nn.Dropout(0.0, True), nn.Threshold(0.0, 0.5, True)):
        assert layer(y) is y
    y.sum().backward()
    assert x.grad is not None


def test_a_layer_can_overwrite_its_input_under_a_backward_hook() -> None:
    """PyTorch refuses this."""
    layer, seen = nn.ReLU(inplace=True), []
    layer.register_full_backward_hook(lambda module, grad_in, grad_out: seen.append(grad_in[0].tolist()))
    x = mg.tensor([-1.0, 2.0], requires_grad=True)
    layer(x * 1).sum().backward()
    assert x.grad.tolist() == [0, 1]
    assert seen == [[0, 1]]


def test_training_a_small_network() -> None:
    mg.manual_seed(0)
    model = nn.Sequential(nn.Linear(2, 16), nn.BatchNorm1d(16), nn.Tanh(), nn.Dropout(0.0), nn.Linear(16, 2))
    x = mg.rand(64, 2) * 2 - 1
    target = (x[:, 0] * x[:, 1] > 0).long()
    loss_of = nn.CrossEntropyLoss()
    for _ in range(150):
        model.zero_grad()
        loss = loss_of(model(x), target)
        loss.backward()
        with mg.no_grad():
            for p in model.parameters():
                p -= 0.5 * p.grad
    assert loss.item() < 0.1
    assert (model.eval()(x).argmax(1) == target).float().mean().item() > 0.95


def test_lazy_layers_take_their_shape_from_the_first_input() -> None:
    model = nn.Sequential(nn.LazyConv2d(4, 3), nn.LazyBatchNorm2d(), nn.Flatten(), nn.LazyLinear(2))
    assert model[0].has_uninitialized_params() and repr(model.state_dict()["0.weight"]) == "<UninitializedParameter>"
    fresh = copy.deepcopy(model)
    assert model(mg.ones(2, 3, 5, 5)).shape == (2, 2)
    assert type(model[0]) is nn.Conv2d and type(model[1]) is nn.BatchNorm2d and model[3].in_features == 36
    fresh.load_state_dict(model.state_dict())
    assert mg.equal(fresh.eval()(mg.ones(2, 3, 5, 5)), model.eval()(mg.ones(2, 3, 5, 5)))


def test_unpickled_arrays_have_the_types_of_others() -> None:
    """NumPy makes a second type object for them; products compare types by identity."""
    array = pickle.loads(pickle.dumps(mg.ones(2, 2).numpy()))
    for made in (mg.from_numpy(array), mg.tensor(array), mg.as_tensor(array), pickle.loads(pickle.dumps(mg.ones(2, 2))), pickle.loads(pickle.dumps(mg.ones(3, 2)))[1:]):
        assert (made @ mg.ones(2, 2)).tolist() == [[2, 2], [2, 2]]


def test_nothing_is_computed_with_a_parameter_that_has_no_shape() -> None:
    lazy = nn.LazyLinear(2).half()
    for use in (lambda p: p + p, lambda p: p.sum(), mg.empty_like, lambda p: mg.optim.Adagrad([p]), lambda p: nn.utils.spectral_norm(lazy)):
        with pytest.raises(ValueError, match="uninitialized"):
            use(lazy.weight)
    copied = pickle.loads(pickle.dumps(copy.deepcopy(lazy))).requires_grad_(False)
    assert repr(copied.weight) == "<UninitializedParameter>" and copied.weight.dtype is mg.float16 and not copied.weight.requires_grad
    copied.weight.materialize((2, 3))
    assert copied.weight.shape == (2, 3) and copied.weight.dtype is mg.float16 and type(copied.weight) is nn.Parameter


def test_a_lazy_module_of_ones_own_stays_what_it_is() -> None:
    class Scaled(nn.modules.lazy.LazyModuleMixin):
        def __init__(self) -> None:
            super().__init__()
            self.factor = nn.UninitializedParameter()

        def initialize_parameters(self, input: Any) -> None:
            if self.has_uninitialized_params():
                self.factor.materialize(input.shape[-1:])
                nn.init.ones_(self.factor)

        def forward(self, input: Any) -> Any:
            return input * self.factor

    module = Scaled()
    module.register_forward_pre_hook(lambda m, inputs: inputs[0] + 1)
    assert module(mg.zeros(2)).tolist() == [1, 1] and module(mg.zeros(2)).tolist() == [1, 1] and type(module) is Scaled


@pytest.mark.parametrize("targets", [("cpu", True), (None, True), (mg.int64,), ([],), (mg.tensor(3),), ("cpu", mg.float64, True, True)])
def test_targets_that_mean_nothing(targets: tuple[Any, ...]) -> None:
    layer = nn.Linear(1, 1)
    with pytest.raises(TypeError):
        layer.to(*targets)
    assert layer.to("cpu", mg.float64, True) is layer.to(mg.zeros(1).double()) and layer.weight.dtype is mg.float64


def test_conversion_makes_new_parameters_if_the_future_says_so() -> None:
    layer = nn.Linear(1, 1)
    weight = layer.weight
    mg.__future__.set_overwrite_module_params_on_conversion(True)
    try:
        assert layer.double().weight is not weight and weight.dtype is mg.float32 and layer.weight.requires_grad
    finally:
        mg.__future__.set_overwrite_module_params_on_conversion(False)
    assert layer.float().weight is layer.weight


def test_paths_to_modules_are_checked() -> None:
    model = nn.Module()
    model.name, model.inner = "text", nn.Sequential()
    model.set_submodule("inner.last", nn.ReLU())
    assert type(model.inner.last) is nn.ReLU
    for path, module, error in (("", nn.ReLU(), ValueError), ("inner.last", 3, ValueError), ("name", nn.ReLU(), AttributeError), ("no.where", nn.ReLU(), AttributeError)):
        with pytest.raises(error):
            model.set_submodule(path, module)
    with pytest.raises(AttributeError):
        model.set_submodule("inner.other", nn.ReLU(), strict=True)


def test_super_init_is_called_on_demand() -> None:
    class Mixin:
        def __init__(self) -> None:
            self.mixed = True

    class Both(nn.Module, Mixin):
        call_super_init = True

    assert Both().mixed and Both().training


def test_synchronized_statistics_of_one_process_are_those_of_the_batch() -> None:
    model = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    synced = nn.SyncBatchNorm.convert_sync_batchnorm(copy.deepcopy(model))
    x = mg.randn(4, 2)
    assert type(synced[1]) is nn.SyncBatchNorm and mg.equal(model(x), synced(x)) and mg.equal(model[1].running_var, synced[1].running_var)


def test_layers_are_found_under_the_paths_of_pytorch() -> None:
    assert nn.modules.padding.ZeroPad2d is nn.modules.ZeroPad2d is nn.ZeroPad2d and nn.modules.conv.LazyConv2d is nn.LazyConv2d
    with pytest.raises(AttributeError):
        nn.modules.nothing  # noqa: B018


@pytest.mark.parametrize("antialias", [False, True])
def test_images_of_bytes_are_resized_and_rounded(antialias: bool) -> None:
    image = mg.tensor([[[[0, 255], [128, 7]]]], dtype=mg.uint8)
    small = nn.functional.interpolate(image, (3, 3), mode="bicubic", antialias=antialias)
    assert small.dtype is mg.uint8 and small[0, 0, 0].tolist()[::2] == [0, 255] and small[0, 0, 1, 1].item() == 98


def test_what_layers_pass_on() -> None:
    assert nn.factory_kwargs({"dtype": 1, "factory_kwargs": {"device": 2}}) == {"device": 2, "dtype": 1} and nn.factory_kwargs(None) == {}
    for bad in ({"shape": 1}, {"dtype": 1, "factory_kwargs": {"dtype": 2}}):
        with pytest.raises(TypeError):
            nn.factory_kwargs(bad)


def test_tables_of_a_librarys_own_are_listed_as_parameters_are():
    class Owner(nn.Linear):
        def __init__(self):
            super().__init__(1, 1)
            self.table = {"a": self}

    inner = Owner()
    model = nn.Sequential(inner, inner, nn.ReLU())
    found = list(model._named_members(lambda module: getattr(module, "table", {}).items(), prefix="m"))
    assert found == [("m.0.a", inner)] and list(model._named_members(lambda m: m._parameters.items(), recurse=False)) == []
    twice = model._named_members(lambda module: getattr(module, "table", {}).items(), remove_duplicate=False)
    assert [name for name, _ in twice] == ["0.a", "1.a"]
    names = nn.ModuleList([nn.ReLU(), nn.Tanh()])
    assert [names._get_abs_string_index(i) for i in (0, -1, mg.tensor(1))] == ["0", "1", "1"]
    with pytest.raises(IndexError, match="out of range"):
        names._get_abs_string_index(2)


@pytest.mark.parametrize("rows", [(), (2,), (5, 2)])
@pytest.mark.parametrize("bias", [(3,), (1,), (), (1, 3), (2, 3), (2, 1), (5, 2, 3)])
def test_a_linear_layers_bias_broadcasts(rows, bias):
    x, w, b = (mg.rand(*shape, dtype=mg.float64, requires_grad=True) for shape in ((*rows, 4), (3, 4), bias))
    if len(bias) > max(len(rows) + 1, 2) or not rows and bias[:-1] not in ((), (1,)):
        with pytest.raises(RuntimeError, match="linear: bias of shape"):
            nn.functional.linear(x, w, b)
        return
    result = nn.functional.linear(x, w, b)
    assert result.shape == (*rows, 3) and mg.allclose(result, (x @ w.T + b).reshape(result.shape))
    assert mg.autograd.gradcheck(nn.functional.linear, (x, w, b))


def test_a_module_has_no_bases_but_object() -> None:
    """Programs compare the classes that theirs is made of."""
    assert mg.nn.Module.__mro__ == (mg.nn.Module, object)
    assert mg.nn.Linear.__mro__ == (mg.nn.Linear, mg.nn.Module, object)
