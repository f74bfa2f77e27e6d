// SPDX-License-Identifier: Apache-2.0
#include "host/listing.h"

#include <algorithm>
#include <array>
#include <cstdio>

namespace orrery::measure {
namespace {

std::string padded(std::string text, std::size_t width, bool right) {
  if (text.size() < width) {
    text.insert(right ? 0 : text.size(), std::string(width - text.size(), ' '));
  }
  return text;
}

std::string seconds(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.0f s", value);
  return text.data();
}

std::string line(const std::array<std::string, 5>& cells, std::size_t name_width) {
  return padded(cells[0], 3, true) + "  " + padded(cells[1], name_width, false) + "  " +
         padded(cells[2], 6, true) + "  " + padded(cells[3], 6, true) + "  " + cells[4] + '\n';
}

}  // namespace

double budget_s(const Measurement& measurement, Depth depth) {
  return depth == Depth::kQuick ? measurement.quick_s : measurement.full_s;
}

std::string listing(const std::vector<Measurement>& all) {
  std::size_t width = 4;
  double quick = 0, full = 0;
  for (const Measurement& measurement : all) {
    width = std::max(width, measurement.name.size());
    quick += measurement.quick_s;
    full += measurement.full_s;
  }
  std::string text = line({"#", "name", "quick", "full", "what it measures"}, width);
  for (const Measurement& measurement : all) {
    std::string what = measurement.what;
    if (measurement.capability > 8) {
      what += " (needs compute capability " + std::to_string(measurement.capability) + ")";
    }
    text += line({std::to_string(measurement.number), measurement.name,
                  seconds(measurement.quick_s), seconds(measurement.full_s), what},
                 width);
  }
  const bool within = quick < kQuickLimit_s && full < kFullLimit_s;
  return text +
         line({"", "sum", seconds(quick), seconds(full), within ? "within budget" : "over budget"},
              width);
}

}  // namespace orrery::measure
