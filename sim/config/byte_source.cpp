// SPDX-License-Identifier: Apache-2.0
#include "sim/config/byte_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <new>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/config/diagnostics.h"
#include "sim/config/input_files.h"
#include "sim/config/text_check.h"
#include "sim/units/sha256.h"

namespace orrery {
namespace {

constexpr std::size_t kStep = std::size_t{1} << 18U;

[[noreturn]] void refuse_source(const std::string& path, const std::string& reason) {
  throw config::ConfigError(path + ": cannot be read: " + reason);
}

/// Bytes of a file that is held whole, unpacked: 1 MiB of gzip can unfold to 1 GiB.
constexpr std::size_t kMostHeld = 512 * config::InputFiles::kMebibyte;

/// Text without the mark that spreadsheets write before UTF-8.
std::string without_mark(std::string text) {
  if (text.starts_with(config::kByteOrderMark)) text.erase(0, config::kByteOrderMark.size());
  return text;
}

}  // namespace

/// The file as it lies on the disk, and what has been unpacked of it and not been taken.
struct ByteSource::Stream {
  explicit Stream(std::string file) : path(std::move(file)) {}
  ~Stream() {
    if (descriptor >= 0) ::close(descriptor);
    if (packed) inflateEnd(&inflating);
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  /// More bytes of the file behind those in `raw`; false at its end.
  bool read_raw() {
    if (raw_ended) return false;
    if (descriptor < 0) return !(raw_ended = true);  // all of a text is there from the start
    raw.erase(raw.begin(), raw.begin() + static_cast<std::ptrdiff_t>(raw_begin));
    raw_begin = 0;
    const std::size_t before = raw.size();
    raw.resize(before + kStep);
    ssize_t got = 0;
    do {
      got = ::read(descriptor, raw.data() + before, kStep);
    } while (got < 0 && errno == EINTR);
    if (got < 0) refuse_source(path, std::strerror(errno));
    raw.resize(before + static_cast<std::size_t>(got));
    hash.add({raw.data() + before, static_cast<std::size_t>(got)});
    raw_ended = got == 0;
    return !raw_ended;
  }

  void begin() {
    while (raw.size() < 2 && read_raw()) {
    }
    packed = raw.size() >= 2 && raw[0] == '\x1f' && raw[1] == '\x8b';
    constexpr int kGzipOnly = 16 + MAX_WBITS;
    if (packed && inflateInit2(&inflating, kGzipOnly) != Z_OK) throw std::bad_alloc();
  }

  /// More unpacked bytes; false at the end.
  bool fill() {
    if (ended) return false;
    text.erase(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(taken));
    taken = 0;
    const std::size_t before = text.size();
    ended = packed ? !unpack() : !copy();
    return text.size() > before;
  }

  bool copy() {
    if (raw_begin == raw.size() && !read_raw()) return false;
    text.insert(text.end(), raw.begin() + static_cast<std::ptrdiff_t>(raw_begin), raw.end());
    raw_begin = raw.size();
    return true;
  }

  /// Unpacks a step's worth; false once the last member has ended.
  bool unpack() {
    const std::size_t before = text.size();
    text.resize(before + kStep);
    inflating.next_out = reinterpret_cast<Bytef*>(text.data() + before);
    inflating.avail_out = static_cast<uInt>(kStep);
    bool more = true;
    while (more && inflating.avail_out == kStep) {
      if (raw_begin == raw.size() && !read_raw())
        refuse_source(path, "the gzip data ends too early");
      inflating.next_in = reinterpret_cast<Bytef*>(raw.data() + raw_begin);
      inflating.avail_in = static_cast<uInt>(raw.size() - raw_begin);
      const int code = inflate(&inflating, Z_NO_FLUSH);
      raw_begin = raw.size() - inflating.avail_in;
      if (code == Z_STREAM_END) {
        more = another_member();
      } else if (code != Z_OK && code != Z_BUF_ERROR) {
        refuse_source(path, "the gzip data is damaged");
      }
    }
    text.resize(before + kStep - inflating.avail_out);
    return more;
  }

  /// What follows a member and is no gzip is padding, as gunzip takes it.
  bool another_member() {
    while (raw.size() - raw_begin < 2 && read_raw()) {
    }
    const bool another =
        raw.size() - raw_begin >= 2 && raw[raw_begin] == '\x1f' && raw[raw_begin + 1] == '\x8b';
    if (another) {
      inflateReset(&inflating);
    } else {
      do {
        raw_begin = raw.size();
      } while (read_raw());  // for the hash
    }
    return another;
  }

  std::string path;
  int descriptor = -1;
  Sha256 hash;
  std::vector<char> raw;
  std::size_t raw_begin = 0;  ///< first byte that has not been unpacked
  bool raw_ended = false;
  bool packed = false;
  z_stream inflating{};
  std::vector<char> text;
  std::size_t taken = 0;
  bool ended = false;
};

ByteSource::ByteSource(const std::string& path)
    : stream_(std::make_unique<Stream>(path)), path_(path) {
  stream_->descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (stream_->descriptor < 0)
    throw config::ConfigError(path + ": " +
                              (errno == ENOENT ? "no such file" : std::strerror(errno)));
  struct stat status {};
  if (::fstat(stream_->descriptor, &status) == 0 && S_ISDIR(status.st_mode))
    throw config::ConfigError(path + ": is a directory, not a file");
  stream_->begin();
  if (peek(config::kByteOrderMark.size()) == config::kByteOrderMark)
    take(config::kByteOrderMark.size());
}

ByteSource::ByteSource(std::string path, std::string_view text)
    : stream_(std::make_unique<Stream>(path)), path_(std::move(path)) {
  stream_->raw.assign(text.begin(), text.end());
  stream_->hash.add(text);
  stream_->begin();
  if (peek(config::kByteOrderMark.size()) == config::kByteOrderMark)
    take(config::kByteOrderMark.size());
}

ByteSource::~ByteSource() = default;

std::string_view ByteSource::peek(std::size_t most) {
  most = std::min(most, kWindow);
  while (stream_->text.size() - stream_->taken < most && stream_->fill()) {
  }
  const std::size_t there = stream_->text.size() - stream_->taken;
  return {stream_->text.data() + stream_->taken, std::min(there, most)};
}

void ByteSource::take(std::size_t bytes) {
  stream_->taken += bytes;
  offset_ += bytes;
}

std::string_view ByteSource::next() {
  if (stream_->text.size() == stream_->taken) stream_->fill();
  const std::string_view all(stream_->text.data() + stream_->taken,
                             stream_->text.size() - stream_->taken);
  take(all.size());
  return all;
}

std::string ByteSource::sha256() const { return stream_->hash.hex(); }

namespace {

constexpr std::size_t kMostOfLine = std::size_t{1} << 16U;

/// A line of a file, as far as messages may quote it.
struct Line {
  int number = 1;
  std::uint64_t begin = 0;  ///< bytes of the file before it
  std::string text;
};

/// The line that has a byte.
Line line_with(ByteSource& source, std::uint64_t offset) {
  Line line;
  while (!source.at_end()) {
    const std::string_view piece = source.peek(kMostOfLine);
    const std::size_t end = std::min(piece.find('\n'), piece.size());
    const bool ends = end < piece.size();
    if (line.text.size() < kMostOfLine) line.text += piece.substr(0, end);
    source.take(end);
    const bool passed = ends ? source.offset() >= offset : source.offset() > offset;
    if (passed && (ends || line.text.size() >= kMostOfLine)) return line;
    if (!ends) continue;
    source.take(1);
    line = {line.number + 1, source.offset(), {}};
  }
  return line;
}

/// Whether a line whose end may be cut off is text.
bool is_text(const std::string& line) {
  constexpr int kLongestCharacter = 4;
  const auto fault = config::find_text_fault(line, true);
  return !fault || fault->column + kLongestCharacter > static_cast<int>(kMostOfLine);
}

}  // namespace

void refuse_at_byte(const std::string& path, std::uint64_t offset, const std::string& message) {
  std::error_code ignored;
  if (std::filesystem::is_regular_file(path, ignored)) {  // others give their bytes once
    ByteSource source(path);
    const Line line = line_with(source, offset);
    if (is_text(line.text))
      config::throw_error(std::string(static_cast<std::size_t>(line.number - 1), '\n') + line.text,
                          {path, line.number, static_cast<int>(offset - line.begin) + 1}, 1,
                          message);
  }
  throw config::ConfigError(path + ": at byte " + std::to_string(offset) + ": " + message);
}

std::string read_input(const std::string& path) {
  config::FileText file = config::input_files().read(path, kMostHeld);
  if (file.fault.starts_with("larger")) refuse_source(path, "it is " + file.fault);
  if (!file.fault.empty()) refuse_source(path, file.fault);
  if (!file.text.starts_with("\x1f\x8b")) return without_mark(std::move(file.text));
  ByteSource packed(path, file.text);
  std::string text;
  for (std::string_view piece = packed.next(); !piece.empty(); piece = packed.next()) {
    if (text.size() + piece.size() > kMostHeld)
      refuse_source(path, "it is larger than " +
                              std::to_string(kMostHeld / config::InputFiles::kMebibyte) +
                              " MiB unpacked");
    text += piece;
  }
  return without_mark(std::move(text));
}

}  // namespace orrery
