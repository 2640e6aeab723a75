"""`mutagrad launch`: a program in several processes that find each other, as torchrun starts them.

Each process has RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR and MASTER_PORT in its environment, which
`init_process_group()` reads. When one fails, the others are stopped.
"""
from __future__ import annotations

import argparse
import os
import re
import signal
import socket
import subprocess
import sys
import time
from types import FrameType
from typing import Any

SUMMARY = "start a program in several processes that compute together"
_TORCH = re.compile(rb"^[ \t]*(?:import|from)[ \t]+torch\b", re.MULTILINE)
_GRACE = 5.0  # seconds that a process has to stop before it is killed


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = ("mutagrad launch --nproc N [option ...] SCRIPT [ARGUMENT ...]\n"
                    "       mutagrad launch --nproc N [option ...] -m MODULE [ARGUMENT ...]")
    parser.add_argument("--nproc", "--nproc-per-node", "--nproc_per_node", type=int, default=1, metavar="N",
                        help="how many processes to start on this machine")
    parser.add_argument("--nnodes", type=int, default=1, metavar="N", help="on how many machines this is done")
    parser.add_argument("--node-rank", "--node_rank", type=int, default=0, metavar="K", help="which of them this is")
    parser.add_argument("--master-addr", "--master_addr", default="127.0.0.1", metavar="HOST",
                        help="where the processes meet: the first machine")
    parser.add_argument("--master-port", "--master_port", type=int, metavar="PORT",
                        help="and on which port: else one that is free; 29500 for several machines")
    parser.add_argument("--torch", action="store_true",
                        help="mutagrad takes the place of torch: always so where the script imports torch")
    parser.add_argument("-m", dest="module", nargs=argparse.REMAINDER, metavar="MODULE",
                        help="start a module, as `python -m` does")
    parser.add_argument("script", nargs=argparse.REMAINDER, metavar="SCRIPT [ARGUMENT ...]",
                        help="the program, and what it is given")


def run(options: argparse.Namespace) -> int:
    """Start the processes, and return 0 when all have ended well, else the exit status of the first that has not."""
    given = options.module if options.module is not None else options.script
    if not given or options.nproc < 1 or not 0 <= options.node_rank < options.nnodes:
        print("mutagrad launch: give a script, or -m and a module; --nproc from 1; --node-rank below --nnodes",
              file=sys.stderr)
        return 2
    started = Processes(command(options, given), options)
    before = {number: signal.signal(number, started.pass_on) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        return started.wait()
    finally:
        started.stop()
        for number, handler in before.items():
            signal.signal(number, handler)


def command(options: argparse.Namespace, given: list[str]) -> list[str]:
    """Return the command line of each process."""
    what = ["-m", *given] if options.module is not None else given
    takes_over = options.torch or options.module is None and _imports_torch(given[0])
    return [sys.executable, *(["-m", "mutagrad", "run"] if takes_over else []), *what]


def _imports_torch(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            return _TORCH.search(file.read()) is not None
    except OSError:  # Python itself will say what is wrong with it
        return False


def free_port() -> int:
    """Return a port that nobody listens on now."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        number: int = found.getsockname()[1]
        return number


class Processes:
    """The processes of one program on this machine."""

    def __init__(self, line: list[str], options: argparse.Namespace) -> None:
        port = options.master_port or (free_port() if options.nnodes == 1 else 29500)
        shared = os.environ | {"MASTER_ADDR": options.master_addr, "MASTER_PORT": str(port),
                               "WORLD_SIZE": str(options.nproc * options.nnodes),
                               "LOCAL_WORLD_SIZE": str(options.nproc)}
        self.first = options.node_rank * options.nproc
        self.running = [subprocess.Popen(line, env=shared | {"RANK": str(self.first + k), "LOCAL_RANK": str(k)})
                        for k in range(options.nproc)]

    def pass_on(self, number: int, frame: FrameType | None = None) -> Any:
        """Send a signal to all that still run."""
        for process in self.running:
            if process.poll() is None:
                process.send_signal(number)

    def wait(self) -> int:
        """Wait until all have ended, or one has failed; return its status."""
        while True:
            found = [process.poll() for process in self.running]
            failed = [k for k, status in enumerate(found) if status]
            if failed:
                status = self.running[failed[0]].returncode
                print(f"mutagrad launch: process {self.first + failed[0]} ended with "
                      + (f"signal {-status}" if status < 0 else f"status {status}") + ", the others are stopped",
                      file=sys.stderr, flush=True)
                return 128 - status if status < 0 else status
            if None not in found:
                return 0
            time.sleep(0.05)

    def stop(self) -> None:
        """Stop all that still run: by asking first."""
        self.pass_on(signal.SIGTERM)
        end = time.monotonic() + _GRACE
        for process in self.running:
            try:
                process.wait(max(0.0, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
