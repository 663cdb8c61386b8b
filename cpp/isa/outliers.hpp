// What the block gear asks of many prices: which are furthest out. Included once per instruction
// set.

// The `count` dearest sellers and cheapest buyers of [begin, end).
inline void outliers(const Ledger& ledger, Index begin, Index end, Index count, Outliers& found) {
  const Book here(ledger.slice(begin, end));
  top<2>(end - begin, count, {&found.sellers, &found.buyers}, [&]<class T>(Index p) {
    return std::array<T, 2>{here.down_price<T>(p), -here.up_price<T>(p)};
  });
  for (Index& i : found.sellers) i += begin;
  for (Index& i : found.buyers) i += begin;
}
