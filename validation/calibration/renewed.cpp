// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include "sim/config/diagnostics.h"
#include "validation/calibration/calibrate.h"

namespace orrery {
namespace {

bool same_rates(const CalibratedRates& a, const CalibratedRates& b) {
  return a.matrix == b.matrix && a.memory == b.memory && a.units == b.units && a.clock == b.clock &&
         a.cache == b.cache && a.power == b.power;
}

}  // namespace

Calibration renewed(Calibration known, const Calibration& made) {
  if (known.model != made.model || !same_rates(known.rates, made.rates))
    throw config::ConfigError("calibration '" + known.id +
                              "' was made by another model or at other rates: make all of it anew");
  std::set<std::string> tables;
  for (const KernelFit& fit : made.fits) {
    tables.insert(fit.table);
    const auto same = std::find_if(known.fits.begin(), known.fits.end(), [&](const KernelFit& f) {
      return f.table == fit.table && f.precision == fit.precision;
    });
    if (same == known.fits.end()) {
      known.fits.push_back(fit);
    } else {
      *same = fit;
    }
  }
  std::erase_if(known.left_out,
                [&](const LeftOutRows& rows) { return tables.contains(rows.table); });
  known.left_out.insert(known.left_out.end(), made.left_out.begin(), made.left_out.end());
  for (const MeasurementFile& file : made.measurements) {
    std::erase_if(known.measurements,
                  [&](const MeasurementFile& f) { return f.file == file.file; });
    known.measurements.push_back(file);
  }
  for (const std::string& table : tables) known.made_with += "; " + table + " by " + made.made_with;
  return known;
}

}  // namespace orrery
