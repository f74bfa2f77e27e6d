// SPDX-License-Identifier: Apache-2.0
#include "sim/machine/known_error.h"

#include "sim/machine/precision_names.h"

namespace orrery {

const config::Schema<KnownError>& KnownError::schema() {
  using C = KnownError;
  static const auto schema =
      config::Schema<C>("known_error",
                        "a published result that is missed by more than the interval")
          .required("experiment", &C::experiment, "kind of experiment that it concerns")
          .optional("precision", &C::precision, "precision that it concerns; default: all")
          .required("error", &C::error, "predicted and measured figure, and the likely cause")
          .required("source", &C::source, "where the measured figure was published");
  return schema;
}

std::vector<std::string> lines_of(const std::vector<KnownError>& errors, const std::string& device,
                                  const std::string& experiment, Precision precision) {
  std::vector<std::string> lines;
  for (const KnownError& known : errors) {
    if (known.experiment != experiment || known.precision.value_or(precision) != precision)
      continue;
    lines.push_back(device + ": " + known.error + " (" + known.source + ")");
  }
  return lines;
}

}  // namespace orrery
