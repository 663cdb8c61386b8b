"""LIBSVM's rule since version 2.8: second-order choice of the second coordinate.

Fan, Chen and Lin, "Working Set Selection Using Second Order Information for Training Support Vector
Machines", JMLR 6, 2005; see also section 3.2 of the paper. The C++ form is
`cpp/paper/rules/libsvm.hpp`.
"""

from __future__ import annotations

import numpy as np

from ...coordinates import Coordinates, Step
from .pairs import best_pair_step, no_step


def libsvm(coordinates: Coordinates, alpha: float) -> Step:
    """Decrease the largest left derivative with the partner that decreases the model most.

    The first coordinate i is that of GS-s. The second coordinate j maximizes
    ``d (gap - c_ij d / 2)``, where d is the best amount that both can change by and
    ``c_ij = (L_i + L_j) / alpha``. The native coordinate-descent solver has the whole Hessian and
    uses the true curvature ``H_ii + H_jj - 2 H_ij`` instead, as LIBSVM does.
    """
    i = int(np.argmax(coordinates.left_derivative))
    if coordinates.max_decrease[i] <= 0:
        return no_step()
    gap = coordinates.left[i] - coordinates.right_derivative
    curvature = (coordinates.lipschitz[i] + coordinates.lipschitz) / alpha
    max_amount = np.minimum(coordinates.max_decrease[i], coordinates.max_increase)
    amount = np.clip(gap / curvature, 0, np.maximum(max_amount, 0))
    j = int(np.argmax(amount * (np.maximum(gap, 0) - 0.5 * curvature * amount)))
    return best_pair_step(coordinates, i, j, float(curvature[j]))
