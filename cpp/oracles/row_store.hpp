// Copies of rows that other processes sent, in the order of their arrival, as one data matrix.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <vector>

#include "points.hpp"

namespace pairstep {

class RowStore {
 public:
  // Append rows. They must have the storage type and the number of features of the earlier rows.
  void append(const DataMatrix& rows) {
    const bool matches = !rows.starts == !data_.starts && !rows.dense == !data_.dense &&
                         rows.features == data_.features;
    if (data_.rows > 0 && !matches)
      throw std::invalid_argument(
          "rows must have the same storage type and number of features as the rows before");
    const std::size_t entries = std::size_t(rows.rows * rows.features);
    if (rows.starts) {
      const Index before = Index(columns_.size());
      for (Index r = 1; r <= rows.rows; ++r) starts_.push_back(before + rows.starts[r]);
      columns_.insert(columns_.end(), rows.columns, rows.columns + rows.starts[rows.rows]);
      values_.insert(values_.end(), rows.values, rows.values + rows.starts[rows.rows]);
    } else if (rows.dense) {
      dense_.insert(dense_.end(), rows.dense, rows.dense + entries);
    } else {
      dense32_.insert(dense32_.end(), rows.dense32, rows.dense32 + entries);
    }
    data_.rows += rows.rows;
    data_.features = rows.features;
    data_.dense = rows.dense ? dense_.data() : nullptr;
    data_.dense32 = rows.dense32 ? dense32_.data() : nullptr;
    data_.starts = rows.starts ? starts_.data() : nullptr;
    data_.columns = columns_.data();
    data_.values = values_.data();
  }

  Index count() const { return data_.rows; }
  const DataMatrix& data() const { return data_; }
  DataMatrix& data() { return data_; }

 private:
  DataMatrix data_;
  std::vector<double> dense_, values_;
  std::vector<float> dense32_;
  std::vector<Index> starts_ = {0};
  std::vector<std::int32_t> columns_;
};

}  // namespace pairstep
