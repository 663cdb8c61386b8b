#include "probability.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <utility>

namespace pairstep {

namespace {

// Draw a uniformly distributed integer below `range` (Lemire 2019).
std::uint32_t draw_below(std::mt19937& generator, std::uint32_t range) {
  const std::uint32_t n_rejected = -range % range;  // 2^32 modulo range
  std::uint64_t product;
  do product = std::uint64_t(std::uint32_t(generator())) * range;
  while (std::uint32_t(product) < n_rejected);
  return std::uint32_t(product >> 32);
}

// p = 1 / (1 + exp(u)) without overflow, and 1 - p without cancellation.
struct Probabilities {
  double positive, negative;
};

Probabilities probabilities_at(double u) {
  const double small = std::exp(-std::abs(u)), larger = 1 / (1 + small);
  return u >= 0 ? Probabilities{small * larger, larger} : Probabilities{larger, small * larger};
}

// LIBSVM's values (sigmoid_train in svm.cpp).
struct SigmoidSettings {
  static constexpr int max_iterations = 100;
  static constexpr double gradient_tolerance = 1e-5;   // absolute, of both derivatives
  static constexpr double min_step = 1e-10;            // of the line search, in Newton steps
  static constexpr double sufficient_decrease = 1e-4;  // Armijo's constant
  static constexpr double ridge = 1e-12;               // keeps the Hessian positive definite
};

// LIBSVM's values (multiclass_probability and svm_predict_probability in svm.cpp).
struct CouplingSettings {
  static constexpr double min_pair_probability = 1e-7;  // the largest one is 1 minus this
  static constexpr std::size_t min_sweep_limit = 100;   // the limit is max(this, number of classes)
  static constexpr double tolerance = 0.005;  // for entries of Qp, times the number of classes
};

// Rows per job of the thread pool. Smaller jobs would spend a larger share of their time on being
// started; larger ones would balance the load worse.
constexpr Index ROWS_PER_JOB = 256;

// The negative log-likelihood of a sigmoid with its derivatives.
struct Likelihood {
  double value = 0.0, by_slope = 0.0, by_offset = 0.0;
  double slope_slope = SigmoidSettings::ridge, offset_offset = SigmoidSettings::ridge,
         slope_offset = 0.0;

  void add(const double* decisions, Index n, double target, const Sigmoid& sigmoid) {
    for (Index i = 0; i < n; ++i) {
      const double d = decisions[i], u = sigmoid.slope * d + sigmoid.offset;
      const Probabilities p = probabilities_at(u);
      const double error = target - p.positive, curvature = p.positive * p.negative;
      value += target * u - std::min(u, 0.0) - std::log(std::max(p.positive, p.negative));
      by_slope += d * error;
      by_offset += error;
      slope_slope += d * d * curvature;
      slope_offset += d * curvature;
      offset_offset += curvature;
    }
  }
};

// Finds the p on the simplex that minimizes sum_ij (r_ji p_i - r_ij p_j)^2 = p'Qp, where r_ij is
// the probability of class i given that the class is i or j. Coordinate descent, until all entries
// of Qp are equal.
class Coupling {
 public:
  explicit Coupling(Index classes) : k_(std::size_t(classes)), r_(k_ * k_), q_(k_ * k_), qp_(k_) {}

  void run(const double* decisions, const Sigmoid* sigmoids, double* p) {
    constexpr double least = CouplingSettings::min_pair_probability;
    for (std::size_t i = 0; i < k_; ++i)
      for (std::size_t j = i + 1; j < k_; ++j, ++decisions, ++sigmoids) {
        const double probability =
            probabilities_at(sigmoids->slope * *decisions + sigmoids->offset).positive;
        r_[i * k_ + j] = std::clamp(probability, least, 1 - least);
        r_[j * k_ + i] = 1 - r_[i * k_ + j];
      }
    if (k_ == 2) {  // the minimum has a closed form
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
    const std::size_t max_sweeps = std::max(CouplingSettings::min_sweep_limit, k_);
    for (std::size_t sweep = 0; sweep < max_sweeps && !is_optimal(p); ++sweep)
      for (std::size_t i = 0; i < k_; ++i) improve(i, p);
  }

 private:
  // Update Qp and p'Qp; return whether all entries of Qp are equal within the tolerance.
  bool is_optimal(const double* p) {
    pqp_ = 0.0;
    for (std::size_t i = 0; i < k_; ++i) {
      qp_[i] = std::inner_product(p, p + k_, &q_[i * k_], 0.0);
      pqp_ += p[i] * qp_[i];
    }
    return std::all_of(qp_.begin(), qp_.end(), [&](double entry) {
      return std::abs(entry - pqp_) < CouplingSettings::tolerance / double(k_);
    });
  }

  // Minimize over p_i while the other entries keep their proportions.
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

// Newton's method with a backtracking line search (Lin, Lin and Weng 2007).
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
  for (int k = 0; k < SigmoidSettings::max_iterations; ++k) {
    if (std::abs(here.by_slope) < SigmoidSettings::gradient_tolerance &&
        std::abs(here.by_offset) < SigmoidSettings::gradient_tolerance)
      break;
    const double det =
        here.slope_slope * here.offset_offset - here.slope_offset * here.slope_offset;
    const Sigmoid direction{
        -(here.offset_offset * here.by_slope - here.slope_offset * here.by_offset) / det,
        -(here.slope_slope * here.by_offset - here.slope_offset * here.by_slope) / det};
    const double slope_along = here.by_slope * direction.slope + here.by_offset * direction.offset;
    double length = 1.0;
    while (length >= SigmoidSettings::min_step) {
      const Sigmoid next{best.slope + length * direction.slope,
                         best.offset + length * direction.offset};
      const Likelihood candidate = at(next);
      if (candidate.value <
          here.value + SigmoidSettings::sufficient_decrease * length * slope_along) {
        best = next;
        here = candidate;
        break;
      }
      length /= 2;
    }
    if (length < SigmoidSettings::min_step) break;
  }
  return best;
}

void couple(const double* decisions, Index rows, const Sigmoid* sigmoids, Index classes,
            double* probabilities, ThreadPool& pool) {
  const Index pairs = classes * (classes - 1) / 2;
  pool.run((rows + ROWS_PER_JOB - 1) / ROWS_PER_JOB, [&](Index job) {
    Coupling coupling(classes);
    for (Index row = job * ROWS_PER_JOB; row < std::min(rows, (job + 1) * ROWS_PER_JOB); ++row)
      coupling.run(decisions + row * pairs, sigmoids, probabilities + row * classes);
  });
}

}  // namespace pairstep
