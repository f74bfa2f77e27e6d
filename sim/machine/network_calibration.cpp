// SPDX-License-Identifier: Apache-2.0
#include "sim/machine/network_calibration.h"

#include <algorithm>

#include "sim/config/load.h"

namespace orrery {
namespace {

using config::Schema;

std::string unknown_parameter(const NetworkCalibration& calibration) {
  const auto& known = protocol_parameters();
  for (const auto& [key, parameter] : calibration.parameters) {
    const std::string& name = key;
    const auto same = [&name](const ProtocolParameter& p) { return name == p.name; };
    const auto at = std::find_if(known.begin(), known.end(), same);
    if (at == known.end()) return "there is no parameter '" + name + "' of protocols";
    if (parameter.unit != at->unit())
      return name + " is in " + at->unit() + ", not " + parameter.unit;
  }
  return {};
}

}  // namespace

const Schema<CollectiveRange>& CollectiveRange::schema() {
  using C = CollectiveRange;
  static const auto schema = Schema<C>("range", "the collectives that were measured")
                                 .required("least", &C::least, "smallest size")
                                 .required("most", &C::most, "largest size")
                                 .required("ranks", &C::ranks, "least and greatest")
                                 .check(
                                     "ranks has a least and a greatest",
                                     [](const C& c) { return c.ranks.size() == 2; }, "ranks");
  return schema;
}

const Schema<NetworkCalibration>& NetworkCalibration::schema() {
  using C = NetworkCalibration;
  static const auto schema =
      Schema<C>("network_calibration", "protocols of a system, fitted to measured collectives")
          .named("network_calibration", &C::id)
          .required("system", &C::system, "the configuration it was fitted with")
          .required("made_with", &C::made_with, "program version and date")
          .required("measurements", &C::measurements, "the files it rests on")
          .required("parameters", &C::parameters, "values by name, as in `protocols` of a system")
          .required("range", &C::range, "what was measured")
          .required("fit_error", &C::fit_error, "errors on rows that were fitted")
          .required("held_out_error", &C::held_out_error, "errors on the others")
          .required("left_out_error", &C::left_out_error,
                    "errors on each combination of collective and ranks, by a fit without it")
          .required("residuals", &C::residuals, "spread of the rows that were held out")
          .check(unknown_parameter, "parameters");
  return schema;
}

void NetworkCalibration::apply(SystemConfig& other) const {
  if (!other.scale_up.protocols) return;
  for (const ProtocolParameter& parameter : protocol_parameters()) {
    const auto fitted = parameters.find(parameter.name);
    if (fitted == parameters.end()) continue;
    if (fitted->second.provenance == ParameterProvenance::kPrior) continue;
    parameter.set(*other.scale_up.protocols, fitted->second.value);
  }
}

NetworkCalibration load_network_calibration(const std::string& path) {
  const config::Library& library = config::default_library();
  return config::load<NetworkCalibration>(path, library, "network_calibrations");
}

}  // namespace orrery
