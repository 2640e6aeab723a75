"""The operations, one file a family, forward and derivative side by side."""
