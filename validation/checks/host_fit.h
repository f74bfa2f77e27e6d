// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "validation/checks/serving_validation.h"

namespace orrery {

/// Measured runs of an engine: some of the models and accelerators that its host is fitted on, and
/// all of the others, which judge the fit.
struct HostFitRows {
  std::vector<ServingRow> fitted, held_out;
};

/// @param backend as rows name it: vllm, sglang or trtllm
/// @param fit_on "MODEL@SYSTEM" of each group to fit on, as in "gpt-oss-120b@b200_sxm"; of these 64
/// rows of up to 64 clients are taken, evenly, because each is simulated many times
/// @param versions what versions of the engine begin with, "none" for rows that do not say theirs;
/// empty: all
/// @throws config::ConfigError for a group that has no rows, and where none is left to judge by
HostFitRows host_fit_rows(const std::vector<ServingRow>& rows, const std::string& backend,
                          const std::vector<std::string>& fit_on,
                          const std::vector<std::string>& versions = {});

struct HostFit {
  HostCosts host;
  ServingTarget fitted, held_out;                ///< errors with that host
  ServingTarget fitted_before, held_out_before;  ///< errors with a host that takes no time
  std::map<std::string, ServingTarget> groups, groups_before;  ///< held out, by MODEL@SYSTEM
};

/// What an engine's host takes: the least mean of |log(predicted / measured)| of both times of the
/// rows that are fitted, groups counting alike, found by one figure after the other, twice. A
/// figure with which a group is farther off than without it is no property of the engine: it is 0.
/// Requests are delayed by nothing where no row tells its time to first token.
/// @param given figures that are known already, and not fitted: those above 0
/// @param told gets what was found so far
HostFit fit_host(ServingValidation& validation, const HostFitRows& rows,
                 const HostCosts& given = {},
                 const std::function<void(const HostCosts&, double mean)>& told = {});

}  // namespace orrery
