// What the block gear asks of a point: where its accounts stand and which are furthest out.
// Included once per instruction set.

inline Ledger ledger_of(const Point& point, const Standing& standing) {
  return {point.n,           point.gradient,     standing.down_shift,
          standing.up_shift, standing.down_room, standing.up_room};
}

// Price the accounts `which` anew (all where it is null).
inline void stand(const Point& point, const Standing& standing, const Index* which, Index count) {
  Ledger ledger = ledger_of(point, standing);
  for (Index k = 0; k < count; ++k) ledger.price_account(point, which ? which[k] : k);
}

inline void outliers(const Point& point, const Standing& standing, Index begin, Index end,
                     Index count, Outliers& found) {
  const Ledger here = ledger_of(point, standing).slice(begin, end);
  const auto prices = [&]<class T>(Index p) {
    return std::array<T, 2>{here.down_price<T>(p), -here.up_price<T>(p)};
  };
  top<2>(end - begin, count, {&found.sellers, &found.buyers}, prices);
  found.dearest = found.sellers.empty() ? -INFINITY : here.down_price<double>(found.sellers[0]);
  found.cheapest = found.buyers.empty() ? INFINITY : here.up_price<double>(found.buyers[0]);
  for (Index& i : found.sellers) i += begin;
  for (Index& i : found.buyers) i += begin;
}
