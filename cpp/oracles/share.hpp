// A share of a kernel machine: the prices of some of its accounts, where their rows are. Together
// the shares answer what the block gear asks; see pairstep.dask. An account that has moved, of this
// share or another, is a mover: all shares number them alike and keep their rows.
#pragma once

#include <memory>
#include <vector>

#include "prices.hpp"
#include "row_store.hpp"

namespace pairstep {

struct ShareTask {
  KernelFunction kernel;
  DataMatrix data;        // the rows that are here
  const Index* accounts;  // their numbers in the whole, in rising order
  const Index* rows;      // of each account
  const double* linear;
  Point point;              // of these accounts; all of them are at 0 in the beginning
  Index whole;              // how many accounts there are in all
  std::size_t cache_bytes;  // for kernel rows
};

class Share {
 public:
  virtual ~Share() = default;

  // More movers, at 0: accounts, and where the store has their rows.
  virtual void introduce(const std::vector<Index>& accounts, const std::vector<Index>& slots) = 0;
  // These movers are at x now: bring the prices up to date. Kernel rows of those that are `free`
  // are worth keeping.
  virtual void advance(const std::vector<Index>& movers, const double* x, const bool* free,
                       Team& team) = 0;
  virtual void survey(Index count, bool with_free, Survey& found) const = 0;
  // Compute the prices anew in float64 that are within `margin` of the dearest and the cheapest
  // anywhere, but for those that were since `anew` was last said. How many these were, and the
  // largest error that was found.
  struct Verified {
    Index count;
    double error;
  };
  virtual Verified verify(const std::vector<Market>& markets, double margin, bool anew,
                          Team& team) = 0;
  virtual std::vector<Market> markets() const = 0;
  // As an oracle's: who can trade at these prices, and to go on with only these.
  virtual Index active(const std::vector<Market>& markets) const = 0;
  virtual void shrink(const std::vector<Market>& markets) = 0;
  virtual void unshrink(Team& team) = 0;

  virtual const double* gradient() const = 0;

  double largest_square = 0.0, sum_of_squares = 0.0;  // of the norms of the points
};

// In float32 or float64. The store outlives the share.
std::unique_ptr<Share> make_share(const ShareTask& task, const RowStore& store, bool single);

}  // namespace pairstep
