// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace orrery::config {

/// The mark that spreadsheets write before UTF-8. It is no data.
inline constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

/// What makes a text unfit to be parsed, and where (1-based line and column in bytes).
struct TextFault {
  int line = 0;
  int column = 0;
  std::string message;
};

/// The first byte that is not UTF-8, a control character, or (unless `tabs_allowed`) a tab in the
/// indentation. YAML forbids them, but yaml-cpp takes some for white space and stops silently at
/// others.
std::optional<TextFault> find_text_fault(std::string_view text, bool tabs_allowed);

/// Bytes of the UTF-8 character at the start of a text that is not empty, 0 where there is none
/// (RFC 3629, table 3-7 of the Unicode standard).
std::size_t utf8_length(std::string_view text);

/// Whether the scalar at byte `start` ends: yaml-cpp lets a quote run into the end of a file.
/// Scalars that are not quoted end anywhere.
bool quote_is_closed(std::string_view text, std::size_t start);

}  // namespace orrery::config
