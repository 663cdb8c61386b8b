// A run of the coordinate-descent solver as Python holds it (`GreedySolve`).
#pragma once

#include <algorithm>
#include <memory>

#include "gil.hpp"
#include "problem.hpp"

namespace pairstep {

// A run of the coordinate-descent solver with the arrays it works on.
class GreedySolve {
 public:
  // `make(n)` returns the solver. What it reads besides the Hessian must outlive this object.
  template <class Make>
  GreedySolve(const Matrix& hessian, const PointArrays& point, const In& gradient, double value,
              Make make)
      : hessian_(hessian),
        point_(point),
        gradient_(point.n()) {  // a copy that starts on a cache line
    const Index n = point.n();
    require(Index(hessian.shape(0)) == n && Index(hessian.shape(1)) == n, "hessian must be n x n");
    solver_ = make(n);
    solver_->begin(at(gradient), value);
  }

  void renew(const In& gradient, double value) { solver_->renew(at(gradient), value); }

  StopReason run(double threshold, Index max_iter, double seconds) {
    return run_native(seconds, {}, [&](InterruptCheck& interrupt, WithoutGil&) {
      return solver_->run(threshold, max_iter, interrupt);
    });
  }

  GreedyRun& solver() { return *solver_; }

  NumpyArray<double> take_history() {
    std::vector<double> rows;
    for (const Record& r : solver_->history)
      rows.insert(rows.end(), {r.value, r.violation, double(r.moved), double(r.interior), r.time});
    const std::size_t count = solver_->history.size();
    solver_->history.clear();
    return to_numpy(std::move(rows), {count, 5});
  }

 private:
  Point at(const In& gradient) {
    require(Index(gradient.shape(0)) == point_.n(), "gradient must have the length of x");
    std::copy_n(gradient.data(), point_.n(), gradient_.data());
    return point_.with(gradient_.data());
  }

  Matrix hessian_;
  PointArrays point_;
  Aligned gradient_;
  std::unique_ptr<GreedyRun> solver_;
};

}  // namespace pairstep
