"""Support vector machines for scikit-learn."""

from .base import Optimality
from .classification import SVC, NuSVC
from .novelty import OneClassSVM
from .regression import SVR, NuSVR

__all__ = ["SVC", "SVR", "NuSVC", "NuSVR", "OneClassSVM", "Optimality"]
