#include "certify.hpp"

#include <algorithm>
#include <cmath>

#include "nested.hpp"
#include "sum.hpp"

namespace pairstep {

namespace {

// A segment of a coordinate's range on which its linearized objective has one derivative.
struct Segment {
  double derivative, length;
};

// Calls visit(is_up, segment) for the segments below and above x_i: from x_i to the next bound or
// breakpoint, and from the breakpoint to the bound. A coordinate closer to its breakpoint than
// `rounding`, the rounding error of the sums, counts as on it.
template <class Visit>
void for_segments(const Point& p, Index i, double rounding, Visit visit) {
  double x = p.x[i];
  if (!p.l1) {
    if (x > p.lower[i]) visit(false, Segment{p.gradient[i], x - p.lower[i]});
    if (x < p.upper[i]) visit(true, Segment{p.gradient[i], p.upper[i] - x});
    return;
  }
  if (std::abs(x - p.breakpoint[i]) <= rounding)
    x = std::clamp(p.breakpoint[i], p.lower[i], p.upper[i]);
  const Position here = position_at(p, i, x);
  const double lowest = floor_at(p, i, x), highest = ceiling_at(p, i, x);
  if (here.max_decrease > 0)
    visit(false, Segment{p.gradient[i] + here.left_shift, here.max_decrease});
  if (here.max_increase > 0)
    visit(true, Segment{p.gradient[i] + here.right_shift, here.max_increase});
  if (lowest > p.lower[i]) visit(false, Segment{p.gradient[i] - p.l1[i], lowest - p.lower[i]});
  if (highest < p.upper[i]) visit(true, Segment{p.gradient[i] + p.l1[i], p.upper[i] - highest});
}

// Segments that are still available after some exchanges: the unused parts, and the used parts in
// the opposite direction.
struct Remainder {
  std::vector<Segment> decreasing, increasing;

  void add(const Segment& segment, double length, double used, bool is_down) {
    if (used > 0) (is_down ? increasing : decreasing).push_back({segment.derivative, used});
    if (length > used)
      (is_down ? decreasing : increasing).push_back({segment.derivative, length - used});
  }
};

// Largest first-order improvement from exchanges between segments that are sorted best first. Each
// segment is used up to `reach`. Every term is positive, so nothing cancels.
double gain_of(const std::vector<Segment>& decreasing, const std::vector<Segment>& increasing,
               double reach, Remainder* remainder = nullptr) {
  if (reach == 0.0) return 0.0;
  double gain = 0.0;
  std::size_t d = 0, u = 0;                       // the current segments
  double decreased_by = 0.0, increased_by = 0.0;  // how much of them is used
  while (d < decreasing.size() && u < increasing.size()) {
    const double gap = decreasing[d].derivative - increasing[u].derivative;
    if (!(gap > 0)) break;
    const double down = std::min(decreasing[d].length, reach) - decreased_by,
                 up = std::min(increasing[u].length, reach) - increased_by,
                 amount = std::min(down, up);
    gain += gap * amount;
    if (!std::isfinite(amount)) break;
    decreased_by = down <= amount ? 0.0 : decreased_by + amount;
    increased_by = up <= amount ? 0.0 : increased_by + amount;
    d += down <= amount;
    u += up <= amount;
  }
  if (!remainder) return gain;
  for (std::size_t k = 0; k < decreasing.size(); ++k) {
    const double length = std::min(decreasing[k].length, reach);
    remainder->add(decreasing[k], length, k < d ? length : k == d ? decreased_by : 0.0, true);
  }
  for (std::size_t k = 0; k < increasing.size(); ++k) {
    const double length = std::min(increasing[k].length, reach);
    remainder->add(increasing[k], length, k < u ? length : k == u ? increased_by : 0.0, false);
  }
  return gain;
}

void sort_best_first(std::vector<Segment>& decreasing, std::vector<Segment>& increasing) {
  std::sort(decreasing.begin(), decreasing.end(),
            [](const Segment& a, const Segment& b) { return a.derivative > b.derivative; });
  std::sort(increasing.begin(), increasing.end(),
            [](const Segment& a, const Segment& b) { return a.derivative < b.derivative; });
}

double largest_of(const Point& point, Index begin, Index end) {
  double largest = 0.0;
  for (Index i = begin; i < end; ++i) largest = std::max(largest, std::abs(point.x[i]));
  return largest;
}

MultiplierInterval interval_of(const Point& point, Index begin, Index end, double rounding) {
  MultiplierInterval interval;
  for (Index i = begin; i < end; ++i)
    for_segments(point, i, rounding, [&](bool up, Segment s) {
      if (up) interval.min_right = std::min(interval.min_right, s.derivative);
      else interval.max_left = std::max(interval.max_left, s.derivative);
    });
  return interval;
}

// The segments of a group that can take part in an improving exchange, best first: those whose
// derivative lies beyond the opposite end of the interval.
void segments_of(const Point& point, Index begin, Index end, double rounding,
                 const MultiplierInterval& interval, std::vector<Segment>& decreasing,
                 std::vector<Segment>& increasing) {
  decreasing.clear();
  increasing.clear();
  for (Index i = begin; i < end; ++i)
    for_segments(point, i, rounding, [&](bool up, Segment s) {
      if (up && s.derivative < interval.max_left) increasing.push_back(s);
      if (!up && s.derivative > interval.min_right) decreasing.push_back(s);
    });
  sort_best_first(decreasing, increasing);
}

// The middle of the interval. An end is infinite if no coordinate can go that way; then the other
// end is used, and 0 if both are infinite.
double multiplier_of(const MultiplierInterval& interval) {
  const bool down = std::isfinite(interval.max_left), up = std::isfinite(interval.min_right);
  if (down && up) return 0.5 * (interval.max_left + interval.min_right);
  return down ? interval.max_left : up ? interval.min_right : 0.0;
}

// Append the first segments whose lengths add up to `slack`.
void append_up_to(double slack, const std::vector<Segment>& from, std::vector<Segment>& to) {
  for (const Segment& s : from) {
    if (!(slack > 0)) return;
    to.push_back({s.derivative, std::min(s.length, slack)});
    slack -= to.back().length;
  }
}

// max_s g'(x - s) over the feasible s, for nested groups: first the exchanges within each group,
// then exchanges between groups with the remaining segments, as far as the limits of the group sums
// allow.
double gain_of_nested(const Point& point, const GroupSlack& slacks, double rounding,
                      const std::vector<MultiplierInterval>& intervals, double reach) {
  double gain = 0.0;
  std::vector<Segment> decreasing, increasing;
  Remainder all;
  for (Index g = 0; g < point.n_groups; ++g) {
    segments_of(point, point.starts[g], point.starts[g + 1], rounding, intervals[g], decreasing,
                increasing);
    Remainder remainder;
    gain += gain_of(decreasing, increasing, reach, &remainder);
    sort_best_first(remainder.decreasing, remainder.increasing);
    append_up_to(slacks.down[g], remainder.decreasing, all.decreasing);
    append_up_to(slacks.up[g], remainder.increasing, all.increasing);
  }
  sort_best_first(all.decreasing, all.increasing);
  return gain + gain_of(all.decreasing, all.increasing, INFINITY);
}

// Size of the first-order change of the objective that is due to the distance of a sum from its
// total.
double effect_of_residual(const Point& point, Index begin, Index end, double total,
                          double multiplier) {
  Sum residual;
  for (Index i = begin; i < end; ++i) residual.add(point.x[i]);
  residual.add(-total);
  return std::abs(multiplier * residual.value());
}

Certificate certify_nested(const Point& point, const double* totals) {
  Certificate certificate;
  const GroupSlack slacks = slacks_of(point);
  const double largest = largest_of(point, 0, point.n);
  const double rounding = NumericalPolicy::sum_rounding * largest;
  std::vector<MultiplierInterval> intervals;
  for (Index g = 0; g < point.n_groups; ++g) {
    intervals.push_back(interval_of(point, point.starts[g], point.starts[g + 1], rounding));
    certificate.violation =
        std::max(certificate.violation, intervals[g].max_left - intervals[g].min_right);
  }
  const MultiplierInterval all = across(intervals, slacks);
  certificate.violation = std::max(certificate.violation, all.max_left - all.min_right);
  const double of_total = multiplier_of(all);
  certificate.multiplier.push_back(of_total);
  for (Index g = 0; g < point.n_groups; ++g) {
    // Among the multipliers that are valid for the group, take the one closest to the total's.
    const auto [max_left, min_right] = intervals[g];
    const double own = max_left <= min_right ? std::clamp(of_total, max_left, min_right)
                                             : multiplier_of(intervals[g]);
    certificate.multiplier.push_back(std::clamp(own - of_total, slacks.up[g] > 0 ? 0.0 : -INFINITY,
                                                slacks.down[g] > 0 ? 0.0 : INFINITY));
  }
  // The violation ignores slack that is only rounding error. The bound must not, to remain valid.
  const GroupSlack exact = slacks_of(point, 0.0);
  const MultiplierInterval everywhere = across(intervals, exact);
  if (certificate.violation > 0 || everywhere.max_left > everywhere.min_right) {
    include_across(everywhere, exact, intervals);
    certificate.bound = gain_of_nested(point, exact, rounding, intervals, INFINITY);
    certificate.nearby = gain_of_nested(point, exact, rounding, intervals, largest);
  }
  if (totals) certificate.residual = effect_of_residual(point, 0, point.n, totals[0], of_total);
  certificate.bound += certificate.residual;
  return certificate;
}

// Largest left and smallest right derivative, each with the allowance of its coordinate.
struct ExtremeDerivatives {
  double max_left = -INFINITY, min_right = INFINITY;
  double left_allowance = 0.0, right_allowance = 0.0;

  double gap() const { return max_left - min_right; }
  double allowed() const { return left_allowance + right_allowance; }

  void include(const ExtremeDerivatives& other, bool down, bool up) {
    if (down && other.max_left > max_left) {
      max_left = other.max_left;
      left_allowance = other.left_allowance;
    }
    if (up && other.min_right < min_right) {
      min_right = other.min_right;
      right_allowance = other.right_allowance;
    }
  }
};

// `known` is the certificate of the same point, if it has been computed.
template <class Allowance>
Excess excess_with(const Point& point, const Certificate* known, Allowance allowance) {
  Excess excess;
  double violation = -INFINITY;
  // In `relaxed` every derivative is moved by its allowance so that the violation shrinks; `plain`
  // has the derivatives as they are.
  const auto update = [&](const ExtremeDerivatives& relaxed, const ExtremeDerivatives& plain) {
    if (relaxed.gap() > excess.violation) {
      excess.violation = relaxed.gap();
      excess.allowed = relaxed.allowed();
    }
    if (plain.gap() > violation) {
      violation = plain.gap();
      excess.tolerance = plain.allowed();
    }
  };
  const double largest = point.nested() ? largest_of(point, 0, point.n) : 0.0;
  const GroupSlack slacks = point.nested() ? slacks_of(point) : GroupSlack{};
  ExtremeDerivatives relaxed_across, plain_across;
  for (Index group = 0; group < point.n_groups; ++group) {
    const Index begin = point.starts[group], end = point.starts[group + 1];
    const double rounding =
        NumericalPolicy::sum_rounding * (point.nested() ? largest : largest_of(point, begin, end));
    // Subtract the middle of the group's multiplier interval first: a small allowance would
    // otherwise be lost in the rounding of large derivatives. Nested groups are compared with each
    // other, so they keep a common base of 0.
    const double base = point.nested() ? 0.0
                        : known        ? known->multiplier[group]
                                       : multiplier_of(interval_of(point, begin, end, rounding));
    ExtremeDerivatives relaxed, plain;
    for (Index i = begin; i < end; ++i) {
      const double own = allowance(i, group);
      for_segments(point, i, rounding, [&](bool up, Segment s) {
        const double derivative = s.derivative - base;
        relaxed.include({derivative - own, derivative + own, own, own}, !up, up);
        plain.include({derivative, derivative, own, own}, !up, up);
      });
    }
    update(relaxed, plain);
    if (!point.nested()) continue;
    relaxed_across.include(relaxed, slacks.down[group] > 0, slacks.up[group] > 0);
    plain_across.include(plain, slacks.down[group] > 0, slacks.up[group] > 0);
  }
  if (point.nested()) update(relaxed_across, plain_across);
  return excess;
}

// The allowance of a coordinate is half of `relative` times the largest term that cancels in its
// derivative. linear_size(linear, group) is the size that its linear term counts with, and
// `largest` the largest term of any coordinate apart from Q_ii x_i.
template <class LinearSize>
Excess excess_of_terms(const Point& point, const Quadratic& quadratic, const Certificate& known,
                       double relative, double largest, LinearSize linear_size) {
  const double *linear = quadratic.linear, *diagonal = quadratic.diagonal;
  return excess_with(point, &known, [&](Index i, Index group) {
    double size = std::max(std::abs(point.gradient[i] - linear[i]), linear_size(linear[i], group));
    if (diagonal) size = std::max(size, std::min(diagonal[i] * std::abs(point.x[i]), largest));
    return 0.5 * relative * (point.l1 ? std::max(size, point.l1[i]) : size);
  });
}

// Whether the violation is within the rounding error of the gradient. The common part of the linear
// term counts here, because it is rounded like the rest.
bool is_within_rounding(const Point& point, const Quadratic& quadratic, const Certificate& known,
                        double largest) {
  return excess_of_terms(point, quadratic, known, NumericalPolicy::gradient_rounding, largest,
                         [](double linear, Index) { return std::abs(linear); })
             .violation <= 0;
}

Terms terms_with(const Point& point, const double* linear, const SharedCost* shared) {
  Terms terms;
  if (point.l1)
    for (Index i = 0; i < point.n; ++i) terms.gradient = std::max(terms.gradient, point.l1[i]);
  double cost = 0.0;
  for (Index g = 0; g < point.n_groups; ++g)
    for (Index i = point.starts[g]; i < point.starts[g + 1]; ++i) {
      const double product_i = point.gradient[i] - linear[i];  // (Qx)_i
      terms.gradient =
          std::max({terms.gradient, std::abs(product_i), shared[g].size_of(linear[i])});
      terms.curvature += point.x[i] * product_i;
      cost += point.x[i] * (linear[i] - shared[g].level);
      terms.constant += point.x[i] * shared[g].level;
    }
  terms.objective = std::max(0.5 * std::abs(terms.curvature), std::abs(cost));
  return terms;
}

double unshared_residual(const Point& point, const SharedCost* shared,
                         const Certificate& certificate, const double* totals) {
  const Index sums = point.nested() ? 1 : point.n_groups;
  if (!totals || std::all_of(shared, shared + sums, [](auto& cost) { return cost.level == 0; }))
    return certificate.residual;
  double residual = 0.0;
  for (Index sum = 0; sum < sums; ++sum) {
    const Index begin = point.nested() ? 0 : point.starts[sum],
                end = point.nested() ? point.n : point.starts[sum + 1];
    residual += effect_of_residual(point, begin, end, totals[sum],
                                   certificate.multiplier[sum] - shared[sum].level);
  }
  return residual;
}

}  // namespace

std::vector<SharedCost> shared_costs(const Point& point, const double* linear) {
  // The mean counts as a common part if the mean distance of the entries from it is below this
  // fraction of the mean, so that subtracting it makes the entries about 100 times smaller. A
  // larger value would tighten the tolerance of problems whose entries are only similar. A smaller
  // one would leave the tolerance loose although the entries have much in common.
  constexpr double MAX_RELATIVE_DEVIATION = 0.01;
  std::vector<SharedCost> shared(std::size_t(point.n_groups));
  const auto measure = [&](Index begin, Index end) -> SharedCost {
    double sum = 0.0, deviation = 0.0;
    for (Index i = begin; i < end; ++i) sum += linear[i];
    const double count = double(std::max<Index>(end - begin, 1)), mean = sum / count;
    for (Index i = begin; i < end; ++i) deviation += std::abs(linear[i] - mean);
    deviation /= count;
    if (!(deviation < MAX_RELATIVE_DEVIATION * std::abs(mean))) return {};
    return {mean, deviation};
  };
  if (point.nested()) std::fill(shared.begin(), shared.end(), measure(0, point.n));
  else
    for (Index g = 0; g < point.n_groups; ++g)
      shared[g] = measure(point.starts[g], point.starts[g + 1]);
  return shared;
}

Terms terms_of(const Point& point, const double* linear) {
  if (linear) return terms_with(point, linear, shared_costs(point, linear).data());
  Terms terms;
  for (Index i = 0; i < point.n; ++i)
    terms.gradient =
        std::max({terms.gradient, std::abs(point.gradient[i]), point.l1 ? point.l1[i] : 0.0});
  return terms;
}

Terms terms_of(const Point& point, const double* linear, const SharedCost* shared) {
  return terms_with(point, linear, shared);
}

Excess excess_over(const Point& point, const double* allowance) {
  return excess_with(point, nullptr, [&](Index i, Index) { return allowance[i]; });
}

Assessment assess(const Point& point, const Quadratic& quadratic, const Certificate& certificate,
                  const double* totals, double tol) {
  std::vector<SharedCost> computed;
  if (!quadratic.shared) computed = shared_costs(point, quadratic.linear);
  const SharedCost* shared = quadratic.shared ? quadratic.shared : computed.data();
  const Terms terms = terms_with(point, quadratic.linear, shared);
  const Excess excess =
      excess_of_terms(point, quadratic, certificate, tol, terms.gradient,
                      [&](double linear, Index group) { return shared[group].size_of(linear); });
  return {terms, excess, unshared_residual(point, shared, certificate, totals)};
}

Verdict verdict_of(const Point& point, const Quadratic& quadratic, const Certificate& certificate,
                   const double* totals, double value, double tol) {
  const auto [terms, excess, residual] = assess(point, quadratic, certificate, totals, tol);
  const double size = std::max(terms.objective, std::abs(value - terms.constant));
  const double allowed_gain = NumericalPolicy::gain_per_tol * tol * size;
  const bool optimal = excess.violation <= 0 && residual <= allowed_gain &&
                       (certificate.nearby <= allowed_gain ||
                        is_within_rounding(point, quadratic, certificate, terms.gradient));
  return {optimal, optimal ? excess.tolerance : excess.allowed};
}

Certificate certify(const Point& point, const double* totals) {
  if (point.nested()) return certify_nested(point, totals);
  Certificate certificate;
  certificate.multiplier.reserve(std::size_t(point.n_groups));
  std::vector<Segment> decreasing, increasing;
  for (Index group = 0; group < point.n_groups; ++group) {
    const Index begin = point.starts[group], end = point.starts[group + 1];
    const double largest = largest_of(point, begin, end);
    const double rounding = NumericalPolicy::sum_rounding * largest;
    const MultiplierInterval interval = interval_of(point, begin, end, rounding);
    certificate.violation = std::max(certificate.violation, interval.max_left - interval.min_right);
    certificate.multiplier.push_back(multiplier_of(interval));
    if (totals)
      certificate.residual +=
          effect_of_residual(point, begin, end, totals[group], certificate.multiplier.back());
    if (!(interval.max_left > interval.min_right)) continue;
    // max_s g'(x - s) over the feasible s: exchange the largest derivative for the smallest while
    // that improves the objective.
    for (auto* side : {&decreasing, &increasing})
      side->reserve(std::size_t(std::min<Index>(point.n, 16)));
    segments_of(point, begin, end, rounding, interval, decreasing, increasing);
    certificate.bound += gain_of(decreasing, increasing, INFINITY);
    certificate.nearby += gain_of(decreasing, increasing, largest);
  }
  certificate.bound += certificate.residual;
  return certificate;
}

}  // namespace pairstep
