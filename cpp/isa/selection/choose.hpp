// Asking a rule: within one group, and at a point. Included once per instruction set.

// Choose within one group. `known` may be null where the caller has not found the extremes.
template <class A, class Curvature>
void choose(const A& a, const Extremes* known, const Choice& choice, const double* lipschitz,
            Curvature curvature, Move& move) {
  move.clear();
  const auto ask = [&]<class R>() {
    Question<Curvature> question{choice, {}, curvature};
    question.choice.lipschitz = lipschitz;
    Extremes& ends = question.ends;
    bool chosen = false;
    if constexpr (requires { R::choose_at_once(a, choice, move); }) {
      if (!known) {
        ends = R::choose_at_once(a, choice, move);
        chosen = true;
      }
    }
    if (!chosen) ends = known ? *known : extremes(a);
    if (ends.suspect >= 0) {
      move.clear();
      move.suspect = ends.suspect;
    }
    if (ends.suspect >= 0 || !ends.open()) return;
    if constexpr (requires { R::asks_for_range; }) question.constants = range_of(lipschitz, a.n);
    if (!requires { R::of_any_size; } && !is_ordinary(a, question)) {
      move.clear();
      Units(a, question).template ask<R>(move);
    } else if (!chosen) {
      R::choose(a, question, move);
    }
    // Where nothing that it compares can be told from nothing, a rule may come back empty-handed.
    if (move.index.size() < 2) {
      const Index i = ends.seller.index, j = ends.buyer.index;
      if (R::about.curved)
        best_pair_move(a, i, j, std::max(curvature.template operator()<double>(i, j), FLAT), 1.0,
                       move);
      else best_pair_move(a, i, j, width_of(R::about, lipschitz, i, j), choice.alpha, move);
    }
  };
  Rules::visit(*choice.rule, [&]<class R>() {
    if constexpr (R::about.guided()) ask.template operator()<R>();
  });
}

// The move of an unguided rule, for any group; `between(i, j)` is where a pair trades.
template <class Between>
void unguided_move(Between between, const Point& point, const Choice& choice,
                   WeightedPairs& weighted, Move& move) {
  move.clear();
  Rules::visit(*choice.rule, [&]<class R>() {
    if constexpr (!R::about.guided()) {
      const auto [i, j] = R::pair(point, choice, weighted);
      if (i < 0) return;
      const auto& a = between(i, j);
      for (const Index p : {i, j})
        if (a.template suspect<double>(p) > 0) move.suspect = p;
      const double width = width_of(R::about, choice.lipschitz, i, j);
      const bool falls = gap_of(a, i, j) > 0;
      best_pair_move(a, falls ? i : j, falls ? j : i, width, choice.alpha, move);
    }
  });
}

template <class A>
void propose_on(const A& accounts, const Point& point, const Choice& choice, Move& best) {
  best.clear();
  if (point.n < 2) return;
  if (!choice.rule->guided()) {
    WeightedPairs weighted;
    const auto between = [&](Index, Index) -> const A& { return accounts; };
    return unguided_move(between, point, choice, weighted, best);
  }
  Move move;
  for (Index group = 0; group < point.n_groups; ++group) {
    const Index begin = point.starts[group], end = point.starts[group + 1];
    const double* lipschitz = choice.lipschitz ? choice.lipschitz + begin : nullptr;
    choose(accounts.slice(begin, end), nullptr, choice, lipschitz,
           ByConstants{lipschitz, choice.alpha}, move);
    if (move.suspect >= 0) {
      best.suspect = begin + move.suspect;
      return;
    }
    if (move.beats(best)) {
      for (Index& i : move.index) i += begin;
      std::swap(move, best);
    }
  }
}

// Groups under one total: the better of what the rule chooses inside each and across all.
inline void propose_nested(const Point& point, const Choice& choice, Move& best) {
  OwnLedger ledger(point.n);
  ledger.enter_all(point);
  Across across;
  across.renew(point, ledger);
  const Book own(ledger), others = across.book();
  best.clear();
  if (!choice.rule->guided()) {
    WeightedPairs weighted;
    const auto between = [&](Index i, Index j) -> const Book& {
      return group_of(point, i) == group_of(point, j) ? own : others;
    };
    return unguided_move(between, point, choice, weighted, best);
  }
  propose_on(own, point, choice, best);
  Move move;
  choose(others, nullptr, choice, choice.lipschitz, ByConstants{choice.lipschitz, choice.alpha},
         move);
  across.shorten(point, move);
  if (move.beats(best)) std::swap(move, best);
}

inline void propose(const Point& point, const Choice& choice, Move& move) {
  if (point.nested()) {
    propose_nested(point, choice, move);
  } else if (point.kink) {
    OwnLedger ledger(point.n);
    ledger.enter_all(point);
    propose_on(Book(ledger), point, choice, move);
  } else {
    propose_on(Box{point.n, point.gradient, point.x, point.lower, point.upper}, point, choice,
               move);
  }
}
