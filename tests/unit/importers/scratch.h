// SPDX-License-Identifier: Apache-2.0
// Files that tests write, read and leave no trace of.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "sim/config/diagnostics.h"

namespace orrery {

/// A folder of its own for each test, removed at its end.
class Scratch : public testing::Test {
 protected:
  Scratch() {
    folder_ =
        std::filesystem::temp_directory_path() / ("orrery_importers_" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
  }
  ~Scratch() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path(name), std::ios::binary) << text;
    return path(name);
  }
  std::string write_gzip(const std::string& name, const std::string& text) const {
    gzFile file = gzopen(path(name).c_str(), "wb");
    gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
    gzclose(file);
    return path(name);
  }

 private:
  std::filesystem::path folder_;
};

/// What a ConfigError of `action` says; empty if there is none.
template <class Action>
std::string message_of(const Action& action) {
  try {
    action();
  } catch (const config::ConfigError& error) {
    return error.what();
  }
  return "";
}

}  // namespace orrery
