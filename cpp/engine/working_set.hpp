// The working set of a round of the block solver: the variables that violate the optimality
// conditions most and, when progress is slow, the free variables.
#pragma once

#include <vector>

#include "oracle.hpp"

namespace pairstep {

struct WorkingSet {
  std::vector<Index> members;    // ascending
  std::vector<double> gradient;  // one entry for each member
  Index max_free;                // limit on the members that are added because they are free
};

// Set the multiplier interval of each group from the candidates, and return the violation: the
// largest difference between the left derivative of one variable and the right derivative of
// another that can form a pair step with it, within a group or, for nested groups, across groups.
double violation_of(const Point& point, const Candidates& candidates,
                    std::vector<MultiplierInterval>& intervals);

// Choose members among the candidates. From each group (or from all groups together if they are
// nested), take the `count` variables with the largest left derivatives and the `count` with the
// smallest right derivatives, but only those with which some step decreases f. If `with_free`, add
// the free variables; if there are more than set.max_free, add those whose derivatives are furthest
// from their group's multiplier.
void choose_members(const Point& point, const Candidates& candidates,
                    const std::vector<MultiplierInterval>& intervals, Index count, bool with_free,
                    WorkingSet& set);

// Make all variables members. The candidates must contain all of them.
void choose_all(const Point& point, const Candidates& candidates, WorkingSet& set);

}  // namespace pairstep
