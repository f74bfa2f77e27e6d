// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace orrery {

/// A file of the test, gone after it.
class SweepFile {
 public:
  explicit SweepFile(const std::string& text, const std::string& name = "points.yaml")
      : path_(std::filesystem::temp_directory_path() /
              ("orrery_" + std::to_string(::getpid()) + "_" + name)) {
    std::ofstream(path_) << text;
  }
  ~SweepFile() { std::filesystem::remove(path_); }
  SweepFile(const SweepFile&) = delete;
  SweepFile& operator=(const SweepFile&) = delete;
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

}  // namespace orrery
