"""Importing the package changes nothing for the program that imports it; what is worth changing waits until it is needed."""
from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import mutagrad as mg

PATH = os.pathsep.join([str(Path(mg.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])

LOOK = """
import atexit, builtins, copyreg, decimal, faulthandler, gc, locale, logging, os, random, signal, sys, threading, tracemalloc, warnings
import numpy as np
warnings.filterwarnings("once", "a filter of the host's own")
np.seterr(under="warn")

def look():
    return {
        "environment": dict(os.environ), "folder": os.getcwd(), "filters": list(warnings.filters), "error state": np.geterr(), "call": np.geterrcall(),
        "buffer": np.getbufsize(), "print options": np.get_printoptions(), "numpy's random numbers": str(np.random.get_state()),
        "random numbers": random.getstate(), "signals": {s: signal.getsignal(s) for s in signal.valid_signals()}, "timer": signal.getitimer(signal.ITIMER_REAL),
        "threads": threading.active_count(), "all threads": len(os.listdir("/proc/self/task")) if os.path.exists("/proc/self/task") else 0,
        "locale": locale.setlocale(locale.LC_ALL), "recursion": sys.getrecursionlimit(), "switching": sys.getswitchinterval(),
        "hooks": (sys.excepthook, sys.displayhook, sys.unraisablehook, threading.excepthook, sys.breakpointhook, warnings.showwarning),
        "finders": ([f for f in sys.meta_path if type(f).__module__ != "mutagrad._lazy"], list(sys.path_hooks)), "path": list(sys.path), "collector": (gc.get_threshold(), gc.isenabled(), gc.get_freeze_count()),
        "at exit": atexit._ncallbacks(), "loggers": (list(logging.root.handlers), logging.root.level), "pickling": set(copyreg.dispatch_table),
        "decimals": str(decimal.getcontext()), "builtins": set(vars(builtins)), "tracing": (sys.gettrace(), sys.getprofile(), tracemalloc.is_tracing()),
        "faults": faulthandler.is_enabled(), "streams": (sys.stdin, sys.stdout, sys.stderr), "integers": sys.get_int_max_str_digits() if
        hasattr(sys, "get_int_max_str_digits") else 0, "torch": "torch" in sys.modules,
    }
"""

# Whether glibc maps a block of so many MiB by itself, which is what it does unless told otherwise or one as large has been freed.
MAPS = """
import ctypes
def maps(size):
    class Info(ctypes.Structure):
        _fields_ = [(name, ctypes.c_size_t) for name in "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost".split()]
    ask = ctypes.CDLL(None).mallinfo2
    ask.restype = Info
    before = ask().hblks
    block = np.empty(size << 20, np.uint8)
    return ask().hblks > before
"""


def run(program: str, **environment: str) -> str:
    settings = {k: v for k, v in os.environ.items() if not k.startswith(("MUTAGRAD", "OPENBLAS", "MALLOC"))}
    found = subprocess.run([sys.executable, "-c", program], env={**settings, "PYTHONPATH": PATH, **environment}, capture_output=True, text=True,
                           timeout=120)
    assert not found.returncode, found.stderr
    return found.stdout


def test_importing_changes_nothing() -> None:
    assert run(f"""{LOOK}
before = look()
import mutagrad
after = look()
print([key for key in before if before[key] != after[key]])
""") == "[]\n"


def test_computing_changes_only_what_is_documented() -> None:
    """Threads that help with large arrays; nothing for small ones."""
    assert run(f"""{LOOK}
import mutagrad as mg
before = look()
x = mg.tensor([1., 0.], requires_grad=True)
(x / 0)[0].backward()
x.detach().log_().mul_(2)
print([key for key, value in look().items() if before[key] != value])
mg.set_num_threads(2)
mg.exp(mg.ones(1_000_000)).sum().item()
print([key for key, value in look().items() if before[key] != value])
""") == "[]\n['all threads']\n"


def test_the_hosts_own_warnings_are_shown_and_ours_are_none() -> None:
    assert run("""
import warnings
import numpy as np
import mutagrad as mg
for action in ("error", "always", "default"):
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter(action)
        x = mg.tensor([0.0, 1e30])
        assert str(x / 0) == "tensor([nan, inf])" and (x * 1e30)[1].item() == float("inf") and x.log()[0].item() == -float("inf")
        assert x.clone().div_(0).isnan()[0] and x.sum().log().item() and (mg.tensor(1e38) * mg.tensor(1e38)).item() == float("inf")
        assert mg.exp(mg.full((300_000,), 1e3)).isinf().all() and mg.softmax(x * float("inf"), 0).isnan().any()
    assert not seen, seen
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    np.ones(1) / 0
    np.exp(1e5)
assert len(seen) == 2
with warnings.catch_warnings():
    warnings.simplefilter("error")
    try:
        np.log(0.0)
    except RuntimeWarning:
        print("raised")
""") == "raised\n"


glibc = pytest.mark.skipif(not sys.platform.startswith("linux") or "glibc" not in os.confstr("CS_GNU_LIBC_VERSION"), reason="mallopt is glibc's")


@glibc
@pytest.mark.parametrize("keep", ["1", "0"])
def test_memory_is_kept_when_the_first_large_array_is_made_and_not_before(keep: str) -> None:
    assert run(f"""
import numpy as np
{MAPS}
import mutagrad as mg
small = mg.ones(1000) * 2
small.sum().item()
found = [maps(8)]
mg.zeros(200_000)
print([*found, maps(20)])
""", MUTAGRAD_KEEP_MEMORY=keep) == f"[True, {keep == '0'}]\n"


@glibc
@pytest.mark.parametrize("make", ["mg.from_numpy(np.ones(200_000, np.float32))", "mg.tensor(np.ones(200_000))", "mg.randn(200_000)", "mg.nn.Linear(200, 200)",
                                  "mg.tensor([1.0]).expand(300_000) * 2"])
def test_every_way_of_making_one_counts(make: str) -> None:
    assert run(f"import numpy as np\n{MAPS}\nimport mutagrad as mg\nfound = {make}\nprint(maps(20))") == "False\n"


def test_mallopt_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from mutagrad.arrays import allocator

    asked: list[tuple[int, int]] = []
    monkeypatch.setattr(allocator, "_mallopt", lambda: lambda *setting: asked.append(setting))
    monkeypatch.setattr(allocator.allocator, "least", 128 << 10)
    monkeypatch.delenv("MUTAGRAD_KEEP_MEMORY", raising=False)
    mg.zeros(10)
    assert not asked
    for _ in range(3):
        mg.zeros(100_000)
    assert asked == [(allocator.MMAP_THRESHOLD, 32 << 20), (allocator.TRIM_THRESHOLD, 1 << 30)]
