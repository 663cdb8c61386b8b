#include "finish.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "blas.hpp"
#include "problem.hpp"

namespace pairstep {

namespace {

// Solve [H E; E' 0] [d; -lambda] = [-price; 0], E the indicators of the groups. False if H is not
// positive definite even with the largest ridge.
bool solve_equality_newton(const std::vector<double>& block, const std::vector<double>& price,
                           const std::vector<Index>& starts, std::vector<double>& d) {
  int k = int(price.size());
  const int groups = int(starts.size()) - 1;
  double largest = 0.0;
  for (int i = 0; i < k; ++i) largest = std::max(largest, std::abs(block[std::size_t(i) * k + i]));
  char lower = 'L';
  int info = 1, columns = 1 + groups;
  std::vector<double> factor, right;
  // A ridge a little above rounding makes the step on a singular face a proximal one: short where
  // the face is flat, and Newton's elsewhere.
  for (double ridge = 1e-12; ridge < 1e-5 && info != 0; ridge *= 100) {
    factor = block;
    for (int i = 0; i < k; ++i) factor[std::size_t(i) * k + i] += ridge * largest;
    blas.dpotrf(&lower, &k, factor.data(), &k, &info);
  }
  if (info != 0) return false;
  right.assign(std::size_t(k) * columns, 0.0);
  std::copy(price.begin(), price.end(), right.begin());
  for (int g = 0; g < groups; ++g)
    std::fill(right.begin() + std::size_t(g + 1) * k + starts[g],
              right.begin() + std::size_t(g + 1) * k + starts[g + 1], 1.0);
  blas.dpotrs(&lower, &k, &columns, factor.data(), &k, right.data(), &k, &info);
  // lambda solves (E' H^-1 E) lambda = E' H^-1 price, by Gauss steps, for the groups are few.
  std::vector<double> small(std::size_t(groups) * (groups + 1));
  const auto sum_over = [&](int column, int group) {
    double sum = 0.0;
    for (Index i = starts[group]; i < starts[group + 1]; ++i)
      sum += right[std::size_t(column) * k + i];
    return sum;
  };
  for (int g = 0; g < groups; ++g) {
    for (int h = 0; h < groups; ++h) small[g * (groups + 1) + h] = sum_over(h + 1, g);
    small[g * (groups + 1) + groups] = sum_over(0, g);
  }
  for (int p = 0; p < groups; ++p) {
    const double pivot = small[p * (groups + 1) + p];
    if (!(pivot > 0)) return false;
    for (int g = 0; g < groups; ++g) {
      if (g == p) continue;
      const double ratio = small[g * (groups + 1) + p] / pivot;
      for (int h = p; h <= groups; ++h)
        small[g * (groups + 1) + h] -= ratio * small[p * (groups + 1) + h];
    }
  }
  d.resize(k);
  for (int i = 0; i < k; ++i) d[i] = -right[i];
  for (int g = 0; g < groups; ++g) {
    const double lambda = small[g * (groups + 1) + groups] / small[g * (groups + 1) + g];
    for (int i = 0; i < k; ++i) d[i] += lambda * right[std::size_t(g + 1) * k + i];
  }
  // Rounding, and the ridge on an ill-conditioned face, leave a little of the sums: take it out.
  for (int g = 0; g < groups; ++g) {
    double sum = 0.0;
    for (Index i = starts[g]; i < starts[g + 1]; ++i) sum += d[i];
    for (Index i = starts[g]; i < starts[g + 1]; ++i)
      d[i] -= sum / double(starts[g + 1] - starts[g]);
  }
  return std::all_of(d.begin(), d.end(), [](double v) { return std::isfinite(v); });
}

}  // namespace

Convex convex_along(const double* hessian, Index n, const std::vector<Index>& index,
                    const std::vector<Index>& group) {
  // The basis e_i - e_r, r the first account of i's group.
  std::vector<Index> member, first;
  for (std::size_t k = 0, r = 0; k < index.size(); ++k) {
    if (k == 0 || group[k] != group[k - 1]) r = k;
    if (k == r) continue;
    member.push_back(index[k]);
    first.push_back(index[r]);
  }
  int size = int(member.size()), info = 0;
  if (size == 0) return Convex::yes;
  std::vector<double> reduced(std::size_t(size) * size);
  double largest = 0.0;
  for (int a = 0; a < size; ++a) {
    const double *of_member = hessian + member[a] * n, *of_first = hessian + first[a] * n;
    for (int b = 0; b < size; ++b)
      reduced[std::size_t(a) * size + b] =
          of_member[member[b]] - of_member[first[b]] - of_first[member[b]] + of_first[first[b]];
    largest = std::max({largest, std::abs(of_member[member[a]]), std::abs(of_first[first[a]])});
  }
  if (std::all_of(reduced.begin(), reduced.end(), [](double v) { return v == 0; }))
    return Convex::yes;
  char lower = 'L';
  for (const auto& [ridge, verdict] :
       {std::pair{1e-14, Convex::yes}, std::pair{1e-9, Convex::but_for_rounding}}) {
    std::vector<double> factor = reduced;
    for (int a = 0; a < size; ++a) factor[std::size_t(a) * size + a] += ridge * largest;
    blas.dpotrf(&lower, &size, factor.data(), &size, &info);
    if (info == 0) return verdict;
  }
  return Convex::no;
}

double newton_on_face(const double* hessian, Index n, const Face& face, std::vector<double>& delta,
                      double& work) {
  const Index size = face.size();
  delta.assign(size, 0.0);
  std::vector<Index> free(size);  // positions in the face that still move
  for (Index i = 0; i < size; ++i) free[i] = i;
  double total_fall = 0.0;
  for (int round = 0; round < 40; ++round) {
    // A group needs two free accounts to trade.
    std::vector<Index> starts{0};
    {
      std::vector<Index> kept;
      for (std::size_t b = 0; b < free.size();) {
        std::size_t e = b;
        while (e < free.size() && face.group[free[e]] == face.group[free[b]]) ++e;
        if (e - b >= 2) {
          kept.insert(kept.end(), free.begin() + b, free.begin() + e);
          starts.push_back(Index(kept.size()));
        }
        b = e;
      }
      free = std::move(kept);
    }
    const Index k = Index(free.size());
    if (k < 2) break;
    work += cost_of_newton(double(k), 0.0);
    std::vector<double> block(std::size_t(k) * k), price(k), d;
    for (Index r = 0; r < k; ++r) {
      const double* row = hessian + face.index[free[r]] * n;
      for (Index c = 0; c < k; ++c) block[r * k + c] = row[face.index[free[c]]];
    }
    for (Index r = 0; r < k; ++r) {
      price[r] = face.price[free[r]];
      const double* row = hessian + face.index[free[r]] * n;
      for (Index c = 0; c < size; ++c) price[r] += row[face.index[c]] * delta[c];
    }
    if (!solve_equality_newton(block, price, starts, d)) break;

    std::vector<double> low(k), high(k);
    double reach = INFINITY;
    for (Index r = 0; r < k; ++r) {
      low[r] = -face.down_room[free[r]] - delta[free[r]];
      high[r] = face.up_room[free[r]] - delta[free[r]];
      if (d[r] < 0) reach = std::min(reach, low[r] / d[r]);
      if (d[r] > 0) reach = std::min(reach, high[r] / d[r]);
    }
    const auto fall_of = [&](const std::vector<double>& step) {
      std::vector<double> bent(k);
      char lower = 'L';
      int size32 = int(k), one = 1;
      double unit = 1.0, zero = 0.0;
      blas.dsymv(&lower, &size32, &unit, block.data(), &size32, const_cast<double*>(step.data()),
                 &one, &zero, bent.data(), &one);
      double fall = 0.0;
      for (Index r = 0; r < k; ++r) fall -= step[r] * (price[r] + 0.5 * bent[r]);
      return fall;
    };
    std::vector<double> step = d;
    double fall;
    if (reach >= 1.0) {
      fall = fall_of(step);
    } else {
      for (Index r = 0; r < k; ++r) step[r] = std::min(std::max(reach * d[r], low[r]), high[r]);
      fall = reach > 0 ? fall_of(step) : 0.0;
      // The nearest feasible point to the full step, or to a part of it, meets many rooms at once.
      std::vector<double> projected(k), goal(k), zeros(starts.size() - 1, 0.0);
      for (const double part : {1.0, 0.3}) {
        for (Index r = 0; r < k; ++r) goal[r] = part * d[r];
        project(goal.data(), low.data(), high.data(), starts.data(), zeros.data(),
                Index(starts.size()) - 1, projected.data());
        if (const double other = fall_of(projected); other > fall) {
          fall = other;
          step = projected;
        }
      }
    }
    std::vector<Index> still;
    if (!(fall > 0)) {
      // Those without room in their direction stay where they are; the others may still gain.
      for (Index r = 0; r < k; ++r)
        if (!((d[r] < 0 && low[r] >= 0) || (d[r] > 0 && high[r] <= 0))) still.push_back(free[r]);
      if (Index(still.size()) == k) break;
      free = std::move(still);
      continue;
    }
    const bool last = fall < 1e-3 * total_fall;
    total_fall += fall;
    for (Index r = 0; r < k; ++r) {
      const Index i = free[r];
      if (step[r] <= low[r]) delta[i] = -face.down_room[i];
      else if (step[r] >= high[r]) delta[i] = face.up_room[i];
      else delta[i] += step[r];
      if (step[r] > low[r] && step[r] < high[r]) still.push_back(i);
    }
    if (last || Index(still.size()) == k) break;
    free = std::move(still);
  }
  return total_fall;
}

}  // namespace pairstep
