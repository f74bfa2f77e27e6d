// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace orrery {

/// Text for a terminal, a table or a trace: control characters (C0, DEL, C1 as UTF-8) as \xNN, so
/// that a name can neither move the cursor nor break a line.
/// @param kept control characters that stay
std::string printable(std::string_view text, std::string_view kept = {});

}  // namespace orrery
