// SPDX-License-Identifier: Apache-2.0
// Which published training rows validation/published says, against its list of all of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace orrery::training_rows_test {
namespace training_rows_test {
namespace {

using ::testing::HasSubstr;

namespace fs = std::filesystem;

const fs::path kValidation = fs::path(ORRERY_SOURCE_DIR) / "validation";

std::string text_of(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

std::vector<std::string> lines_of(const fs::path& path) {
  std::vector<std::string> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

struct TrainingRow {
  std::string id, said_in, same_run_as, reason;
};

std::vector<TrainingRow> training_rows() {
  std::vector<TrainingRow> rows;
  for (const std::string& line : lines_of(kValidation / "training_rows.csv")) {
    TrainingRow row;
    std::istringstream cells(line);
    std::getline(cells, row.id, ',');
    std::getline(cells, row.said_in, ',');
    std::getline(cells, row.same_run_as, ',');
    std::getline(cells, row.reason);
    rows.push_back(row);
  }
  rows.erase(rows.begin());
  return rows;
}

bool is_row(const std::string& id) { return id.rfind("TR-", 0) == 0; }

/// Rows that a file of published figures holds, those of its tables too.
std::set<std::string> rows_in(const fs::path& file) {
  std::set<std::string> ids;
  for (const std::string& line : lines_of(file)) {
    if (line.rfind("- id: TR-", 0) == 0) ids.insert(line.substr(6));
    const std::string key = "  rows: ";
    if (line.rfind(key, 0) != 0) continue;
    for (const std::string& row : lines_of(file.parent_path() / line.substr(key.size())))
      if (is_row(row)) ids.insert(row.substr(0, row.find(',')));
  }
  return ids;
}

TEST(TrainingRows, AreSaidWhereTheListSaysSo) {
  std::map<std::string, std::string> said;
  for (const auto& file : fs::recursive_directory_iterator(kValidation / "published")) {
    if (file.path().extension() != ".yaml") continue;
    for (const std::string& id : rows_in(file.path())) said[id] = file.path().filename().string();
  }
  std::map<std::string, std::string> listed;
  for (const TrainingRow& row : training_rows())
    if (!row.said_in.empty()) listed[row.id] = row.said_in;
  // Rows of Llama 3 and of T5 have ids of their own, and are not of the list.
  said.erase("TR-NEMOT5-001");
  said.erase("TR-NEMOT5-002");
  said.erase("TR-LLAMA3-8192");
  said.erase("TR-LLAMA3-16384");
  EXPECT_EQ(said, listed);
}

TEST(TrainingRows, AllHaveAFileOrARunOrAReason) {
  std::set<std::string> said, seen;
  for (const TrainingRow& row : training_rows())
    if (!row.said_in.empty()) said.insert(row.id);
  for (const TrainingRow& row : training_rows()) {
    EXPECT_TRUE(is_row(row.id)) << row.id;
    EXPECT_TRUE(seen.insert(row.id).second) << row.id << " twice";
    const int ways =
        int{!row.said_in.empty()} + int{!row.same_run_as.empty()} + int{!row.reason.empty()};
    EXPECT_EQ(ways, 1) << row.id;
    if (!row.same_run_as.empty()) {
      EXPECT_EQ(said.count(row.same_run_as), 1U) << row.id;
    }
  }
}

TEST(TrainingRows, ShareThatCanBeSaidIsThatOfTheReadme) {
  constexpr const char* kFormula = "a formula of the paper";
  std::size_t said = 0, repeated = 0, formulas = 0, inferred = 0;
  const std::vector<TrainingRow> rows = training_rows();
  for (const TrainingRow& row : rows) {
    said += row.said_in.empty() ? 0 : 1;
    repeated += row.same_run_as.empty() ? 0 : 1;
    formulas += row.reason == kFormula ? 1 : 0;
    inferred += row.reason.find("can be said; not judged") != std::string::npos ? 1 : 0;
  }
  const std::size_t runs = rows.size() - repeated - formulas;
  EXPECT_GE(static_cast<double>(said + inferred), 0.9 * static_cast<double>(runs));
  EXPECT_THAT(text_of(kValidation / "README.md"),
              HasSubstr("Of " + std::to_string(runs) + " runs " + std::to_string(said + inferred) +
                        " can be said"));
}

}  // namespace
}  // namespace training_rows_test
}  // namespace orrery::training_rows_test
