// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace orrery {

/// A communicator as PyTorch's traces describe it.
struct ProcessGroup {
  std::string name;
  std::vector<int> ranks;  ///< members in their order; none: all ranks
};

/// The groups with a name of a text such as [{"pg_name": "0", "ranks": [0, 1], "group_size": 2}],
/// with either kind of quotes, as JSON and Python print it.
std::vector<ProcessGroup> process_groups(std::string_view text);

}  // namespace orrery
