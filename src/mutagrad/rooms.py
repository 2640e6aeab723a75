"""Which operations are loaded when they are first asked for, and from where.

`import mutagrad` loads what nearly every program uses; loading the rest with it would double the time that it takes. A
room is a module of `ops/`: its functions are names of `mutagrad`, its methods those of `Tensor`.
"""
from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import Any, NamedTuple

from .errors import BadValue


class Room(NamedTuple):
    functions: str = ""
    methods: str = ""


ROOMS: dict[str, Room] = {
    "special": Room(
        functions="""clamp_max clamp_min copysign digamma erfc erfinv float_power frexp gcd heaviside i0 igamma igammac isin isneginf isposinf isreal
                     lcm ldexp lgamma logaddexp2 mvlgamma nan_to_num nextafter polygamma sinc xlogy""",
        methods="""bitwise_left_shift_ bitwise_right_shift_ copysign copysign_ digamma digamma_ erfc erfc_ erfinv erfinv_ float_power float_power_
                   frexp gcd gcd_ heaviside heaviside_ i0 i0_ igamma igamma_ igammac igammac_ isneginf isposinf isreal lcm lcm_ ldexp ldexp_
                   lgamma lgamma_ logaddexp2 logit_ mvlgamma mvlgamma_ nan_to_num nan_to_num_ nextafter nextafter_ polygamma polygamma_ sinc
                   sinc_ xlogy xlogy_"""),
    "complex": Room(
        functions="""angle complex conj_physical imag is_conj is_neg polar real resolve_conj resolve_neg view_as_complex view_as_real""",
        methods="""angle chalf conj_physical conj_physical_ is_conj is_neg resolve_conj resolve_neg"""),
    "statistics": Room(
        functions="""nansum nanmean median nanmedian mode quantile nanquantile kthvalue cov corrcoef""",
        methods="""nansum nanmean median nanmedian mode quantile nanquantile kthvalue cov corrcoef sum_to_size"""),
    "running": Room(
        functions="cummax cummin logcumsumexp",
        methods="cummax cummin logcumsumexp"),
    "differences": Room(
        functions="diff trapezoid trapz cumulative_trapezoid gradient",
        methods="diff"),
    "distances": Room(
        functions="cdist renorm",
        methods="renorm renorm_"),
    "searching": Room(
        functions="""msort unique unique_consecutive isin searchsorted bucketize histc histogram histogramdd bincount nonzero_static unravel_index
            index_reduce""",
        methods="""msort unique unique_consecutive histc histogram bincount nonzero_static index_reduce index_reduce_"""),
    "matrices": Room(
        functions="""adjoint diag diag_embed diagflat trace tril tril_indices triu triu_indices vander""",
        methods="""H adjoint diag diag_embed diagflat fill_diagonal_ mH trace tril tril_ triu triu_"""),
    "solving": Room(
        functions="""det inverse logdet matrix_exp matrix_power slogdet triangular_solve""",
        methods="""det inverse logdet matrix_exp matrix_power slogdet triangular_solve"""),
    "cholesky": Room(
        functions="""cholesky cholesky_inverse cholesky_solve""",
        methods="""cholesky cholesky_inverse cholesky_solve"""),
    "lu": Room(
        functions="""lu lu_solve lu_unpack""",
        methods="""lu lu_solve"""),
    "qr": Room(
        functions="""geqrf orgqr ormqr qr""",
        methods="""geqrf orgqr ormqr qr"""),
    "spectral": Room(
        functions="svd",
        methods="svd"),
    "lowrank": Room(functions="pca_lowrank svd_lowrank"),
    "norms": Room(
        functions="""pinverse""",
        methods="""pinverse"""),
    "products": Room(
        functions="""addbmm addmv addr baddbmm chain_matmul cross inner kron vdot""",
        methods="""addbmm addbmm_ addmm_ addmv addmv_ addr addr_ baddbmm baddbmm_ cross inner kron vdot"""),
    "fourier": Room(
        functions="""istft stft""",
        methods="""istft stft"""),
    "windows": Room(
        functions="""bartlett_window blackman_window hamming_window hann_window kaiser_window"""),
    "counting": Room(functions="range"),
    "segments": Room(functions="segment_reduce"),
    "quantize": Room(functions="fake_quantize_per_channel_affine fake_quantize_per_tensor_affine"),
    "toplevel": Room(
        functions="""adaptive_max_pool1d batch_norm binary_cross_entropy_with_logits conv_tbc cosine_embedding_loss ctc_loss embedding frobenius_norm
            hinge_embedding_loss instance_norm kl_div margin_ranking_loss norm_except_dim nuclear_norm poisson_nll_loss triplet_margin_loss"""),
    "arrange": Room(
        functions="""alias_copy as_strided_copy atleast_1d atleast_2d atleast_3d block_diag broadcast_shapes cartesian_prod column_stack combinations
            detach diagonal_copy dsplit dstack empty_permuted empty_strided expand_copy fill fliplr flipud hsplit hstack meshgrid narrow_copy
            permute_copy ravel repeat_interleave rot90 row_stack scalar_tensor select_copy slice slice_copy split_copy split_with_sizes split_with_sizes_copy
            squeeze_copy t_copy tensor_split transpose_copy unbind_copy unfold_copy unsafe_chunk unsafe_split unsqueeze_copy view_copy vsplit
            vstack""",
        methods="""as_strided_ dsplit fliplr flipud hsplit narrow_copy new_empty_strided repeat_interleave resize resize_ resize_as_ rot90 set_
            split_with_sizes tensor_split unsafe_chunk unsafe_split vsplit"""),
    "scattering": Room(
        functions="""as_strided_scatter diagonal_scatter select_scatter slice_scatter""",
        methods="""as_strided_scatter diagonal_scatter select_scatter slice_scatter"""),
    "draws": Room(
        functions="""bernoulli binomial multinomial normal poisson""",
        methods="""bernoulli bernoulli_ cauchy_ exponential_ geometric_ log_normal_ multinomial random_"""),
    "activation": Room(
        functions="""_softmax_backward_data celu celu_ hardshrink prelu relu_ rrelu rrelu_ selu selu_ threshold threshold_""",
        methods="""hardshrink prelu"""),
    "dropout": Room(
        functions="""alpha_dropout alpha_dropout_ dropout dropout_ feature_alpha_dropout feature_alpha_dropout_ feature_dropout feature_dropout_
            native_dropout native_dropout_backward"""),
    "linear": Room(functions="bilinear"),
    "loss": Room(),
    "classes": Room(),
    "margins": Room(functions="cosine_similarity pairwise_distance pdist"),
    "ctc": Room(),
    "normalize": Room(
        functions="""_batch_norm_with_update _native_batch_norm_legit group_norm layer_norm native_batch_norm native_layer_norm rms_norm""",
        methods=""""""),
    "attention": Room(
        functions="""""",
        methods=""""""),
    "embedding": Room(
        functions="""""",
        methods=""""""),
    "conv": Room(
        functions="""conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d conv_transpose3d convolution""",
        methods=""""""),
    "pool": Room(
        functions="""adaptive_avg_pool1d avg_pool1d max_pool1d max_pool1d_with_indices max_pool2d max_pool3d""",
        methods=""""""),
    "pad": Room(
        functions="""channel_shuffle constant_pad_nd native_channel_shuffle pixel_shuffle pixel_unshuffle""",
        methods=""""""),
    "memory": Room(
        functions="""TypedStorage UntypedStorage""",
        methods="""storage storage_type untyped_storage"""),
    "exchange": Room(functions="asarray from_dlpack frombuffer"),
    "asking": Room(
        functions="_assert _assert_async _check get_device is_inference is_nonzero is_same_size is_signed",
        methods="_base _is_view dim_order get_device is_nonzero is_pinned is_same_size is_set_to is_shared pin_memory"),
    "each": Room(methods="apply_ map_ map2_"),
    "foreach": Room(
        functions="""_foreach_abs _foreach_abs_ _foreach_acos _foreach_acos_ _foreach_add _foreach_add_ _foreach_addcdiv _foreach_addcdiv_ _foreach_addcmul
            _foreach_addcmul_ _foreach_asin _foreach_asin_ _foreach_atan _foreach_atan_ _foreach_ceil _foreach_ceil_ _foreach_clamp_max
            _foreach_clamp_max_ _foreach_clamp_min _foreach_clamp_min_ _foreach_clone _foreach_copy_ _foreach_cos _foreach_cos_ _foreach_cosh
            _foreach_cosh_ _foreach_div _foreach_div_ _foreach_erf _foreach_erf_ _foreach_erfc _foreach_erfc_ _foreach_exp _foreach_exp_
            _foreach_expm1 _foreach_expm1_ _foreach_floor _foreach_floor_ _foreach_frac _foreach_frac_ _foreach_lerp _foreach_lerp_ _foreach_lgamma
            _foreach_lgamma_ _foreach_log _foreach_log10 _foreach_log10_ _foreach_log1p _foreach_log1p_ _foreach_log2 _foreach_log2_ _foreach_log_
            _foreach_max _foreach_maximum _foreach_maximum_ _foreach_minimum _foreach_minimum_ _foreach_mul _foreach_mul_ _foreach_neg _foreach_neg_
            _foreach_norm _foreach_pow _foreach_pow_ _foreach_reciprocal _foreach_reciprocal_ _foreach_round _foreach_round_ _foreach_rsqrt
            _foreach_rsqrt_ _foreach_sigmoid _foreach_sigmoid_ _foreach_sign _foreach_sign_ _foreach_sin _foreach_sin_ _foreach_sinh _foreach_sinh_
            _foreach_sqrt _foreach_sqrt_ _foreach_sub _foreach_sub_ _foreach_tan _foreach_tan_ _foreach_tanh _foreach_tanh_ _foreach_trunc
            _foreach_trunc_ _foreach_zero_"""),
    "recurrent": Room(
        functions="""gru gru_cell lstm lstm_cell rnn_relu rnn_relu_cell rnn_tanh rnn_tanh_cell"""),
    "sparse": Room(
        functions="""sparse_coo_tensor spmm""",
        methods="""to_dense to_sparse"""),
    "resample": Room(
        functions="""affine_grid_generator grid_sampler grid_sampler_2d grid_sampler_3d""",
        methods=""""""),
}

# Modules of the package that load when first named: `mutagrad.linalg`.
MODULES = frozenset([
    "__config__", "__future__", "_C", "_dynamo", "_inductor", "_utils", "accelerator", "amp", "array_api", "compiler", "cpu", "cuda", "distributed",
    "distributions", "export", "fft", "func", "futures", "fx", "hub", "jit", "library", "linalg", "masked", "mps", "multiprocessing", "nn", "onnx",
    "optim", "overrides", "profiler", "quasirandom", "random", "return_types", "serialization", "signal", "sparse", "special", "testing", "types",
    "utils", "version", "xpu"])

# In-place methods of `Tensor` that are functions of `mutagrad`, too: `mutagrad.exp_(x)`.
_WRITES = """
    abs_ acos_ acosh_ arccos_ arccosh_ arcsin_ arcsinh_ arctan_ arctanh_ asin_ asinh_ atan_ atanh_ ceil_ clamp_ clamp_max_ clamp_min_ clip_
    conj_physical_ cos_ cosh_ deg2rad_ detach_ erf_ erfc_ exp2_ exp_ expm1_ fill_ fix_ floor_ frac_ gcd_ i0_ lcm_ ldexp_ log10_ log1p_ log2_
    log_ logit_ nan_to_num_ neg_ negative_ rad2deg_ reciprocal_ relu_ round_ rsqrt_ sigmoid_ sin_ sinc_ sinh_ sqrt_ square_ tan_ tanh_
    trunc_ xlogy_ zero_ addmv_ as_strided_ resize_as_"""

# Names of `mutagrad` that are no operations, and the module of the package that has them.
OTHERS = {name: module for module, names in {
    "_C": "PyTorchFileReader",
    "compiler": "compile",
    "control": "cond while_loop",
    "cuda": "Event Stream",
    "dtypes": "chalf complex32 float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu",
    "files": "load save",
    "legacy": """
        BFloat16Tensor BoolTensor ByteTensor CharTensor DoubleTensor FloatTensor HalfTensor IntTensor LongTensor ShortTensor BFloat16Storage BoolStorage
        ByteStorage CharStorage ComplexDoubleStorage ComplexFloatStorage DoubleStorage FloatStorage HalfStorage IntStorage LongStorage ShortStorage
        is_storage typename""",
    "settings": """
        are_deterministic_algorithms_enabled get_default_device get_deterministic_debug_mode get_float32_matmul_precision
        get_num_interop_threads is_deterministic_algorithms_warn_only_enabled
        is_warn_always_enabled set_default_device set_default_tensor_type set_deterministic_debug_mode set_float32_matmul_precision set_flush_denormal
        set_num_interop_threads set_warn_always use_deterministic_algorithms""",
    "autograd.modes": "is_anomaly_check_nan_enabled is_anomaly_enabled",
    "amp": """
        autocast clear_autocast_cache get_autocast_cpu_dtype get_autocast_dtype get_autocast_gpu_dtype is_autocast_cache_enabled is_autocast_cpu_enabled
        is_autocast_enabled set_autocast_dtype set_autocast_enabled""",
    "futures": "Future",
    "jit": "ScriptFunction ScriptModule",
    "layout": "sparse_bsc sparse_bsr sparse_csc sparse_csr",
    "fx": "SymBool SymFloat SymInt",
    "func": "vmap",
    "stand_in": "as_torch",
    "utils.dlpack": "to_dlpack",
}.items() for name in names.split()}

WRITES = frozenset(_WRITES.split())

FUNCTIONS = {name: room for room, names in ROOMS.items() for name in names.functions.split()} | dict.fromkeys(WRITES, "Tensor") | OTHERS


def load(room: str) -> ModuleType:
    return import_module(f"mutagrad.ops.{room}")


def find(name: str) -> Any:
    """A function or module of `mutagrad` that has not been asked for before."""
    if name in WRITES:
        return getattr(import_module("mutagrad").Tensor, name)
    if name in OTHERS:
        return getattr(import_module(f"mutagrad.{OTHERS[name]}"), name)
    if name in FUNCTIONS:
        return getattr(load(FUNCTIONS[name]), name)
    if name in MODULES:
        return import_module(f"mutagrad.{name}")
    raise AttributeError(f"module 'mutagrad' has no attribute {name!r}")


def part(name: str) -> ModuleType:
    """A module of the package that stands above the one that asks, and is loaded only when it is needed."""
    return import_module(f"mutagrad.{name}")


def standard(version: str | None) -> ModuleType:
    """The namespace of the Python array API standard, in a version that it conforms to."""
    namespace = import_module("mutagrad.array_api")
    if version is not None and version not in namespace.VERSIONS:
        raise BadValue(f"array API: version {version!r} is not among {', '.join(sorted(namespace.VERSIONS))}", fix="x.__array_namespace__()")
    return namespace


class Later:
    """A method that takes its own place in the class when it is first asked for."""

    __slots__ = ("room", "name")

    def __init__(self, room: str, name: str) -> None:
        self.room, self.name = room, name

    def __get__(self, tensor: Any, owner: type) -> Any:
        found = getattr(load(self.room), self.name)
        for base in owner.__mro__:
            if base.__dict__.get(self.name) is self:
                setattr(base, self.name, found)
        return getattr(owner if tensor is None else tensor, self.name)


def furnish(tensor_class: type) -> None:
    """Gives the class the methods of all rooms."""
    for room, names in ROOMS.items():
        for name in names.methods.split():
            setattr(tensor_class, name, Later(room, name))
