// Where the solve of a small dense quadratic begins.
#pragma once

#include "small.hpp"

namespace pairstep {

// Puts the start into x: the minimum itself where few variables are at their bounds, else a point
// with few between them; its sum is right but for rounding. False where Q is not convex along the
// sum, and x is not set.
bool start(const Small& problem, double* x);

}  // namespace pairstep
