// SPDX-License-Identifier: Apache-2.0
#include "sim/machine/accelerator_config.h"

#include <algorithm>

#include "sim/config/schema.h"
#include "sim/machine/precision_names.h"

namespace orrery {
namespace {

bool concerns(const KnownError& known, const std::string& experiment, Precision precision) {
  return known.experiment == experiment && known.precision.value_or(precision) == precision;
}

}  // namespace

const config::Schema<KnownError>& KnownError::schema() {
  using C = KnownError;
  static const auto schema =
      config::Schema<C>("known_error",
                        "a published result that is missed by more than the interval")
          .required("experiment", &C::experiment, "kind of experiment that it concerns")
          .optional("precision", &C::precision, "precision that it concerns; default: all")
          .optional("slower", &C::slower,
                    "measured time over the predicted one: the upper end of the interval of times, "
                    "and the lower end of that of rates, reach at least so far",
                    config::between(1, 1000))
          .required("error", &C::error, "predicted and measured figure, and the likely cause")
          .required("source", &C::source, "where the measured figure was published");
  return schema;
}

std::vector<std::string> lines_of(const std::vector<KnownError>& errors, const std::string& device,
                                  const std::string& experiment, Precision precision) {
  std::vector<std::string> lines;
  for (const KnownError& known : errors)
    if (concerns(known, experiment, precision))
      lines.push_back(device + ": " + known.error + " (" + known.source + ")");
  return lines;
}

double slowest_of(const std::vector<KnownError>& errors, const std::string& experiment,
                  Precision precision) {
  double slowest = 1;
  for (const KnownError& known : errors)
    if (concerns(known, experiment, precision)) slowest = std::max(slowest, known.slower);
  return slowest;
}

}  // namespace orrery
