// SPDX-License-Identifier: Apache-2.0
#include "sim/config/library.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <system_error>

#include "sim/units/spelling.h"

namespace orrery::config {
namespace fs = std::filesystem;

bool Library::is_path(std::string_view reference) {
  constexpr std::array<std::string_view, 3> kEndings = {".yaml", ".yml", ".json"};
  return reference.find('/') != std::string_view::npos ||
         std::any_of(kEndings.begin(), kEndings.end(), [&](std::string_view ending) {
           return reference.size() > ending.size() &&
                  reference.substr(reference.size() - ending.size()) == ending;
         });
}

std::vector<std::string> Library::names(const std::string& kind) const {
  std::vector<std::string> names;
  std::error_code ignored;  // a folder that is not there has no names
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root_ / kind, ignored)) {
    if (entry.path().extension() == ".yaml") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

namespace {

/// `folder`/`file`, or the file of that name in one of the folders in `folder`.
fs::path file_below(const fs::path& folder, const std::string& file) {
  std::error_code ignored;  // what cannot be read has no files
  if (fs::exists(folder / file, ignored)) return folder / file;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored)) {
    if (entry.is_directory(ignored) && fs::exists(entry.path() / file, ignored))
      return entry.path() / file;
  }
  return folder / file;
}

}  // namespace

std::string Library::locate(const std::string& kind, const std::string& reference,
                            const std::string& from_file) const {
  if (is_path(reference)) return relative_to(reference, from_file);
  if (kind.empty()) return relative_to(reference + ".yaml", from_file);
  return file_below(root_ / kind, reference + ".yaml").string();
}

namespace {

/// Short names in messages: relative where the folder lies below the working directory.
fs::path shortened(const fs::path& folder) {
  std::error_code error;
  const fs::path relative = folder.lexically_relative(fs::current_path(error));
  return error || relative.empty() || *relative.begin() == ".." ? folder : relative;
}

std::vector<std::string> file_names(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code ignored;  // a folder that is not there has no files
  const fs::path readable = folder.empty() ? fs::path(".") : folder;
  for (const fs::directory_entry& entry : fs::directory_iterator(readable, ignored)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

std::string nearest_file(const std::string& reference, const std::string& path) {
  const std::string name =
      nearest_name(fs::path(path).filename().string(), file_names(fs::path(path).parent_path()));
  if (name.empty()) return {};
  return (fs::path(reference).parent_path() / name).string();
}

const Library& default_library() {
  static const Library library = [] {
    const char* configured = std::getenv("ORRERY_CONFIGS");
    const bool given = configured != nullptr && *configured != '\0';
    return Library(shortened(given ? configured : ORRERY_CONFIGS_DIR));
  }();
  return library;
}

std::string relative_to(const std::string& path, const std::string& from_file) {
  return (fs::path(from_file).parent_path() / path).lexically_normal().string();
}

}  // namespace orrery::config
