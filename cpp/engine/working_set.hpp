// The accounts of one round: those furthest out and, once it pays, the free ones.
#pragma once

#include <vector>

#include "oracle.hpp"

namespace pairstep {

struct WorkingSet {
  std::vector<Index> members;    // in rising order
  std::vector<double> gradient;  // of each
  Index most_free;               // at most so many of the free accounts
};

// What the survey says of the prices at which each group can trade, within itself or across, and
// the violation: by how much the best exchange would pay.
double trade(const Point& point, const Survey& survey, std::vector<Market>& markets);

// Choose from a survey: of each group, or of all that share a total, the `count` dearest sellers
// and cheapest buyers that can trade with each other and, `with_free`, the free accounts: of too
// many the furthest from the price at which their group trades.
void choose_members(const Point& point, const Survey& survey, const std::vector<Market>& markets,
                    Index count, bool with_free, WorkingSet& set);

}  // namespace pairstep
