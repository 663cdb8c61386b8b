#include "probability.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <utility>

namespace pairstep {

namespace {

// A number below `range`, each as likely as the others (Lemire 2019).
std::uint32_t draw_below(std::mt19937& generator, std::uint32_t range) {
  const std::uint32_t odd_ones = -range % range;  // 2^32 modulo range
  std::uint64_t product;
  do product = std::uint64_t(std::uint32_t(generator())) * range;
  while (std::uint32_t(product) < odd_ones);
  return std::uint32_t(product >> 32);
}

// 1 / (1 + exp(u)) without overflow, and what it lacks of 1 without cancellation.
struct Odds {
  double yes, no;
};

Odds odds(double u) {
  const double small = std::exp(-std::abs(u)), share = 1 / (1 + small);
  return u >= 0 ? Odds{small * share, share} : Odds{share, small * share};
}

// The negative log-likelihood of a sigmoid with its derivatives.
struct Likelihood {
  double value = 0.0, by_slope = 0.0, by_offset = 0.0;
  double slope_slope = RIDGE, offset_offset = RIDGE, slope_offset = 0.0;

  static constexpr double RIDGE = 1e-12;  // keeps the Hessian positive definite

  void add(const double* decisions, Index n, double target, const Sigmoid& sigmoid) {
    for (Index i = 0; i < n; ++i) {
      const double d = decisions[i], u = sigmoid.slope * d + sigmoid.offset;
      const Odds p = odds(u);
      const double miss = target - p.yes, curvature = p.yes * p.no;
      value += target * u - std::min(u, 0.0) - std::log(std::max(p.yes, p.no));
      by_slope += d * miss;
      by_offset += miss;
      slope_slope += d * d * curvature;
      slope_offset += d * curvature;
      offset_offset += curvature;
    }
  }
};

constexpr int MOST_STEPS = 100;
constexpr double FLAT = 1e-5, SHORTEST = 1e-10, SUFFICIENT = 1e-4;

// Probabilities of pairs stay away from 0 and 1 by this.
constexpr double LEAST = 1e-7;

// Rows at once for a thread.
constexpr Index CHUNK = 256;

// The p on the simplex that minimises sum_ij (r_ji p_i - r_ij p_j)^2, with r_ij the probability of
// i where it is i or j: p'Qp, coordinate by coordinate, until Qp is the same everywhere.
class Coupling {
 public:
  explicit Coupling(Index classes) : k_(std::size_t(classes)), r_(k_ * k_), q_(k_ * k_), qp_(k_) {}

  void run(const double* decisions, const Sigmoid* sigmoids, double* p) {
    for (std::size_t i = 0; i < k_; ++i)
      for (std::size_t j = i + 1; j < k_; ++j, ++decisions, ++sigmoids) {
        const double yes = odds(sigmoids->slope * *decisions + sigmoids->offset).yes;
        r_[i * k_ + j] = std::clamp(yes, LEAST, 1 - LEAST);
        r_[j * k_ + i] = 1 - r_[i * k_ + j];
      }
    if (k_ == 2) {  // the minimum is known
      p[0] = r_[1];
      p[1] = r_[2];
      return;
    }
    for (std::size_t i = 0; i < k_; ++i) {
      double& diagonal = q_[i * k_ + i] = 0.0;
      for (std::size_t j = 0; j < k_; ++j) {
        if (j == i) continue;
        diagonal += r_[j * k_ + i] * r_[j * k_ + i];
        q_[i * k_ + j] = -r_[j * k_ + i] * r_[i * k_ + j];
      }
    }
    std::fill_n(p, k_, 1.0 / double(k_));
    const std::size_t most = std::max<std::size_t>(100, k_);
    for (std::size_t sweep = 0; sweep < most && !balanced(p); ++sweep)
      for (std::size_t i = 0; i < k_; ++i) improve(i, p);
  }

 private:
  bool balanced(const double* p) {
    pqp_ = 0.0;
    for (std::size_t i = 0; i < k_; ++i) {
      qp_[i] = std::inner_product(p, p + k_, &q_[i * k_], 0.0);
      pqp_ += p[i] * qp_[i];
    }
    return std::all_of(qp_.begin(), qp_.end(),
                       [&](double at) { return std::abs(at - pqp_) < 0.005 / double(k_); });
  }

  // The best p_i, the others in their proportions.
  void improve(std::size_t i, double* p) {
    const double* row = &q_[i * k_];
    const double change = (pqp_ - qp_[i]) / row[i], sum = 1 + change;
    p[i] += change;
    pqp_ = (pqp_ + change * (change * row[i] + 2 * qp_[i])) / sum / sum;
    for (std::size_t j = 0; j < k_; ++j) {
      qp_[j] = (qp_[j] + change * row[j]) / sum;
      p[j] /= sum;
    }
  }

  std::size_t k_;
  std::vector<double> r_, q_, qp_;
  double pqp_ = 0.0;
};

}  // namespace

std::vector<Index> shuffled(Index n, std::uint32_t seed) {
  std::mt19937 generator(seed);
  std::vector<Index> order(std::size_t(n), 0);
  std::iota(order.begin(), order.end(), 0);
  for (Index i = 0; i < n; ++i)
    std::swap(order[i], order[i + Index(draw_below(generator, std::uint32_t(n - i)))]);
  return order;
}

// Newton's method with a line search.
Sigmoid fit_sigmoid(const double* decisions, Index n, Index positives) {
  const Index negatives = n - positives;
  const double high = (double(positives) + 1) / (double(positives) + 2),
               low = 1 / (double(negatives) + 2);
  const auto at = [&](const Sigmoid& sigmoid) {
    Likelihood all;
    all.add(decisions, positives, high, sigmoid);
    all.add(decisions + positives, negatives, low, sigmoid);
    return all;
  };
  Sigmoid best{0.0, std::log((double(negatives) + 1) / (double(positives) + 1))};
  Likelihood here = at(best);
  for (int step = 0; step < MOST_STEPS; ++step) {
    if (std::abs(here.by_slope) < FLAT && std::abs(here.by_offset) < FLAT) break;
    const double det =
        here.slope_slope * here.offset_offset - here.slope_offset * here.slope_offset;
    const Sigmoid direction{
        -(here.offset_offset * here.by_slope - here.slope_offset * here.by_offset) / det,
        -(here.slope_slope * here.by_offset - here.slope_offset * here.by_slope) / det};
    const double fall = here.by_slope * direction.slope + here.by_offset * direction.offset;
    double length = 1.0;
    while (length >= SHORTEST) {
      const Sigmoid next{best.slope + length * direction.slope,
                         best.offset + length * direction.offset};
      const Likelihood there = at(next);
      if (there.value < here.value + SUFFICIENT * length * fall) {
        best = next;
        here = there;
        break;
      }
      length /= 2;
    }
    if (length < SHORTEST) break;
  }
  return best;
}

void couple(const double* decisions, Index rows, const Sigmoid* sigmoids, Index classes,
            double* probabilities, Team& team) {
  const Index pairs = classes * (classes - 1) / 2;
  team.run((rows + CHUNK - 1) / CHUNK, [&](Index chunk) {
    Coupling coupling(classes);
    for (Index row = chunk * CHUNK; row < std::min(rows, (chunk + 1) * CHUNK); ++row)
      coupling.run(decisions + row * pairs, sigmoids, probabilities + row * classes);
  });
}

}  // namespace pairstep
