// SPDX-License-Identifier: Apache-2.0
#include "sim/config/library.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

namespace orrery::library_test {
namespace {

using ::testing::ElementsAre;

namespace fs = std::filesystem;

void write_empty(const fs::path& file) {
  fs::create_directories(file.parent_path());
  std::ofstream(file) << "";
}

TEST(Library, NamesInFoldersOfMakersAreNamesOfTheKind) {
  const fs::path root = fs::path(testing::TempDir()) / "orrery_library_in_folders";
  fs::remove_all(root);
  const fs::path chips = root / "accelerators";
  for (const char* file : {"one.yaml", "maker/two.yaml", "maker/notes.md"})
    write_empty(chips / file);
  const config::Library library(root);
  EXPECT_THAT(library.names("accelerators"), ElementsAre("one", "two"));
  EXPECT_EQ(library.locate("accelerators", "one", ""), chips / "one.yaml");
  EXPECT_EQ(library.locate("accelerators", "two", ""), chips / "maker" / "two.yaml");
  EXPECT_EQ(library.locate("accelerators", "three", ""), chips / "three.yaml");
  fs::remove_all(root);
}

TEST(Library, ShippedNamesStandOnceInTheirKind) {
  for (const char* kind : {"accelerators", "systems", "models", "calibrations", "software"}) {
    const std::vector<std::string> names = config::default_library().names(kind);
    EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), names.size()) << kind;
  }
}

}  // namespace
}  // namespace orrery::library_test
