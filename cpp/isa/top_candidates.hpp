// Candidates for the working set of the block solver. Included once per instruction set.

// The `count` coordinates in [begin, end) with the largest left derivatives, and the `count` with
// the smallest right derivatives.
inline void top_candidates(const PositionTable& table, Index begin, Index end, Index count,
                           TopCandidates& found) {
  const TableView here(table.slice(begin, end));
  top<2>(end - begin, count, {&found.decreasing, &found.increasing}, [&]<class T>(Index p) {
    return std::array<T, 2>{here.left_derivative<T>(p), -here.right_derivative<T>(p)};
  });
  for (Index& i : found.decreasing) i += begin;
  for (Index& i : found.increasing) i += begin;
}
