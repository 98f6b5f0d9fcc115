// Numbers of either library as values, for the few routines that compute without the context.
#ifndef SUNZI_MPLAPACK_NUMBER_H
#define SUNZI_MPLAPACK_NUMBER_H

#include <vector>

namespace sunzi_mplapack {

// A number of the kind K (see gmp.cpp and mpfr.cpp) at a precision that results of operators inherit from their left
// operand.
template <class K> class Number {
  public:
    typedef typename K::raw raw;

    explicit Number(long bits) : bits_(bits) { K::init(&raw_, bits); }
    Number(long bits, const raw *value) : Number(bits) { K::set(&raw_, value); }
    Number(long bits, long value) : Number(bits) { K::set_si(&raw_, value); }
    Number(const Number &other) : Number(other.bits_, &other.raw_) {}
    ~Number() { K::clear(&raw_); }
    Number &operator=(const Number &other) {
        K::set(&raw_, &other.raw_);
        return *this;
    }

    const raw *get() const { return &raw_; }
    raw *get() { return &raw_; }
    long bits() const { return bits_; }
    int sign() const { return K::sign(&raw_); }

    friend Number operator+(Number left, const Number &right) {
        K::add(&left.raw_, &left.raw_, &right.raw_);
        return left;
    }
    friend Number operator-(Number left, const Number &right) {
        K::sub(&left.raw_, &left.raw_, &right.raw_);
        return left;
    }
    friend Number operator*(Number left, const Number &right) {
        K::mul(&left.raw_, &left.raw_, &right.raw_);
        return left;
    }
    friend Number operator/(Number left, const Number &right) {
        K::div(&left.raw_, &left.raw_, &right.raw_);
        return left;
    }
    Number operator-() const {
        Number result(*this);
        K::neg(&result.raw_, &raw_);
        return result;
    }
    friend Number abs(Number value) {
        K::abs(&value.raw_, &value.raw_);
        return value;
    }
    friend Number sqrt(Number value) {
        K::sqrt(&value.raw_, &value.raw_);
        return value;
    }
    friend bool operator<(const Number &left, const Number &right) { return K::cmp(&left.raw_, &right.raw_) < 0; }

  private:
    raw raw_;
    long bits_;
};

// An array of numbers at one precision.
template <class K> std::vector<Number<K>> numbers(int64_t count, long bits) {
    return std::vector<Number<K>>(static_cast<size_t>(count), Number<K>(bits, 0L));
}

} // namespace sunzi_mplapack

#endif
