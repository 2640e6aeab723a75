"""Record what PyTorch does with the tour's programs, for `mutagrad tour` to show where torch is not installed.

    python examples/record_torch.py        # with mutagrad and torch==2.13.0 installed

Writes src/mutagrad/tour_torch.json. Run it again whenever a program changes: a test compares the fingerprints.
"""
import json
import traceback
from pathlib import Path

import torch

from mutagrad import tour

RECORD = Path(__file__).resolve().parents[1] / "src" / "mutagrad" / "tour_torch.json"


def outcome(program):
    """Right, wrong (with the gradient it gave) or an error (with its class, its message and where it came)."""
    try:
        _, gradient = tour.gradient(program, torch)
    except Exception as error:
        message = str(error).splitlines()[0]
        return {"outcome": "error", "class": type(error).__name__, "where": where(error, program), "message": message}
    if tour.judge(program, torch).right:
        return {"outcome": "right"}
    return {"outcome": "wrong", "gradient": gradient.tolist()}


def where(error, program):
    """The program's line that raised, or backward() if none did."""
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if Path(frame.filename).name == f"{program.name}.py"]
    return f"line {lines[-1]}" if lines else "backward()"


def main():
    found = tour.find_programs()
    programs = {program.name: {**outcome(program), "fingerprint": program.fingerprint} for program in found}
    record = {"torch": torch.__version__.partition("+")[0], "programs": programs}
    RECORD.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    for name, entry in programs.items():
        print(f"{name:18} {tour.torch_in_full(entry)}")
    print(f"\nPyTorch {torch.__version__}, recorded in {RECORD}")


if __name__ == "__main__":
    main()
