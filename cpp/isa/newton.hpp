// The Newton phase of the coordinate-descent solver: Newton's method on the free coordinates, with
// fixed sums. A coordinate that meets a bound or breakpoint stays there, and the method continues
// with the others. This is an active-set method whose Cholesky factor is kept and updated from one
// call to the next. Included once per instruction set.
#pragma once

#include "cholesky.hpp"
#include "measures.hpp"

struct NewtonSettings {
  // The curvature d'Hd of a direction counts as zero up to this fraction of sum_i |H_ii| d_i^2,
  // because rounding alone can cause it. A smaller value could mistake rounding error for
  // curvature; a larger one could report a weakly curved problem as unbounded.
  static constexpr double ZERO_CURVATURE = 1e-13;

  // Ridge that is added to the diagonal, relative to it. It is a little above rounding error, so
  // that a singular Hessian gives a finite step: a long one along directions that have a slope but
  // no curvature, and nearly a Newton step along all others. If the factorization fails, the ridge
  // is multiplied by RIDGE_FACTOR as long as it is below MAX_RIDGE.
  static constexpr double RIDGE = 1e-12, RIDGE_FACTOR = 100.0, MAX_RIDGE = 1e-5;
  // For coordinates without curvature, and for all coordinates once the ridge has grown, this
  // fraction of the largest diagonal entry is added to the entry that the ridge is relative to.
  static constexpr double RIDGE_SCALE = 1e-3;
  // Constant that is added to all entries if the Hessian is positive definite only for steps that
  // keep the sums, as a multiple of the largest entry. A larger one would make more matrices
  // positive definite, but would lose more digits.
  static constexpr double SHIFT = 100.0;

  // The factor is updated, not recomputed, if there are more than MIN_COORDINATES_PER_CHANGE
  // coordinates for each one that enters or leaves, or if there are at most MAX_ALWAYS_UPDATED
  // coordinates. A lower limit per change would make updates that cost more than a factorization.
  static constexpr Index MIN_COORDINATES_PER_CHANGE = 3, MAX_ALWAYS_UPDATED = 32;
  // More right-hand sides than this are solved by the blocked solver. It reads the factor less
  // often, but has to copy the right-hand sides first.
  static constexpr Index MAX_UNBLOCKED_SOLVES = 16;

  // If a bound shortens the Newton step, the full step is also tried with each coordinate clipped
  // to its bounds, which can reach many bounds at once. If nothing has decreased the objective yet,
  // the same is tried with the second fraction of the step.
  static constexpr std::array<double, 2> CLIPPED_FRACTIONS{1.0, 0.3};
  // The iteration ends when a step decreases the objective by less than this fraction of what the
  // steps before it achieved. A smaller value takes more steps that hardly decrease the objective.
  static constexpr double MIN_RELATIVE_DECREASE = 1e-3;
  // Rounding error of a sum of changes, relative to the sum of their absolute values.
  static constexpr double SUM_ROUNDING = 1e-12;
  // Number of Newton steps by which remove_curved_part corrects a direction of zero curvature. Each
  // costs one solve; with too few, the reported ray keeps some curvature.
  static constexpr int CURVATURE_CORRECTIONS = 2;
};

// Uses eight partial sums for every vector width, so that all instruction sets give the same bits.
inline double dot(const double* a, const double* b, Index n) {
  std::array<Lanes, 8 / WIDTH> sums{};
  Index p = 0;
  for (; p + 8 <= n; p += 8)
    for (Index k = 0; k < 8 / WIDTH; ++k)
      sums[k] += load<Lanes>(a + p + k * WIDTH) * load<Lanes>(b + p + k * WIDTH);
  double part[8];
  std::memcpy(part, &sums, sizeof part);
  double total =
      ((part[0] + part[4]) + (part[1] + part[5])) + ((part[2] + part[6]) + (part[3] + part[7]));
  for (; p < n; ++p) total += a[p] * b[p];
  return total;
}

// y += t x
inline void add_multiple(double t, const double* x, double* y, Index n) {
  for (Index p = 0; p < n; ++p) y[p] += t * x[p];
}

// The Cholesky factor of the Hessian on a set of coordinates. If the set changes by a few
// coordinates, the factor is updated; each of them costs as much as a triangular solve.
template <class Real>
class Factor {
 public:
  Factor(const Real* hessian, const double* diagonal, Index n)
      : hessian_(hessian), diagonal_(diagonal), n_(n), wanted_(n, 0) {
    for (Index i = 0; i < n; ++i) largest_ = std::max(largest_, std::abs(diagonal[i]));
  }

  Index size() const { return Index(coordinates_.size()); }
  // In the order of the rows of the factor.
  const std::vector<Index>& coordinates() const { return coordinates_; }

  // Change to these coordinates. False if the Hessian is not positive definite on them, even with
  // the largest ridge or a constant added to all entries.
  bool set(const std::vector<Index>& coordinates) {
    for (const Index i : coordinates) wanted_[i] = 1;
    const Index common = std::count_if(coordinates_.begin(), coordinates_.end(),
                                       [&](Index i) { return wanted_[i] != 0; });
    const Index changes = size() + Index(coordinates.size()) - 2 * common;
    bool done = false;
    if (ridge_ == Settings::RIDGE &&
        (Settings::MIN_COORDINATES_PER_CHANGE * changes < Index(coordinates.size()) ||
         Index(coordinates.size()) <= Settings::MAX_ALWAYS_UPDATED)) {
      for (Index r = size(); r-- > 0;)
        if (!wanted_[coordinates_[r]]) drop(r);
      for (const Index i : coordinates_) wanted_[i] = 0;
      done = std::all_of(coordinates.begin(), coordinates.end(),
                         [&](Index i) { return !wanted_[i] || append(i); });
    }
    for (const Index i : coordinates) wanted_[i] = 0;
    return done || rebuild(coordinates);
  }

  // The reciprocal of the diagonal entry in row r, including the ridge.
  double inverse_diagonal(Index r) const { return 1.0 / ridged(coordinates_[r]); }

  // b := (H + ridge)^-1 b, for `count` vectors that follow each other in memory. All vectors
  // advance together, because each of them is a chain of dependent divisions.
  void solve(double* b, Index count) const {
    const Index k = size();
    if (count > Settings::MAX_UNBLOCKED_SOLVES) {
      cholesky_solve(columns_.data(), k, stride_, b, count);
      return;
    }
    forward(b, count);
    for (Index c = k; c-- > 0;) {
      const double* column = columns_.data() + c * stride_;
      for (double* v = b; v < b + count * k; v += k)
        v[c] = (v[c] - dot(column + c + 1, v + c + 1, k - c - 1)) / column[c];
    }
  }

 private:
  void forward(double* b, Index count) const {
    const Index k = size();
    for (Index c = 0; c < k; ++c) {
      const double* column = columns_.data() + c * stride_;
      for (double* v = b; v < b + count * k; v += k) {
        v[c] /= column[c];
        add_multiple(-v[c], column + c + 1, v + c + 1, k - c - 1);
      }
    }
  }

  // The diagonal entry of coordinate i with the ridge. The ridge is relative to the entry itself,
  // so that coordinates may have different scales; see RIDGE_SCALE for the exceptions.
  double ridged(Index i) const {
    const double own = diagonal_[i] + shift_;
    const bool flat = !(own > 0) || ridge_ > Settings::RIDGE;
    return own + ridge_ * (own + (flat ? Settings::RIDGE_SCALE * largest_ : 0.0));
  }

  // Reserve memory for k coordinates and a few more.
  void reserve(Index k) {
    if (k <= stride_) return;
    const Index stride = k + k / 8 + 16;
    Scratch columns;
    columns.fit(stride * stride);
    for (Index c = 0; c < size(); ++c)
      std::copy_n(columns_.data() + c * stride_ + c, size() - c, columns.data() + c * stride + c);
    std::swap(columns_, columns);
    stride_ = stride;
  }

  // Remove the coordinate in this row.
  void drop(Index at) {
    const Index k = size() - 1;
    for (Index c = 0; c <= k; ++c) {
      double* column = columns_.data() + c * stride_;
      const Index first = std::max(at, c > at ? c - 1 : c);
      std::copy(column + first + 1, column + k + 1, column + first);
    }
    // The rows below now have one entry too many. Givens rotations move it to the column before.
    for (Index c = at; c < k; ++c) {
      double *left = columns_.data() + c * stride_, *right = left + stride_;
      const double length = std::sqrt(left[c] * left[c] + right[c] * right[c]);
      const double cosine = left[c] / length, sine = right[c] / length;
      left[c] = length;
      for (Index r = c + 1; r < k; ++r) {
        const double a = left[r], b = right[r];
        left[r] = cosine * a + sine * b;
        right[r] = cosine * b - sine * a;
      }
    }
    coordinates_.erase(coordinates_.begin() + at);
  }

  bool append(Index i) {
    const Index k = size();
    reserve(k + 1);
    const Real* row = hessian_ + i * n_;
    row_.resize(k);
    for (Index c = 0; c < k; ++c) row_[c] = row[coordinates_[c]] + shift_;
    forward(row_.data(), 1);
    const double rest = ridged(i) - dot(row_.data(), row_.data(), k);
    if (!(rest > 0)) return false;
    for (Index c = 0; c < k; ++c) columns_.data()[c * stride_ + k] = row_[c];
    columns_.data()[k * stride_ + k] = std::sqrt(rest);
    coordinates_.push_back(i);
    return true;
  }

  bool rebuild(const std::vector<Index>& coordinates) {
    coordinates_.clear();
    reserve(Index(coordinates.size()));
    for (ridge_ = Settings::RIDGE; ridge_ < Settings::MAX_RIDGE; ridge_ *= Settings::RIDGE_FACTOR)
      if (factorize(coordinates)) return true;
    // If the sum is fixed, a constant added to all entries does not change the problem. It can make
    // the matrix positive definite; a matrix of negative squared distances is an example.
    if (shift_ > 0) return false;
    shift_ = Settings::SHIFT * largest_entry();
    ridge_ = Settings::RIDGE;
    if (factorize(coordinates)) return true;
    shift_ = 0.0;
    return false;
  }

  bool factorize(const std::vector<Index>& coordinates) {
    const Index k = Index(coordinates.size());
    for (Index c = 0; c < k; ++c) {
      const Real* row = hessian_ + coordinates[c] * n_;
      double* column = columns_.data() + c * stride_;
      for (Index r = c; r < k; ++r) column[r] = row[coordinates[r]] + shift_;
      column[c] = ridged(coordinates[c]);
    }
    if (!cholesky(columns_.data(), k, stride_, scratch_)) return false;
    coordinates_ = coordinates;
    return true;
  }

  double largest_entry() const {
    double largest = 0.0;
    for (Index p = 0; p < n_ * n_; ++p) largest = std::max(largest, std::abs(double(hessian_[p])));
    return largest;
  }

  using Settings = NewtonSettings;

  const Real* hessian_;
  const double* diagonal_;
  Index n_;
  double largest_ = 0.0;  // diagonal entry
  double ridge_ = Settings::RIDGE;
  double shift_ = 0.0;  // added to all entries
  std::vector<Index> coordinates_;
  std::vector<char> wanted_;
  Scratch columns_;  // the columns of the factor, `stride_` apart
  Scratch scratch_;  // memory for the factorization
  std::vector<double> row_;
  Index stride_ = 0;
};

// The free coordinates of a point: their derivatives, how far each can change, and their groups.
// Members of a group are adjacent, and groups are in ascending order. If groups share a total, the
// sums of the loose groups can change within their limits; all other sums are fixed.
struct FreeSet {
  std::vector<Index> index, group;
  std::vector<double> derivative, max_decrease, max_increase;
  std::vector<char> loose;  // one per group; empty if each group has its own total
  GroupSlack slacks;

  Index size() const { return Index(index.size()); }
};

// Approximate cost of a Newton step on k free of n coordinates, in multiply-adds of the vector
// passes of the coordinate-descent solver. The k^3 / 6 multiply-adds of a factorization run at
// about four times the rate of those passes.
inline double cost_of_newton(double k, double n) { return k * k * k / 24.0 + k * k + k * n; }

template <class Real>
class Newton {
 public:
  Newton(const Real* hessian, const double* diagonal, Index n)
      : hessian_(hessian), n_(n), factor_(hessian, diagonal, n), place_(n, 0) {}

  // Minimize the quadratic over the free set with the fixed sums. Coordinates that meet a bound or
  // breakpoint, and sums that meet a limit, stay there, and the others continue. `delta` receives
  // the changes, which equal max_decrease or max_increase exactly where a bound is met. Returns the
  // decrease of the objective, or 0 if there is none. `work` grows by the cost of the computation.
  // `unbounded` becomes true if the objective decreases without limit: no bound and no curvature
  // limits the step, and its slope per unit exceeds `threshold`, so that it is not rounding error.
  double minimize(const FreeSet& free_set, double threshold, std::vector<double>& delta,
                  double& work, bool& unbounded) {
    const Index size = free_set.size();
    delta.assign(size, 0.0);
    if (!factor_.set(free_set.index)) return 0.0;
    set_up(free_set);
    work += cost_of_newton(double(size), 0.0);
    double total_decrease = 0.0;
    while (true) {
      // A fixed sum needs two coordinates that can change.
      remove([&](Index a) { return members_[row_[a]] < 2; });
      if (factor_.size() < 2 || !direction()) break;
      work += double(6 * factor_.size() * size);
      double reach = INFINITY;
      for (Index a = 0; a < size; ++a) {
        low_[a] = free_[a] ? -free_set.max_decrease[a] - delta[a] : 0.0;
        high_[a] = free_[a] ? free_set.max_increase[a] - delta[a] : 0.0;
        if (d_[a] < 0) reach = std::min(reach, low_[a] / d_[a]);
        if (d_[a] > 0) reach = std::min(reach, high_[a] / d_[a]);
      }
      if (fix_sums(free_set, d_, 0.0)) continue;
      reach = std::min(reach, max_multiple(free_set, d_));
      if (reach == INFINITY && flat_and_steep(threshold)) {
        unbounded = true;
        remove_curved_part();
        return 0.0;
      }
      reach = std::min(reach, 1.0);
      for (Index a = 0; a < size; ++a) step_[a] = std::clamp(reach * d_[a], low_[a], high_[a]);
      double decrease = decrease_along(step_, response_);
      for (const double fraction : NewtonSettings::CLIPPED_FRACTIONS) {
        if (reach == 1.0 || (fraction < 1.0 && decrease > 0)) break;
        clip(free_set, fraction);
        if (const double other = decrease_along(clipped_step_, clipped_response_);
            other > decrease) {
          decrease = other;
          step_.swap(clipped_step_);
          response_.swap(clipped_response_);
        }
      }
      if (!(decrease > 0)) {
        // Remove coordinates that cannot change in their direction. The others may still improve.
        const auto stuck = [&](Index a) {
          return (d_[a] < 0 && low_[a] >= 0) || (d_[a] > 0 && high_[a] <= 0);
        };
        if (remove(stuck)) continue;
        break;
      }
      const bool last = decrease < NewtonSettings::MIN_RELATIVE_DECREASE * total_decrease;
      total_decrease += decrease;
      add_multiple(1.0, response_.data(), derivative_.data(), size);
      const auto at_end = [&](Index a) { return step_[a] <= low_[a] || step_[a] >= high_[a]; };
      for (Index a = 0; a < size; ++a) {
        if (!free_[a]) continue;
        if (step_[a] <= low_[a]) delta[a] = -free_set.max_decrease[a];
        else if (step_[a] >= high_[a]) delta[a] = free_set.max_increase[a];
        else delta[a] += step_[a];
      }
      add_to_sums(free_set);
      const bool removed = remove(at_end),
                 fixed = fix_sums(free_set, step_, NewtonSettings::SUM_ROUNDING);
      if (last || !(removed || fixed)) break;
    }
    return total_decrease;
  }

  // The last Newton direction, in the order of the free set.
  const std::vector<double>& last_direction() const { return d_; }

 private:
  void set_up(const FreeSet& free_set) {
    const Index size = free_set.size();
    derivative_ = free_set.derivative;
    block_.fit(size * size);
    for (Index a = 0; a < size; ++a) {
      const Real* row = hessian_ + free_set.index[a] * n_;
      for (Index b = 0; b < size; ++b) block_.data()[a * size + b] = row[free_set.index[b]];
      place_[free_set.index[a]] = a;
    }
    loose_ = free_set.loose;
    change_.assign(loose_.size(), 0.0);
    row_.resize(size);
    members_.clear();
    Index pool = -1;  // the fixed sum that all loose groups share
    for (Index a = 0; a < size; ++a) {
      const bool loose = !loose_.empty() && loose_[free_set.group[a]];
      const bool same = a > 0 && free_set.group[a] == free_set.group[a - 1];
      row_[a] = same ? row_[a - 1] : loose && pool >= 0 ? pool : Index(members_.size());
      if (row_[a] == Index(members_.size())) members_.push_back(0);
      if (loose) pool = row_[a];
      ++members_[row_[a]];
    }
    free_.assign(size, 1);
    for (auto* v : {&d_, &low_, &high_, &step_, &response_, &clipped_step_, &clipped_response_})
      v->assign(size, 0.0);
  }

  // Remove the coordinates for which `gone` is true from the free set. False if there are none.
  template <class Gone>
  bool remove(Gone gone) {
    staying_.clear();
    for (const Index i : factor_.coordinates()) {
      const Index a = place_[i];
      if (!gone(a)) {
        staying_.push_back(i);
        continue;
      }
      --members_[row_[a]];
      free_[a] = 0;
    }
    if (Index(staying_.size()) == factor_.size()) return false;
    factor_.set(staying_);
    return true;
  }

  // Call visit(group, change of its sum, largest change in that direction) for the loose groups.
  template <class Visit>
  void for_loose(const FreeSet& free_set, const std::vector<double>& step, Visit visit) const {
    if (loose_.empty()) return;
    const Index size = free_set.size();
    for (Index a = 0; a < size;) {
      const Index g = free_set.group[a];
      double change = 0.0, length = 0.0;
      for (; a < size && free_set.group[a] == g; ++a) {
        change += step[a];
        length += std::abs(step[a]);
      }
      if (loose_[g] && std::abs(change) > NewtonSettings::SUM_ROUNDING * length)
        visit(
            g, change,
            change < 0 ? free_set.slacks.down[g] + change_[g] : free_set.slacks.up[g] - change_[g]);
    }
  }

  // The largest multiple of a step that keeps all sums within their limits.
  double max_multiple(const FreeSet& free_set, const std::vector<double>& step) const {
    double most = INFINITY;
    for_loose(free_set, step, [&](Index, double change, double slack) {
      most = std::min(most, slack / std::abs(change));
    });
    return most;
  }

  void add_to_sums(const FreeSet& free_set) {
    for_loose(free_set, step_, [&](Index g, double change, double) { change_[g] += change; });
  }

  // Fix the sums that move towards a limit and have reached it, up to a `tolerance` relative to
  // their change. Each of them becomes a separate fixed sum. Returns whether there are any.
  bool fix_sums(const FreeSet& free_set, const std::vector<double>& step, double tolerance) {
    bool any = false;
    for_loose(free_set, step, [&](Index g, double, double slack) {
      if (slack > tolerance * std::abs(change_[g])) return;
      any = true;
      loose_[g] = 0;
      const Index row = Index(members_.size());
      members_.push_back(0);
      for (Index a = 0; a < free_set.size(); ++a) {
        if (free_set.group[a] != g) continue;
        members_[row_[a]] -= free_[a];
        members_[row] += free_[a];
        row_[a] = row;
      }
    });
    return any;
  }

  // Solve [H E; E' 0] [d; -lambda] = [-derivative; 0], where the columns of E are the indicators of
  // the fixed sums. False if the system is singular or the solution is not finite.
  bool direction() {
    const Index k = factor_.size(), groups = Index(members_.size());
    const auto place = [&](Index r) { return place_[factor_.coordinates()[r]]; };
    // H^-1 [derivative E]
    solved_.assign((groups + 1) * k, 0.0);
    for (Index r = 0; r < k; ++r) {
      solved_[r] = derivative_[place(r)];
      solved_[(row_[place(r)] + 1) * k + r] = 1.0;
    }
    factor_.solve(solved_.data(), groups + 1);
    // Solve (E' H^-1 E) lambda = E' H^-1 derivative by Gauss-Jordan elimination: there are few
    // groups.
    const Index columns = groups + 1;
    small_.assign(groups * columns, 0.0);
    for (Index g = 0; g < groups; ++g)
      if (members_[g] == 0) small_[g * columns + g] = 1.0;  // an empty sum
    for (Index g = 0; g < columns; ++g)
      for (Index r = 0; r < k; ++r)
        small_[row_[place(r)] * columns + (g + groups) % columns] += solved_[g * k + r];
    for (Index p = 0; p < groups; ++p) {
      const double pivot = small_[p * columns + p];
      if (!(pivot > 0)) return false;
      for (Index g = 0; g < groups; ++g) {
        if (g == p) continue;
        const double ratio = small_[g * columns + p] / pivot;
        add_multiple(-ratio, &small_[p * columns + p], &small_[g * columns + p], columns - p);
      }
    }
    for (Index g = 0; g < groups; ++g)
      add_multiple(-small_[g * columns + groups] / small_[g * columns + g],
                   solved_.data() + (g + 1) * k, solved_.data(), k);
    // Rounding, and the ridge on an ill-conditioned free set, leave the sums slightly different
    // from 0. Distribute the correction in proportion to the inverse of the diagonal.
    sums_.assign(groups, 0.0);
    inverse_diagonal_sums_.assign(groups, 0.0);
    for (Index r = 0; r < k; ++r) {
      sums_[row_[place(r)]] += solved_[r];
      inverse_diagonal_sums_[row_[place(r)]] += factor_.inverse_diagonal(r);
    }
    std::fill(d_.begin(), d_.end(), 0.0);
    bool finite = true;
    for (Index r = 0; r < k; ++r) {
      const Index a = place(r), g = row_[a];
      d_[a] = sums_[g] * (factor_.inverse_diagonal(r) / inverse_diagonal_sums_[g]) - solved_[r];
      finite &= std::isfinite(d_[a]);
    }
    return finite;
  }

  // The ridge mixes a small part of curved directions into the direction of zero curvature. Remove
  // it by Newton steps whose right-hand side is the product of the Hessian with the direction.
  void remove_curved_part() {
    const Index size = Index(d_.size());
    for (int k = 0; k < NewtonSettings::CURVATURE_CORRECTIONS; ++k) {
      clipped_step_ = d_;
      times(block_.data(), clipped_step_.data(), size, derivative_.data());
      if (!direction()) d_.assign(size, 0.0);
      add_multiple(1.0, clipped_step_.data(), d_.data(), size);
    }
  }

  // Whether the direction has zero curvature and a slope per unit above the threshold.
  bool flat_and_steep(double threshold) {
    const Index size = Index(d_.size());
    times(block_.data(), d_.data(), size, response_.data());
    double scale = 0.0, length = 0.0;
    for (Index a = 0; a < size; ++a) {
      scale += std::abs(block_.data()[a * (size + 1)]) * d_[a] * d_[a];
      length += std::abs(d_[a]);
    }
    return dot(d_.data(), response_.data(), size) <= NewtonSettings::ZERO_CURVATURE * scale &&
           -2.0 * dot(d_.data(), derivative_.data(), size) > threshold * length;
  }

  // Set clipped_step_ to a fraction of the direction, clipped to the bounds. For each fixed sum,
  // scale the larger of the total decrease and the total increase down to the other.
  void clip(const FreeSet& free_set, double fraction) {
    const Index size = Index(d_.size());
    decrease_.assign(members_.size(), 0.0);
    increase_.assign(members_.size(), 0.0);
    for (Index a = 0; a < size; ++a) {
      clipped_step_[a] = std::clamp(fraction * d_[a], low_[a], high_[a]);
      (clipped_step_[a] < 0 ? decrease_ : increase_)[row_[a]] += std::abs(clipped_step_[a]);
    }
    for (Index a = 0; a < size; ++a) {
      const double down = decrease_[row_[a]], up = increase_[row_[a]];
      const double own = clipped_step_[a] < 0 ? down : up;
      if (own > 0) clipped_step_[a] *= std::min(down, up) / own;
    }
    if (const double most = max_multiple(free_set, clipped_step_); most < 1)
      for (double& step : clipped_step_) step *= most;
  }

  // The decrease of the objective along a step. `response` receives the change of the derivatives.
  double decrease_along(const std::vector<double>& step, std::vector<double>& response) {
    const Index size = Index(step.size());
    times(block_.data(), step.data(), size, response.data());
    return -dot(step.data(), derivative_.data(), size) -
           0.5 * dot(step.data(), response.data(), size);
  }

  const Real* hessian_;
  Index n_;
  Factor<Real> factor_;
  std::vector<Index> place_;  // the position of each coordinate in the free set
  // In the order of the free set: the Hessian, the current derivatives, and which coordinates can
  // still change.
  Scratch block_;
  std::vector<double> derivative_;
  std::vector<char> free_;
  std::vector<Index> row_;      // the fixed sum of each coordinate
  std::vector<Index> members_;  // the number of coordinates of each fixed sum that can still change
  std::vector<Index> staying_;
  // One entry per group: whether its sum can still change, and its change so far.
  std::vector<char> loose_;
  std::vector<double> change_;
  // Working memory.
  std::vector<double> d_, low_, high_, step_, response_, clipped_step_, clipped_response_,
      decrease_, increase_;
  std::vector<double> solved_, small_, sums_, inverse_diagonal_sums_;
};
