#include "data.hpp"

namespace pairstep {

namespace {

using Csr = std::tuple<Indices, Indices32, In, Index>;

}  // namespace

DataMatrix data_of(const nb::object& object) {
  DataMatrix data;
  if (Csr csr; nb::try_cast(object, csr, false)) {
    const auto& [starts, columns, values, features] = csr;
    data.rows = Index(starts.shape(0)) - 1;
    data.features = features;
    require(data.rows >= 0 && starts(0) == 0 && columns.shape(0) == values.shape(0) &&
                starts(data.rows) == Index(columns.shape(0)),
            "starts of a CSR matrix must go from 0 to the number of values");
    for (Index r = 0; r < data.rows; ++r)
      require(starts(r) <= starts(r + 1), "starts of a CSR matrix must be ascending");
    for (std::size_t e = 0; e < columns.shape(0); ++e)
      require(columns(e) >= 0 && columns(e) < features,
              "columns of a CSR matrix must be in range(features)");
    data.starts = starts.data();
    data.columns = columns.data();
    data.values = values.data();
  } else if (Matrix dense; nb::try_cast(object, dense, false)) {
    data.rows = Index(dense.shape(0));
    data.features = Index(dense.shape(1));
    data.dense = dense.data();
  } else {
    const Matrix32 dense32 = nb::cast<Matrix32>(object, false);
    data.rows = Index(dense32.shape(0));
    data.features = Index(dense32.shape(1));
    data.dense32 = dense32.data();
  }
  return data;
}

DataMatrix data_for(const KernelFunction& kernel, const nb::object& object,
                    const std::optional<In>& center) {
  DataMatrix data = data_of(object);
  require(!center || Index(center->shape(0)) == data.features,
          "center must have one entry per feature");
  if (kernel.name != KernelName::precomputed)
    data.lay_out(kernel, center ? center->data() : nullptr);
  return data;
}

}  // namespace pairstep
