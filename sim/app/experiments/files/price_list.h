// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/config/declared.h"

namespace orrery {

inline constexpr double kSecondsAnHour = 3600;

/// What an hour of an accelerator costs.
struct AcceleratorPrice {
  std::string accelerator;
  double usd = 0;
  static const config::Schema<AcceleratorPrice>& schema();
};

/// A file of `configs/prices`: prices of one kind, from one document, of one day.
struct PriceList {
  std::string id;
  std::string source;  ///< document that has them
  std::string column;  ///< which of its prices
  std::string date;    ///< date of the document
  std::vector<AcceleratorPrice> usd_per_hour;
  static const config::Schema<PriceList>& schema();

  /// USD an hour; nothing where the list has no such accelerator.
  std::optional<double> of(const std::string& accelerator) const;
  /// "neocloud, 2026-04-03"
  std::string text() const { return id + ", " + date; }
};

/// The file that a name of the library, or a path, means; empty for "none".
std::string price_file(const std::string& prices);

/// The list that a name or a path means; nothing for "none".
/// @throws config::ConfigError for what is wrong with it
std::optional<PriceList> price_list(const std::string& prices);

/// @param key of the name in `node`
/// @throws config::ConfigError for a name that does not exist and for mistakes in the list: no
/// value goes with them, so they are no contradiction of values
void require_prices(const std::string& prices, const std::string& key, const config::Node& node);

}  // namespace orrery
