// The walk of the 1-norm rules: many sellers with many buyers. Included once per instruction set.

// Match sellers with buyers in the given order while the model falls; the norm is weighted by the
// roots of the constants (null: by 1).
// False if a list of `count` ran out, so that a longer one may lead further.
template <class A>
bool walk(const A& a, const std::vector<Index>& sellers, const std::vector<Index>& buyers,
          const double* lipschitz, double alpha, Index count, Move& move) {
  move.clear();
  if (sellers.empty() || buyers.empty()) return true;
  std::size_t s = 0, b = 0;
  double down = a.template down_room<double>(sellers[0]), sold = 0.0;
  double up = a.template up_room<double>(buyers[0]), bought = 0.0;
  double length = 0.0;
  bool complete = true;
  // In the order of ratios an account may come up on both sides; there the walk ends.
  const auto moves_already = [&](Index p, Index opposite) {
    if (!lipschitz) return false;
    return p == opposite || std::find(move.index.begin(), move.index.end(), p) != move.index.end();
  };
  while (s < sellers.size() && b < buyers.size()) {
    const Index i = sellers[s], j = buyers[b];
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
    if (down <= 0) {
      move.add(i, -a.template down_room<double>(i));
      sold = 0.0;
      if (++s == sellers.size()) complete = Index(sellers.size()) < count;
      else if (moves_already(sellers[s], buyers[b])) s = sellers.size();
      else down = a.template down_room<double>(sellers[s]);
    }
    if (up <= 0) {
      move.add(j, a.template up_room<double>(j));
      bought = 0.0;
      if (++b == buyers.size()) complete = complete && Index(buyers.size()) < count;
      else if (moves_already(buyers[b], s < sellers.size() ? sellers[s] : -1)) b = buyers.size();
      else up = a.template up_room<double>(buyers[b]);
    }
  }
  if (sold > 0 && s < sellers.size()) move.add(sellers[s], -sold);
  if (bought > 0 && b < buyers.size()) move.add(buyers[b], bought);
  return complete;
}

// A move rarely touches more than a handful: select a few from each side, more if they run out.
// Returns the first of both sides.
template <class A, class Score>
Extremes walk_top(const A& a, Score score, const double* lipschitz, double alpha, Move& move) {
  std::vector<Index> sellers, buyers, suspects;
  for (Index count = 32;; count *= 16) {  // ends with a count above n
    top<3>(a.n, count, {&sellers, &buyers, &suspects}, score);
    if (!suspects.empty()) return {{}, {}, suspects[0]};
    if (walk(a, sellers, buyers, lipschitz, alpha, count, move)) break;
  }
  if (sellers.empty() || buyers.empty()) return {};
  const Index i = sellers[0], j = buyers[0];
  return {{a.template down_price<double>(i), i}, {-a.template up_price<double>(j), j}, -1};
}
