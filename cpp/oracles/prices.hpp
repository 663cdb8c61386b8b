// Prices that are in this process's memory: of all accounts of a problem, or of some.
#pragma once

#include <vector>

#include "../core/team.hpp"
#include "../engine/oracle.hpp"
#include "../isa/dispatch.hpp"

namespace pairstep {

class Prices {
 public:
  // Of all accounts. The point's x is the gear's own; gradients are kept here, with room for
  // `padding` more.
  explicit Prices(const Point& point, Index padding = 0)
      : point_(point), ledger_(point.n), gradient_(std::size_t(point.n + padding), 0.0) {
    point_.gradient = gradient_.data();
    enter_all();
  }

  // Of these accounts of `whole`, in rising order, with copies of all that is asked of them.
  Prices(const Prices& whole, std::vector<Index> accounts, Index padding)
      : Prices(std::move(accounts), whole, padding) {
    enter_all();
  }

  Prices(const Prices&) = delete;
  Prices& operator=(const Prices&) = delete;

  const Point& point() const { return point_; }
  const Ledger& ledger() const { return ledger_; }
  double* gradient() { return gradient_.data(); }
  Index count() const { return point_.n; }

  double down_price(Index p) const { return gradient_[p] + ledger_.down_shift[p]; }
  double up_price(Index p) const { return gradient_[p] + ledger_.up_shift[p]; }
  bool is_free(Index p) const {
    return ledger_.down_room[p] > 0 && ledger_.up_room[p] > 0 &&
           ledger_.down_shift[p] == ledger_.up_shift[p];
  }
  Market market(Index group) const {
    Market market;
    for (Index p = point_.starts[group]; p < point_.starts[group + 1]; ++p) {
      market.dearest = std::max(market.dearest, down_price(p));
      market.cheapest = std::min(market.cheapest, up_price(p));
    }
    return market;
  }

  // Account p is where x has it now.
  void enter(Index p) { ledger_.enter(point_, p); }
  void enter_all() { ledger_.enter_all(point_); }
  void move(Index p, double x) {
    point_.x[p] = x;
    enter(p);
  }

  // Answers a survey, in the numbering of the whole: account p is `accounts[p]` (null: p).
  void survey(Index count, bool with_free, const Index* accounts, Survey& found) const {
    found.accounts.clear();
    found.gradient.clear();
    const auto tell = [&](Index p) {
      found.accounts.push_back(accounts ? accounts[p] : p);
      found.gradient.push_back(gradient_[p]);
    };
    Outliers outliers;
    for (Index g = 0; g < point_.n_groups; ++g) {
      isa().outliers(ledger_, point_.starts[g], point_.starts[g + 1], count, outliers);
      for (const Index p : outliers.sellers) tell(p);
      for (const Index p : outliers.buyers) tell(p);
    }
    if (!with_free) return;
    for (Index p = 0; p < point_.n; ++p)
      if (is_free(p)) tell(p);
  }

 private:
  Prices(std::vector<Index> accounts, const Prices& whole, Index padding)
      : point_(whole.point_),
        ledger_(Index(accounts.size())),
        gradient_(accounts.size() + std::size_t(padding), 0.0) {
    const auto pick = [&](const double* from, std::vector<double>& to) -> double* {
      if (!from) return nullptr;
      for (const Index i : accounts) to.push_back(from[i]);
      return to.data();
    };
    const Point& from = whole.point_;
    for (Index g = 0; g <= from.n_groups; ++g)
      starts_.push_back(std::lower_bound(accounts.begin(), accounts.end(), from.starts[g]) -
                        accounts.begin());
    point_.n = Index(accounts.size());
    point_.starts = starts_.data();
    point_.x = pick(from.x, x_);
    point_.lower = pick(from.lower, lower_);
    point_.upper = pick(from.upper, upper_);
    point_.kink = pick(from.kink, kink_);
    point_.pivot = pick(from.pivot, pivot_);
    point_.gradient = gradient_.data();
    for (std::size_t p = 0; p < accounts.size(); ++p) gradient_[p] = whole.gradient_[accounts[p]];
  }

  Point point_;
  OwnLedger ledger_;
  std::vector<double> gradient_;
  std::vector<double> x_, lower_, upper_, kink_, pivot_;  // of a part
  std::vector<Index> starts_;
};

// An oracle that works in this process, with the threads of the call that is under way.
class LocalOracle : public Oracle {
 public:
  explicit LocalOracle(Team& team) : team_(&team) {}
  void lend(Team& team) { team_ = &team; }

 protected:
  Team& team() { return *team_; }

 private:
  Team* team_;
};

// The accounts that are not 0, and what they hold.
struct Support {
  std::vector<Index> accounts;
  std::vector<double> weights;

  explicit Support(const Point& point) {
    for (Index i = 0; i < point.n; ++i)
      if (point.x[i] != 0) {
        accounts.push_back(i);
        weights.push_back(point.x[i]);
      }
  }
};

// The size of the terms that cancel in the gradient of a quadratic: |Qx|, |c| and the kinks.
inline double cancelling(const Point& point, const double* gradient, const double* linear) {
  double scale = 0.0;
  for (Index i = 0; i < point.n; ++i)
    scale = std::max({scale, std::abs(gradient[i] - linear[i]), std::abs(linear[i]),
                      point.kink ? point.kink[i] : 0.0});
  return scale;
}

}  // namespace pairstep
