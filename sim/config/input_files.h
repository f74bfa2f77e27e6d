// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <string>

namespace orrery::config {

/// What was read of a file, or why nothing was.
struct FileText {
  std::string text;
  std::string sha256;  ///< SHA-256 of the bytes
  std::string fault;   ///< "no such file", "is a directory, not a file", ...; empty: none
};

/// The one place where files are opened to be read, so that what a result rests on is known: each
/// file that a simulation reads is part of its point identity, by its hash or, where it is a
/// configuration, by its values.
class InputFiles {
 public:
  static constexpr std::size_t kMebibyte = std::size_t{1} << 20U;
  static constexpr std::size_t kMostOfConfiguration = 16 * kMebibyte;

  /// Reads a whole file (a pipe once in a process) of at most `most_bytes` and remembers its hash.
  /// @throws std::system_error where the machine fails, not the path: too few file handles, a disk
  /// error
  FileText read(const std::string& path, std::size_t most_bytes = kMostOfConfiguration);
  /// A file that somebody reads as a stream, because it may be too large to be held.
  void remember(const std::string& path, const std::string& sha256);
  /// SHA-256 of the bytes that were last read from a path; empty: none were.
  std::string sha256(const std::string& path) const;
  /// All files read so far: the hash of each by its path.
  std::map<std::string, std::string> hashes() const;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::string> hashes_;
  std::map<std::string, FileText> pipes_;  ///< texts of pipes, which give their bytes once
};

/// Those of this process.
InputFiles& input_files();

}  // namespace orrery::config
