// Coordinate descent by a named rule: the loop of isa/greedy.hpp with the rules and step lengths of
// the paper, and without Newton phases. Included once per instruction set.
#pragma once

#include "propose.hpp"
#include "../isa/greedy.hpp"

// See ExactSteps in isa/greedy.hpp.
class NamedSteps {
 public:
  static constexpr bool GUIDED = false, NEWTON_PHASE = false;

  explicit NamedSteps(const DescentOptions& options) : options_(options) {}

  bool guided() const { return options_.choice.rule->guided(); }
  Index patience(Index) const { return options_.patience; }
  bool takes_model_step() const { return options_.step == StepLength::model; }

  double assumed_curvature(const Step& step, double true_curvature) const {
    switch (options_.step) {
      case StepLength::norm: {
        double length = 0.0;
        for (const double d : step.delta) length += std::abs(d);
        return options_.one_norm_constant * length * length;
      }
      case StepLength::lipschitz: {
        // sum L d^2 gives the step of eq. (deltaLi). The true curvature can be up to
        // (sum sqrt(L) |d|)^2. Assuming at least half of that, no step increases the objective,
        // whatever the number of its coordinates.
        double sum = 0.0, length = 0.0;
        for (std::size_t k = 0; k < step.index.size(); ++k) {
          const double constant = options_.choice.lipschitz[step.index[k]];
          sum += constant * step.delta[k] * step.delta[k];
          length += std::sqrt(constant) * std::abs(step.delta[k]);
        }
        const double assumed = std::max(sum, 0.5 * length * length);
        return true_curvature > MAX_CURVATURE_RATIO * assumed ? length * length : assumed;
      }
      default: return true_curvature;
    }
  }

  template <class Curvature>
  void choose(const TableView& here, Index begin, const Extremes& ends, Curvature curvature,
              WorkerGroup* worker_group, InterruptCheck& interrupt, Step& step) const {
    Choice choice = options_.choice;
    if (choice.lipschitz) choice.lipschitz += begin;
    choice.interrupt = &interrupt;
    Rules::visit(*choice.rule, [&]<class R>() {
      if constexpr (R::about.curved) choose_pair(here, ends, curvature, worker_group, step);
      else if constexpr (R::about.guided()) choose_by<R>(View(here), ends, choice, false, step);
    });
  }

  // The step of a rule that does not use the derivatives. `turn` is the number of steps before.
  void choose_unguided(const TableView& inside, const TableView& across, const Point& point,
                       Index turn, Step& step) {
    Choice choice = options_.choice;
    choice.turn = turn;
    unguided_step(View(inside), View(across), point, choice, weighted_, step);
  }

 private:
  // If the true curvature along a step is twice the assumed one, the step ends at the value where
  // it began. Above this ratio a Lipschitz step would hardly decrease the objective.
  static constexpr double MAX_CURVATURE_RATIO = 1.999999;

  DescentOptions options_;
  WeightedPairs weighted_;
};

inline std::unique_ptr<GreedyRun> descent(const GreedyTask& task, const DescentOptions& options,
                                          Index n) {
  return std::make_unique<Greedy<double, NamedSteps>>(task, task.hessian, n, NamedSteps(options));
}
