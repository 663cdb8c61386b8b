"""One exact kernel machine over the workers of a dask cluster."""

from ..extras import needed

OLDEST = "2025.1"

_version = needed("distributed", "pairstep.dask").__version__
if [int(part) for part in _version.split(".")[:2]] < [int(part) for part in OLDEST.split(".")]:
    raise ImportError(f"pairstep.dask needs dask and distributed {OLDEST} or newer, got {_version}")

from .estimators import SVC, SVR, NuSVC, NuSVR, OneClassSVM  # noqa: E402

__all__ = ["SVC", "SVR", "NuSVC", "NuSVR", "OneClassSVM"]
