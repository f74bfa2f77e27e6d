// SPDX-License-Identifier: Apache-2.0
// Results of serving benchmarks in what programs printed around them.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace orrery {

/// Places and sizes of the JSON objects of a text that may have lines of a log around them: from a
/// brace before a quote to the one that closes it. What does not close is none.
std::vector<std::pair<std::size_t, std::size_t>> json_objects_in(std::string_view text);

/// What a benchmark has written or printed, and where that stands in a text.
struct ServingResult {
  std::size_t start = 0, size = 0;
  nlohmann::json object;  ///< values by the keys of the JSON results
};
/// The tables "==== Serving Benchmark Result ====" of a text. Their rows are
///   Successful requests:                     100
///   Request throughput (req/s):              5.00
///   Mean TTFT (ms):                          80.50
std::vector<ServingResult> printed_results_in(std::string_view text);

}  // namespace orrery
