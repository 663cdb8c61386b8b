// Bindings for the rules of the paper and coordinate descent by a named rule.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "../paper/paper.hpp"
#include "gil.hpp"
#include "greedy_solve.hpp"
#include "problem.hpp"

using namespace pairstep;
using namespace pairstep::paper;
using namespace nb::literals;

namespace {

// Return the rule with this code.
const Rule& rule_of(int code) {
  const auto rules = functions().rules;
  require(code >= 0 && code < int(rules.size()), "rule: unknown code");
  return rules[std::size_t(code)];
}

// A rule and its inputs (`Choice`). The generator is the capsule of a NumPy bit generator, or None.
class ChoiceArrays {
 public:
  ChoiceArrays(int rule, double alpha, std::optional<In> lipschitz, nb::object generator)
      : rule_(rule_of(rule)), alpha_(alpha), lipschitz_(lipschitz), generator_(generator) {
    require(!rule_.draws || !generator.is_none(), "generator: this rule needs a random generator");
    require(!rule_.weighted || lipschitz,
            "lipschitz: this rule needs coordinate-wise Lipschitz constants");
  }

  bool has_lipschitz() const { return lipschitz_.has_value(); }

  Choice of(Index n, Index turn) const {
    require(!lipschitz_ || Index(lipschitz_->shape(0)) == n, "lipschitz must have the length of x");
    require(turn >= 0, "turn must not be negative");
    BitGenerator* random = nullptr;
    if (!generator_.is_none()) {
      random = static_cast<BitGenerator*>(PyCapsule_GetPointer(generator_.ptr(), "BitGenerator"));
      if (!random) throw nb::python_error();
    }
    return {.rule = &rule_,
            .alpha = alpha_,
            .lipschitz = data_or_null(lipschitz_),
            .random = random,
            .turn = turn};
  }

 private:
  const Rule& rule_;
  double alpha_;
  std::optional<In> lipschitz_;
  nb::object generator_;
};

using RuleProperties = nb::typed<nb::dict, nb::str, nb::any>;

std::vector<std::tuple<std::vector<std::string>, RuleProperties>> rules() {
  std::vector<std::tuple<std::vector<std::string>, RuleProperties>> result;
  for (const Rule& rule : functions().rules) {
    nb::dict about;
    about["code"] = rule.code;
    about["weighted"] = rule.weighted;
    about["uses_alpha"] = rule.uses_alpha;
    about["one_norm"] = rule.one_norm;
    about["curved"] = rule.curved;
    about["draws"] = rule.draws;
    about["in_turn"] = rule.in_turn;
    std::vector<std::string> names = {rule.name};
    if (rule.alias) names.emplace_back(rule.alias);
    result.emplace_back(std::move(names), about);
  }
  return result;
}

auto propose(const PointArrays& point, const In& gradient, const ChoiceArrays& choice, Index turn) {
  const Point at = point.with(gradient);
  Choice chosen = choice.of(at.n, turn);
  Step step;
  Index suspect = -1;
  run_native([&](InterruptCheck& interrupt, WithoutGil&) {
    chosen.interrupt = &interrupt;
    suspect = functions().propose(at, chosen, step);
  });
  return std::make_tuple(to_numpy(std::move(step.index)), to_numpy(std::move(step.delta)),
                         step.decrease, suspect);
}

std::unique_ptr<GreedySolve> coordinate_descent(const Matrix& hessian, const PointArrays& point,
                                                const In& gradient, double value,
                                                const ChoiceArrays& choice, StepLength step,
                                                double one_norm_constant, Index patience,
                                                bool record) {
  require(step != StepLength::lipschitz || choice.has_lipschitz(),
          "step=lipschitz needs a choice with lipschitz");
  return std::make_unique<GreedySolve>(hessian, point, gradient, value, [&](Index n) {
    return functions().descent({.hessian = hessian.data(), .record = record},
                               {.choice = choice.of(n, 0),
                                .step = step,
                                .one_norm_constant = one_norm_constant,
                                .patience = patience},
                               n);
  });
}

double bare_pass(const std::vector<In>& arrays) {
  std::vector<const double*> pointers;
  for (const In& array : arrays) {
    require(array.shape(0) == arrays[0].shape(0), "arrays must have the same length");
    pointers.push_back(array.data());
  }
  require(!arrays.empty(), "arrays must not be empty");
  return functions().bare_pass(pointers.data(), Index(pointers.size()), Index(arrays[0].shape(0)));
}

double bare_updates(const Matrix& hessian, const InOut& gradient, const Indices& indices) {
  const Index n = Index(gradient.shape(0));
  require(Index(hessian.shape(0)) == n && Index(hessian.shape(1)) == n, "hessian must be n x n");
  constexpr double STEP_AMOUNT = 1e-9;  // small, so that the gradient stays finite
  double sum = 0.0;
  for (std::size_t k = 0; k + 1 < indices.shape(0); k += 2) {
    require(indices(k) >= 0 && indices(k) < n && indices(k + 1) >= 0 && indices(k + 1) < n,
            "index must be in range(n)");
    sum += functions().bare_update(hessian.data(), gradient.data(), n, indices(k), indices(k + 1),
                                   STEP_AMOUNT);
  }
  return sum;
}

}  // namespace

void register_paper(nb::module_& m) {
  nb::enum_<StepLength>(m, "StepLength", "Curvature used to compute the length of a step.")
      .value("model", StepLength::model, "The step is taken as the rule proposes it.")
      .value("norm", StepLength::norm, "A multiple of the squared 1-norm.")
      .value("lipschitz", StepLength::lipschitz, "The coordinate-wise Lipschitz constants.")
      .value("exact", StepLength::exact, "The Hessian: an exact line search for a quadratic.");
  nb::class_<ChoiceArrays>(m, "Choice", "A selection rule and its inputs.")
      .def(nb::init<int, double, std::optional<In>, nb::object>(), "rule"_a, "alpha"_a,
           "lipschitz"_a.none(), "generator"_a.none());
  m.def("rules", &rules, "Return all rules as (names, properties).");
  m.def(
      "propose", &propose, "point"_a, "gradient"_a, "choice"_a, "turn"_a,
      "Return the step that a rule chooses: (indices, delta, decrease, suspect), where suspect is "
      "the index of a coordinate that is outside its bounds or not finite, or -1.");
  m.def("coordinate_descent", &coordinate_descent, "hessian"_a, "point"_a, "gradient"_a, "value"_a,
        "choice"_a, nb::kw_only(), "step"_a, "one_norm_constant"_a, "patience"_a, "record"_a,
        nb::keep_alive<0, 5>(),
        "Return a run of coordinate descent by a named rule; x of its point changes in place.");
  m.def("bare_pass", &bare_pass, "arrays"_a,
        "Read every element once. Its time is a lower bound on the time of a rule.");
  m.def("bare_updates", &bare_updates, "hessian"_a, "gradient"_a.noconvert(), "indices"_a,
        "Update the gradient with pairs of rows. Its time is a lower bound on the time of the "
        "coordinate-descent solver.");
}
