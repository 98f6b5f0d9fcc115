// A block in SDPB's binary form, written by Boost's serialization library itself.
//
// El::BigFloat and El::Matrix stand here as what their serialization sees of them: a number is the bytes of its limbs'
// count, exponent and limbs, a matrix its sizes and numbers. From standard input: the precision; then B, c and both
// bases, each as rows, columns, leading dimension and the numbers' halves, column by column.
#include <boost/archive/binary_oarchive.hpp>
#include <boost/serialization/array.hpp>
#include <boost/serialization/split_free.hpp>
#include <boost/serialization/tracking.hpp>
#include <boost/serialization/vector.hpp>
#include <boost/serialization/version.hpp>
#include <cstdint>
#include <cstring>
#include <iostream>

namespace El
{
  std::size_t limbs;

  struct BigFloat
  {
    std::int64_t halves = 0;
  };

  template <class T> struct Matrix
  {
    int rows, cols, leading;
    std::vector<T> entries;
  };
}

namespace boost::serialization
{
  template <class Archive> void serialize(Archive &ar, El::BigFloat &f, const version_type &)
  {
    bool is_zero = f.halves == 0;
    ar & is_zero;
    if(is_zero)
      return;
    const std::uint64_t size = f.halves < 0 ? -f.halves : f.halves;
    std::vector<std::uint64_t> limbs(El::limbs, 0x1234);
    limbs[0] = size << 63;
    limbs[1] = size >> 1;
    const int count = f.halves < 0 ? -2 : 2;
    const std::int64_t exponent = 1;
    std::vector<unsigned char> bytes(12 + 8 * El::limbs);
    std::memcpy(bytes.data(), &count, 4);
    std::memcpy(bytes.data() + 4, &exponent, 8);
    std::memcpy(bytes.data() + 12, limbs.data(), 8 * El::limbs);
    auto array = make_array(bytes.data(), bytes.size());
    ar & array;
  }

  template <class Archive, class T> void save(Archive &ar, const El::Matrix<T> &m, const version_type &)
  {
    ar & m.rows;
    ar & m.cols;
    ar & m.leading;
    auto data = make_array(m.entries.data(), m.entries.size());
    ar & data;
  }

  template <class Archive, class T> void load(Archive &, El::Matrix<T> &, const version_type &) {}
}

BOOST_CLASS_VERSION(El::BigFloat, 1)
BOOST_SERIALIZATION_SPLIT_FREE(El::Matrix<El::BigFloat>)
BOOST_CLASS_TRACKING(El::BigFloat, boost::serialization::track_never)
BOOST_CLASS_TRACKING(El::Matrix<El::BigFloat>, boost::serialization::track_never)

static El::Matrix<El::BigFloat> read()
{
  El::Matrix<El::BigFloat> m;
  std::cin >> m.rows >> m.cols >> m.leading;
  m.entries.resize(std::size_t(m.leading) * m.cols);
  for(auto &entry : m.entries)
    std::cin >> entry.halves;
  return m;
}

int main()
{
  unsigned long precision;
  std::cin >> precision;
  El::limbs = precision / 64 + 2;
  const auto B = read(), c = read(), even = read(), odd = read();
  boost::archive::binary_oarchive ar(std::cout);
  ar << precision << B << c.entries << even << odd;
}
