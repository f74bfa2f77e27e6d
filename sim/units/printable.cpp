// SPDX-License-Identifier: Apache-2.0
#include "sim/units/printable.h"

namespace orrery {
namespace {

void append_hex(std::string& text, unsigned char byte) {
  constexpr char kDigits[] = "0123456789abcdef";
  text += "\\x";
  text += kDigits[byte / 16];
  text += kDigits[byte % 16];
}

}  // namespace

std::string printable(std::string_view text, std::string_view kept) {
  constexpr unsigned char kC1Lead = 0xC2;  // U+0080 to U+009F are 0xC2 0x80 to 0xC2 0x9F
  std::string result;
  result.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const unsigned char next = i + 1 < text.size() ? static_cast<unsigned char>(text[i + 1]) : 0;
    if (byte == kC1Lead && next >= 0x80 && next < 0xA0) {
      append_hex(result, next);
      ++i;
    } else if ((byte < 0x20 || byte == 0x7F) && kept.find(text[i]) == std::string_view::npos) {
      append_hex(result, byte);
    } else {
      result += text[i];
    }
  }
  return result;
}

}  // namespace orrery
