// Groups under one total, as they see each other: the same accounts, with no room beyond that of
// their group's sum. Two that happen to be of one group may trade that far too. Included once per
// instruction set.

class Across {
 public:
  // All anew. Nothing where each group has a total of its own.
  void renew(const Point& point, const Ledger& own) {
    if (!point.nested()) return;
    rooms_ = rooms_of(point);
    if (!ledger_ || ledger_->n != point.n) ledger_ = std::make_unique<OwnLedger>(point.n);
    ledger_->gradient = own.gradient;
    for (Index group = 0; group < point.n_groups; ++group) enter(point, own, group);
  }

  Book book() const { return Book(*ledger_); }
  const GroupRooms& rooms() const { return rooms_; }

  // The extremes of all, from those of each group.
  Extremes ends(const Point& point, const std::vector<Extremes>& of_groups) const {
    Extremes best;
    for (Index g = 0; g < point.n_groups; ++g) {
      const auto& [seller, buyer, suspect] = of_groups[g];
      if (rooms_.down[g] > 0 && seller.value > best.seller.value)
        best.seller = {seller.value, point.starts[g] + seller.index};
      if (rooms_.up[g] > 0 && buyer.value > best.buyer.value)
        best.buyer = {buyer.value, point.starts[g] + buyer.index};
    }
    return best;
  }

  // How many times a move can be made before a group's sum is at its limit.
  double times(const Point& point, const Move& move) const {
    double most = INFINITY;
    for_groups(point, move, [&](Index g, double change) {
      if (change != 0)
        most = std::min(most, (change < 0 ? rooms_.down[g] : rooms_.up[g]) / std::abs(change));
    });
    return most;
  }

  // Several accounts of a group may each have room, and all together none: shorten the move. What
  // it gains falls at most in proportion, for its model is convex.
  void shorten(const Point& point, Move& move) const {
    const double part = times(point, move);
    if (!(part < 1)) return;
    for (double& delta : move.delta) delta *= part;
    move.decrease *= part;
    if (!(part > 0)) move.clear();
  }

  // The accounts of a move have changed by so much, and are entered in `own`.
  void follow(const Point& point, const Ledger& own, const Move& move) {
    for_groups(point, move, [&](Index g, double change) {
      if (change != 0) {
        rooms_.down[g] = left_of(rooms_.down[g], change, rooms_.grain[g]);
        rooms_.up[g] = left_of(rooms_.up[g], -change, rooms_.grain[g]);
      }
      enter(point, own, g);
    });
  }

 private:
  // A sum ends on its limit, not as near to it as rounding puts it.
  static double left_of(double room, double change, double grain) {
    const double left = room + change;
    const double rounding = std::max(grain, GRAIN * std::max(room, std::abs(change)));
    return std::isinf(room) || left > rounding ? left : 0.0;
  }

  void enter(const Point& point, const Ledger& own, Index group) {
    const double down = rooms_.down[group], up = rooms_.up[group];
    for (Index p = point.starts[group]; p < point.starts[group + 1]; ++p) {
      ledger_->down_shift[p] = down > 0 ? own.down_shift[p] : -INFINITY;
      ledger_->up_shift[p] = up > 0 ? own.up_shift[p] : INFINITY;
      ledger_->down_room[p] = std::min(own.down_room[p], down);
      ledger_->up_room[p] = std::min(own.up_room[p], up);
    }
  }

  // Calls visit(group, change of its sum) for the groups that a move touches. What rounding leaves
  // of an exchange inside a group is no change.
  template <class Visit>
  void for_groups(const Point& point, const Move& move, Visit visit) const {
    struct Part {
      Index group;
      double delta;
    };
    std::vector<Part> parts;
    for (std::size_t k = 0; k < move.index.size(); ++k)
      parts.push_back({group_of(point, move.index[k]), move.delta[k]});
    std::stable_sort(parts.begin(), parts.end(),
                     [](const Part& a, const Part& b) { return a.group < b.group; });
    for (std::size_t k = 0; k < parts.size();) {
      const Index group = parts[k].group;
      double change = 0.0, size = 0.0;
      for (; k < parts.size() && parts[k].group == group; ++k) {
        change += parts[k].delta;
        size += std::abs(parts[k].delta);
      }
      visit(group, std::abs(change) > 1e-12 * size ? change : 0.0);
    }
  }

  GroupRooms rooms_;
  std::unique_ptr<OwnLedger> ledger_;
};
