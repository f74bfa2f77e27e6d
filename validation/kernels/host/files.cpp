// SPDX-License-Identifier: Apache-2.0
#include "host/files.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <stdexcept>

namespace orrery::measure {

void write_file(const std::filesystem::path& path, const std::string& text) {
  std::filesystem::path part = path;
  part += ".part";
  std::ofstream file(part, std::ios::binary);
  file << text << std::flush;
  if (!file) throw std::runtime_error("cannot write " + part.string());
  file.close();
  std::filesystem::rename(part, path);
}

void archive(const std::filesystem::path& folder, const std::vector<std::string>& names) {
  // Arguments go to tar as they are: no shell reads them.
  std::vector<std::string> words = {
      "tar", "-czf", (folder / "measurements.tar.gz").string(), "-C", folder.string(), "--"};
  words.insert(words.end(), names.begin(), names.end());
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t child = 0;
  int status = 0;
  if (posix_spawnp(&child, "tar", nullptr, nullptr, arguments.data(), environ) != 0 ||
      waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    throw std::runtime_error("tar could not write " + words[2]);
  }
}

}  // namespace orrery::measure
