// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "sim/config/declared.h"
#include "sim/config/location.h"
#include "sim/graph/kernel.h"

namespace orrery {

/// What a measured kernel took over what the fitted parameters alone predict.
struct MeasuredRatio {
  Kernel
      shape;  ///< class and dimensions; precision is that of the fit, FLOPs and bytes are not set
  double ratio = 1;
};

/// The finest step of a ratio in a file.
inline constexpr double kRatioStep = 1e-3;

/// Sorts ratios as they are written and rounds them and loads of experts to what a file keeps.
void arrange(std::vector<MeasuredRatio>& ratios);

/// The text of a calibration file, lines without indentation. For each class of kernels first a
/// line that names the class and the dimensions that are told (others have their default), then
/// points, separated by commas: the dimensions in that order and the ratio in thousandths. A point
/// with fewer numbers keeps the first dimensions of the point before.
/// @code
/// gemm k n m
/// 128 256 1 1013, 2 1009, 512 1 998,
/// @endcode
/// @param ratios arranged
std::string write_ratios(const std::vector<MeasuredRatio>& ratios);

/// Reads it back. What is wrong goes to `diagnostics`.
/// @param first where the first line of the text stands
std::vector<MeasuredRatio> parse_ratios(const std::string& text, const config::Location& first,
                                        Precision precision, config::Diagnostics& diagnostics);

/// The measured ratios of a fit. Files have tens of thousands, of which one experiment needs those
/// of a few fits: a text is parsed when its ratios are first asked for, once for all copies.
class MeasuredRatios {
 public:
  using Iterator = std::vector<MeasuredRatio>::const_iterator;

  MeasuredRatios() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): a list of ratios is their simplest form
  MeasuredRatios(std::vector<MeasuredRatio> ratios);
  /// As parse_ratios().
  MeasuredRatios(std::string text, config::Location first, Precision precision);

  /// Whether there are none, without parsing a text: one that is there has some.
  bool empty() const { return source_ == nullptr; }
  /// @throws config::ConfigError with what is wrong in the text and where, at every call
  const std::vector<MeasuredRatio>& all() const;
  std::size_t size() const { return all().size(); }
  Iterator begin() const { return all().begin(); }
  Iterator end() const { return all().end(); }

 private:
  struct Source;
  std::shared_ptr<Source> source_;  ///< null: none
};

}  // namespace orrery
