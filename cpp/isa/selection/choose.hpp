// Calling a rule: within one group, and at a point. Included once per instruction set.

// Choose a step within one group. `known` is null if the caller has not computed the extremes.
template <class A, class Curvature>
void choose(const A& a, const Extremes* known, const Choice& choice, const double* lipschitz,
            Curvature curvature, Step& step) {
  step.clear();
  const auto call = [&]<class R>() {
    RuleInput<Curvature> input{choice, {}, curvature};
    input.choice.lipschitz = lipschitz;
    Extremes& ends = input.ends;
    bool chosen = false;
    if constexpr (requires { R::choose_in_one_pass(a, choice, step); }) {
      if (!known) {
        ends = R::choose_in_one_pass(a, choice, step);
        chosen = true;
      }
    }
    if (!chosen) ends = known ? *known : extremes(a);
    if (ends.suspect >= 0) {
      step.clear();
      step.suspect = ends.suspect;
    }
    if (ends.suspect >= 0 || !ends.open()) return;
    if constexpr (requires { R::needs_range; }) input.constants = range_of(lipschitz, a.n);
    if (!requires { R::handles_any_scale; } && !is_moderate(a, input)) {
      step.clear();
      Units(a, input).template call<R>(step);
    } else if (!chosen) {
      R::choose(a, input, step);
    }
    // If all decreases that a rule compares underflow, its step may be empty. Take the pair with
    // the largest gap then.
    if (step.index.size() < 2) {
      const Index i = ends.down.index, j = ends.up.index;
      if (R::about.curved)
        best_pair_step(a, i, j,
                       std::max(curvature.template operator()<double>(i, j), MIN_CURVATURE), 1.0,
                       step);
      else best_pair_step(a, i, j, width_of(R::about, lipschitz, i, j), choice.alpha, step);
    }
  };
  Rules::visit(*choice.rule, [&]<class R>() {
    if constexpr (R::about.guided()) call.template operator()<R>();
  });
}

// The step of a rule that does not use the derivatives, in any group. `view_of(i, j)` returns the
// coordinates as this pair sees them.
template <class ViewOf>
void unguided_step(ViewOf view_of, const Point& point, const Choice& choice,
                   WeightedPairs& weighted, Step& step) {
  step.clear();
  Rules::visit(*choice.rule, [&]<class R>() {
    if constexpr (!R::about.guided()) {
      const auto [i, j] = R::pair(point, choice, weighted);
      if (i < 0) return;
      const auto& a = view_of(i, j);
      for (const Index p : {i, j})
        if (a.template suspect<double>(p) > 0) step.suspect = p;
      const double width = width_of(R::about, choice.lipschitz, i, j);
      const bool forward = gap_of(a, i, j) > 0;
      best_pair_step(a, forward ? i : j, forward ? j : i, width, choice.alpha, step);
    }
  });
}

// The best of the steps that the rule chooses in each group.
template <class A>
void propose_on(const A& coordinates, const Point& point, const Choice& choice, Step& best) {
  best.clear();
  if (point.n < 2) return;
  if (!choice.rule->guided()) {
    WeightedPairs weighted;
    const auto view_of = [&](Index, Index) -> const A& { return coordinates; };
    return unguided_step(view_of, point, choice, weighted, best);
  }
  Step step;
  for (Index group = 0; group < point.n_groups; ++group) {
    const Index begin = point.starts[group], end = point.starts[group + 1];
    const double* lipschitz = choice.lipschitz ? choice.lipschitz + begin : nullptr;
    choose(coordinates.slice(begin, end), nullptr, choice, lipschitz,
           ByConstants{lipschitz, choice.alpha}, step);
    if (step.suspect >= 0) {
      best.suspect = begin + step.suspect;
      return;
    }
    if (step.beats(best)) {
      for (Index& i : step.index) i += begin;
      std::swap(step, best);
    }
  }
}

// For groups that share a total: the better of the steps inside a group and the step across groups.
inline void propose_nested(const Point& point, const Choice& choice, Step& best) {
  OwnPositionTable table(point.n);
  table.update_all(point);
  CrossGroup cross_group;
  cross_group.reset(point, table);
  const TableView inside(table), across = cross_group.view();
  best.clear();
  if (!choice.rule->guided()) {
    WeightedPairs weighted;
    const auto view_of = [&](Index i, Index j) -> const TableView& {
      return group_of(point, i) == group_of(point, j) ? inside : across;
    };
    return unguided_step(view_of, point, choice, weighted, best);
  }
  propose_on(inside, point, choice, best);
  Step step;
  choose(across, nullptr, choice, choice.lipschitz, ByConstants{choice.lipschitz, choice.alpha},
         step);
  cross_group.shorten(point, step);
  if (step.beats(best)) std::swap(step, best);
}

// The step of the rule at a point.
inline void propose(const Point& point, const Choice& choice, Step& step) {
  if (point.nested()) {
    propose_nested(point, choice, step);
  } else if (point.l1) {
    OwnPositionTable table(point.n);
    table.update_all(point);
    propose_on(TableView(table), point, choice, step);
  } else {
    propose_on(Box{point.n, point.gradient, point.x, point.lower, point.upper}, point, choice,
               step);
  }
}
