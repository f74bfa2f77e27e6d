// SPDX-License-Identifier: Apache-2.0
#include "sim/app/experiments/files/price_list.h"

#include <algorithm>
#include <filesystem>

#include <nlohmann/json.hpp>

#include "sim/app/experiments/files/file_kind.h"
#include "sim/config/load.h"
#include "sim/units/spelling.h"

namespace orrery {

const config::Schema<AcceleratorPrice>& AcceleratorPrice::schema() {
  using P = AcceleratorPrice;
  static const auto schema = config::Schema<P>("price", "what an hour of an accelerator costs")
                                 .required("accelerator", &P::accelerator, "name of the library")
                                 .required("usd", &P::usd, "USD an hour", config::at_least(0));
  return schema;
}

const config::Schema<PriceList>& PriceList::schema() {
  using P = PriceList;
  static const auto schema =
      config::Schema<P>("prices", "prices of one kind, from one document, of one day")
          .named("prices", &P::id)
          .required("source", &P::source, "document that has them")
          .required("column", &P::column, "which of its prices")
          .required("date", &P::date, "date of the document")
          .required("usd_per_hour", &P::usd_per_hour, "USD an hour of each accelerator");
  return schema;
}

std::optional<double> PriceList::of(const std::string& accelerator) const {
  const auto found = std::ranges::find(usd_per_hour, accelerator, &AcceleratorPrice::accelerator);
  if (found == usd_per_hour.end()) return std::nullopt;
  return found->usd;
}

std::string price_file(const std::string& prices) {
  return prices == "none" ? std::string() : config::default_library().locate("prices", prices, {});
}

std::optional<PriceList> price_list(const std::string& prices) {
  const std::string file = price_file(prices);
  if (file.empty()) return std::nullopt;
  return config::load<PriceList>(file, config::default_library(), "prices");
}

void require_prices(const std::string& prices, const std::string& key, const config::Node& node) {
  const std::string file = price_file(prices);
  if (file.empty()) return;
  if (std::filesystem::exists(file)) {
    config::load<PriceList>(file, config::default_library(), "prices");  // finds its mistakes
    return;
  }
  const std::vector<std::string> names = config::default_library().names("prices");
  config::throw_located(config::KeyError(key, "nothing named '" + prices + "' in configs/prices",
                                         {nearest_name(prices, names), {}}),
                        node);
}

namespace {

int is_price_list(const config::Node& own) { return own.find("usd_per_hour") != nullptr ? 90 : 0; }

std::string check_prices(const std::string& file) {
  config::load<PriceList>(file, config::default_library(), "prices");
  return {};
}

const RegisterFileKind registered_prices(
    "prices", schema_kind<PriceList>({"prices", "check", {"prices"}, is_price_list, check_prices}));

}  // namespace

}  // namespace orrery
