// SPDX-License-Identifier: Apache-2.0
// ONNX models, priced and replayed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>

#include "sim/app/experiments/core/simulate.h"
#include "sim/app/experiments/graphs/replay.h"
#include "tests/unit/app/loaded_text.h"
#include "tests/unit/workloads/formats/onnx/models.h"

namespace orrery::replay_onnx_test {
namespace {

/// Begin of the names of files and folders of this process.
const std::string kTemp = testing::TempDir() + std::to_string(::getpid()) + "_";

using testing::HasSubstr;

/// A model in a file.
class ModelFile {
 public:
  ModelFile(const std::string& name, const std::string& model) : path_(kTemp + name + ".onnx") {
    std::ofstream(path_, std::ios::binary) << model;
  }
  ~ModelFile() { std::remove(path_.c_str()); }
  ModelFile(const ModelFile&) = delete;
  ModelFile& operator=(const ModelFile&) = delete;

  RunRecord run(const std::string& dimensions, const std::vector<std::string>& set = {}) const {
    return simulate(test::load("experiment: replay\nsystem: dgx_h100\ngraph: {path: " + path_ +
                                   ", precision: fp16, dimensions: {" + dimensions + "}}\n",
                               set));
  }

 private:
  std::string path_;
};

double value(const RunRecord& record, const char* metric) { return record.find(metric)->value; }

// 990 TFLOP/s and 3.35 TB/s of an H100 (its data sheet).
TEST(ReplayedOnnx, ResNet50IsNoFasterThanItsFlopsAndBytesAllow) {
  const ModelFile model("replayed_resnet", onnx::ResNet50().build());
  const RunRecord record = model.run("batch: 128");
  const double time = value(record, "time_s");
  EXPECT_GT(time, 128 * 2 * 4'089'184'256.0 / 990e12);
  EXPECT_LT(time, 0.05);
  EXPECT_EQ(value(record, "recorded_share"), 0);
  EXPECT_GT(value(model.run("batch: 128", {"graph.fuse=false"}), "time_s"), time);
  EXPECT_GT(value(model.run("batch: 256"), "time_s"), 1.5 * time);
}

TEST(ReplayedOnnx, ADecodeStepOfLlamaTakesAsLongAsItsWeightsAndCacheNeed) {
  const ModelFile model("replayed_llama", onnx::Llama(4).build());
  const RunRecord record = model.run("batch: 1, length: 1, past: 1023, total: 1024");
  const double weights = 2 * (4 * (4.0 * 4096 * 4096 + 3.0 * 4096 * 11008) + 4096.0 * 32000);
  EXPECT_GT(value(record, "time_s"), weights / 3.35e12);
  EXPECT_LT(value(record, "time_s"), 2.5 * weights / 3.35e12);
}

TEST(ReplayedOnnx, TimesOfTheModelsHaveNoOperatorsWithoutARule) {
  for (const auto& [name, text, dimensions] :
       {std::tuple(std::string("resnet"), onnx::ResNet50().build(), std::string("batch: 8")),
        std::tuple(std::string("bert"), onnx::Bert().build(),
                   std::string("batch: 8, length: 128"))}) {
    const RunRecord record = ModelFile("mapped_" + name, text).run(dimensions);
    double all = 0, unmapped = 0;
    for (const ClassBreakdown& row : record.classes) {
      all += row.time_s;
      if (row.name == "other kernels") unmapped += row.time_s;
    }
    EXPECT_GT(all, 0) << name;
    EXPECT_LE(unmapped, 0.05 * all) << name;
    EXPECT_NEAR(value(record, "unclassified_share"), unmapped / all, 1e-9) << name;
  }
}

TEST(ReplayedOnnx, ADimensionWithoutASizeIsNamed) {
  const ModelFile model("replayed_unset", onnx::ResNet50().build());
  try {
    model.run("");
    FAIL() << "no error";
  } catch (const config::ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("'batch' of 'image': --set graph.dimensions.batch="));
  }
}

}  // namespace
}  // namespace orrery::replay_onnx_test
