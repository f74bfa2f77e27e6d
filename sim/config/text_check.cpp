// SPDX-License-Identifier: Apache-2.0
#include "sim/config/text_check.h"

#include <algorithm>
#include <cstdint>

namespace orrery::config {
namespace {

const char* control_fault(char c) {
  if (c == '\0') return "the file contains a NUL byte; is it a text file?";
  const auto byte = static_cast<unsigned char>(c);
  if ((byte < 0x20 && c != '\t' && c != '\n' && c != '\r') || byte == 0x7F) {
    return "the file contains a control character";
  }
  return nullptr;
}

bool has_content(std::string_view text, std::size_t from) {
  const std::size_t content = text.find_first_not_of(" \t\r", from);
  return content != std::string_view::npos && text[content] != '\n' && text[content] != '#';
}

}  // namespace

std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  const std::uint8_t first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < length) return 0;
  // The second byte is limited where the character would be overlong, a surrogate or above
  // U+10FFFF.
  const std::uint8_t low = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
  const std::uint8_t high = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
  if (byte(1) < low || byte(1) > high) return 0;
  for (std::size_t i = 2; i < length; ++i) {
    if (byte(i) < 0x80 || byte(i) > 0xBF) return 0;
  }
  return length;
}

std::optional<TextFault> find_text_fault(std::string_view text, bool tabs_allowed) {
  int line = 1;
  std::size_t line_start = 0;
  bool indenting = true;
  for (std::size_t i = 0; i < text.size();) {
    const auto fault = [&](const char* message) {
      return TextFault{line, static_cast<int>(i - line_start) + 1, message};
    };
    const char c = text[i];
    if (const char* message = control_fault(c)) return fault(message);
    if (c == '\t' && indenting && !tabs_allowed && has_content(text, i)) {
      return fault("a tab in the indentation; YAML allows only spaces");
    }
    const std::size_t length = utf8_length(text.substr(i));
    if (length == 0) return fault("the file is not UTF-8 text");
    i += length;
    indenting = c == '\n' || (indenting && (c == ' ' || c == '\t'));
    if (c == '\n') {
      ++line;
      line_start = i;
    }
  }
  return std::nullopt;
}

bool quote_is_closed(std::string_view text, std::size_t start) {
  // An anchor may stand before the quote.
  while (start < text.size() && text[start] == '&') {
    start = text.find_first_not_of(" \t\r\n", text.find_first_of(" \t\r\n", start));
  }
  if (start >= text.size() || (text[start] != '\'' && text[start] != '"')) return true;
  const char quote = text[start];
  for (std::size_t i = start + 1; i < text.size(); ++i) {
    const bool escaped = quote == '"' ? text[i] == '\\' : text.compare(i, 2, "''") == 0;
    if (escaped) {
      ++i;
    } else if (text[i] == quote) {
      return true;
    }
  }
  return false;
}

}  // namespace orrery::config
