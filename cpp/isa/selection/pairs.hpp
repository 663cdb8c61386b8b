// Pairs of accounts: what an exchange gains. Included once per instruction set.

template <class A>
inline double gap_of(const A& a, Index i, Index j) {
  return a.template down_price<double>(i) - a.template up_price<double>(j);
}

template <class A>
inline double room_of(const A& a, Index i, Index j) {
  return std::min(a.template down_room<double>(i), a.template up_room<double>(j));
}

// max over 0 <= d <= room of d gap - curvature d^2 / 2; 0 where there is no gap or no room.
template <class T>
inline T gain_of(T gap, T room, T curvature) {
  const T nothing = all<T>(0.0);
  gap = maximum(gap, nothing);
  const T amount = minimum(maximum(room, nothing), gap / curvature);
  return amount * (gap - 0.5 * curvature * amount);
}

// Of the model d gap - width d^2 / (2 alpha) of a pair, in the norm of a rule that is not curved.
inline double width_of(const Rule& rule, const double* lipschitz, Index i, Index j) {
  if (!rule.weighted) return rule.one_norm ? 4.0 : 2.0;
  if (!rule.one_norm) return lipschitz[i] + lipschitz[j];
  const double roots = std::sqrt(lipschitz[i]) + std::sqrt(lipschitz[j]);
  return roots * roots;
}

constexpr double FLAT = 0x1p-1000;  // a curvature that is none
constexpr double MOST = std::numeric_limits<double>::max();

// alpha gap / width, of any sizes: no step between them overflows or underflows.
inline double full_amount(double alpha, double gap, double width) {
  constexpr double LEAST = 0x1p-1000, MOST = 0x1p1000;
  const auto is_safe = [](double number) { return number >= LEAST && number <= MOST; };
  const double product = alpha * gap, amount = product / width;
  if (is_safe(product) && is_safe(width) && is_safe(amount)) return amount;  // the same bits
  int by_alpha, by_gap, by_width;
  const double mantissa = std::frexp(alpha, &by_alpha) * std::frexp(gap, &by_gap);
  const double quotient = mantissa / std::frexp(std::min(width, MOST), &by_width);
  return std::ldexp(quotient, by_alpha + by_gap - by_width);
}

// The best exchange of i and j under the model d gap - width d^2 / (2 alpha): nothing where it
// gains nothing.
template <class A>
inline void best_pair_move(const A& a, Index i, Index j, double width, double alpha, Move& move) {
  move.clear();
  if (i < 0 || j < 0 || i == j) return;
  const double gap = std::min(gap_of(a, i, j), MOST);
  if (!(gap > 0)) return;
  const double full = full_amount(alpha, gap, width);
  const double amount = std::min({full, room_of(a, i, j), MOST});
  if (!(amount > 0)) return;
  move.add(i, -amount);
  move.add(j, amount);
  move.decrease = std::min(amount * gap * (1.0 - 0.5 * (amount / full)), MOST);
}

// The best pair at hand, raised by every better one that is offered.
struct Champion {
  double gain;
  Index i, j;

  void offer(double other, Index other_i, Index other_j) {
    if (other > gain) *this = {other, other_i, other_j};
  }
};
