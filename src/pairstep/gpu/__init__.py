"""Kernel machines on an NVIDIA GPU: an oracle for the block gear, over CuPy."""
