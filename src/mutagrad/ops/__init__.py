"""The operations, one file a family, forward and derivative side by side."""
from . import descriptions as descriptions  # before any operation is declared
