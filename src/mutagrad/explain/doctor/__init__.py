"""What PyTorch would do with a program: `mutagrad doctor script.py`, or `with mutagrad.doctor() as found:`."""
