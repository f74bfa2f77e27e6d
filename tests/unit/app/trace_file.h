// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "sim/app/experiments/core/simulate.h"
#include "tests/unit/app/loaded_text.h"

/// Chakra traces in JSON for tests of replays.
namespace orrery::test {

/// Begin of the names of files and folders of this process.
inline const std::string kTemp = testing::TempDir() + std::to_string(::getpid()) + "_";

/// A file with a Chakra trace in JSON, of a name of its own: files are read once in a process.
class TraceFile {
 public:
  explicit TraceFile(const std::string& nodes, const std::string& name = {})
      : path_(kTemp +
              (name.empty() ? "replay_trace_" + std::to_string(++written_) + "_.json" : name)) {
    std::ofstream(path_) << R"({"workload_graph": [)" << nodes << "]}";
  }
  ~TraceFile() { std::remove(path_.c_str()); }
  TraceFile(const TraceFile&) = delete;
  TraceFile& operator=(const TraceFile&) = delete;

  const std::string& path() const { return path_; }
  std::string experiment(const std::string& more = "") const {
    return "experiment: replay\nsystem: dgx_h100\ngraph: {path: " + path_ + "}\n" + more;
  }

 private:
  std::string path_;
  static inline int written_ = 0;
};

inline std::string compute(int id, const std::string& name, int micros,
                           const std::string& after = "", const std::string& more = "") {
  return R"({"Id": )" + std::to_string(id) + R"(, "Name": ")" + name +
         R"(", "NodeType": 4, "is_cpu_op": false, "runtime": )" + std::to_string(micros) +
         R"(, "data_deps": [)" + after + "]" + more + "}";
}

inline RunRecord run(const std::string& text, const std::vector<std::string>& set = {}) {
  return simulate(load(text, set));
}
inline double value(const RunRecord& record, const char* metric) {
  return record.find(metric)->value;
}

}  // namespace orrery::test
