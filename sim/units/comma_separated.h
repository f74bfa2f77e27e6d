// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

namespace orrery {

/// The words between the commas of a text, without the spaces around them: views of `text`. Empty
/// ones are left out.
std::vector<std::string_view> comma_separated(std::string_view text);

}  // namespace orrery
