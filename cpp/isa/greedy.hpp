// The greedy gear: choose, step, and update the gradient fused with the search for the next
// extremes. It needs the whole Hessian at hand. Included once per instruction set.

// How many elements ahead to ask for the rows of the Hessian, which come from far.
constexpr Index AHEAD = 384;

// d'Hd for the move d.
template <class Real>
double curvature_along(const Real* hessian, Index n, const Move& move) {
  double sum = 0.0;
  for (std::size_t a = 0; a < move.index.size(); ++a) {
    const Real* row = hessian + move.index[a] * n;
    double inner = 0.0;
    for (std::size_t b = 0; b < move.index.size(); ++b) inner += row[move.index[b]] * move.delta[b];
    sum += move.delta[a] * inner;
  }
  return sum;
}

// The curvature that `step` assumes along the move.
inline double assumed_curvature(const GreedyTask& task, const Move& move, double true_curvature) {
  switch (task.step) {
    case Step::norm: {
      double length = 0.0;
      for (const double d : move.delta) length += std::abs(d);
      return task.one_norm_constant * length * length;
    }
    case Step::lipschitz: {
      // sum L d^2 is eq. (deltaLi). The true curvature may be up to (sum sqrt(L) |d|)^2; taking at
      // least half of that keeps any move, of however many coordinates, from raising f.
      double sum = 0.0, length = 0.0;
      for (std::size_t k = 0; k < move.index.size(); ++k) {
        const double constant = task.choice.lipschitz[move.index[k]];
        sum += constant * move.delta[k] * move.delta[k];
        length += std::sqrt(constant) * std::abs(move.delta[k]);
      }
      const double assumed = std::max(sum, 0.5 * length * length);
      // Twice the curvature assumed: the step would end where it began, on the far side.
      return true_curvature > 1.999999 * assumed ? length * length : assumed;
    }
    default: return true_curvature;
  }
}

inline bool is_interior(const Point& point, Index i) {
  return point.x[i] > point.lower[i] && point.x[i] < point.upper[i];
}

// The accounts that Newton's method is to move: those that can go both ways at one price, and of
// those at a bound or a kink the `newcomers` that gain most by leaving it, at the prices of
// `markets`.
inline Face face_of(const Point& point, const Ledger& ledger, const std::vector<Market>& markets,
                    std::size_t newcomers) {
  struct Leaver {
    double gain;
    Index i;
  };
  const Book book(ledger);
  Face face;
  std::vector<Leaver> leaving;
  for (Index group = 0; group < point.n_groups; ++group) {
    const auto [dearest, cheapest] = markets[group];
    for (Index i = point.starts[group]; i < point.starts[group + 1]; ++i) {
      const double save = book.down_price<double>(i), cost = book.up_price<double>(i);
      if (save == cost) face.index.push_back(i);
      else if (cost < dearest) leaving.push_back({dearest - cost, i});
      else if (save > cheapest) leaving.push_back({save - cheapest, i});
    }
  }
  if (leaving.size() > newcomers) {
    std::nth_element(leaving.begin(), leaving.begin() + newcomers, leaving.end(),
                     [](const Leaver& a, const Leaver& b) { return a.gain > b.gain; });
    leaving.resize(newcomers);
  }
  for (const Leaver& leaver : leaving) face.index.push_back(leaver.i);
  std::sort(face.index.begin(), face.index.end());
  Index group = 0;
  for (const Index i : face.index) {
    while (i >= point.starts[group + 1]) ++group;
    const double save = book.down_price<double>(i), cost = book.up_price<double>(i);
    const bool free = save == cost, up = free || cost < markets[group].dearest;
    face.group.push_back(group);
    face.price.push_back(up ? cost : save);
    face.down_room.push_back(free || !up ? ledger.down_room[i] : 0.0);
    face.up_room.push_back(up ? ledger.up_room[i] : 0.0);
  }
  return face;
}

struct Diagonal : Aligned {
  template <class Real>
  Diagonal(const Real* matrix, Index n) : Aligned(n) {
    for (Index i = 0; i < n; ++i) (*this)[i] = matrix[i * n + i];
  }
};

// Real: of the entries of the Hessian. All arithmetic is in float64.
template <class Real>
class Greedy final : public GreedyRun {
 public:
  Greedy(const GreedyTask& task, const Real* hessian, Index n)
      : task_(task),
        hessian_(hessian),
        choice_(task.choice),
        ledger_(n),
        diagonal_(hessian, n),
        newton_(hessian, diagonal_.data(), n) {}

  // The factor of the finish stays, for it belongs to the Hessian; all else begins again.
  void begin(const Point& point, double value_there) override {
    iterations = 0;
    choice_.turn = task_.choice.turn;
    finish_ = FinishPlan{};
    least_curvature = 0.0;
    history.clear();
    moved_ = 0;
    renew(point, value_there);
  }

  void renew(const Point& point, double value_there) override {
    point_ = point;
    value = value_there;
    ledger_.enter_all(point_);
    ends_.resize(std::size_t(point_.n_groups));
    for (Index group = 0; group < point_.n_groups; ++group)
      ends_[group] = extremes(Book(ledger_).slice(point_.starts[group], point_.starts[group + 1]));
    across_.renew(point_, ledger_);
    double largest = 0.0;
    interior_ = 0;
    for (Index i = 0; i < point_.n; ++i) {
      interior_ += is_interior(point_, i);
      largest = std::max(largest, std::abs(point_.x[i]));
    }
    grain_ = std::numeric_limits<double>::epsilon() * largest;
    cheapest_.assign(std::size_t(point_.n_groups), {-1, 0});
    best_violation_ = INFINITY;
    idle_ = 0;
    seen_ = -1;
  }

  Stop run(double threshold, Index max_iter, Pulse& pulse) override {
    threshold_ = threshold;
    choice_.pulse = &pulse;
    while (true) {
      look(pulse);
      if (violation <= threshold) return Stop::converged;
      if (iterations >= max_iter) return Stop::out_of_iterations;
      if (idle_ > task_.patience) return Stop::no_progress;
      if (after_finish_ || iterations % BEAT_EVERY == 0) {
        pulse.beat();
        if (pulse.stopped()) return Stop::out_of_time;
      }
      after_finish_ = finish_is_due() && finish();
      if (endless_) return Stop::unbounded;
      if (!after_finish_) {
        choose_move();
        if (move_.index.empty() && choice_.rule->guided()) return Stop::no_progress;
        for (std::size_t k = 0; k < std::min<std::size_t>(move_.index.size(), 2); ++k)
          ask_for_row(move_.index[k]);
        const bool changed = !move_.index.empty() && step();
        if (endless_) return Stop::unbounded;
        if (!changed && choice_.rule->guided()) return Stop::no_progress;
      }
      ++iterations;
      ++choice_.turn;
    }
  }

  double tries_forgone() const override {
    const double face = double(std::max(interior_, finish_.newcomers));
    return finish_.work / cost_of_newton(face, double(point_.n));
  }

 private:
  static constexpr Index BEAT_EVERY = 32;

  // Steps that an account may stay the cheapest buyer of its group.
  static constexpr Index TIDY_AFTER = 16;

  // When the finish is to be tried: once the gear has worked a share as long as a try costs, a
  // smaller share each time the finish lowers the objective faster for its work than the gear has
  // since the last try (`fallen`), a larger one each time it does not lower it at all.
  struct FinishPlan {
    double work = 0.0, share = 1.0 / 16, last_cost = 0.0, fallen = 0.0;
    // Accounts that may join its face: more if most of the last ones moved, fewer if most had to be
    // turned back one by one, as they are where the Hessian is ill-conditioned.
    Index newcomers = 8;
  };

  // The violation here; a row of the history for each point, however often the run is paused there.
  void look(Pulse& pulse) {
    violation = 0.0;
    for (const Extremes& e : ends_)
      if (e.open()) violation = std::max(violation, e.gap());
    if (point_.nested()) [[unlikely]] {
      const Extremes e = across_.ends(point_, ends_);
      if (e.open()) violation = std::max(violation, e.gap());
    }
    if (task_.record && seen_ != iterations)
      history.push_back({value, violation, pulse.elapsed(), moved_, interior_});
    seen_ = iterations;
  }

  bool finish_is_due() const {
    return task_.finish && finish_.work > finish_.share * std::max(cost_of_newton(double(interior_),
                                                                                  double(point_.n)),
                                                                   finish_.last_cost);
  }

  // Newton's method on the face. Whether it lowered the objective.
  bool finish() {
    auto& [work, share, last_cost, fallen, newcomers] = finish_;
    const Face face = free_face(std::size_t(newcomers));
    double cost = double(face.size() * point_.n);
    const double fall =
        face.size() < 2 ? 0.0 : newton_.minimise(face, threshold_, delta_, cost, endless_);
    if (endless_) return false;
    const bool fell = fall > ROUNDING * std::abs(value);
    move_.clear();
    Index joined = 0, turned_back = 0;
    for (Index k = 0; k < face.size(); ++k) {
      const bool moves = fall > 0 && delta_[k] != 0.0;
      if (moves) move_.add(face.index[k], delta_[k]);
      const bool is_new = face.down_room[k] == 0 || face.up_room[k] == 0;
      joined += is_new;
      turned_back += is_new && !moves;
    }
    if (move_.index.size() >= 2 && apply()) {
      update();
      value -= fall;
    }
    moved_ = Index(move_.index.size());
    newcomers = 2 * turned_back > joined ? std::max<Index>(newcomers / 2, 2)
                                         : std::min(2 * newcomers, 16 + interior_);
    if (!fell) share = std::min(2.0 * share, 1.0);
    else if (fall * work > fallen * cost) share = std::max(0.25 * share, 1.0 / 256);
    work = fallen = 0.0;
    last_cost = cost;
    return fell && moved_ >= 2;
  }

  // The face, where the sums of some nested groups may change: of those between their limits, and
  // of those at a limit that could gain by leaving it.
  Face free_face(std::size_t newcomers) {
    std::vector<Market> markets;
    for (const Extremes& e : ends_) markets.push_back({e.seller.value, -e.buyer.value});
    if (!point_.nested()) return face_of(point_, ledger_, markets, newcomers);
    const GroupRooms& rooms = across_.rooms();
    const Extremes all = across_.ends(point_, ends_);
    std::vector<char> loose;
    for (Index g = 0; g < point_.n_groups; ++g) {
      const bool leaves_high = rooms.down[g] > 0 && markets[g].dearest > -all.buyer.value,
                 leaves_low = rooms.up[g] > 0 && markets[g].cheapest < all.seller.value;
      loose.push_back((rooms.down[g] > 0 && rooms.up[g] > 0) || leaves_high || leaves_low);
    }
    open_to({all.seller.value, -all.buyer.value}, rooms, markets);
    Face face = face_of(point_, ledger_, markets, newcomers);
    face.loose = std::move(loose);
    face.rooms = rooms;
    return face;
  }

  // Ask the rule, group by group and then across groups that share a total; the best moves.
  void choose_move() {
    move_.clear();
    const Book book(ledger_);
    if (!choice_.rule->guided()) {
      const Book others = point_.nested() ? across_.book() : book;
      const auto between = [&](Index i, Index j) -> const Book& {
        return point_.nested() && group_of(point_, i) != group_of(point_, j) ? others : book;
      };
      return unguided_move(between, point_, choice_, weighted_, move_);
    }
    const Index n = point_.n;
    for (Index group = 0; group < point_.n_groups + point_.nested(); ++group) {
      const bool inside = group < point_.n_groups;
      const Extremes ends = inside ? ends_[group] : across_.ends(point_, ends_);
      if (!ends.open()) continue;
      const Index begin = inside ? point_.starts[group] : 0,
                  end = inside ? point_.starts[group + 1] : n;
      const auto curvature = [&]<class T>(Index i, Index p) INLINED -> T {
        const Real* row = hessian_ + (begin + i) * n + begin;
        __builtin_prefetch(row + p + AHEAD);
        const T both = diagonal_[begin + i] + load<T>(diagonal_.data() + begin + p);
        return maximum(both - 2.0 * load<T>(row + p), FLAT_AGAINST * both);
      };
      const double* lipschitz = choice_.lipschitz ? choice_.lipschitz + begin : nullptr;
      const Book here = inside ? book.slice(begin, end) : across_.book();
      if (inside && task_.tidy && lingers(group)) {
        best_pair_move(here, ends.seller.index, ends.buyer.index,
                       curvature.template operator()<double>(ends.seller.index, ends.buyer.index),
                       1.0, move_);
        for (Index& i : move_.index) i += begin;
        return;
      }
      choose(here, &ends, choice_, lipschitz, curvature, other_);
      if (!inside) across_.shorten(point_, other_);
      if (other_.beats(move_)) {
        for (Index& i : other_.index) i += begin;
        std::swap(move_, other_);
      }
    }
  }

  // Whether the cheapest buyer of a group has stayed so for many steps. It has hardly any room, so
  // that no trade with it gains enough to be chosen; but its price alone makes the violation.
  bool lingers(Index group) {
    Cheapest& known = cheapest_[group];
    const bool same = ends_[group].buyer.index == known.account;
    if (same && iterations - known.since <= TIDY_AFTER) return false;
    known = {ends_[group].buyer.index, iterations};
    return same;
  }

  // Go along the move as far as the step says, and bring gradient and extremes up to date. Whether
  // anything has changed.
  bool step() {
    moved_ = Index(move_.index.size());
    finish_.work += 200.0 + double((moved_ + 2) * point_.n);
    if (moved_ == 2 && task_.step != Step::model) {  // amounts of a pair need no scaling
      move_.delta[0] = std::copysign(1.0, move_.delta[0]);
      move_.delta[1] = -move_.delta[0];
    }
    const Book book(ledger_);
    double slope = 0.0, scale = 0.0, size = 0.0, limit = INFINITY;
    for (Index k = 0; k < moved_; ++k) {
      const Index i = move_.index[k];
      const double delta = move_.delta[k];
      slope -= delta * (delta < 0 ? book.down_price<double>(i) : book.up_price<double>(i));
      limit = std::min(limit,
                       (delta < 0 ? ledger_.down_room[i] : ledger_.up_room[i]) / std::abs(delta));
      scale += std::abs(diagonal_[i]) * delta * delta;
      size += std::abs(delta);
    }
    if (point_.nested()) [[unlikely]]
      limit = std::min(limit, across_.times(point_, move_));
    const double bend = curvature_along(hessian_, point_.n, move_);
    if (bend < -1e-9 * scale && bend < least_curvature * scale) {
      least_curvature = bend / scale;
      curved[0] = move_.index[0];
      curved[1] = move_.index[1];
    }
    double length = 1.0;
    if (task_.step != Step::model) {
      const double flat = FLAT_AGAINST * scale, assumed = assumed_curvature(task_, move_, bend);
      // Nothing holds such a move but rounding, unless its slope is no more than that.
      endless_ = limit == INFINITY && assumed <= flat && 2.0 * slope > threshold_ * size;
      length = std::min(slope / std::max(assumed, flat), limit);
      if (endless_ || !std::isfinite(length)) return false;
      for (double& d : move_.delta) d *= length;
    }
    const double decrease = length * (slope - 0.5 * length * bend);
    const bool changed = apply();
    value -= decrease;
    finish_.fallen += decrease;
    endless_ = !std::isfinite(value);
    if (changed && !endless_) update();
    // The violation of a greedy method is not monotone; what counts is that something still falls.
    const bool progress =
        decrease > ROUNDING * std::abs(value) || violation < 0.999 * best_violation_;
    best_violation_ = std::min(best_violation_, violation);
    idle_ = progress ? 0 : idle_ + 1;
    return changed;
  }

  // Put the move into effect on x and the ledger. False if no coordinate changed. What comes closer
  // to a bound or kink than the rounding of the sums ends on it: it would creep towards it for
  // ever, a part of the way at a time.
  bool apply() {
    bool changed = false;
    for (std::size_t k = 0; k < move_.index.size(); ++k) {
      const Index i = move_.index[k];
      const double delta = move_.delta[k], before = point_.x[i];
      const double floor = floor_at(point_, i, before), ceiling = ceiling_at(point_, i, before);
      interior_ -= is_interior(point_, i);
      // A room that is used up ends exactly on its bound or kink.
      double& x = point_.x[i];
      x = before + delta;
      if (delta < 0 && (-delta >= ledger_.down_room[i] || x <= floor + grain_)) x = floor;
      if (delta > 0 && (delta >= ledger_.up_room[i] || x >= ceiling - grain_)) x = ceiling;
      interior_ += is_interior(point_, i);
      ledger_.enter(point_, i);
      changed |= x != before;
    }
    if (point_.nested()) [[unlikely]]
      across_.follow(point_, ledger_, move_);
    return changed;
  }

  // gradient += sum_k delta_k H[index_k], then the extremes of every group.
  void update() {
    const Index n = point_.n;
    double* gradient = point_.gradient;
    const std::size_t count = move_.index.size();
    for (std::size_t k = 2; k < count; ++k) {
      const Real* row = hessian_ + move_.index[k] * n;
      const double delta = move_.delta[k];
      for (Index p = 0; p < n; ++p) gradient[p] += delta * row[p];
    }
    const Real *first = hessian_ + move_.index[0] * n, *second = hessian_ + move_.index[1] * n;
    const double by_first = move_.delta[0], by_second = move_.delta[1];
    for (Index group = 0; group < point_.n_groups; ++group) {
      const Index begin = point_.starts[group], end = point_.starts[group + 1];
      const Book here(ledger_.slice(begin, end));
      const auto prices = [&]<class T>(Index p) {
        return std::array<T, 2>{here.down_price<T>(p), -here.up_price<T>(p)};
      };
      const auto advanced = [&]<class T>(Index p) INLINED {
        double* at = gradient + begin + p;
        __builtin_prefetch(first + begin + p + AHEAD);
        __builtin_prefetch(second + begin + p + AHEAD);
        store<T>(at, load<T>(at) + by_first * load<T>(first + begin + p) +
                         by_second * load<T>(second + begin + p));
        return prices.template operator()<T>(p);
      };
      const auto found = shared<2>(choice_.crew, end - begin, [&](Index p, Index to) {
        return argmax<2>(to - p, from(p, advanced), from(p, prices));
      });
      ends_[group] = {found[0], found[1], -1};
      if (found[0].index >= 0) ask_for_row(begin + found[0].index);  // it will be read next
    }
  }

  // Ask for the beginning of a row of the Hessian, which a loop that reads it cannot in time.
  void ask_for_row(Index i) const {
    const Real* row = hessian_ + i * point_.n;
    for (Index p = 0; p < std::min(AHEAD, point_.n); p += Index(64 / sizeof(Real)))
      __builtin_prefetch(row + p);
  }

  const GreedyTask task_;
  const Real* hessian_;
  Choice choice_;
  Point point_{};
  OwnLedger ledger_;
  Across across_;
  Diagonal diagonal_;
  Newton<Real> newton_;
  FinishPlan finish_;
  WeightedPairs weighted_;
  std::vector<Extremes> ends_;
  std::vector<double> delta_;
  Move move_, other_;
  Index interior_ = 0, moved_ = 0, idle_ = 0, seen_ = -1;
  double threshold_ = 0.0, grain_ = 0.0, best_violation_ = INFINITY;
  bool after_finish_ = false, endless_ = false;
  struct Cheapest {
    Index account, since;
  };
  std::vector<Cheapest> cheapest_;  // buyer of each group, and since which iteration
};

inline std::unique_ptr<GreedyRun> greedy(const GreedyTask& task, Index n) {
  if (task.hessian32) return std::make_unique<Greedy<float>>(task, task.hessian32, n);
  return std::make_unique<Greedy<double>>(task, task.hessian, n);
}

inline GreedyTask automatic_task(const double* hessian, Index n) {
  GreedyTask task{};
  task.hessian = hessian;
  task.choice.rule = Rules::find<libsvm::Libsvm>();
  task.choice.alpha = 1.0;
  task.step = Step::exact;
  task.patience = 1000 + 10 * n;
  task.finish = true;
  return task;
}

inline std::unique_ptr<GreedyRun> automatic(const double* hessian, Index n) {
  return greedy(automatic_task(hessian, n), n);
}
