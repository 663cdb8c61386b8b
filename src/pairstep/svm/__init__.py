"""Support vector machines for scikit-learn."""
# ruff: noqa: E402 - what is missing is said before it is imported

from ..extras import needed

needed("sklearn", by="pairstep.svm")

from .base import Optimality
from .classification import SVC, NuSVC
from .files import load, save
from .libsvm_files import load_libsvm_model, save_libsvm_model
from .novelty import OneClassSVM
from .regression import SVR, NuSVR
from .regularisation import RegularisationPath, path
from .search import SVCCV, SVRCV

__all__ = [
    "SVC", "SVCCV", "SVR", "SVRCV", "NuSVC", "NuSVR", "OneClassSVM", "Optimality",
    "RegularisationPath", "load", "load_libsvm_model", "path", "save", "save_libsvm_model",
]  # fmt: skip
