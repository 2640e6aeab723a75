"""`python -m stubs` writes the files; `python -m stubs --check` only says which are not what would be written."""
from __future__ import annotations

import sys

from .files import HOME, all_files

for path, text in all_files().items():
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        print(path.relative_to(HOME.parent))
        if "--check" not in sys.argv:
            path.write_text(text, encoding="utf-8")
