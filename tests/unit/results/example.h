// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>
#include <random>
#include <string>

#include "sim/results/run_record.h"
#include "sim/store/result_store.h"

namespace orrery {

/// A folder for one test, gone after it.
class TemporaryFolder {
 public:
  TemporaryFolder()
      : path_(std::filesystem::temp_directory_path() /
              ("orrery_results_" + std::to_string(std::random_device{}()))) {
    std::filesystem::create_directory(path_);
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

inline std::shared_ptr<const Configuration> example_configuration(const std::string& tp = "8") {
  auto configuration = std::make_shared<Configuration>();
  configuration->parameters = {{"parallel.tp", tp, std::stod(tp), "", "a.yaml:3:7"},
                               {"bandwidth", "8 TB/s", 8e12, "B/s", "a.yaml:4:7"},
                               {"flash", "true", std::nullopt, "", "default"},
                               {"precision", "bf16", std::nullopt, "", "default"}};
  configuration->canonical = std::make_shared<const nlohmann::ordered_json>(
      nlohmann::ordered_json{{"parallel", {{"tp", std::stoi(tp)}}},
                             {"bandwidth", 8e12},
                             {"flash", true},
                             {"precision", "bf16"}});
  return configuration;
}

/// A record with something in every field, and numbers that have no short decimal form.
inline RunRecord example_record(const std::string& identity = "id", double step_time_s = 0.1) {
  RunRecord record;
  record.identity = identity;
  record.experiment = "training";
  record.name = "naïve \"tp8\"";
  record.metrics = {{"step_time_s", step_time_s, "s", {{step_time_s * 0.9, step_time_s * 1.1}}},
                    {"breakdown.compute_s", 1.0 / 3, "s"},
                    {"events", 123456789, ""},
                    {"peak_memory_bytes", 9007199254740993.0, "B"}};
  record.labels = {{"bound", "memory"}};
  record.classes = {{"gemm", 12, 0.25, 1e15, 3e9}, {"all_reduce tp", 4, 0.125, 0, 1e9}};
  record.link_classes = {{"accelerator->leaf", 8, 1e9 / 3, 0.1, 0.3}};
  record.links = {{"a0->leaf0", 1, 1e8, 0.1, 0.1}, {"a1->leaf1", 1, 1e8 / 7, 0.3, 0.3}};
  record.provenance = {{"measured", 0.1}, {"analytic", 0.9}};
  record.base = example_configuration();
  return record;
}

inline RunTimes example_times() { return {"2025-11-03T09:12:44.120Z", 1.5, "node1"}; }

}  // namespace orrery
