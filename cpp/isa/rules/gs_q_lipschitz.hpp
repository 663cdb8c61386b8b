// GS-q with coordinate-wise Lipschitz constants, rooms included. Included once per instruction set.

namespace gs_q_lipschitz {

// A segment of an envelope: up to `end`, account `index` is the best.
struct Piece {
  double end;
  Index index;
};

struct Line {
  double price, slope, end;  // value at d: price - slope d, for d <= end
  Index index;

  double at(double d) const { return price - slope * d; }
};

inline void append(std::vector<Piece>& envelope, double begin, double end, Index line) {
  if (!(end > begin)) return;
  if (!envelope.empty() && envelope.back().index == line) envelope.back().end = end;
  else envelope.push_back({end, line});
}

// The upper envelope of lines [first, last) by divide and conquer; pieces index into `lines`.
inline std::vector<Piece> envelope_of(const std::vector<Line>& lines, Index first, Index last) {
  if (last - first == 0) return {};
  if (last - first == 1) return {{lines[first].end, first}};
  const Index middle = first + (last - first) / 2;
  const std::vector<Piece> left = envelope_of(lines, first, middle);
  const std::vector<Piece> right = envelope_of(lines, middle, last);
  std::vector<Piece> merged;
  std::size_t l = 0, r = 0;
  double begin = 0.0;
  while (l < left.size() && r < right.size()) {
    const double end = std::min(left[l].end, right[r].end);
    const Line &p = lines[left[l].index], &q = lines[right[r].index];
    const double at_begin = p.at(begin) - q.at(begin), at_end = p.at(end) - q.at(end);
    if (at_begin >= 0 && at_end >= 0) {
      append(merged, begin, end, left[l].index);
    } else if (at_begin <= 0 && at_end <= 0) {
      append(merged, begin, end, right[r].index);
    } else {
      const double share = at_begin / (at_begin - at_end);
      const double cross = std::min(std::max(begin + share * (end - begin), begin), end);
      append(merged, begin, cross, at_begin > 0 ? left[l].index : right[r].index);
      append(merged, cross, end, at_begin > 0 ? right[r].index : left[l].index);
    }
    begin = end;
    if (left[l].end <= end) ++l;
    if (right[r].end <= end) ++r;
  }
  for (; l < left.size(); begin = left[l++].end) append(merged, begin, left[l].end, left[l].index);
  for (; r < right.size(); begin = right[r++].end)
    append(merged, begin, right[r].end, right[r].index);
  return merged;
}

// Drop lines that another one beats in price, slope and reach; without rooms that leaves only
// the few on the front.
inline void drop_dominated(std::vector<Line>& lines) {
  std::sort(lines.begin(), lines.end(), [](const Line& a, const Line& b) {
    return a.price > b.price || (a.price == b.price && a.slope < b.slope);
  });
  double slope = INFINITY, end = 0.0;  // of the flattest line so far
  std::erase_if(lines, [&](const Line& line) {
    if (line.slope >= slope && line.end <= end) return true;
    if (line.slope < slope) {
      slope = line.slope;
      end = line.end;
    }
    return false;
  });
}

// The best pair among some sellers and some buyers, by merging their envelopes.
template <class A>
Champion best_of_envelopes(const A& a, const std::vector<Index>& some_sellers,
                           const std::vector<Index>& some_buyers, const double* lipschitz,
                           double alpha, double smallest, double widest) {
  // No pair moves further than the widest gap and the smallest constant allow: ends are finite.
  std::vector<Line> sellers, buyers;
  for (const Index i : some_sellers)
    if (const double room = a.template down_room<double>(i); room > 0)
      sellers.push_back({a.template down_price<double>(i), 0.5 * lipschitz[i] / alpha,
                         std::min(room, alpha * widest / (lipschitz[i] + smallest)), i});
  for (const Index j : some_buyers)
    if (const double room = a.template up_room<double>(j); room > 0)
      buyers.push_back({-a.template up_price<double>(j), 0.5 * lipschitz[j] / alpha,
                        std::min(room, alpha * widest / (lipschitz[j] + smallest)), j});
  drop_dominated(sellers);
  drop_dominated(buyers);
  const std::vector<Piece> u = envelope_of(sellers, 0, Index(sellers.size()));
  const std::vector<Piece> v = envelope_of(buyers, 0, Index(buyers.size()));
  Champion best{0.0, -1, -1};
  for (std::size_t s = 0, b = 0; s < u.size() && b < v.size();) {
    const Index i = sellers[u[s].index].index, j = buyers[v[b].index].index;
    const double curvature = (lipschitz[i] + lipschitz[j]) / alpha;
    best.offer(gain_of<double>(gap_of(a, i, j), room_of(a, i, j), curvature), i, j);
    const double end = std::min(u[s].end, v[b].end);
    if (u[s].end <= end) ++s;
    if (v[b].end <= end) ++b;
  }
  return best;
}

struct GsQLipschitz {
  static constexpr Rule about{.name = "gs-q-lipschitz", .weighted = true};
  static constexpr bool asks_for_range = true;

  template <class A, class Curvature>
  static void choose(const A& a, const Question<Curvature>& q, Move& move) {
    const double* lipschitz = q.choice.lipschitz;
    const double alpha = q.choice.alpha;
    const double least = q.constants.least;
    const auto [gain, i, j] = prune_and_solve(
        a, q.ends, lipschitz, alpha, least, [&](const auto& sellers, const auto& buyers) {
          return best_of_envelopes(a, sellers, buyers, lipschitz, alpha, least, q.ends.gap());
        });
    best_pair_move(a, i, j, lipschitz[i] + lipschitz[j], alpha, move);
  }
};

using Rules = RuleList<GsQLipschitz>;

}  // namespace gs_q_lipschitz
