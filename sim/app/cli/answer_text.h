// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <iosfwd>
#include <string>
#include <vector>

#include "sim/results/answer.h"

namespace orrery {

/// Aligned columns, two spaces between them and none at the end of lines. Colour is the title line
/// in bold.
void print(const Table& table, std::ostream& out, bool colour = false);

/// The parts of an answer as text.
void print(const Answer& answer, std::ostream& out);

/// Rows as CSV (RFC 4180, lines end as on Unix): cells with commas, quotes or line ends in quotes.
void print_csv(const std::vector<std::vector<std::string>>& rows, std::ostream& out);

/// Lets `write` write a file that appears whole or not at all; without a path, to standard output.
void write_to(const std::string& path, const std::function<void(std::ostream&)>& write);

/// The JSON of an answer where `json`, else its parts as text, to standard output.
void print_answer(const Answer& answer, bool json);

}  // namespace orrery
