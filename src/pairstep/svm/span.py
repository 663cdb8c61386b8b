"""Leave-one-out decisions without refits: the span of support vectors.

If removing support vector p leaves the sets of free and of bounded support vectors as they are, the
decision at p changes by ``-coefficient_p S_p^2``. Here ``S_p`` is the distance of p, in the feature
space of the kernel, from the affine combinations of the other free support vectors (Vapnik and
Chapelle, "Bounds on error expectation for support vector machines", 2000).
"""

from __future__ import annotations

import numpy as np
import scipy
from numpy.typing import NDArray

from .._validation import Array

# Added to the kernel matrix of the free support vectors, relative to its mean diagonal entry, so
# that a vector within the affine hull of the others has a distance of nearly 0 and a derivative.
RIDGE = 1e-10


class Spans:
    """Squared distances of support vectors from the affine hull of the free ones.

    Parameters
    ----------
    K : ndarray of shape (n_support, n_support)
        The kernel matrix of the support vectors.
    free : ndarray of bool of shape (n_support,)
        Which of them are free.
    """

    def __init__(self, K: Array, free: NDArray[np.bool_]):
        self.free = free
        count = int(free.sum())
        bordered = np.ones((count + 1, count + 1))
        bordered[-1, -1] = 0.0
        bordered[:-1, :-1] = K[np.ix_(free, free)]
        diagonal = np.einsum("ii->i", bordered)
        diagonal[:-1] += RIDGE * max(float(np.abs(K[free, free]).mean()), 1e-300)
        inverse = scipy.linalg.inv(bordered)
        own = np.diagonal(inverse)[:-1]
        right = np.vstack([K[np.ix_(free, ~free)], np.ones(len(K) - count)])
        # The affine combination that is nearest to each bounded vector, and to each free vector
        # among the others.
        self._to_bounded = inverse @ right
        self._to_free = inverse[:, :-1] / own
        self.squared = np.empty(len(K))
        self.squared[free] = np.maximum(1.0 / own, 0.0)
        distances = np.diagonal(K)[~free] - np.einsum("ij,ij->j", right, self._to_bounded)
        self.squared[~free] = np.maximum(distances, 0.0)

    def kernel_weights(self, w: Array) -> tuple[Array, Array]:
        """Return the weights of kernel values in the derivative of ``w @ squared``.

        The first array has the weight of each pair of a free support vector and any support vector.
        The second has the weights of k(p, p) for the bounded ones.
        """
        free = self.free
        weights = np.zeros((int(free.sum()), len(free)))
        of_free, of_bounded = self._to_free[:-1], self._to_bounded[:-1]
        weights[:, free] = (of_free * w[free]) @ of_free.T
        weights[:, free] += (of_bounded * w[~free]) @ of_bounded.T
        weights[:, ~free] = -2 * of_bounded * w[~free]
        return weights, w[~free]
