// SPDX-License-Identifier: Apache-2.0
#include "sim/store/point_column.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <utility>

#include "sim/results/record_bytes.h"

namespace orrery {
namespace {

constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();
/// So many different values are told by a byte each.
constexpr std::size_t kMostCoded = 256;

enum class Layout : std::uint64_t { kPlain = 0, kCoded = 1, kWords = 2 };

/// Different numbers in the order of their first rows, and their places; none: there are too many.
bool coded(const std::vector<double>& numbers, std::vector<double>& different, std::string& codes) {
  std::map<std::uint64_t, unsigned char> places;
  codes.reserve(numbers.size());
  for (const double number : numbers) {
    const auto [known, added] = places.emplace(std::bit_cast<std::uint64_t>(number),
                                               static_cast<unsigned char>(different.size()));
    if (added && different.size() == kMostCoded) return false;
    if (added) different.push_back(number);
    codes += static_cast<char>(known->second);
  }
  return true;
}

std::string raw(const void* data, std::size_t bytes) {
  return {static_cast<const char*>(data), bytes};
}

std::string bytes_of_numbers(const std::vector<double>& numbers) {
  ByteWriter bytes;
  std::vector<double> different;
  std::string codes;
  if (!coded(numbers, different, codes)) {
    bytes.add(static_cast<std::uint64_t>(Layout::kPlain));
    bytes.add(raw(numbers.data(), numbers.size() * sizeof(double)));
    return bytes.bytes();
  }
  bytes.add(static_cast<std::uint64_t>(Layout::kCoded));
  bytes.add(raw(different.data(), different.size() * sizeof(double)));
  bytes.add(different.size() > 1 ? codes : std::string());
  return bytes.bytes();
}

std::string bytes_of_words(const PointColumn& column) {
  ByteWriter bytes;
  bytes.add(static_cast<std::uint64_t>(Layout::kWords));
  bytes.add(std::uint64_t{column.words.size()});
  for (const std::string& word : column.words) bytes.add(word);
  bytes.add(raw(column.codes.data(), column.codes.size() * sizeof(column.codes.front())));
  return bytes.bytes();
}

/// An array whose bytes those are.
template <class T>
std::vector<T> array_of(const std::string& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  return values;
}

void read_words(ByteReader& bytes, std::size_t first, std::size_t rows, ColumnBuilder& into) {
  std::vector<std::uint32_t> places(bytes.number());  // of words here; the first is none
  for (std::size_t i = 0; i < places.size(); ++i) {
    std::string word = bytes.text();
    if (i > 0) places[i] = into.code(std::move(word));
  }
  const auto codes = array_of<std::uint32_t>(bytes.text());
  for (std::size_t row = 0; row < rows; ++row)
    if (codes.at(row) > 0) into.column().codes[first + row] = places.at(codes[row]);
}

}  // namespace

PointColumn PointColumn::empty(Kind kind, std::string unit, std::size_t rows) {
  PointColumn column;
  column.kind = kind;
  column.unit = std::move(unit);
  if (kind == Kind::kWord) {
    column.codes.assign(rows, 0);
  } else {
    column.numbers.assign(rows, kNoNumber);
  }
  return column;
}

bool PointColumn::has(std::size_t row) const {
  return kind == Kind::kWord ? codes[row] != 0 : !std::isnan(numbers[row]);
}

std::uint32_t ColumnBuilder::code(std::string word) {
  if (last_ != 0 && column_.words[last_] == word) return last_;
  const auto [known, added] =
      codes_.emplace(std::move(word), static_cast<std::uint32_t>(column_.words.size()));
  if (added) column_.words.push_back(known->first);
  return last_ = known->second;
}

std::string to_bytes(const PointColumn& column) {
  return column.kind == PointColumn::Kind::kWord ? bytes_of_words(column)
                                                 : bytes_of_numbers(column.numbers);
}

void from_bytes(std::string_view bytes, std::size_t first, std::size_t rows, ColumnBuilder& into) {
  ByteReader reader(bytes);
  const auto layout = static_cast<Layout>(reader.number());
  if ((layout == Layout::kWords) != into.is_words())
    throw std::out_of_range("numbers are no words");
  if (layout == Layout::kWords) return read_words(reader, first, rows, into);
  const auto numbers = array_of<double>(reader.text());
  const std::string codes = layout == Layout::kCoded ? reader.text() : std::string();
  for (std::size_t row = 0; row < rows; ++row) {
    std::size_t place = row;
    if (layout == Layout::kCoded)
      place = codes.empty() ? 0 : static_cast<unsigned char>(codes.at(row));
    if (!std::isnan(numbers.at(place))) into.set(first + row, numbers[place]);
  }
}

}  // namespace orrery
