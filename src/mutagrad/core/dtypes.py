"""Element types under PyTorch's names, and PyTorch's promotion between them.

>>> import mutagrad as mg
>>> mg.promote_types(mg.int64, mg.float16)
mutagrad.float16
>>> (mg.ones(2, dtype=mg.int32) * 2.5).dtype
mutagrad.float32

NumPy's own rules differ (`int64 + float32` is float64 there), so promotion is decided here and the operands are cast
before NumPy sees them; operands of one type, the common case, never come here.
"""
from __future__ import annotations

from typing import Any

from ..arrays import np
from ..arrays.bfloat16 import bfloat16_type
from ..base.errors import BadArgument, BadData, DTypeError
from ..base.package_name import called

BOOL, INTEGER, FLOAT, COMPLEX = range(4)
_CATEGORY = {"b": BOOL, "u": INTEGER, "i": INTEGER, "f": FLOAT, "c": COMPLEX}


class dtype:
    """The type of a tensor's elements, such as `mutagrad.float32`.

    >>> import mutagrad as mg
    >>> mg.float32.itemsize, mg.float32.is_floating_point
    (4, True)
    """

    __slots__ = ("name", "array_type", "category", "itemsize")
    name: str
    array_type: Any
    category: int
    itemsize: int

    def __init__(self, name: str) -> None:
        self.name = name
        self.array_type = np.dtype(name)
        self.category = _CATEGORY[self.array_type.kind]
        self.itemsize = self.array_type.itemsize

    @property
    def is_floating_point(self) -> bool:
        """Whether the numbers are floating point ones, which can have gradients; complex ones are not meant.

        >>> import mutagrad as mg
        >>> mg.float32.is_floating_point, mg.int64.is_floating_point
        (True, False)
        """
        return self.category == FLOAT

    @property
    def is_complex(self) -> bool:
        """Whether the numbers have an imaginary part.

        >>> import mutagrad as mg
        >>> mg.complex64.is_complex, mg.float32.is_complex
        (True, False)
        """
        return self.category == COMPLEX

    @property
    def is_signed(self) -> bool:
        """Whether there are negative numbers.

        >>> import mutagrad as mg
        >>> mg.int8.is_signed, mg.uint8.is_signed
        (True, False)
        """
        return self.category >= FLOAT or self.array_type.kind == "i"

    def to_complex(self) -> dtype:
        """Return the complex type whose parts are of this type.

        >>> import mutagrad as mg
        >>> mg.float32.to_complex()
        mutagrad.complex64
        """
        return self if self.is_complex else complex128 if self is float64 else complex64

    def to_real(self) -> dtype:
        """Return the type of the parts of a complex type.

        >>> import mutagrad as mg
        >>> mg.complex64.to_real()
        mutagrad.float32
        """
        return {complex128: float64, complex64: float32}.get(self, self)

    def __repr__(self) -> str:
        return called(self.name)

    def __reduce__(self) -> str:  # pickled as the name of its global
        return "bool_" if self is bool_ else self.name


class _Bfloat16(dtype):
    """The one type that NumPy lacks: it comes from a library that is looked for when the first such tensor is made."""

    __slots__ = ()

    def __init__(self) -> None:
        self.name, self.category, self.itemsize = "bfloat16", FLOAT, 2

    @property
    def array_type(self) -> Any:  # type: ignore[override]
        return bfloat16_type()


class _NotHeld(dtype):
    """A type that programs name, to tell it from others, and that no tensor here can have."""

    __slots__ = ()

    def __init__(self, name: str, category: int, itemsize: int) -> None:
        self.name, self.category, self.itemsize = name, category, itemsize

    @property
    def array_type(self) -> Any:  # type: ignore[override]
        raise DTypeError(f"no tensor can hold elements of type {self.name}", why="NumPy has no such type",
                         fix="float16, bfloat16 or float32")


bool_ = dtype("bool")
uint8, uint16, uint32, uint64 = map(dtype, ("uint8", "uint16", "uint32", "uint64"))
int8, int16, int32, int64 = map(dtype, ("int8", "int16", "int32", "int64"))
float16, float32, float64 = map(dtype, ("float16", "float32", "float64"))
bfloat16 = _Bfloat16()
complex64, complex128 = map(dtype, ("complex64", "complex128"))
float8_e4m3fn, float8_e4m3fnuz, float8_e5m2, float8_e5m2fnuz, float8_e8m0fnu = (
    _NotHeld(f"float8_{kind}", FLOAT, 1) for kind in ("e4m3fn", "e4m3fnuz", "e5m2", "e5m2fnuz", "e8m0fnu"))
complex32 = chalf = _NotHeld("complex32", COMPLEX, 4)
# As what elements of these types are loaded from files: types that hold all of their values.
LOADED_AS: dict[dtype, dtype] = {
    **dict.fromkeys((float8_e4m3fn, float8_e4m3fnuz, float8_e5m2, float8_e5m2fnuz, float8_e8m0fnu), float32),
    complex32: complex64}
qint8, quint8, qint32, quint4x2, quint2x4 = (
    _NotHeld(name, INTEGER, size) for name, size in (("qint8", 1), ("quint8", 1), ("qint32", 4), ("quint4x2", 1),
                                                     ("quint2x4", 1)))
half, float_, double, cfloat, cdouble = float16, float32, float64, complex64, complex128
short, int_, long = int16, int32, int64

ALL = (bool_, uint8, uint16, uint32, uint64, int8, int16, int32, int64, float16, float32, float64, complex64,
       complex128)
_BY_ARRAY_TYPE = {d.array_type: d for d in ALL}
_BY_CHAR = {d.array_type.char: d for d in ALL} | {"E": bfloat16}
# PyTorch's names of the classes of tensors with such elements.
CLASS_NAMES = {float32: "FloatTensor", float64: "DoubleTensor", float16: "HalfTensor", bfloat16: "BFloat16Tensor",
               bool_: "BoolTensor", uint8: "ByteTensor", int8: "CharTensor", int16: "ShortTensor", int32: "IntTensor",
               int64: "LongTensor", complex64: "ComplexFloatTensor", complex128: "ComplexDoubleTensor"}
_BY_CLASS = {name: d for d, name in CLASS_NAMES.items()}
_PYTHON_TYPES: dict[type, dtype] = {bool: bool_, int: int64, float: float64, complex: complex128}

_default_float = float32


def get_default_dtype() -> dtype:
    """Return the type of floating point numbers that are made without one.

    >>> import mutagrad as mg
    >>> mg.get_default_dtype()
    mutagrad.float32
    """
    return _default_float


def set_default_dtype(d: dtype) -> None:
    """Make `d` the type of new float tensors.

    >>> import mutagrad as mg
    >>> mg.set_default_dtype(mg.float64); print(mg.zeros(1).dtype); mg.set_default_dtype(mg.float32)
    mutagrad.float64
    """
    global _default_float
    if not isinstance(d, dtype) or not d.is_floating_point:
        raise DTypeError(f"set_default_dtype: {d} is not a floating point type",
                         fix="mutagrad.set_default_dtype(mutagrad.float64)")
    d.array_type  # noqa: B018  raises here if no tensor can be of that type, not when the next one is made
    _default_float = d


def of_array(array_type: Any) -> dtype:
    """Return our name for an array's element type."""
    found = _BY_CHAR.get(array_type.char) or _BY_ARRAY_TYPE.get(array_type)
    if found is None:
        raise BadArgument(f"no tensor can hold elements of type {array_type}",
                          why="supported are " + ", ".join(d.name for d in (*ALL, bfloat16)),
                          fix="array.astype('float32')")
    return found


def as_dtype(d: dtype | type) -> dtype:
    """Return an element type, for which one of Python's can stand."""
    if isinstance(d, dtype):
        return d
    if isinstance(d, type) and d in _PYTHON_TYPES:
        return _PYTHON_TYPES[d]
    raise not_a_type(d)


def not_a_type(d: Any) -> BadArgument:
    name = d if isinstance(d, str) else getattr(d, "__name__", None) or getattr(d, "name", None)
    meant = next((known.name for known in (*ALL, bfloat16) if known.name == name), "float32")
    return BadArgument(f"{d!r} is not an element type", why="names, and NumPy's types, do not stand for ours",
                       fix=f"dtype=mutagrad.{meant}")


def dtype_of_class(d: str | type | dtype) -> dtype:
    """Return the element type of a class of tensors in PyTorch's older way, or of its name, `"torch.FloatTensor"`.

    An element type stands for itself.
    """
    if isinstance(d, str):
        found = _BY_CLASS.get(d.rpartition(".")[2])
        if found is None:
            raise BadData(f"invalid type: {d!r}", fix="'mutagrad.FloatTensor'")
        return found
    if isinstance(d, type) and isinstance(getattr(d, "dtype", None), dtype):  # mutagrad.FloatTensor
        return d.dtype  # type: ignore[attr-defined,no-any-return]
    return as_dtype(d)


def _check_types(name: str, *types: Any) -> None:
    for d in types:
        if not isinstance(d, dtype):
            raise BadArgument(f"{name}: expects element types, got {type(d).__name__}",
                              fix=f"mutagrad.{name}(mutagrad.float32{', ...' * (len(types) - 1)})")


def promote_types(type1: dtype, type2: dtype) -> dtype:
    """Return the smallest type that PyTorch converts both to.

    >>> import mutagrad as mg
    >>> mg.promote_types(mg.int64, mg.float16)
    mutagrad.float16
    """
    _check_types("promote_types", type1, type2)
    return wider(type1, type2)


def can_cast(from_: dtype, to: dtype) -> bool:
    """Return whether a write of one type into the other is allowed.

    >>> import mutagrad as mg
    >>> mg.can_cast(mg.float32, mg.float64), mg.can_cast(mg.float32, mg.int64)
    (True, False)
    """
    _check_types("can_cast", from_, to)
    return from_.category <= to.category


def wider(type1: dtype, type2: dtype) -> dtype:
    """Return the smallest type that PyTorch converts both to."""
    a, b = (type2, type1) if type1.category < type2.category else (type1, type2)
    if a is b:
        return a
    if a.category == b.category == INTEGER and uint64 in (a, b):  # no integer type holds it and negative numbers, too
        return uint64
    if {a, b} == {bfloat16, float16}:  # neither holds the other: one has more range, one more precision
        return float32
    if a.category == b.category:
        return of_array(np.promote_types(a.array_type, b.array_type))
    if a is complex64 and b is float64:
        return complex128
    return a


def scalar_dtype(value: bool | int | float | complex) -> dtype:
    """Return the type that a bare Python number promotes as, when it is of a higher category than every tensor."""
    if isinstance(value, bool):
        return bool_
    if isinstance(value, int):
        return int64
    return _default_float if isinstance(value, float) else _default_float.to_complex()


def _combine(higher: dtype | None, lower: dtype | None) -> dtype | None:
    if higher is None or lower is None:
        return higher or lower
    if lower.category <= higher.category:
        return higher
    return higher.to_complex() if higher.is_floating_point else wider(higher, lower)


def result_dtype(dimensioned: list[dtype], zero_dim: list[dtype], scalars: list[dtype]) -> dtype:
    """Promote by PyTorch's rule: 0-d tensors count only by category against others, bare numbers only against both."""
    found = None
    for group in (dimensioned, zero_dim, scalars):
        total: dtype | None = None
        for d in group:
            total = d if total is None else wider(total, d)
        found = _combine(found, total)
    assert found is not None
    return found


_BFLOAT16_LIMITS = {"dtype": "bfloat16", "bits": 16, "eps": 2.0**-7, "max": (2 - 2.0**-7) * 2.0**127,
                    "min": -(2 - 2.0**-7) * 2.0**127, "tiny": 2.0**-126, "smallest_normal": 2.0**-126,
                    "resolution": 0.01}


# The step at one, the largest, the least and the smallest normal number.
_FLOAT8_LIMITS: dict[dtype, tuple[float, float, float, float]] = {
    float8_e4m3fn: (2.0 ** -3, 448.0, -448.0, 2.0 ** -6), float8_e4m3fnuz: (2.0 ** -3, 240.0, -240.0, 2.0 ** -7),
    float8_e5m2: (2.0 ** -2, 57344.0, -57344.0, 2.0 ** -14),
    float8_e5m2fnuz: (2.0 ** -3, 57344.0, -57344.0, 2.0 ** -15),
    float8_e8m0fnu: (1.0, 2.0 ** 127, 2.0 ** -127, 2.0 ** -127)}


class finfo:
    """Limits of a floating point type: `finfo(mutagrad.float32).eps`.

    >>> import mutagrad as mg
    >>> mg.finfo(mg.float32).eps, mg.finfo(mg.float16).max
    (1.1920928955078125e-07, 65504.0)
    """

    def __init__(self, d: dtype | type | None = None) -> None:
        d = _default_float if d is None else as_dtype(d)
        if d.category < FLOAT:
            raise BadArgument(f"finfo: {d} is not a floating point type", fix=f"mutagrad.iinfo({d})")
        if d is bfloat16:
            self.__dict__.update(_BFLOAT16_LIMITS)
            return
        if d in _FLOAT8_LIMITS:
            self.dtype, self.bits, self.resolution = d.name, 8, 1.0
            self.eps, self.max, self.min, self.tiny = _FLOAT8_LIMITS[d]
            self.smallest_normal = self.tiny
            return
        d = d.to_real()
        info = np.finfo(d.array_type)
        self.dtype, self.bits = d.name, info.bits
        self.eps, self.max, self.min = float(info.eps), float(info.max), float(info.min)
        self.tiny = self.smallest_normal = float(info.tiny)
        self.resolution = float(info.resolution)

    def __repr__(self) -> str:
        return (f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, eps={self.eps:g}, "
                f"smallest_normal={self.smallest_normal:g}, tiny={self.tiny:g}, dtype={self.dtype})")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, finfo) and self.dtype == other.dtype

    def __hash__(self) -> int:
        return hash(self.dtype)


class iinfo:
    """Limits of an integer type: `iinfo(mutagrad.int8).max`.

    >>> import mutagrad as mg
    >>> mg.iinfo(mg.int8).min, mg.iinfo(mg.int8).max
    (-128, 127)
    """

    def __init__(self, d: dtype | type) -> None:
        d = as_dtype(d)
        if d.category != INTEGER:
            raise BadArgument(f"iinfo: {d} is not an integer type", fix="mutagrad.iinfo(mutagrad.int64)")
        info = np.iinfo(d.array_type)
        self.dtype, self.bits, self.max, self.min = d.name, info.bits, int(info.max), int(info.min)

    def __repr__(self) -> str:
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, iinfo) and self.dtype == other.dtype

    def __hash__(self) -> int:
        return hash(self.dtype)
