// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "sim/results/table.h"

namespace orrery {

/// The rows that programs get, for people: a list of objects as a table.
/// @param columns titles as in Table::titled(), each with the member that it shows and how:
/// @code
///   "kernel = name | count = runs count | time = total_s s | share = share percent"
/// @endcode
/// A member alone is a text, `count` a whole number, `number` one with all digits, `percent` a
/// share, `error` one of as many rows as its object has for `count` or `n`, `plain` a number with a
/// prefix, anything else the unit of one. All but texts stand to the right. "held_out.mape" is a
/// member of a member. "-": a row has no such member, or null, or an error is one of no rows;
/// "never": a time without end.
Table json_table(const nlohmann::ordered_json& rows, std::string_view columns);

}  // namespace orrery
