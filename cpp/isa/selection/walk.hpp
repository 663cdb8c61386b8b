// The walk of the 1-norm rules: many sellers with many buyers. Included once per instruction set.

// One side of a walk, best score first, the first position on ties.
struct Queue {
  struct Entry {
    double score, norm;  // norm: of all that the account can trade
    Index index;
  };

  static bool before(const Entry& a, const Entry& b) {
    return a.score > b.score || (a.score == b.score && a.index < b.index);
  }

  std::vector<Entry> entries;
  double best = -INFINITY;  // the best score so far
  double bar = -INFINITY;   // what is not above it is not needed
  std::size_t patience = 64;

  void clear() {
    entries.clear();
    bar = -INFINITY;
  }
  void add(const Entry& entry) {
    entries.push_back(entry);
    best = std::max(best, entry.score);
  }
  // Leave the first, in any order, until their norms are more than `enough`: by halves.
  void trim(double enough) {
    auto begin = entries.begin(), end = entries.end();
    for (double norm = 0.0; end - begin > 1;) {
      const auto middle = begin + (end - begin) / 2;
      std::nth_element(begin, middle, end, before);
      double half = norm;
      for (auto entry = begin; entry < middle; ++entry) half += entry->norm;
      if (half > enough) {
        end = middle;
      } else {
        begin = middle;
        norm = half;
      }
    }
    if (end < entries.end()) {
      entries.erase(end, entries.end());
      bar = begin->score;
    }
    patience = 64 + 2 * entries.size();
  }
  void sort() { std::sort(entries.begin(), entries.end(), before); }
  // Whether nobody was left out.
  bool is_whole() const { return bar == -INFINITY; }
  // Whether a score at position p is among the first `count`.
  bool holds(double score, Index p, std::size_t count) const {
    const Entry& last = entries[count - 1];
    return score > last.score || (score == last.score && p <= last.index);
  }
};

// Match sellers with buyers in their order while the model falls; the norm is weighted by the roots
// of the constants (null: by 1). False if it used up a queue from which some were left out.
template <class A, class Score>
bool walk(const A& a, Score score, const std::array<Queue, 2>& queues, const double* lipschitz,
          double alpha, Move& move) {
  move.clear();
  const auto& [sellers, buyers] = queues;
  const std::size_t n_sellers = sellers.entries.size(), n_buyers = buyers.entries.size();
  if (n_sellers == 0 || n_buyers == 0) return true;
  std::size_t s = 0, b = 0;
  double down = a.template down_room<double>(sellers.entries[0].index), sold = 0.0;
  double up = a.template up_room<double>(buyers.entries[0].index), bought = 0.0;
  double length = 0.0;
  while (s < n_sellers && b < n_buyers) {
    const Index i = sellers.entries[s].index, j = buyers.entries[b].index;
    const double width = lipschitz ? std::sqrt(lipschitz[i]) + std::sqrt(lipschitz[j]) : 2.0;
    const double slope = gap_of(a, i, j) - width * length / alpha;
    if (!(slope > 0)) break;
    const double full = alpha * slope / (width * width);
    const double amount = std::min({full, down, up});
    sold += amount;
    bought += amount;
    move.decrease += amount * (slope - 0.5 * width * width * amount / alpha);
    length += width * amount;
    if (amount == full) break;
    down -= amount;
    up -= amount;
    // In the order of ratios an account may come up on both sides; there the walk ends.
    if (down <= 0) {
      move.add(i, -a.template down_room<double>(i));
      sold = 0.0;
      if (++s == n_sellers) {
        if (!sellers.is_whole()) return false;
      } else if (const Index next = sellers.entries[s].index;
                 buyers.holds(score.template operator()<double>(next)[1], next, b + 1)) {
        s = n_sellers;
      } else {
        down = a.template down_room<double>(next);
      }
    }
    if (up <= 0) {
      move.add(j, a.template up_room<double>(j));
      bought = 0.0;
      if (++b == n_buyers) {
        if (!buyers.is_whole()) return false;
      } else if (const Index next = buyers.entries[b].index;
                 sellers.holds(score.template operator()<double>(next)[0], next,
                               std::min(s + 1, n_sellers))) {
        b = n_buyers;
      } else {
        up = a.template up_room<double>(next);
      }
    }
  }
  if (sold > 0 && s < n_sellers) move.add(sellers.entries[s].index, -sold);
  if (bought > 0 && b < n_buyers) move.add(buyers.entries[b].index, bought);
  return true;
}

// Walk from the best scores of both sides on. No side trades more of the norm than `enough(best of
// the sellers, best of the buyers)`, so one pass can leave out all but the first few as it goes: by
// the best scores until then, which is seldom too few. Returns the first of both sides.
template <class A, class Score, class Enough>
Extremes walk_from_ends(const A& a, Score score, Enough enough, const double* lipschitz,
                        double alpha, Move& move) {
  constexpr Index BITE = 8 * WIDTH;
  std::array<Queue, 2> queues;
  const auto room = [&](int k, Index p) {
    return k == 0 ? a.template down_room<double>(p) : a.template up_room<double>(p);
  };
  for (double slack = 1.0 + 1e-9;; slack *= 16.0) {
    const auto trim = [&](int k) {
      const double norm = enough(queues[0].best, queues[1].best);
      queues[k].trim(std::isfinite(norm) ? slack * norm : INFINITY);  // one side may be to come
    };
    const auto offer = [&](int k, double value, Index p) {
      Queue& queue = queues[k];
      if (!(value > queue.bar)) return;
      queue.add({value, room(k, p) * (lipschitz ? std::sqrt(lipschitz[p]) : 1.0), p});
      if (queue.entries.size() > queue.patience) trim(k);
    };
    for (Queue& queue : queues) queue.clear();
    Index p = 0;
    for (; p + BITE <= a.n; p += BITE) {
      std::array<std::array<Lanes, BITE / WIDTH>, 3> scores;
      std::array<Lanes, 3> best;
      for (int k = 0; k < 3; ++k) best[k] = all<Lanes>(-INFINITY);
      for (Index q = 0; q < BITE / WIDTH; ++q) {
        const std::array<Lanes, 3> at = score.template operator()<Lanes>(p + q * WIDTH);
        for (int k = 0; k < 3; ++k) {
          scores[k][q] = at[k];
          best[k] = maximum(at[k], best[k]);
        }
      }
      if (above(best[2], all<Lanes>(0.0))) break;
      for (int k = 0; k < 2; ++k) {
        if (!above(best[k], all<Lanes>(queues[k].bar))) continue;
        for (Index q = 0; q < BITE / WIDTH; ++q)
          for_bits(above(scores[k][q], all<Lanes>(queues[k].bar)),
                   [&](Index lane) { offer(k, scores[k][q][lane], p + q * WIDTH + lane); });
      }
    }
    for (; p < a.n; ++p) {
      const std::array<double, 3> at = score.template operator()<double>(p);
      if (at[2] > 0) return {{}, {}, p};
      for (int k = 0; k < 2; ++k) offer(k, at[k], p);
    }
    for (int k = 0; k < 2; ++k) {
      trim(k);
      queues[k].sort();
    }
    if (walk(a, score, queues, lipschitz, alpha, move)) break;
  }
  const auto& [sellers, buyers] = queues;
  if (sellers.entries.empty() || buyers.entries.empty()) return {};
  const Index i = sellers.entries[0].index, j = buyers.entries[0].index;
  return {{a.template down_price<double>(i), i}, {-a.template up_price<double>(j), j}, -1};
}
