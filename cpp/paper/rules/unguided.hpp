// Rules that choose a pair without looking at the derivatives: random and cyclic. The NumPy form is
// src/pairstep/paper/rules/unguided.py. `pair` returns {-1, -1} if the first coordinate is alone in
// its group. Included once per instruction set.
#pragma once

#include "../rule.hpp"

namespace unguided {

struct Random {
  static constexpr Rule about{.name = "random", .draws = true};

  static std::array<Index, 2> pair(const Point& point, const Choice& choice, WeightedPairs&) {
    const double first = choice.random->uniform(), second = choice.random->uniform();
    const Index i = Index(first * double(point.n));
    const Members group = members_of(point, i);
    if (group.size() < 2) return {-1, -1};
    const Index j = group.begin + Index(second * double(group.size() - 1));
    return {i, j + (j >= i)};
  }
};

struct RandomLipschitz {
  static constexpr Rule about{.name = "random-lipschitz", .weighted = true, .draws = true};

  static std::array<Index, 2> pair(const Point& point, const Choice& choice,
                                   WeightedPairs& weighted) {
    const double first = choice.random->uniform(), second = choice.random->uniform();
    if (!weighted.ready()) weighted.set_up(choice.lipschitz, point.n);
    const Index i = weighted.draw(first, 0, point.n, -1);
    const Members group = members_of(point, i);
    if (group.size() < 2) return {-1, -1};
    return {i, weighted.draw(second, group.begin, group.end, i)};
  }
};

struct Cyclic {
  static constexpr Rule about{.name = "cyclic", .in_turn = true};

  static std::array<Index, 2> pair(const Point& point, const Choice& choice, WeightedPairs&) {
    const Index i = choice.turn % point.n, sweep = choice.turn / point.n;
    const Members group = members_of(point, i);
    if (group.size() < 2) return {-1, -1};
    const Index ahead = 1 + sweep % std::max<Index>(group.size() / 2, 1);
    return {i, group.begin + (i - group.begin + ahead) % group.size()};
  }
};

using Rules = RuleList<Random, RandomLipschitz, Cyclic>;

}  // namespace unguided
