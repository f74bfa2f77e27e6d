// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <fstream>

namespace orrery {

/// A file that appears whole or not at all: written beside its place, then renamed. A device or a
/// pipe is written to as it is, and never replaced.
class AtomicFile {
 public:
  /// @throws std::system_error when the folder cannot be written.
  explicit AtomicFile(std::filesystem::path path);
  /// Removes what was written, unless committed.
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  std::ostream& stream() { return stream_; }
  /// Puts the file in its place, replacing one that is there, after its bytes are on disk.
  /// @throws std::system_error when anything could not be written.
  void commit();

 private:
  std::filesystem::path path_;
  bool replaced_;  ///< a renamed file replaces it; false: no plain file, written to directly
  std::filesystem::path temporary_;
  std::ofstream stream_;
  bool committed_ = false;
};

}  // namespace orrery
