"""What kernels do with memory besides reading and writing arrays: by address, and in common with other threads.

Numba has nothing public for these, so they are LLVM's instructions.
"""
# mypy: ignore-errors
import ctypes
import sys

import numpy as np
from llvmlite import ir
from numba import carray, config, njit, types
from numba.core import cgutils
from numba.extending import intrinsic

_WORD = ir.IntType(64)


@intrinsic
def _pointer(context, address):
    def generate(context, builder, signature, arguments):
        return builder.inttoptr(arguments[0], context.get_value_type(types.voidptr))

    return types.voidptr(types.intp), generate


def _rows(kind):
    """A function that gives the array of this type, and of a shape, at an address."""
    @njit(error_model="numpy", forceinline=True)
    def row(address, shape):
        return carray(_pointer(address), shape, kind)

    def interpreted(address, shape):
        return carray(ctypes.c_void_p(int(address)), shape, kind)

    return interpreted if config.DISABLE_JIT else row


row_f, row_d, row_bool, row_q = _rows(np.float32), _rows(np.float64), _rows(np.bool_), _rows(np.int64)
row_e = row_E = _rows(np.uint16)
row_b, row_y, row_h, row_i = _rows(np.uint8), _rows(np.int8), _rows(np.int16), _rows(np.int32)


# ---------------------------------------------------------------------------- words that several threads read and write

def _at(builder, address):
    return builder.inttoptr(address, _WORD.as_pointer())


@intrinsic
def load_word(context, address):
    def generate(context, builder, signature, arguments):
        return builder.load_atomic(_at(builder, arguments[0]), "seq_cst", 8, typ=_WORD)

    return types.intp(types.intp), generate


@intrinsic
def store_word(context, address, value):
    def generate(context, builder, signature, arguments):
        builder.store_atomic(arguments[1], _at(builder, arguments[0]), "seq_cst", 8)
        return context.get_dummy_value()

    return types.void(types.intp, types.intp), generate


@intrinsic
def exchange_word(context, address, old, new):
    """Write `new` if `old` stands there; whether it did."""
    def generate(context, builder, signature, arguments):
        found = builder.cmpxchg(_at(builder, arguments[0]), arguments[1], arguments[2], "seq_cst", "seq_cst")
        return builder.extract_value(found, 1)

    return types.boolean(types.intp, types.intp, types.intp), generate


@intrinsic
def call_kernel(context, function, start, stop, given):
    def generate(context, builder, signature, arguments):
        kind = ir.FunctionType(_WORD, [_WORD] * 3).as_pointer()
        return builder.call(builder.inttoptr(arguments[0], kind), arguments[1:])

    return types.intp(*[types.intp] * 4), generate


@intrinsic
def let_others_run(context):
    def generate(context, builder, signature, arguments):
        if sys.platform != "win32":
            function = ir.FunctionType(ir.IntType(32), [])
            builder.call(cgutils.get_or_insert_function(builder.module, function, "sched_yield"), [])
        return context.get_dummy_value()

    return types.void(), generate
