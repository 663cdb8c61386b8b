"""Samples from files: svmlight, csv, npz and parquet, packed or not, and from standard input."""

from .samples import Samples, read_samples

__all__ = ["Samples", "read_samples"]
