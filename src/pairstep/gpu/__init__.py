"""Kernel SVMs on an NVIDIA GPU: an oracle of the block solver, built on CuPy."""
