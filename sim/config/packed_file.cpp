// SPDX-License-Identifier: Apache-2.0
#include "sim/config/packed_file.h"

#include <cstddef>
#include <string_view>
#include <utility>

#include "sim/config/byte_source.h"
#include "sim/config/diagnostics.h"
#include "sim/config/input_files.h"
#include "sim/config/text_check.h"

namespace orrery {
namespace {

/// Bytes of a file that is held whole, unpacked: 1 MiB of gzip can unfold to 1 GiB.
constexpr std::size_t kMostHeld = 512 * config::InputFiles::kMebibyte;

[[noreturn]] void refuse_packed(const std::string& path, const std::string& reason) {
  throw config::ConfigError(path + ": cannot be read: " + reason);
}

/// Text without the mark that spreadsheets write before UTF-8.
std::string without_mark(std::string text) {
  if (text.starts_with(config::kByteOrderMark)) text.erase(0, config::kByteOrderMark.size());
  return text;
}

}  // namespace

std::string read_input(const std::string& path) {
  config::FileText file = config::input_files().read(path, kMostHeld);
  if (file.fault.starts_with("larger")) refuse_packed(path, "it is " + file.fault);
  if (!file.fault.empty()) refuse_packed(path, file.fault);
  if (!file.text.starts_with("\x1f\x8b")) return without_mark(std::move(file.text));
  ByteSource packed(path, file.text);
  std::string text;
  for (std::string_view piece = packed.next(); !piece.empty(); piece = packed.next()) {
    if (text.size() + piece.size() > kMostHeld)
      refuse_packed(path, "it is larger than " +
                              std::to_string(kMostHeld / config::InputFiles::kMebibyte) +
                              " MiB unpacked");
    text += piece;
  }
  return without_mark(std::move(text));
}

}  // namespace orrery
