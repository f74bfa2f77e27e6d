// SPDX-License-Identifier: Apache-2.0
#include "sim/machine/measured_ratios.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <mutex>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "sim/config/diagnostics.h"
#include "sim/graph/kernel_classes.h"
#include "sim/machine/calibration.h"
#include "sim/units/comma_separated.h"

namespace orrery {
namespace {

/// Loads of experts are means over draws of a routing: files keep sixteenths of them.
std::int64_t sixteenths(double value) { return std::llround(16 * value); }
double of_sixteenths(std::int64_t value) { return static_cast<double>(value) / 16; }

/// A dimension by its name in the file; the place of wide_queries in a Kernel is a flag.
struct ShapeColumn {
  const char* name;
  std::int64_t (*get)(const Kernel&);
  void (*set)(Kernel&, std::int64_t);
};

constexpr std::array<ShapeColumn, 14> kDimensions = {{
    {"batch", [](const Kernel& k) { return k.batch; },
     [](Kernel& k, std::int64_t value) { k.batch = value; }},
    {"m", [](const Kernel& k) { return k.m; }, [](Kernel& k, std::int64_t value) { k.m = value; }},
    {"n", [](const Kernel& k) { return k.n; }, [](Kernel& k, std::int64_t value) { k.n = value; }},
    {"k", [](const Kernel& k) { return k.k; }, [](Kernel& k, std::int64_t value) { k.k = value; }},
    {"sequences", [](const Kernel& k) { return k.attention.sequences; },
     [](Kernel& k, std::int64_t value) { k.attention.sequences = value; }},
    {"kv_heads", [](const Kernel& k) { return k.attention.kv_heads; },
     [](Kernel& k, std::int64_t value) { k.attention.kv_heads = value; }},
    {"window", [](const Kernel& k) { return k.attention.window; },
     [](Kernel& k, std::int64_t value) { k.attention.window = value; }},
    {"wide_queries", [](const Kernel& k) { return std::int64_t{k.attention.wide_queries ? 1 : 0}; },
     [](Kernel& k, std::int64_t value) { k.attention.wide_queries = value != 0; }},
    {"active/16", [](const Kernel& k) { return sixteenths(k.load.active); },
     [](Kernel& k, std::int64_t value) { k.load.active = of_sixteenths(value); }},
    {"rows/16", [](const Kernel& k) { return sixteenths(k.load.rows); },
     [](Kernel& k, std::int64_t value) { k.load.rows = of_sixteenths(value); }},
    {"experts", [](const Kernel& k) { return std::int64_t{std::llround(k.load.experts)}; },
     [](Kernel& k, std::int64_t value) { k.load.experts = static_cast<double>(value); }},
    {"expected/16", [](const Kernel& k) { return sixteenths(k.load.expected); },
     [](Kernel& k, std::int64_t value) { k.load.expected = of_sixteenths(value); }},
    {"blocks/16", [](const Kernel& k) { return sixteenths(k.load.blocks[0]); },
     [](Kernel& k, std::int64_t value) { k.load.blocks[0] = of_sixteenths(value); }},
    {"sorted", [](const Kernel& k) { return std::int64_t{k.load.copies > 0 ? 1 : 0}; },
     [](Kernel& k, std::int64_t value) { k.load.copies = value != 0 ? 1 : 0; }},
}};
using Columns = std::vector<const ShapeColumn*>;

constexpr std::size_t kWidth = 100;  // characters of a line

/// The dimensions that are not all at their default, those with the fewest values first, so that
/// most points repeat the beginning of the one before.
template <class Iterator>
Columns columns_of(Iterator begin, Iterator end) {
  std::array<std::size_t, kDimensions.size()> counts{};
  Columns columns;
  for (std::size_t i = 0; i < kDimensions.size(); ++i) {
    std::set<std::int64_t> values;
    for (Iterator it = begin; it != end; ++it) values.insert(kDimensions[i].get(it->shape));
    counts[i] = values.size();
    if (values.size() > 1 || *values.begin() != kDimensions[i].get(Kernel{}))
      columns.push_back(&kDimensions[i]);
  }
  std::stable_sort(columns.begin(), columns.end(), [&](const ShapeColumn* a, const ShapeColumn* b) {
    return counts[static_cast<std::size_t>(a - kDimensions.data())] <
           counts[static_cast<std::size_t>(b - kDimensions.data())];
  });
  return columns;
}

std::vector<MeasuredRatio>::const_iterator end_of_class(
    std::vector<MeasuredRatio>::const_iterator begin,
    std::vector<MeasuredRatio>::const_iterator end) {
  return std::find_if(begin, end,
                      [begin](const auto& r) { return r.shape.kind != begin->shape.kind; });
}

std::int64_t thousandths(double ratio) {
  return std::max(std::int64_t{1}, std::int64_t{std::llround(ratio / kRatioStep)});
}

double ratio_of(std::int64_t thousandths) { return static_cast<double>(thousandths) / 1000; }

/// What a point adds to the one before.
std::string point_text(const MeasuredRatio& point, const MeasuredRatio* before,
                       const Columns& columns) {
  std::size_t first = 0;
  while (before != nullptr && first < columns.size() &&
         columns[first]->get(point.shape) == columns[first]->get(before->shape))
    ++first;
  std::string text;
  for (std::size_t i = first; i < columns.size(); ++i) {
    text += std::to_string(columns[i]->get(point.shape));
    text += ' ';
  }
  return text + std::to_string(thousandths(point.ratio));
}

/// Reads the text line by line.
class Reader {
 public:
  Reader(config::Location first, Precision precision, config::Diagnostics& diagnostics)
      : where_(std::move(first)), column_(where_.column), diagnostics_(diagnostics) {
    shape_.precision = precision;
  }

  void line(std::string_view text) {
    if (!text.empty() && (text[0] < '0' || text[0] > '9')) {
      head(text);
    } else {
      points(text);
    }
    ++where_.line;
  }
  std::vector<MeasuredRatio> take() { return std::move(ratios_); }

 private:
  void refuse(std::string_view line, std::string_view part, const std::string& message) {
    where_.column = column_ + static_cast<int>(part.data() - line.data());
    diagnostics_.error(where_, std::max(1, static_cast<int>(part.size())), message);
  }

  /// A class of kernels and its dimensions.
  void head(std::string_view line) {
    const Precision precision = shape_.precision;
    shape_ = {};
    shape_.precision = precision;
    columns_.clear();
    known_ = 0;
    std::string_view rest = line;
    const std::string_view name = take_until(' ', rest);
    const std::optional<KernelClass> kind = kernel_class_named(name);
    shape_.kind = kind.value_or(shape_.kind);
    if (!kind) refuse(line, name, "expected numbers or the name of a class of kernels");
    while (!rest.empty()) {
      const std::string_view key = take_until(' ', rest);
      const auto* dimension = std::find_if(kDimensions.begin(), kDimensions.end(),
                                           [key](const auto& d) { return key == d.name; });
      if (dimension == kDimensions.end()) {
        refuse(line, key,
               "no dimension of a kernel; expected one of " +
                   comma_joined(kDimensions, &ShapeColumn::name));
      } else {
        columns_.push_back(dimension);
      }
    }
  }

  void points(std::string_view line) {
    std::string_view rest = line;
    while (!rest.empty()) {
      point(line, take_until(',', rest));
      while (!rest.empty() && rest[0] == ' ') rest.remove_prefix(1);
    }
  }

  void point(std::string_view line, std::string_view text) {
    std::array<std::int64_t, kDimensions.size() + 1> numbers{};
    std::size_t count = 0;
    const char* at = text.data();
    const char* const end = at + text.size();
    bool good = !text.empty();
    while (good && at != end) {
      if (count > columns_.size()) {
        return refuse(line, text,
                      fmt::format("more numbers than the {} dimensions of this class and a ratio",
                                  columns_.size()));
      }
      const auto [next, error] = std::from_chars(at, end, numbers[count++]);
      good = error == std::errc{} && numbers[count - 1] >= 0 && (next == end || *next == ' ');
      at = next == end ? end : next + 1;
    }
    if (!good || numbers[count - 1] == 0)
      return refuse(line, text, "expected whole numbers, the last one above 0");
    const std::size_t first = columns_.size() + 1 - count;
    if (columns_.empty() || first > known_)
      return refuse(line, text, "nothing to take the dimensions before these from");
    for (std::size_t i = first; i < columns_.size(); ++i)
      columns_[i]->set(shape_, numbers[i - first]);
    known_ = columns_.size();
    ratios_.push_back({shape_, ratio_of(numbers[count - 1])});
  }

  config::Location where_;
  int column_;
  config::Diagnostics& diagnostics_;
  Kernel shape_;           ///< shape of the point before
  Columns columns_;        ///< columns of the kernel class
  std::size_t known_ = 0;  ///< dimensions that the point before has
  std::vector<MeasuredRatio> ratios_;
};

}  // namespace

void arrange(std::vector<MeasuredRatio>& ratios) {
  std::stable_sort(ratios.begin(), ratios.end(),
                   [](const auto& a, const auto& b) { return a.shape.kind < b.shape.kind; });
  for (auto begin = ratios.begin(); begin != ratios.end();) {
    const auto end = begin + (end_of_class(begin, ratios.cend()) - begin);
    const Columns columns = columns_of(begin, end);
    std::stable_sort(begin, end, [&columns](const auto& a, const auto& b) {
      for (const ShapeColumn* column : columns)
        if (column->get(a.shape) != column->get(b.shape))
          return column->get(a.shape) < column->get(b.shape);
      return a.ratio < b.ratio;
    });
    begin = end;
  }
  for (MeasuredRatio& point : ratios) {
    point.ratio = ratio_of(thousandths(point.ratio));
    for (const ShapeColumn& column : kDimensions) column.set(point.shape, column.get(point.shape));
  }
}

std::string write_ratios(const std::vector<MeasuredRatio>& ratios) {
  std::string out;
  for (auto begin = ratios.begin(); begin != ratios.end();) {
    const auto end = end_of_class(begin, ratios.end());
    const Columns columns = columns_of(begin, end);
    out += to_string(begin->shape.kind);
    for (const ShapeColumn* column : columns) out.append(" ").append(column->name);
    out += '\n';
    std::size_t width = 0;
    for (auto it = begin; it != end; ++it) {
      const std::string text = point_text(*it, it == begin ? nullptr : &*(it - 1), columns);
      if (it != begin) out += width + text.size() + 2 > kWidth ? ",\n" : ", ";
      width = out.back() == '\n' || it == begin ? text.size() : width + text.size() + 2;
      out += text;
    }
    out += '\n';
    begin = end;
  }
  return out;
}

std::vector<MeasuredRatio> parse_ratios(const std::string& text, const config::Location& first,
                                        Precision precision, config::Diagnostics& diagnostics) {
  Reader reader(first, precision, diagnostics);
  std::string_view rest = text;
  while (!rest.empty()) reader.line(take_until('\n', rest));
  return reader.take();
}

struct MeasuredRatios::Source {
  std::once_flag parsed;
  std::string text;
  config::Location first;
  Precision precision = Precision::kBf16;
  std::vector<MeasuredRatio> ratios;

  void parse() {
    if (text.empty()) return;
    config::Diagnostics diagnostics;
    ratios = parse_ratios(text, first, precision, diagnostics);
    diagnostics.throw_if_errors();
    text = {};
  }
};

MeasuredRatios::MeasuredRatios(std::vector<MeasuredRatio> ratios) {
  if (ratios.empty()) return;
  source_ = std::make_shared<Source>();
  source_->ratios = std::move(ratios);
}

MeasuredRatios::MeasuredRatios(std::string text, config::Location first, Precision precision) {
  if (text.empty()) return;
  source_ = std::make_shared<Source>();
  source_->text = std::move(text);
  source_->first = std::move(first);
  source_->precision = precision;
}

const std::vector<MeasuredRatio>& MeasuredRatios::all() const {
  static const std::vector<MeasuredRatio> kNone;
  if (source_ == nullptr) return kNone;
  std::call_once(source_->parsed, [this] { source_->parse(); });
  return source_->ratios;
}

}  // namespace orrery
