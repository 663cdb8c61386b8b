// A cache of computed kernel rows with a limit on its memory. It evicts the least recently used
// row.
#pragma once

#include <algorithm>
#include <vector>

#include "../core/arena.hpp"
#include "../isa/dispatch.hpp"

namespace pairstep {

template <class Real>
class RowCache {
 public:
  // A cache for `count` positions, each with a row of `length` values, which must be a whole number
  // of panels. The rows lie in the first `bytes` of the arena, which limits their number.
  RowCache(const Arena& arena, std::size_t bytes, Index length, Index count)
      : arena_(&arena), bytes_(bytes), length_(length) {
    resize(count);
  }

  // Set the number of positions, which must not decrease.
  void resize(Index count) {
    const std::size_t bytes = std::size_t(std::max<Index>(length_, 1)) * sizeof(Real);
    slot_of_.resize(std::size_t(count), -1);
    capacity_ = std::min(count, Index(bytes_ / bytes));
    owner_.reserve(capacity_);
    used_.reserve(capacity_);
  }

  bool holds(Index position) const { return slot_of_[position] >= 0; }
  const Real* row(Index position) const { return at(slot_of_[position]); }

  // Begin a new age. Rows used in the current age are not evicted.
  void next_age() { ++age_; }
  void touch(Index position) { used_[slot_of_[position]] = age_; }

  // Return where to write the rows of these positions, none of which is in the cache. The pointer
  // is null if should_keep(position) is false or if there is no space.
  template <class Predicate>
  std::vector<Real*> claim(const std::vector<Index>& positions, Predicate should_keep) {
    const Index wanted = std::count_if(positions.begin(), positions.end(), should_keep);
    Index lacking = wanted - (capacity_ - Index(owner_.size()));
    std::vector<Index> vacant;
    if (lacking > 0) {
      for (Index slot = 0; slot < Index(owner_.size()); ++slot)
        if (used_[slot] < age_) vacant.push_back(slot);
      lacking = std::min(lacking, Index(vacant.size()));
      std::nth_element(vacant.begin(), vacant.begin() + lacking, vacant.end(),
                       [&](Index a, Index b) { return used_[a] < used_[b]; });
      vacant.resize(lacking);
      for (const Index slot : vacant) slot_of_[owner_[slot]] = -1;
    }
    std::vector<Real*> rows(positions.size(), nullptr);
    for (std::size_t k = 0; k < positions.size(); ++k) {
      if (!should_keep(positions[k])) continue;
      Index slot = Index(owner_.size());
      if (!vacant.empty()) {
        slot = vacant.back();
        vacant.pop_back();
      } else if (slot < capacity_) {
        owner_.push_back(-1);
        used_.push_back(0);
      } else {
        break;
      }
      owner_[slot] = positions[k];
      used_[slot] = age_;
      slot_of_[positions[k]] = slot;
      rows[k] = at(slot);
    }
    return rows;
  }

 private:
  Real* at(Index slot) const { return static_cast<Real*>(arena_->data()) + slot * length_; }

  const Arena* arena_;
  std::size_t bytes_;
  Index length_, capacity_, age_ = 0;
  std::vector<Index> slot_of_;  // of each position, -1 if its row is not in the cache
  std::vector<Index> owner_;    // position of each slot
  std::vector<Index> used_;     // age in which each slot was last used
};

}  // namespace pairstep
