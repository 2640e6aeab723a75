# `make stubs` writes this file from src/mutagrad/errors.py.
# mypy: disable-error-code="misc, override, overload-overlap, assignment"

from mutagrad.base.errors import (BadArgument as BadArgument, BadData as BadData, BadFile as BadFile,
    BadIndex as BadIndex, BadIndexType as BadIndexType, BadSeed as BadSeed, BadSetting as BadSetting,
    BadTarget as BadTarget, BadValue as BadValue, CannotPickle as CannotPickle, ChangedSince as ChangedSince,
    DTypeError as DTypeError, DivisionByZero as DivisionByZero, GradientError as GradientError,
    LinAlgError as LinAlgError, LostProcess as LostProcess, Mismatch as Mismatch, MissingExtra as MissingExtra,
    MissingKey as MissingKey, ModeError as ModeError, MutagradError as MutagradError, NoDevice as NoDevice,
    NoSuchItem as NoSuchItem, NotSupported as NotSupported, OutOfMemory as OutOfMemory, OverlapError as OverlapError,
    ShapeError as ShapeError, UnmarkedWrite as UnmarkedWrite, WorkerError as WorkerError, WriteError as WriteError,
    bad_choice as bad_choice, may_need_much as may_need_much)

