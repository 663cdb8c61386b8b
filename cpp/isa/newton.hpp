// The finish: Newton's method on the face of free accounts, with a factor that is kept from one
// try to the next. Included once per instruction set.

// A curvature that is this small against the diagonal is what rounding makes of none.
constexpr double FLAT_AGAINST = 1e-13;

// A fall that is this small against the objective is rounding.
constexpr double ROUNDING = 1e-16;

// Eight partial sums whatever the width of the machine's vectors: the same bits on all of them.
inline double dot(const double* a, const double* b, Index n) {
  std::array<Lanes, 8 / WIDTH> sums{};
  Index p = 0;
  for (; p + 8 <= n; p += 8)
    for (Index k = 0; k < 8 / WIDTH; ++k)
      sums[k] += load<Lanes>(a + p + k * WIDTH) * load<Lanes>(b + p + k * WIDTH);
  double part[8];
  std::memcpy(part, &sums, sizeof part);
  double total =
      ((part[0] + part[4]) + (part[1] + part[5])) + ((part[2] + part[6]) + (part[3] + part[7]));
  for (; p < n; ++p) total += a[p] * b[p];
  return total;
}

// y += t x
inline void add_multiple(double t, const double* x, double* y, Index n) {
  for (Index p = 0; p < n; ++p) y[p] += t * x[p];
}

// The Cholesky factor of the Hessian on a set of accounts. Sets that differ by a few accounts are
// had from each other by updates, at the cost of a solve each.
template <class Real>
class Factor {
 public:
  Factor(const Real* hessian, const double* diagonal, Index n)
      : hessian_(hessian), diagonal_(diagonal), n_(n), wanted_(n, 0) {
    for (Index i = 0; i < n; ++i) largest_ = std::max(largest_, std::abs(diagonal[i]));
  }

  Index size() const { return Index(accounts_.size()); }
  // In the order in which `solve` takes them.
  const std::vector<Index>& accounts() const { return accounts_; }

  // Go over to these accounts. False if the Hessian is not positive definite on them, even with
  // the largest ridge.
  bool hold(const std::vector<Index>& accounts) {
    for (const Index i : accounts) wanted_[i] = 1;
    const Index common =
        std::count_if(accounts_.begin(), accounts_.end(), [&](Index i) { return wanted_[i] != 0; });
    const Index changes = size() + Index(accounts.size()) - 2 * common;
    bool done = false;
    if (ridge_ == RIDGE && (3 * changes < Index(accounts.size()) || accounts.size() <= 32)) {
      for (Index r = size(); r-- > 0;)
        if (!wanted_[accounts_[r]]) drop(r);
      for (const Index i : accounts_) wanted_[i] = 0;
      done = std::all_of(accounts.begin(), accounts.end(),
                         [&](Index i) { return !wanted_[i] || append(i); });
    }
    for (const Index i : accounts) wanted_[i] = 0;
    return done || rebuild(accounts);
  }

  // How far the account at this place goes for its price to change by one.
  double softness(Index r) const { return 1.0 / ridged(accounts_[r]); }

  // b := (H + ridge)^-1 b, for `count` vectors one after the other in memory. They are solved for
  // side by side, for each is a chain of divisions.
  void solve(double* b, Index count) const {
    const Index k = size();
    if (count > 16) {  // many groups: strips of them read the factor less often
      cholesky_solve(columns_.data(), k, stride_, b, count);
      return;
    }
    forward(b, count);
    for (Index c = k; c-- > 0;) {
      const double* column = columns_.data() + c * stride_;
      for (double* v = b; v < b + count * k; v += k)
        v[c] = (v[c] - dot(column + c + 1, v + c + 1, k - c - 1)) / column[c];
    }
  }

 private:
  void forward(double* b, Index count) const {
    const Index k = size();
    for (Index c = 0; c < k; ++c) {
      const double* column = columns_.data() + c * stride_;
      for (double* v = b; v < b + count * k; v += k) {
        v[c] /= column[c];
        add_multiple(-v[c], column + c + 1, v + c + 1, k - c - 1);
      }
    }
  }

  // A ridge a little above rounding makes the step on a singular face a proximal one: short where
  // the face is flat, and Newton's elsewhere. It is relative to the account's own curvature, so
  // that scales may differ; the rest is for accounts that have none, or none but rounding.
  double ridged(Index i) const {
    const double own = diagonal_[i];
    const bool flat = !(own > 0) || ridge_ > RIDGE;
    return own + ridge_ * (own + (flat ? 1e-3 * largest_ : 0.0));
  }

  // Make room for k accounts and a few more.
  void reserve(Index k) {
    if (k <= stride_) return;
    const Index stride = k + k / 8 + 16;
    Scratch columns;
    columns.fit(stride * stride);
    for (Index c = 0; c < size(); ++c)
      std::copy_n(columns_.data() + c * stride_ + c, size() - c, columns.data() + c * stride + c);
    std::swap(columns_, columns);
    stride_ = stride;
  }

  // Leave out the account at this place.
  void drop(Index at) {
    const Index k = size() - 1;
    for (Index c = 0; c <= k; ++c) {
      double* column = columns_.data() + c * stride_;
      const Index first = std::max(at, c > at ? c - 1 : c);
      std::copy(column + first + 1, column + k + 1, column + first);
    }
    // The rows after it now have one entry too many: rotate them into the column before.
    for (Index c = at; c < k; ++c) {
      double *left = columns_.data() + c * stride_, *right = left + stride_;
      const double length = std::sqrt(left[c] * left[c] + right[c] * right[c]);
      const double cosine = left[c] / length, sine = right[c] / length;
      left[c] = length;
      for (Index r = c + 1; r < k; ++r) {
        const double a = left[r], b = right[r];
        left[r] = cosine * a + sine * b;
        right[r] = cosine * b - sine * a;
      }
    }
    accounts_.erase(accounts_.begin() + at);
  }

  bool append(Index i) {
    const Index k = size();
    reserve(k + 1);
    const Real* row = hessian_ + i * n_;
    row_.resize(k);
    for (Index c = 0; c < k; ++c) row_[c] = row[accounts_[c]];
    forward(row_.data(), 1);
    const double rest = ridged(i) - dot(row_.data(), row_.data(), k);
    if (!(rest > 0)) return false;
    for (Index c = 0; c < k; ++c) columns_.data()[c * stride_ + k] = row_[c];
    columns_.data()[k * stride_ + k] = std::sqrt(rest);
    accounts_.push_back(i);
    return true;
  }

  bool rebuild(const std::vector<Index>& accounts) {
    const Index k = Index(accounts.size());
    accounts_.clear();
    reserve(k);
    for (ridge_ = RIDGE; ridge_ < 1e-5; ridge_ *= 100) {
      for (Index c = 0; c < k; ++c) {
        const Real* row = hessian_ + accounts[c] * n_;
        double* column = columns_.data() + c * stride_;
        for (Index r = c; r < k; ++r) column[r] = row[accounts[r]];
        column[c] = ridged(accounts[c]);
      }
      if (!cholesky(columns_.data(), k, stride_, room_)) continue;
      accounts_ = accounts;
      return true;
    }
    return false;
  }

  static constexpr double RIDGE = 1e-12;
  const Real* hessian_;
  const double* diagonal_;
  Index n_;
  double largest_ = 0.0, ridge_ = RIDGE;
  std::vector<Index> accounts_;
  std::vector<char> wanted_;
  Scratch columns_;  // of the factor, `stride_` apart
  Scratch room_;     // to factorise in
  std::vector<double> row_;
  Index stride_ = 0;
};

// The free accounts of a point: prices, how far each may go, and the group it belongs to
// (members of a group side by side, groups in rising order). Where groups share a total, the sums
// of the loose ones may change, within their rooms; all others are fixed.
struct Face {
  std::vector<Index> index, group;
  std::vector<double> price, down_room, up_room;
  std::vector<char> loose;  // of each group; empty where each has a total of its own
  GroupRooms rooms;

  Index size() const { return Index(index.size()); }
};

// Roughly how many multiplications one Newton step on k of n free accounts costs, in units of the
// greedy gear's vector passes (a factorisation runs at several times their rate).
inline double cost_of_newton(double k, double n) { return k * k * k / 24.0 + k * k + k * n; }

template <class Real>
class Newton {
 public:
  Newton(const Real* hessian, const double* diagonal, Index n)
      : hessian_(hessian), n_(n), factor_(hessian, diagonal, n), place_(n, 0) {}

  // Minimise the quadratic on the face, with the sums fixed that are; accounts that meet a room,
  // and sums that meet a limit, stay there and the rest goes on. `delta` is within the rooms
  // (exactly a room where one is met). Returns by how much the objective falls; 0 means that the
  // face has nothing to give. `work` grows by the cost of what was done. `endless` becomes true
  // where the objective falls without end: no room ends the step, no curvature holds it, and it
  // gains more per unit than `threshold`, which is what rounding may feign.
  double minimise(const Face& face, double threshold, std::vector<double>& delta, double& work,
                  bool& endless) {
    const Index size = face.size();
    delta.assign(size, 0.0);
    if (!factor_.hold(face.index)) return 0.0;
    take(face);
    work += cost_of_newton(double(size), 0.0);
    double total_fall = 0.0;
    while (true) {
      // A sum needs two accounts to trade.
      leave([&](Index a) { return members_[row_[a]] < 2; });
      if (factor_.size() < 2 || !direction()) break;
      work += double(6 * factor_.size() * size);
      double reach = INFINITY;
      for (Index a = 0; a < size; ++a) {
        low_[a] = free_[a] ? -face.down_room[a] - delta[a] : 0.0;
        high_[a] = free_[a] ? face.up_room[a] - delta[a] : 0.0;
        if (d_[a] < 0) reach = std::min(reach, low_[a] / d_[a]);
        if (d_[a] > 0) reach = std::min(reach, high_[a] / d_[a]);
      }
      if (fix_sums(face, d_, 0.0)) continue;
      reach = std::min(reach, reach_of(face, d_));
      if (reach == INFINITY && flat_and_steep(threshold)) {
        endless = true;
        return 0.0;
      }
      reach = std::min(reach, 1.0);
      for (Index a = 0; a < size; ++a) step_[a] = std::clamp(reach * d_[a], low_[a], high_[a]);
      double fall = fall_of(step_, bent_);
      // The full step, or else a part of it, cut at the rooms, meets many of them at once.
      for (const double part : {1.0, 0.3}) {
        if (reach == 1.0 || (part < 1.0 && fall > 0)) break;
        cut(face, part);
        if (const double other = fall_of(near_, near_bent_); other > fall) {
          fall = other;
          step_.swap(near_);
          bent_.swap(near_bent_);
        }
      }
      if (!(fall > 0)) {
        // Those without room in their direction stay where they are; the others may still gain.
        const auto stuck = [&](Index a) {
          return (d_[a] < 0 && low_[a] >= 0) || (d_[a] > 0 && high_[a] <= 0);
        };
        if (leave(stuck)) continue;
        break;
      }
      const bool last = fall < 1e-3 * total_fall;
      total_fall += fall;
      add_multiple(1.0, bent_.data(), price_.data(), size);
      const auto at_end = [&](Index a) { return step_[a] <= low_[a] || step_[a] >= high_[a]; };
      for (Index a = 0; a < size; ++a) {
        if (!free_[a]) continue;
        if (step_[a] <= low_[a]) delta[a] = -face.down_room[a];
        else if (step_[a] >= high_[a]) delta[a] = face.up_room[a];
        else delta[a] += step_[a];
      }
      follow(face);
      const bool left = leave(at_end), fixed = fix_sums(face, step_, 1e-12);
      if (last || !(left || fixed)) break;
    }
    return total_fall;
  }

 private:
  void take(const Face& face) {
    const Index size = face.size();
    price_ = face.price;
    block_.fit(size * size);
    for (Index a = 0; a < size; ++a) {
      const Real* row = hessian_ + face.index[a] * n_;
      for (Index b = 0; b < size; ++b) block_.data()[a * size + b] = row[face.index[b]];
      place_[face.index[a]] = a;
    }
    loose_ = face.loose;
    change_.assign(loose_.size(), 0.0);
    row_.resize(size);
    members_.clear();
    Index pool = -1;  // the row of all loose groups
    for (Index a = 0; a < size; ++a) {
      const bool loose = !loose_.empty() && loose_[face.group[a]];
      const bool same = a > 0 && face.group[a] == face.group[a - 1];
      row_[a] = same ? row_[a - 1] : loose && pool >= 0 ? pool : Index(members_.size());
      if (row_[a] == Index(members_.size())) members_.push_back(0);
      if (loose) pool = row_[a];
      ++members_[row_[a]];
    }
    free_.assign(size, 1);
    for (auto* v : {&d_, &low_, &high_, &step_, &bent_, &near_, &near_bent_}) v->assign(size, 0.0);
  }

  // The free accounts of which `gone` is true move no more. False if there are none.
  template <class Gone>
  bool leave(Gone gone) {
    staying_.clear();
    for (const Index i : factor_.accounts()) {
      const Index a = place_[i];
      if (!gone(a)) {
        staying_.push_back(i);
        continue;
      }
      --members_[row_[a]];
      free_[a] = 0;
    }
    if (Index(staying_.size()) == factor_.size()) return false;
    factor_.hold(staying_);
    return true;
  }

  // Calls visit(group, change of its sum, room for that) for the loose groups.
  template <class Visit>
  void for_loose(const Face& face, const std::vector<double>& step, Visit visit) const {
    if (loose_.empty()) return;
    const Index size = face.size();
    for (Index a = 0; a < size;) {
      const Index g = face.group[a];
      double change = 0.0, length = 0.0;
      for (; a < size && face.group[a] == g; ++a) {
        change += step[a];
        length += std::abs(step[a]);
      }
      if (loose_[g] && std::abs(change) > 1e-12 * length)
        visit(g, change,
              change < 0 ? face.rooms.down[g] + change_[g] : face.rooms.up[g] - change_[g]);
    }
  }

  // How many times a step can be made before a sum is at its limit.
  double reach_of(const Face& face, const std::vector<double>& step) const {
    double most = INFINITY;
    for_loose(face, step, [&](Index, double change, double room) {
      most = std::min(most, room / std::abs(change));
    });
    return most;
  }

  void follow(const Face& face) {
    for_loose(face, step_, [&](Index g, double change, double) { change_[g] += change; });
  }

  // Sums that go towards a limit and have come to it, but for a `share` of what they have changed,
  // are fixed from now on: a row of their own. Whether there are any.
  bool fix_sums(const Face& face, const std::vector<double>& step, double share) {
    bool any = false;
    for_loose(face, step, [&](Index g, double, double room) {
      if (room > share * std::abs(change_[g])) return;
      any = true;
      loose_[g] = 0;
      const Index row = Index(members_.size());
      members_.push_back(0);
      for (Index a = 0; a < face.size(); ++a) {
        if (face.group[a] != g) continue;
        members_[row_[a]] -= free_[a];
        members_[row] += free_[a];
        row_[a] = row;
      }
    });
    return any;
  }

  // Solve [H E; E' 0] [d; -lambda] = [-price; 0], E the indicators of the sums that are fixed.
  bool direction() {
    const Index k = factor_.size(), groups = Index(members_.size());
    const auto place = [&](Index r) { return place_[factor_.accounts()[r]]; };
    // H^-1 [price E]
    solved_.assign((groups + 1) * k, 0.0);
    for (Index r = 0; r < k; ++r) {
      solved_[r] = price_[place(r)];
      solved_[(row_[place(r)] + 1) * k + r] = 1.0;
    }
    factor_.solve(solved_.data(), groups + 1);
    // lambda solves (E' H^-1 E) lambda = E' H^-1 price, by Gauss steps, for the groups are few.
    const Index columns = groups + 1;
    small_.assign(groups * columns, 0.0);
    for (Index g = 0; g < groups; ++g)
      if (members_[g] == 0) small_[g * columns + g] = 1.0;  // nothing to solve for
    for (Index g = 0; g < columns; ++g)
      for (Index r = 0; r < k; ++r)
        small_[row_[place(r)] * columns + (g + groups) % columns] += solved_[g * k + r];
    for (Index p = 0; p < groups; ++p) {
      const double pivot = small_[p * columns + p];
      if (!(pivot > 0)) return false;
      for (Index g = 0; g < groups; ++g) {
        if (g == p) continue;
        const double ratio = small_[g * columns + p] / pivot;
        add_multiple(-ratio, &small_[p * columns + p], &small_[g * columns + p], columns - p);
      }
    }
    for (Index g = 0; g < groups; ++g)
      add_multiple(-small_[g * columns + groups] / small_[g * columns + g],
                   solved_.data() + (g + 1) * k, solved_.data(), k);
    // Rounding, and the ridge on an ill-conditioned face, leave a little of the sums: take it out,
    // where that changes the prices least.
    sums_.assign(groups, 0.0);
    softness_.assign(groups, 0.0);
    for (Index r = 0; r < k; ++r) {
      sums_[row_[place(r)]] += solved_[r];
      softness_[row_[place(r)]] += factor_.softness(r);
    }
    std::fill(d_.begin(), d_.end(), 0.0);
    bool finite = true;
    for (Index r = 0; r < k; ++r) {
      const Index a = place(r), g = row_[a];
      d_[a] = sums_[g] * (factor_.softness(r) / softness_[g]) - solved_[r];
      finite &= std::isfinite(d_[a]);
    }
    return finite;
  }

  bool flat_and_steep(double threshold) {
    const Index size = Index(d_.size());
    times(block_.data(), d_.data(), size, bent_.data());
    double scale = 0.0, length = 0.0;
    for (Index a = 0; a < size; ++a) {
      scale += std::abs(block_.data()[a * (size + 1)]) * d_[a] * d_[a];
      length += std::abs(d_[a]);
    }
    return dot(d_.data(), bent_.data(), size) <= FLAT_AGAINST * scale &&
           -2.0 * dot(d_.data(), price_.data(), size) > threshold * length;
  }

  // Part of the direction, cut at the rooms; the larger of what each sum then takes out and puts in
  // is scaled down to the other.
  void cut(const Face& face, double part) {
    const Index size = Index(d_.size());
    taken_.assign(members_.size(), 0.0);
    put_.assign(members_.size(), 0.0);
    for (Index a = 0; a < size; ++a) {
      near_[a] = std::clamp(part * d_[a], low_[a], high_[a]);
      (near_[a] < 0 ? taken_ : put_)[row_[a]] += std::abs(near_[a]);
    }
    for (Index a = 0; a < size; ++a) {
      const double taken = taken_[row_[a]], put = put_[row_[a]];
      const double own = near_[a] < 0 ? taken : put;
      if (own > 0) near_[a] *= std::min(taken, put) / own;
    }
    if (const double most = reach_of(face, near_); most < 1)
      for (double& step : near_) step *= most;
  }

  // By how much the objective falls along a step; also the change of the prices.
  double fall_of(const std::vector<double>& step, std::vector<double>& bent) {
    const Index size = Index(step.size());
    times(block_.data(), step.data(), size, bent.data());
    return -dot(step.data(), price_.data(), size) - 0.5 * dot(step.data(), bent.data(), size);
  }

  const Real* hessian_;
  Index n_;
  Factor<Real> factor_;
  std::vector<Index> place_;  // of an account in the face
  // Of the face, in its order: the Hessian, prices as they are by now, and which still move.
  Scratch block_;
  std::vector<double> price_;
  std::vector<char> free_;
  std::vector<Index> row_;      // the fixed sum that an account belongs to
  std::vector<Index> members_;  // of each fixed sum, that still move
  std::vector<Index> staying_;
  // Of groups whose sums may change: which are still loose, and by how much they have changed.
  std::vector<char> loose_;
  std::vector<double> change_;
  // Work space.
  std::vector<double> d_, low_, high_, step_, bent_, near_, near_bent_, taken_, put_;
  std::vector<double> solved_, small_, sums_, softness_;
};
