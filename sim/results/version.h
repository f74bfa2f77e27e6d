// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace orrery {

/// Part of every point identity: raise it with each change that can change a result, and only then.
/// Stored results of older engines stay, under their old identities, and their points run again.
inline constexpr const char kEngineVersion[] = "33";

}  // namespace orrery
