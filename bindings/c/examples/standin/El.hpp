// A stand-in for Elemental: as much of its public interface as sunzi/elemental.hpp uses, with the names and meanings of
// include/El/core/DistMatrix/Abstract.hpp, Grid.hpp, Matrix.hpp and imports/mpfr.hpp, all in include/El/core, of
// github.com/elemental/Elemental (BSD 2-Clause). Written anew; matrices only lie there, nothing is computed.
#ifndef STANDIN_EL_HPP
#define STANDIN_EL_HPP

#include <gmpxx.h>
#include <mpfr.h>
#include <mpi.h>
#include <vector>

namespace El {

typedef int Int;
enum Dist { MC, MD, MR, VC, VR, STAR, CIRC };
enum GridOrder { ROW_MAJOR, COLUMN_MAJOR };
enum Orientation { NORMAL, TRANSPOSE, ADJOINT };
enum UpperOrLower { LOWER, UPPER };
enum LeftOrRight { LEFT, RIGHT };
enum UnitOrNonUnit { NON_UNIT, UNIT };

// A number as upstream Elemental has it: an mpfr_t, and how many limbs it has.
class BigFloat {
  public:
    explicit BigFloat(mpfr_prec_t bits = 768) : limbs_((bits - 1) / GMP_NUMB_BITS + 1) {
        mpfr_init2(float_, bits);
        mpfr_set_zero(float_, 1);
    }
    BigFloat(const BigFloat &other) : limbs_(other.limbs_) {
        mpfr_init2(float_, mpfr_get_prec(other.float_));
        mpfr_set(float_, other.float_, MPFR_RNDN);
    }
    BigFloat &operator=(const BigFloat &) = delete;
    ~BigFloat() { mpfr_clear(float_); }
    mpfr_ptr Pointer() { return float_; }
    mpfr_srcptr LockedPointer() const { return float_; }

  private:
    mpfr_t float_;
    size_t limbs_;
};

// A matrix of one rank, its own or a view of a part of another.
template <class T> class Matrix {
  public:
    Matrix(Int height, Int width)
        : height_(height), width_(width), ldim_(height + 1), own_(static_cast<size_t>(ldim_) * (width + 1)),
          first_(own_.data()) {}
    Matrix(Int height, Int width, T *first, Int ldim) : height_(height), width_(width), ldim_(ldim), first_(first) {}
    Matrix(const Matrix &) = delete;
    Matrix(Matrix &&) = default; // the entries of a vector stay where they are
    Int Height() const { return height_; }
    Int Width() const { return width_; }
    Int LDim() const { return ldim_; }
    T *Buffer() { return first_; }
    const T *LockedBuffer() const { return first_; }
    T &operator()(Int i, Int j) { return first_[i + static_cast<size_t>(j) * ldim_]; }

  private:
    Int height_, width_, ldim_;
    std::vector<T> own_;
    T *first_;
};

template <class T> Matrix<T> View(Matrix<T> &of, Int i, Int j, Int height, Int width) {
    return Matrix<T>(height, width, of.Buffer() + i + static_cast<size_t>(j) * of.LDim(), of.LDim());
}

class Grid {
  public:
    Grid(MPI_Comm comm, Int height, GridOrder order = COLUMN_MAJOR) : comm_(comm), height_(height), order_(order) {
        MPI_Comm_rank(comm, &rank_);
        MPI_Comm_size(comm, &size_);
    }
    Int Height() const { return height_; }
    Int Width() const { return size_ / height_; }
    Int Size() const { return size_; }
    Int Row() const { return order_ == COLUMN_MAJOR ? rank_ % Height() : rank_ / Width(); }
    Int Col() const { return order_ == COLUMN_MAJOR ? rank_ / Height() : rank_ % Width(); }
    Int Rank() const { return rank_; }
    GridOrder Order() const { return order_; }
    MPI_Comm Comm() const { return comm_; }

  private:
    MPI_Comm comm_;
    Int height_, rank_, size_;
    GridOrder order_;
};

struct DistData {
    Dist colDist, rowDist;
    Int colAlign, rowAlign;
};

template <class T, Dist U = MC, Dist V = MR> class DistMatrix {
  public:
    // The leading dimension is larger than it need be.
    DistMatrix(Int height, Int width, const Grid &grid, Int colAlign = 0, Int rowAlign = 0)
        : height_(height), width_(width), colAlign_(colAlign), rowAlign_(rowAlign), grid_(grid),
          ldim_(LocalHeight() + 2), entries_(static_cast<size_t>(ldim_) * (LocalWidth() + 1)) {}
    Int Height() const { return height_; }
    Int Width() const { return width_; }
    Int LocalHeight() const { return length(height_, ColShift(), stride(U)); }
    Int LocalWidth() const { return length(width_, RowShift(), stride(V)); }
    Int LDim() const { return ldim_; }
    T *Buffer() { return entries_.data(); }
    const T *LockedBuffer() const { return entries_.data(); }
    T &Local(Int i, Int j) { return entries_[i + static_cast<size_t>(j) * ldim_]; }
    const El::Grid &Grid() const { return grid_; }
    Int ColAlign() const { return colAlign_; }
    Int RowAlign() const { return rowAlign_; }
    Int ColShift() const { return shift(U, colAlign_); }
    Int RowShift() const { return shift(V, rowAlign_); }
    Int GlobalRow(Int i) const { return ColShift() + i * stride(U); }
    Int GlobalCol(Int j) const { return RowShift() + j * stride(V); }
    El::DistData DistData() const { return El::DistData{U, V, colAlign_, rowAlign_}; }

  private:
    Int stride(Dist d) const {
        if (d == MC) return grid_.Height();
        if (d == MR) return grid_.Width();
        return d == VC || d == VR ? grid_.Size() : 1;
    }
    Int number(Dist d) const {
        if (d == MC) return grid_.Row();
        if (d == MR) return grid_.Col();
        if (d == VC) return grid_.Col() * grid_.Height() + grid_.Row();
        return d == VR ? grid_.Row() * grid_.Width() + grid_.Col() : 0;
    }
    Int shift(Dist d, Int align) const { return (number(d) + stride(d) - align) % stride(d); }
    // Of [CIRC, CIRC] the first rank has all.
    Int length(Int n, Int shift, Int stride) const {
        if (U == CIRC && grid_.Rank() != 0) return 0;
        return n > shift ? (n - shift - 1) / stride + 1 : 0;
    }
    Int height_, width_, colAlign_, rowAlign_;
    const El::Grid &grid_;
    Int ldim_;
    std::vector<T> entries_;
};

} // namespace El

// The namespace of a fork whose numbers are an mpf_class and nothing else.
namespace fork {

struct BigFloat {
    mpf_class gmp_float;
    BigFloat() : gmp_float(0, 768) {}
};

} // namespace fork

#endif
