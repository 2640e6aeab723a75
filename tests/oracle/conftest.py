"""These tests run PyTorch beside mutagrad; without PyTorch they are skipped, and say so."""
from __future__ import annotations

from typing import Any


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """How much of PyTorch's table of operations is here, and how it fared."""
    reports = [r for group in ("passed", "failed") for r in terminalreporter.stats.get(group, ()) if r.when == "call"]
    properties = [pair for report in reports for pair in report.user_properties]
    verdicts = [value for name, value in properties if name == "op_db"]
    if not verdicts:
        return
    failed = [entry for entry, _, fails, _ in verdicts if fails]
    partly = [f"{entry} ({reason})" for entry, _, fails, reason in verdicts if reason and not fails]
    write = terminalreporter.write_line
    terminalreporter.section("PyTorch's table of operations")
    write(f"{len(verdicts)} entries compared, in {sum(compared for _, compared, _, _ in verdicts)} calls")
    write(f"  pass             {len(verdicts) - len(failed) - len(partly)}")
    write(f"  pass in part     {len(partly)}: {', '.join(partly)}")
    write(f"  fail             {len(failed)}: {', '.join(failed)}")
    for name, value in properties:
        if name == "op_db_missing":
            write(f"  not implemented  {value}")
        elif name == "op_db_deliberate":
            write("  different on purpose: " + "; ".join(value))
