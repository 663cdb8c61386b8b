// Pairs that are drawn. Included once per instruction set.

// Draws accounts with a probability proportional to given constants; O(log n) each once set up.
class WeightedPairs {
 public:
  void set_up(const double* constants, Index n) {
    total_.resize(n + 1);
    add_up(constants, n, 1.0);
    if (total_[n] > 1e-250 && total_[n] < 1e250) return;
    // A power of 2 by which the sums neither overflow nor underflow.
    const double largest = n > 0 ? *std::max_element(constants, constants + n) : 1.0;
    add_up(constants, n, std::ldexp(1.0, std::clamp(-std::ilogb(largest), -1000, 1000)));
  }
  bool ready() const { return !total_.empty(); }
  // An index in [begin, end), `without` excepted (-1: none).
  Index draw(double uniform, Index begin, Index end, Index without) const {
    const double skip = without < 0 ? 0.0 : total_[without + 1] - total_[without];
    double goal = total_[begin] + uniform * (total_[end] - total_[begin] - skip);
    if (without >= 0 && goal >= total_[without]) goal += skip;
    const auto first = total_.begin() + begin + 1, last = total_.begin() + end;
    Index i = std::upper_bound(first, last, goal) - total_.begin() - 1;
    if (i == without) i += i + 1 < end ? 1 : -1;
    return i;
  }

 private:
  void add_up(const double* constants, Index n, double unit) {
    for (Index i = 0; i < n; ++i) total_[i + 1] = total_[i] + constants[i] * unit;
  }

  std::vector<double> total_;
};

struct Members {  // of a group, or of all that share a total
  Index begin, end;

  Index size() const { return end - begin; }
};

inline Members members_of(const Point& point, Index i) {
  if (point.nested()) return {0, point.n};
  const Index* const above = std::upper_bound(point.starts, point.starts + point.n_groups + 1, i);
  return {above[-1], above[0]};
}
