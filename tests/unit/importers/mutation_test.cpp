// SPDX-License-Identifier: Apache-2.0
// Damaged inputs: every importer gives a table or a ConfigError, and never anything else. The
// damages follow from a seed, so that one that fails is the same at the next run.
#include <array>
#include <functional>
#include <iterator>
#include <random>
#include <sstream>

#include "tests/unit/importers/samples.h"
#include "tests/unit/importers/scratch.h"
#include "validation/importers/operator_table.h"

namespace orrery::mutation_test {
namespace {

struct Case {
  std::string name;
  std::string sample;  ///< file of data/, or a database that is written
  std::function<void(const std::string& path)> read;
};
std::ostream& operator<<(std::ostream& out, const Case& tested) { return out << tested.name; }

/// The table must also be writable: numbers in it are finite.
std::function<void(const std::string&)> importing(const std::string& kind,
                                                  const std::string& system = "") {
  return [kind, system](const std::string& path) {
    std::ostringstream csv;
    write_csv(import_file(kind, path, {system, "all_gather"}), csv);
  };
}

class Mutations : public Scratch, public testing::WithParamInterface<Case> {
 protected:
  std::string original() const {
    std::string file = sample(GetParam().sample);
    if (GetParam().sample.ends_with(".sqlite")) {
      file = path(GetParam().sample);
      GetParam().sample == "nsys.sqlite" ? write_nsys_sample(file) : write_rocpd_sample(file);
    }
    std::ifstream stream(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
  }
};

std::size_t below(std::mt19937& random, std::size_t limit) {
  return limit == 0 ? 0 : random() % limit;
}

void flip_bits(std::mt19937& random, std::string& text) {
  for (std::size_t n = below(random, 8) + 1; n > 0 && !text.empty(); --n) {
    text[below(random, text.size())] ^= static_cast<char>(1U << below(random, 8));
  }
}

void truncate(std::mt19937& random, std::string& text) { text.resize(below(random, text.size())); }

void duplicate_line(std::mt19937& random, std::string& text) {
  const std::size_t start = text.rfind('\n', below(random, text.size())) + 1;  // npos + 1 is 0
  const std::size_t end = std::min(text.find('\n', start), text.size());
  text.insert(start, text.substr(start, end - start) + "\n");
}

void replace_word(std::mt19937& random, std::string& text) {
  constexpr const char* kWords[] = {"-1",   "1e999", "nan", "99999999999999999999",
                                    "\"",   ",",     "{[{", "null",
                                    "\x01", "#",     "",    "\n"};
  const std::size_t start = below(random, text.size());
  text.replace(start, below(random, 6), kWords[below(random, std::size(kWords))]);
}

TEST_P(Mutations, GiveATableOrAConfigError) {
  constexpr int kRounds = 200;
  const std::string text = original();
  ASSERT_FALSE(text.empty());
  std::mt19937 random(20250101);
  constexpr std::array damages = {flip_bits, truncate, duplicate_line, replace_word};
  int tables = 0, errors = 0;
  for (int round = 0; round < kRounds; ++round) {
    std::string damaged = text;
    for (std::size_t n = below(random, 3) + 1; n > 0; --n) {
      damages[below(random, damages.size())](random, damaged);
    }
    const std::string file = write("damaged", damaged);
    try {
      GetParam().read(file);
      ++tables;
    } catch (const config::ConfigError& error) {
      ++errors;
      EXPECT_NE(std::string(error.what()).find("damaged"), std::string::npos) << error.what();
    }
  }
  EXPECT_EQ(tables + errors, kRounds);
  EXPECT_GT(tables, 0);
  EXPECT_GT(errors, 0);
}

const auto kCases = testing::Values(
    Case{"operators", "gemm.csv", [](const std::string& file) { read_operator_table(file); }},
    Case{"collectives", "collective.csv",
         [](const std::string& file) { read_collective_table(file); }},
    Case{"nccl_tests", "all_reduce.log", importing("nccl-tests")},
    Case{"nccl_tests_old", "all_gather_old.log", importing("nccl-tests")},
    Case{"nccl_topology", "nccl_topology.xml", importing("nccl-topology")},
    Case{"nsys", "nsys.sqlite", importing("nsys")},
    Case{"nsys_stats", "nsys_stats.csv", importing("nsys")},
    Case{"rocpd", "rocpd.sqlite", importing("rocprof")},
    Case{"rocprof", "rocprof_results.csv", importing("rocprof")},
    Case{"rocprofv3", "rocprofv3_kernel_trace.csv", importing("rocprof")},
    Case{"ncu_details", "ncu_details.csv", importing("ncu")},
    Case{"ncu_raw", "ncu_raw.csv", importing("ncu")}, Case{"vllm", "vllm.json", importing("vllm")},
    Case{"sglang", "sglang.jsonl", importing("sglang")},
    Case{"vllm_table", "vllm_table.log", importing("vllm")},
    Case{"sglang_table", "sglang_table.log", importing("sglang")},
    Case{"rccl_tests", "rccl_tests.log", importing("nccl-tests")},
    Case{"hccl_test", "hccl_test.log", importing("nccl-tests")},
    Case{"rccl_topology", "rccl_topology.xml", importing("nccl-topology")},
    Case{"infragraph", "infragraph.yaml", importing("infragraph", "dgx_h100")});
INSTANTIATE_TEST_SUITE_P(Importers, Mutations, kCases,
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace orrery::mutation_test
