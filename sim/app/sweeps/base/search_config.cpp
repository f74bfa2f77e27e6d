// SPDX-License-Identifier: Apache-2.0
#include "sim/app/sweeps/base/search_config.h"

namespace orrery {

using config::at_least;
using config::between;
using config::Schema;

const Schema<SearchConfig>& SearchConfig::schema() {
  static const auto schema =
      Schema<SearchConfig>("search", "how `sweep search` looks for the best points")
          .optional("algorithm", &SearchConfig::algorithm,
                    "nsga2 (a population that improves from generation to generation), or random "
                    "(Sobol points alone, to compare with)")
          .optional("population", &SearchConfig::population,
                    "points that a generation keeps, and new ones that it tries", between(4, 4096))
          .optional("evaluations", &SearchConfig::evaluations,
                    "points that are simulated at the last fidelity", at_least(1))
          .optional("seed", &SearchConfig::seed, "number that the points tried follow from",
                    at_least(0))
          .optional("fidelity", &SearchConfig::fidelity,
                    "details of the kernel model, cheap to dear: each generation is simulated with "
                    "the first, the better half of it with the next; only the last one counts")
          .check(
              "a fidelity stands there once",
              [](const SearchConfig& s) {
                for (std::size_t i = 0; i < s.fidelity.size(); ++i)
                  for (std::size_t j = 0; j < i; ++j)
                    if (s.fidelity[i] == s.fidelity[j]) return false;
                return true;
              },
              "fidelity");
  return schema;
}

}  // namespace orrery
