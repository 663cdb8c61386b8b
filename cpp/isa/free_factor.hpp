// The Hessian of the free variables of a problem with rows, and its Cholesky factor. Included once
// per instruction set.

// Q and the rows G of a problem. Multiples of a a' may be added to Q for rows a whose value is
// fixed. They change no solution, and they make the matrix definite where only the rows decide.
class Curvature {
 public:
  explicit Curvature(const QuadraticProgram& problem) : p_(problem), weight_(p_.rows) {
    for (Index i = 0; i < p_.n; ++i) largest_ = std::max(largest_, diagonal(i));
    if (!(largest_ > 0)) largest_ = 1.0;
    for (Index r = 0; r < p_.rows; ++r) {
      double square = 0.0;
      for (Index i = 0; i < p_.n; ++i) square = std::max(square, row(r)[i] * row(r)[i]);
      weight_[r] = square > 0 ? largest_ / square : 1.0;
    }
  }

  const double* row(Index r) const { return p_.matrix + r * p_.n; }
  double largest() const { return largest_; }  // diagonal entry of Q
  // Added to the diagonal of the free variables' Hessian, so that it is positive definite if Q is
  // singular. Corrections against the exact residuals remove its effect.
  double ridge() const { return RIDGE * largest_; }
  double weight(Index r) const { return weight_[r]; }  // of row r, if it is added
  void add(std::vector<Index> rows) { added_ = std::move(rows); }
  const std::vector<Index>& added() const { return added_; }

  // Add the entries of row i of the Hessian at the variables `at`, from position `begin` on.
  void add_entries(Index i, const std::vector<Index>& at, Index begin, double* to) const {
    const Index size = Index(at.size());
    if (p_.hessian) {
      const double* const own = p_.hessian + i * p_.n;
      for (Index a = begin; a < size; ++a) to[a] += own[at[a]];
    } else {
      for (Index f = 0; f < p_.m; ++f) {
        const double *const factor = p_.factors + f * p_.n, own = factor[i];
        for (Index a = begin; a < size; ++a) to[a] += own * factor[at[a]];
      }
      for (Index a = begin; a < size; ++a)
        if (at[a] == i) to[a] += p_.diagonal[i];
    }
    for (const Index r : added_) {
      if (row(r)[i] == 0) continue;
      const double by = weight_[r] * row(r)[i];
      for (Index a = begin; a < size; ++a) to[a] += by * row(r)[at[a]];
    }
  }

  // Qx, by columns if most entries of x are 0.
  void times_hessian(const std::vector<double>& x, std::vector<double>& product) const {
    const Index n = p_.n;
    product.resize(n);
    if (!p_.hessian) {
      for (Index i = 0; i < n; ++i) product[i] = p_.diagonal[i] * x[i];
      for (Index f = 0; f < p_.m; ++f) {
        const double* const factor = p_.factors + f * n;
        add_multiple(dot(factor, x.data(), n), factor, product.data(), n);
      }
      return;
    }
    if (2 * (n - std::count(x.begin(), x.end(), 0.0)) > n) {
      times(p_.hessian, x.data(), n, product.data());
      return;
    }
    std::fill(product.begin(), product.end(), 0.0);
    const double *columns[4], *const entries = x.data();
    double by[4];
    Index pending = 0;
    const auto add = [&](Index count) {
      std::fill(by + count, by + 4, 0.0);
      std::fill(columns + count, columns + 4, columns[0]);
      double* const to = product.data();
      for (Index i = 0; i < n; ++i)
        to[i] += (by[0] * columns[0][i] + by[1] * columns[1][i]) +
                 (by[2] * columns[2][i] + by[3] * columns[3][i]);
    };
    for (Index j = 0; j < n; ++j) {
      if (entries[j] == 0) continue;
      columns[pending] = p_.hessian + j * n;
      by[pending] = entries[j];
      if (++pending == 4) {
        add(4);
        pending = 0;
      }
    }
    if (pending > 0) add(pending);
  }

  void times_rows(const std::vector<double>& x, std::vector<double>& product) const {
    product.resize(p_.rows);
    for (Index r = 0; r < p_.rows; ++r) product[r] = dot(row(r), x.data(), p_.n);
  }
  // vector - sum_r weights_r row_r
  void subtract_rows(const std::vector<double>& weights, std::vector<double>& vector) const {
    for (Index r = 0; r < p_.rows; ++r)
      if (weights[r] != 0.0) add_multiple(-weights[r], row(r), vector.data(), p_.n);
  }

 private:
  double diagonal(Index i) const {
    if (p_.hessian) return p_.hessian[i * (p_.n + 1)];
    double sum = p_.diagonal[i];
    for (Index f = 0; f < p_.m; ++f) sum += p_.factors[f * p_.n + i] * p_.factors[f * p_.n + i];
    return sum;
  }

  static constexpr double RIDGE = 1e-11;  // relative to the largest entry of the diagonal

  QuadraticProgram p_;
  std::vector<double> weight_;
  std::vector<Index> added_;
  double largest_ = 0.0;
};

// The lower Cholesky factor L of the free variables' Hessian, and L^-1 G' for all rows G. Both are
// updated when a variable becomes free or is held.
class FreeFactor {
 public:
  struct Settings {
    // If the part of a variable's curvature that the other free variables do not explain is below
    // this fraction, the matrix counts as singular.
    static constexpr double singular = 1e-8;
  };

  explicit FreeFactor(Index rows) : k_(rows), width_(whole_vectors(rows)) {}

  const std::vector<Index>& free() const { return free_; }
  Index size() const { return Index(free_.size()); }
  // L^-1 times the entries of row r: number a of them.
  double row_entry(Index a, Index r) const { return rows_[a * width_ + r]; }

  // Change the list of free variables without updating the factor.
  void list(Index i) { free_.push_back(i); }
  void unlist(Index i) { free_.erase(std::find(free_.begin(), free_.end(), i)); }

  enum class Matrix { definite, singular, indefinite };

  // Factorize from scratch. There is no factor if the matrix is indefinite.
  Matrix factorize(const Curvature& curvature) {
    Scratch scratch;
    reserve(size());
    std::vector<double> diagonal(size());
    for (Index a = 0; a < size(); ++a) {
      double* const column = factor_.data() + a * stride_;
      std::fill_n(column, size(), 0.0);
      curvature.add_entries(free_[a], free_, a, column);
      diagonal[a] = column[a] += curvature.ridge();
    }
    if (size() > 0 && !cholesky(factor_.data(), size(), stride_, scratch))
      return Matrix::indefinite;
    bool definite = true;
    for (Index a = 0; a < size(); ++a) {
      const double pivot = factor_[a * (stride_ + 1)];
      definite = definite && pivot * pivot > Settings::singular * diagonal[a];
      double* const own = rows_.data() + a * width_;
      for (Index r = 0; r < k_; ++r) own[r] = curvature.row(r)[free_[a]];
      std::fill(own + k_, own + width_, 0.0);
    }
    for (Index c = 0; c < size(); ++c) {
      const double* const column = factor_.data() + c * stride_;
      double* const own = rows_.data() + c * width_;
      for (Index r = 0; r < width_; ++r) own[r] /= column[c];
      for (Index a = c + 1; a < size(); ++a)
        subtract(own, column[a], rows_.data() + a * width_, width_);
    }
    return definite ? Matrix::definite : Matrix::singular;
  }

  // Add a variable. False if the matrix becomes singular; the factor is then invalid.
  bool append(Index i, const Curvature& curvature) {
    const Index size = this->size();
    reserve(size + 1);
    free_.push_back(i);
    std::vector<double> last(std::size_t(size + 1));
    curvature.add_entries(i, free_, 0, last.data());
    const double own = last[size] + curvature.ridge();
    double rest = own;
    double* const of_rows = rows_.data() + size * width_;
    for (Index r = 0; r < k_; ++r) of_rows[r] = curvature.row(r)[i];
    std::fill(of_rows + k_, of_rows + width_, 0.0);
    for (Index c = 0; c < size; ++c) {
      double* const column = factor_.data() + c * stride_;
      const double solved = last[c] / column[c];
      add_multiple(-solved, column + c + 1, last.data() + c + 1, size - c - 1);
      column[size] = solved;
      rest -= solved * solved;
      subtract(rows_.data() + c * width_, solved, of_rows, width_);
    }
    if (!(rest > Settings::singular * own)) return false;
    const double root = std::sqrt(rest);
    factor_[size * stride_ + size] = root;
    for (Index r = 0; r < width_; ++r) of_rows[r] /= root;
    return true;
  }

  // Remove a variable, with Givens rotations of the columns after it.
  void remove(Index i) {
    const Index place = std::find(free_.begin(), free_.end(), i) - free_.begin(),
                size = this->size() - 1;
    free_.erase(free_.begin() + place);
    for (Index c = 0; c <= size; ++c) {
      double* const column = factor_.data() + c * stride_;
      std::copy(column + place + 1, column + size + 1, column + place);
    }
    // Row a of the factor now ends at column a + 1 if a >= place.
    for (Index c = place; c < size; ++c) {
      double *const left = factor_.data() + c * stride_, *const right = left + stride_;
      const double length = std::hypot(left[c], right[c]), cosine = left[c] / length,
                   sine = right[c] / length;
      rotate(cosine, sine, left + c, right + c, size - c);
      double* const upper = rows_.data() + c * width_;
      rotate(cosine, sine, upper, upper + width_, width_);
    }
  }

  // L^-1 r and L^-T r, in place.
  void solve_lower(double* r) const {
    for (Index c = 0; c < size(); ++c) {
      const double* const column = factor_.data() + c * stride_;
      r[c] /= column[c];
      add_multiple(-r[c], column + c + 1, r + c + 1, size() - c - 1);
    }
  }
  void solve_upper(double* r) const {
    for (Index c = size(); c-- > 0;) {
      const double* const column = factor_.data() + c * stride_;
      r[c] = (r[c] - dot(column + c + 1, r + c + 1, size() - c - 1)) / column[c];
    }
  }

  // to -= by from, for lines of a whole number of vectors
  static void subtract(const double* from, double by, double* to, Index size) {
    for (Index r = 0; r < size; r += WIDTH)
      store(to + r, multiply_subtract(all<Lanes>(by), load<Lanes>(from + r), load<Lanes>(to + r)));
  }

 private:
  static void rotate(double cosine, double sine, double* one, double* other, Index size) {
    for (Index a = 0; a < size; ++a) {
      const double l = one[a], r = other[a];
      one[a] = cosine * l + sine * r;
      other[a] = cosine * r - sine * l;
    }
  }

  // Make room for one more variable.
  void reserve(Index size) {
    if (size < stride_) return;
    const Index stride = whole_vectors(size + size / 2 + 8), before = stride_;
    std::vector<double> larger(std::size_t(stride * stride));
    for (Index c = 0; c < before; ++c)
      std::copy_n(factor_.data() + c * before, before, larger.data() + c * stride);
    factor_.swap(larger);
    rows_.resize(std::size_t(stride * width_));
    stride_ = stride;
  }

  Index k_, width_, stride_ = 0;  // lengths of lines of `rows_` and of columns of `factor_`
  std::vector<Index> free_;
  std::vector<double> factor_, rows_;
};
