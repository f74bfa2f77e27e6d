// SPDX-License-Identifier: Apache-2.0
#include "validation/importers/input_file.h"

#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "sim/config/diagnostics.h"

namespace orrery {
namespace {

constexpr std::size_t kMostBytes = std::size_t{1} << 31;  // 1 MiB of gzip can unfold to 1 GiB
constexpr std::size_t kFirstBytes = std::size_t{1} << 16;
constexpr std::size_t kMostBytesAtOnce = std::size_t{1} << 24;

struct Close {
  void operator()(gzFile file) const { gzclose_r(file); }
};
using File = std::unique_ptr<std::remove_pointer_t<gzFile>, Close>;

std::string fault_of(gzFile file) {
  int code = Z_OK;
  const char* text = gzerror(file, &code);
  if (code == Z_ERRNO) return std::strerror(errno);
  if (code == Z_BUF_ERROR) return "the gzip data ends too early";
  if (code == Z_DATA_ERROR) return "the gzip data is damaged";
  return code == Z_OK ? "" : text;
}

[[noreturn]] void fail(const std::string& path, const std::string& reason) {
  throw config::ConfigError(path + ": cannot be read: " + reason);
}

}  // namespace

std::string read_input(const std::string& path) {
  errno = 0;
  const File file(gzopen(path.c_str(), "rb"));
  if (!file) fail(path, std::strerror(errno));
  std::string text;
  for (std::size_t step = kFirstBytes;; step = std::min(2 * step, kMostBytesAtOnce)) {
    const std::size_t before = text.size();
    text.resize(before + step);
    const int got = gzread(file.get(), text.data() + before, static_cast<unsigned>(step));
    text.resize(before + static_cast<std::size_t>(std::max(got, 0)));
    const std::string fault = fault_of(file.get());
    if (!fault.empty()) fail(path, fault);
    if (text.size() > kMostBytes) fail(path, "it is larger than 2 GiB");
    if (got < static_cast<int>(step)) return text;
  }
}

}  // namespace orrery
