// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "sim/store/result_store.h"

namespace orrery {

/// What became of the points of other stores.
struct MergeReport {
  std::size_t added = 0;
  std::size_t replaced_failures = 0;  ///< results of points that had failed
  std::size_t known = 0;              ///< points that were there already
  /// What could not be read, a line each: points whose rows do not fit their digest, whole files.
  /// Points that are missed for it are still to be done.
  std::vector<std::string> damaged;
};

/// Brings the points of another store (a shard) into one, as often and in whichever order it is
/// called: the same store in the end. A process that is killed within it loses nothing; damage
/// costs what is damaged, and no more. The other store may be written to meanwhile.
/// @param patiently runs a piece of writing, and may run it again where the store is locked
/// @throws DeterminismError when both have a point and differ; StoreError about `into`
void merge(ResultStore& into, const std::filesystem::path& other, MergeReport& report,
           const std::function<void(const std::function<void()>&)>& patiently);

}  // namespace orrery
