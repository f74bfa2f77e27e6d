// SPDX-License-Identifier: Apache-2.0
#include "validation/importers/log_text.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "sim/config/byte_source.h"

namespace orrery {
namespace {

constexpr std::string_view kDigits = "0123456789";
constexpr std::string_view kSpaces = " \t\r";

void append_utf8(std::uint32_t code, std::string& out) {
  constexpr std::array<std::uint32_t, 4> kMarks = {0, 0xC0, 0xE0,
                                                   0xF0};  // by the bytes that follow
  unsigned following = code < 0x80 ? 0 : code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
  out += static_cast<char>(kMarks[following] | code >> 6 * following);
  while (following-- > 0) out += static_cast<char>(0x80 | (code >> 6 * following & 0x3F));
}

/// What is no character becomes U+FFFD, as in RFC 2781.
std::string from_utf16(std::string_view bytes, bool little) {
  const auto unit = [&](std::size_t at) -> std::uint32_t {
    const auto first = static_cast<unsigned char>(bytes[at]);
    const auto second = static_cast<unsigned char>(bytes[at + 1]);
    return little ? first | static_cast<std::uint32_t>(second) << 8U
                  : second | static_cast<std::uint32_t>(first) << 8U;
  };
  std::string out;
  out.reserve(bytes.size() / 2);
  for (std::size_t at = 0; at + 1 < bytes.size(); at += 2) {
    std::uint32_t code = unit(at);
    const bool leads = code >= 0xD800 && code < 0xDC00;
    if (leads && at + 3 < bytes.size() && (unit(at + 2) & 0xFC00U) == 0xDC00) {
      code = 0x10000 + ((code & 0x3FFU) << 10U) + (unit(at + 2) & 0x3FFU);
      at += 2;
    } else if (code >= 0xD800 && code < 0xE000) {
      code = 0xFFFD;
    }
    append_utf8(code, out);
  }
  return out;
}

/// Length of the control sequence that begins with ESC at `at`.
std::size_t control_length(std::string_view text, std::size_t at) {
  if (at + 1 >= text.size() || text[at + 1] != '[') return 1;
  std::size_t end = at + 2;
  while (end < text.size() && text[end] >= 0x20 && text[end] < 0x40) ++end;
  return std::min(end + 1, text.size()) - at;
}

std::string without_colours(std::string text) {
  if (text.find('\x1b') == text.npos) return text;
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = text[at] == '\x1b' ? control_length(text, at) : 0;
    if (length == 0) out += text[at];
    at += std::max<std::size_t>(length, 1);
  }
  return out;
}

bool is_all(std::string_view text, std::string_view of) {
  return !text.empty() && text.find_first_not_of(of) == text.npos;
}

/// "[0]", "[rank0]:", "[1,0]<stdout>:", "[host-1@1,0]<stdout>:", "[pod/worker-0/main]"
LogTag bracket_tag(std::string_view line, std::size_t start) {
  const std::size_t end = line.find(']', start);
  if (end == line.npos) return {};
  const std::string_view inner = line.substr(start + 1, end - start - 1);
  const std::string_view after = line.substr(end + 1);
  if (after.starts_with("<std")) {
    const std::size_t colon = after.find(">:");
    return colon == after.npos ? LogTag{} : LogTag{end + 1 + colon + 2, {}};
  }
  const std::size_t length = end + 1 + (after.starts_with(':') ? 1 : 0);
  std::string_view rank = inner;
  if (rank.starts_with("rank")) rank.remove_prefix(4);
  if (is_all(rank, "0123456789,")) return {length, {}};
  if (inner.starts_with("pod/")) return {length, inner};
  return {};
}

/// "(Actor pid=7, ip=10.0.0.1)"
LogTag actor_tag(std::string_view line, std::size_t start) {
  const std::size_t end = line.find(')', start);
  if (end == line.npos) return {};
  const std::string_view inner = line.substr(start + 1, end - start - 1);
  return inner.find("pid=") == inner.npos ? LogTag{} : LogTag{end + 1, inner};
}

}  // namespace

std::string plain_text(std::string text) {
  if (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff")) {
    text = from_utf16(std::string_view(text).substr(2), text[0] == '\xff');
  } else if (text.starts_with("\xef\xbb\xbf")) {
    text.erase(0, 3);
  }
  return without_colours(std::move(text));
}

std::string read_log(const std::string& path) { return plain_text(read_input(path)); }

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

std::vector<LogWord> split_words(std::string_view line, int number) {
  std::vector<LogWord> words;
  for (std::size_t at = line.find_first_not_of(kSpaces); at < line.size();
       at = line.find_first_not_of(kSpaces, at)) {
    const std::size_t end = std::min(line.find_first_of(kSpaces, at), line.size());
    words.push_back({line.substr(at, end - at), number, static_cast<int>(at) + 1});
    at = end;
  }
  return words;
}

config::Location place_behind(const std::string& path, std::string_view before) {
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const std::size_t start = before.rfind('\n') + 1;  // npos + 1 is 0
  return {path, static_cast<int>(line), static_cast<int>(before.size() - start + 1)};
}

LogTag tag_of(std::string_view line) {
  const std::size_t start = std::min(line.find_first_not_of(kSpaces), line.size());
  if (start == line.size()) return {};
  if (line[start] == '[') return bracket_tag(line, start);
  if (line[start] == '(') return actor_tag(line, start);
  const std::size_t colon = line.find(':', start);
  if (colon == line.npos) return {};
  const std::string_view name = line.substr(start, colon - start);
  if (is_all(name, kDigits)) return {colon + 1, {}};
  const bool parted = colon + 1 == line.size() || kSpaces.find(line[colon + 1]) != kSpaces.npos;
  const bool is_host = std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '-' || c == '_';
  });
  return parted && is_host ? LogTag{colon + 1, name} : LogTag{};
}

}  // namespace orrery
