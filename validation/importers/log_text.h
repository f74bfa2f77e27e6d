// SPDX-License-Identifier: Apache-2.0
// Texts that terminals, launchers and shells have passed on.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/config/location.h"

namespace orrery {

/// A text as programs printed it: in UTF-8 without a byte order mark (PowerShell writes UTF-16),
/// without the control sequences that colour it (ECMA-48). Lines keep their numbers.
/// @param text bytes of a file
std::string plain_text(std::string text);
/// Reads a file, plain or gzip, as plain_text().
/// @throws config::ConfigError when it cannot be read
std::string read_log(const std::string& path);

/// The lines of a text, without their ends.
std::vector<std::string_view> lines_of(std::string_view text);

/// Where a file goes on behind what it begins with.
config::Location place_behind(const std::string& path, std::string_view before);

/// A word of a text, and where it stands.
struct LogWord {
  std::string_view text;
  int line = 0;
  int column = 1;
};

/// The words of a line, parted by blanks.
std::vector<LogWord> split_words(std::string_view line, int number);

/// What a launcher put before a line to say where it is from.
struct LogTag {
  std::size_t length = 0;     ///< characters of the line
  std::string_view stream{};  ///< who wrote; empty for ranks of one program
};
/// The tag of a line. Marks of ranks, which print one text together, name no stream: `0: ` (srun
/// -l), `[0] ` (Hydra), `[1,0]<stdout>:` (Open MPI), `[rank0]:`. Others do, for each ran on its
/// own: `node-1: ` (pdsh), `[pod/worker-0/main] ` (kubectl), `(Actor pid=7, ip=10.0.0.1) ` (Ray).
LogTag tag_of(std::string_view line);

}  // namespace orrery
