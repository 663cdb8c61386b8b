// The greedy gear: choose, step, and update the gradient fused with the search for the next
// extremes. It needs the whole Hessian at hand. Included once per instruction set.

// How many elements ahead to ask for the rows of the Hessian, which come from far.
constexpr Index AHEAD = 384;

// gradient += sum_k delta_k H[index_k], then the extremes of every group.
inline void update(const double* hessian, const Point& point, const Ledger& ledger,
                   const Move& move, std::vector<Extremes>& ends) {
  const Index n = point.n;
  double* gradient = point.gradient;
  const std::size_t count = move.index.size();
  for (std::size_t k = 2; k < count; ++k) {
    const double* row = hessian + move.index[k] * n;
    const double delta = move.delta[k];
    for (Index p = 0; p < n; ++p) gradient[p] += delta * row[p];
  }
  const double *first = hessian + move.index[0] * n, *second = hessian + move.index[1] * n;
  const double by_first = move.delta[0], by_second = move.delta[1];
  for (Index group = 0; group < point.n_groups; ++group) {
    const Index begin = point.starts[group], end = point.starts[group + 1];
    const Ledger here = ledger.slice(begin, end);
    const auto prices = [&]<class T>(Index p) {
      return std::array<T, 2>{here.down_price<T>(p), -here.up_price<T>(p)};
    };
    const auto found = argmax<2>(
        end - begin,
        [&]<class T>(Index p) {
          double* at = gradient + begin + p;
          __builtin_prefetch(first + begin + p + AHEAD);
          __builtin_prefetch(second + begin + p + AHEAD);
          store<T>(at, load<T>(at) + by_first * load<T>(first + begin + p) +
                           by_second * load<T>(second + begin + p));
          return prices.template operator()<T>(p);
        },
        prices);
    ends[group] = {found[0], found[1], -1};
  }
}

// d'Hd for the move d.
inline double curvature_along(const double* hessian, Index n, const Move& move) {
  double sum = 0.0;
  for (std::size_t a = 0; a < move.index.size(); ++a) {
    const double* row = hessian + move.index[a] * n;
    double inner = 0.0;
    for (std::size_t b = 0; b < move.index.size(); ++b) inner += row[move.index[b]] * move.delta[b];
    sum += move.delta[a] * inner;
  }
  return sum;
}

// The curvature that `step` assumes along the move.
inline double assumed_curvature(const Greedy& task, const Move& move, double true_curvature) {
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

// Put the move into effect on x and the ledger. False if no coordinate changed.
// What comes closer to a bound or kink than `grain`, the rounding of the sums, ends on it: it would
// creep towards it for ever, a part of the way at a time.
inline bool apply(Point& point, Ledger& ledger, const Move& move, double grain, Index& interior) {
  bool changed = false;
  for (std::size_t k = 0; k < move.index.size(); ++k) {
    const Index i = move.index[k];
    const double delta = move.delta[k], before = point.x[i];
    const double floor = Ledger::floor_of(point, i), ceiling = Ledger::ceiling_of(point, i);
    interior -= is_interior(point, i);
    // A room that is used up ends exactly on its bound or kink.
    double& x = point.x[i];
    x = before + delta;
    if (delta < 0 && (-delta >= ledger.down_room_[i] || x <= floor + grain)) x = floor;
    if (delta > 0 && (delta >= ledger.up_room_[i] || x >= ceiling - grain)) x = ceiling;
    interior += is_interior(point, i);
    ledger.price_account(point, i);
    changed |= point.x[i] != before;
  }
  return changed;
}

// The accounts that Newton's method is to move: those that can go both ways at one price, and of
// those at a bound or a kink the `newcomers` that gain most by leaving it.
inline Face face_of(const Point& point, const Ledger& ledger, const std::vector<Extremes>& ends,
                    std::size_t newcomers) {
  struct Leaver {
    double gain;
    Index i;
  };
  Face face;
  std::vector<Leaver> leaving;
  for (Index group = 0; group < point.n_groups; ++group) {
    const double dearest = ends[group].seller.value, cheapest = -ends[group].buyer.value;
    for (Index i = point.starts[group]; i < point.starts[group + 1]; ++i) {
      const double save = ledger.down_price<double>(i), cost = ledger.up_price<double>(i);
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
    const double save = ledger.down_price<double>(i), cost = ledger.up_price<double>(i);
    const bool free = save == cost, up = free || cost < ends[group].seller.value;
    face.group.push_back(group);
    face.price.push_back(up ? cost : save);
    face.down_room.push_back(free || !up ? ledger.down_room_[i] : 0.0);
    face.up_room.push_back(up ? ledger.up_room_[i] : 0.0);
  }
  return face;
}

struct Diagonal : Aligned {
  Diagonal(const double* matrix, Index n) : Aligned(n) {
    for (Index i = 0; i < n; ++i) (*this)[i] = matrix[i * n + i];
  }
};

// What the gear works with besides the point: memory, and a factor, which serve for any number of
// problems with one Hessian.
struct Bench {
  OwnLedger ledger;
  Diagonal diagonal;
  Newton newton;
  std::vector<Extremes> ends;
  std::vector<double> delta;
  Move move, other;

  Bench(const double* hessian, Index n)
      : ledger(n), diagonal(hessian, n), newton(hessian, diagonal.data(), n) {}
};

inline Stop greedy_on(Point& point, Greedy& task, Bench& bench) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  const auto elapsed = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };

  const Index n = point.n;
  const double* hessian = task.hessian;
  Choice choice = task.choice;
  auto& [ledger, diagonal, newton, ends, delta, move, other] = bench;
  ledger.price(point);
  WeightedPairs weighted;
  ends.resize(point.n_groups);
  for (Index group = 0; group < point.n_groups; ++group)
    ends[group] = extremes(ledger.slice(point.starts[group], point.starts[group + 1]));
  Index interior = 0;
  double largest = 0.0;
  for (Index i = 0; i < n; ++i) {
    interior += is_interior(point, i);
    largest = std::max(largest, std::abs(point.x[i]));
  }
  const double grain = std::numeric_limits<double>::epsilon() * largest;

  double best_violation = INFINITY;
  Index idle = 0, moved = 0;
  // The finish is tried once the gear has worked a share as long as a try costs: a smaller one each
  // time the finish lowers the objective faster for its work than the gear has since the last try
  // (`fallen`), a larger one each time it does not lower it at all.
  double work = 0.0, share = 1.0 / 16, last_cost = 0.0, fallen = 0.0;
  // Accounts that may join its face: more if most of the last ones moved, fewer if most had to be
  // turned back one by one, as they are where the Hessian is ill-conditioned.
  Index newcomers = 8;
  const auto finish = [&] {
    const Face face = face_of(point, ledger, ends, newcomers);
    double cost = double(face.size() * n);
    const double fall = face.size() < 2 ? 0.0 : newton.minimise(face, delta, cost);
    const bool fell = fall > 1e-16 * std::abs(task.value);
    move.clear();
    Index joined = 0, turned_back = 0;
    for (Index k = 0; k < face.size(); ++k) {
      const bool moves = fall > 0 && delta[k] != 0.0;
      if (moves) move.add(face.index[k], delta[k]);
      const bool is_new = face.down_room[k] == 0 || face.up_room[k] == 0;
      joined += is_new;
      turned_back += is_new && !moves;
    }
    if (move.index.size() >= 2 && apply(point, ledger, move, grain, interior)) {
      update(hessian, point, ledger, move, ends);
      task.value -= fall;
    }
    moved = Index(move.index.size());
    newcomers = 2 * turned_back > joined ? std::max<Index>(newcomers / 2, 2)
                                         : std::min(2 * newcomers, 16 + interior);
    if (!fell) share = std::min(2.0 * share, 1.0);
    else if (fall * work > fallen * cost) share = std::max(0.25 * share, 1.0 / 256);
    work = fallen = 0.0;
    last_cost = cost;
    return fell && moved >= 2;
  };
  const Index first = task.iterations;
  bool finished = false;
  for (;; ++task.iterations, ++choice.turn) {
    task.violation = 0.0;
    for (const Extremes& e : ends)
      if (e.open()) task.violation = std::max(task.violation, e.gap());
    if (task.record)
      task.history.push_back({task.value, task.violation, elapsed(), moved, interior});
    if (task.violation <= task.threshold) return Stop::converged;
    if (task.iterations >= task.max_iter) return Stop::out_of_iterations;
    if (idle > task.patience) return Stop::no_progress;
    if (task.iterations > first && (finished || task.iterations % 32 == 0) &&
        (elapsed() > task.seconds || (task.stop && *task.stop)))
      return Stop::out_of_time;
    finished = task.finish &&
               work > share * std::max(cost_of_newton(double(interior), double(n)), last_cost) &&
               finish();
    if (finished) continue;

    if (!choice.rule->guided()) {
      unguided_move(static_cast<const Ledger&>(ledger), point, choice, weighted, move);
    } else {
      move.clear();
      for (Index group = 0; group < point.n_groups; ++group) {
        if (!ends[group].open()) continue;
        const Index begin = point.starts[group], end = point.starts[group + 1];
        const auto curvature = [&]<class T>(Index i, Index p) -> T {
          const double* row = hessian + (begin + i) * n + begin;
          __builtin_prefetch(row + p + AHEAD);
          return diagonal[begin + i] + load<T>(diagonal.data() + begin + p) -
                 2.0 * load<T>(row + p);
        };
        const double* lipschitz = choice.lipschitz ? choice.lipschitz + begin : nullptr;
        choose(ledger.slice(begin, end), &ends[group], choice, lipschitz, curvature, other);
        if (other.beats(move)) {
          for (Index& i : other.index) i += begin;
          std::swap(move, other);
        }
      }
      if (move.index.empty()) return Stop::no_progress;
    }

    moved = Index(move.index.size());
    work += 200.0 + double((moved + 2) * n);
    double decrease = 0.0;
    bool changed = false;
    if (moved > 0) {
      if (moved == 2 && task.step != Step::model) {  // amounts of a pair need no scaling
        move.delta[0] = std::copysign(1.0, move.delta[0]);
        move.delta[1] = -move.delta[0];
      }
      double slope = 0.0, scale = 0.0, limit = INFINITY;
      for (Index k = 0; k < moved; ++k) {
        const Index i = move.index[k];
        const double delta = move.delta[k];
        slope -= delta * (delta < 0 ? ledger.down_price<double>(i) : ledger.up_price<double>(i));
        limit = std::min(limit,
                         (delta < 0 ? ledger.down_room_[i] : ledger.up_room_[i]) / std::abs(delta));
        scale += std::abs(diagonal[i]) * delta * delta;
      }
      const double bend = curvature_along(hessian, n, move);
      if (bend < -1e-9 * scale && bend < task.least_curvature * scale) {
        task.least_curvature = bend / scale;
        task.curved[0] = move.index[0];
        task.curved[1] = move.index[1];
      }
      double length = 1.0;
      if (task.step != Step::model) {
        const double assumed = assumed_curvature(task, move, bend);
        length = assumed > 0 ? std::min(slope / assumed, limit) : limit;
        if (!(length < 1e150)) return Stop::unbounded;
        for (double& d : move.delta) d *= length;
      }
      decrease = length * (slope - 0.5 * length * bend);
      changed = apply(point, ledger, move, grain, interior);
      task.value -= decrease;
      fallen += decrease;
      if (!(std::abs(task.value) < 1e300)) return Stop::unbounded;
      if (changed) update(hessian, point, ledger, move, ends);
    }
    if (!changed && choice.rule->guided()) return Stop::no_progress;
    // The violation of a greedy method is not monotone; what counts is that something still falls.
    const bool progress =
        decrease > 1e-16 * std::abs(task.value) || task.violation < 0.999 * best_violation;
    best_violation = std::min(best_violation, task.violation);
    idle = progress ? 0 : idle + 1;
  }
}

// Works on a copy of the gradient that starts on a cache line.
inline Stop greedy(Point& point, Greedy& task) {
  Aligned gradient(point.n);
  std::copy_n(point.gradient, point.n, gradient.data());
  Point here = point;
  here.gradient = gradient.data();
  Bench bench(task.hessian, point.n);
  const Stop stop = greedy_on(here, task, bench);
  std::copy_n(gradient.data(), point.n, point.gradient);
  return stop;
}
