"""Read samples from svmlight, csv, npz and parquet files, plain or compressed, or from stdin."""

from .samples import Samples, read_samples

__all__ = ["Samples", "read_samples"]
