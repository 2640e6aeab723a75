"""`python -m mutagrad` is the `mutagrad` command."""
import sys

from .cli import main

sys.exit(main())
