// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace orrery {

/// The bytes of a file as a stream, gzip (RFC 1952, told by its first bytes) unpacked on the way,
/// for files that are too large to be held. What is read is hashed: the file is part of what a
/// result rests on.
class ByteSource {
 public:
  /// @throws config::ConfigError when the file cannot be opened
  explicit ByteSource(const std::string& path);
  /// A text that is in memory, as if it were a file; for tests.
  ByteSource(std::string path, std::string_view text);
  ~ByteSource();
  ByteSource(const ByteSource&) = delete;
  ByteSource& operator=(const ByteSource&) = delete;

  const std::string& path() const { return path_; }
  /// Unpacked bytes before the next one that is given.
  std::uint64_t offset() const { return offset_; }

  /// Up to `most` bytes that come next, without taking them; fewer only where the file ends or
  /// `most` is above kWindow.
  std::string_view peek(std::size_t most);
  /// Takes bytes, of which peek() has shown at least as many.
  void take(std::size_t bytes);
  /// At least one byte, and as many as are at hand, taken; empty at the end.
  std::string_view next();
  bool at_end() { return peek(1).empty(); }

  /// Bytes that peek() can show at once.
  static constexpr std::size_t kWindow = std::size_t{4} << 20U;

  /// SHA-256 of the file as it is on the disk, once its end has been reached.
  std::string sha256() const;

 private:
  struct Stream;  ///< file, unpacking and hash
  std::unique_ptr<Stream> stream_;
  std::string path_;
  std::uint64_t offset_ = 0;
};

/// An error in a file that is read as a stream: by line and column where it stands in a text, else
/// by its byte.
/// @param offset unpacked bytes before it
/// @throws config::ConfigError
[[noreturn]] void refuse_at_byte(const std::string& path, std::uint64_t offset,
                                 const std::string& message);

/// The text of a file, plain or gzip (RFC 1952, told by its first bytes), without a byte order
/// mark.
/// @throws config::ConfigError with the file: unreadable, damaged, cut off, or above 512 MiB of
/// text
std::string read_input(const std::string& path);

}  // namespace orrery
