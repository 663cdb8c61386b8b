#include "working_set.hpp"

#include <algorithm>
#include <numeric>

namespace pairstep {

double trade(const Point& point, const Survey& survey, std::vector<Market>& markets) {
  markets.assign(std::size_t(point.n_groups), {});
  for (std::size_t k = 0; k < survey.accounts.size(); ++k) {
    const Standing at = standing_of(point, survey.accounts[k]);
    Market& market = markets[group_of(point, survey.accounts[k])];
    market.dearest = std::max(market.dearest, survey.gradient[k] + at.down_shift);
    market.cheapest = std::min(market.cheapest, survey.gradient[k] + at.up_shift);
  }
  double violation = 0.0;
  for (const Market& market : markets)
    violation = std::max(violation, market.dearest - market.cheapest);
  if (!point.nested()) return violation;
  const GroupRooms rooms = rooms_of(point);
  const Market all = across(markets, rooms);
  open_to(all, rooms, markets);
  return std::max(violation, all.dearest - all.cheapest);
}

void choose_members(const Point& point, const Survey& survey, const std::vector<Market>& markets,
                    Index count, bool with_free, WorkingSet& set) {
  struct Candidate {
    double gain;  // at best, in a trade with its group
    std::size_t k;
  };
  const auto better = [&](const Candidate& a, const Candidate& b) {
    return a.gain > b.gain || (a.gain == b.gain && survey.accounts[a.k] < survey.accounts[b.k]);
  };
  const auto keep = [&](std::vector<Candidate>& some, Index most) {
    if (Index(some.size()) <= most) return;
    std::nth_element(some.begin(), some.begin() + most, some.end(), better);
    some.resize(std::size_t(most));
  };
  // Groups that share a total compete for their places.
  const std::size_t pools = point.nested() ? 1 : markets.size();
  std::vector<std::vector<Candidate>> sellers(pools), buyers(pools);
  std::vector<Candidate> free;
  for (std::size_t k = 0; k < survey.accounts.size(); ++k) {
    const Index group = group_of(point, survey.accounts[k]);
    const std::size_t pool = point.nested() ? 0 : std::size_t(group);
    const Market& market = markets[group];
    const Standing at = standing_of(point, survey.accounts[k]);
    const double saves = survey.gradient[k] + at.down_shift,
                 costs = survey.gradient[k] + at.up_shift;
    if (saves > market.cheapest) sellers[pool].push_back({saves - market.cheapest, k});
    if (costs < market.dearest) buyers[pool].push_back({market.dearest - costs, k});
    if (with_free && at.is_free()) {
      const double level = 0.5 * (market.dearest + market.cheapest);
      free.push_back({std::abs(saves - level), k});
    }
  }
  std::vector<std::size_t> chosen;
  for (auto* side : {&sellers, &buyers})
    for (std::vector<Candidate>& some : *side) {
      keep(some, count);
      for (const Candidate& one : some) chosen.push_back(one.k);
    }
  keep(free, set.most_free);
  for (const Candidate& one : free) chosen.push_back(one.k);
  std::sort(chosen.begin(), chosen.end(),
            [&](std::size_t a, std::size_t b) { return survey.accounts[a] < survey.accounts[b]; });
  set.members.clear();
  set.gradient.clear();
  for (const std::size_t k : chosen) {
    if (!set.members.empty() && set.members.back() == survey.accounts[k]) continue;
    set.members.push_back(survey.accounts[k]);
    set.gradient.push_back(survey.gradient[k]);
  }
}

}  // namespace pairstep
