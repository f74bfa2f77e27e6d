// SPDX-License-Identifier: Apache-2.0
#include "sim/config/packed_file.h"

#include <zlib.h>

#include <algorithm>
#include <new>
#include <string_view>
#include <utility>

#include "sim/config/diagnostics.h"
#include "sim/config/input_files.h"

namespace orrery {
namespace {

constexpr std::size_t kMostUnpacked = std::size_t{1} << 31;  // 1 MiB of gzip can unfold to 1 GiB
constexpr std::size_t kFirstStep = std::size_t{1} << 16;
constexpr std::size_t kMostAtOnce = std::size_t{1} << 24;

[[noreturn]] void refuse_packed(const std::string& path, const std::string& reason) {
  throw config::ConfigError(path + ": cannot be read: " + reason);
}

bool is_gzip(std::string_view bytes) { return bytes.starts_with("\x1f\x8b"); }

/// One gzip text (RFC 1952), which may be several members one after the other.
class Unpacking {
 public:
  Unpacking(const std::string& path, std::string_view packed) : path_(path) {
    constexpr int kGzipOnly = 16 + MAX_WBITS;
    if (inflateInit2(&stream_, kGzipOnly) != Z_OK) throw std::bad_alloc();
    // zlib does not write through the pointer, but it is not const.
    stream_.next_in =
        reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));  // NOLINT(*-const-cast)
    rest_ = packed.size();
  }
  ~Unpacking() { inflateEnd(&stream_); }
  Unpacking(const Unpacking&) = delete;
  Unpacking& operator=(const Unpacking&) = delete;

  std::string text() {
    std::string text;
    for (std::size_t step = kFirstStep;; step = std::min(2 * step, kMostAtOnce)) {
      const std::size_t before = text.size();
      text.resize(before + step);
      stream_.next_out = reinterpret_cast<Bytef*>(text.data() + before);
      stream_.avail_out = static_cast<uInt>(step);
      const bool ended = inflate_some();
      text.resize(before + step - stream_.avail_out);
      if (text.size() > kMostUnpacked) refuse_packed(path_, "it is larger than 2 GiB");
      if (ended) return text;
    }
  }

 private:
  /// Fills the output, or comes to the end, which it tells.
  bool inflate_some() {
    while (stream_.avail_out > 0) {
      if (stream_.avail_in == 0 && rest_ > 0) {
        stream_.avail_in = static_cast<uInt>(std::min(rest_, kMostAtOnce));
        rest_ -= stream_.avail_in;
      }
      const int code = inflate(&stream_, Z_NO_FLUSH);
      if (code == Z_STREAM_END) {
        // What follows and is no gzip is padding, as gunzip takes it.
        if (!another_member()) return true;
        inflateReset(&stream_);
      } else if (code == Z_BUF_ERROR) {
        refuse_packed(path_, "the gzip data ends too early");
      } else if (code != Z_OK) {
        refuse_packed(path_, "the gzip data is damaged");
      }
    }
    return false;
  }

  bool another_member() const {
    return stream_.avail_in + rest_ > 1 && is_gzip({reinterpret_cast<char*>(stream_.next_in), 2});
  }

  const std::string& path_;
  z_stream stream_{};
  std::size_t rest_ = 0;  ///< bytes that zlib has not been shown
};

}  // namespace

std::string read_input(const std::string& path) {
  config::FileText file = config::input_files().read(path, kMostUnpacked);
  if (file.fault.starts_with("larger")) refuse_packed(path, "it is larger than 2 GiB");
  if (!file.fault.empty()) refuse_packed(path, file.fault);
  if (!is_gzip(file.text)) return std::move(file.text);
  return Unpacking(path, file.text).text();
}

}  // namespace orrery
