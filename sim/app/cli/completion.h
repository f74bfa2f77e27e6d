// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace orrery {

/// What may stand in place of the last of some words of a command line, sorted: verbs, options,
/// words of a choice, what `describe` knows, keys and values of `--set`. Empty: files, or anything.
/// @param words without the name of the program; the last may be empty or the beginning of a word
std::vector<std::string> complete(const std::vector<std::string>& words);

}  // namespace orrery
