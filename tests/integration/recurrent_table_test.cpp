// SPDX-License-Identifier: Apache-2.0
// A table of recurrent kernels as a user has it: fitted, judged, and used as measured.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/integration/program.h"

namespace recurrent_table_test {
namespace {

using namespace integration;
using testing::HasSubstr;

/// Updates of states of 128 x 128 in fp32 at 0.8 of 4.8 TB/s behind 3 us, with a ripple of 2 %.
std::string table_of_updates() {
  std::string table =
      "system,kernel,precision,state_precision,batch,tokens,heads,groups,key_dim,value_dim,"
      "channels,taps,latency_us,implementation\n";
  int row = 0;
  for (const int heads : {4, 8, 12, 16, 24, 32, 48, 64, 96, 128}) {
    for (int batch = 1; batch <= 4096; batch *= 2) {
      const double states = 2.0 * 4 * batch * heads * 128 * 128;
      const double inputs = 2.0 * batch * heads * (4 * 128 + 2);
      const double ripple = ++row % 2 == 0 ? 1.02 : 0.98;
      const double us = ripple * (3 + (states + inputs) / (0.8 * 4.8e6));
      const std::string n = std::to_string(heads);
      table.append("h200_sxm,delta_update,bf16,fp32,").append(std::to_string(batch));
      table.append(",1,").append(n).append(",").append(n).append(",128,128,0,0,");
      table.append(std::to_string(us)).append(",ours\n");
    }
  }
  return table;
}

using RecurrentTable = InFolder;

TEST_F(RecurrentTable, IsFittedJudgedAndUsedAsMeasured) {
  const std::string table = write("recurrent_kernels.csv", table_of_updates());
  const Outcome fit = orrery("calibrate " + table + " --source test -o " + folder_.string());
  ASSERT_EQ(fit.code, 0) << fit.out;
  EXPECT_THAT(fit.out, HasSubstr("recurrent_kernels bf16"));
  const std::string calibration = path("h200_sxm.yaml");
  const std::string line = shell("grep scan.stream_efficiency: " + calibration).out;
  const std::string value = "value: ";
  ASSERT_THAT(line, HasSubstr(value));
  EXPECT_NEAR(std::stod(line.substr(line.find(value) + value.size())), 0.8, 0.005);
  const Outcome judged = orrery(
      "validate operators " + table + " --held-out --json --calibration " + calibration, false);
  ASSERT_EQ(judged.code, 0) << judged.out;
  EXPECT_THAT(judged.out, HasSubstr("\"class\": \"delta_update\""));
  const std::string experiment =
      write("e.yaml",
            "experiment: operator\nsystem: dgx_h200\nmeasured: [recurrent_kernels.csv]\n"
            "operator: {kind: delta_update, batch: 64, heads: 32}\n");
  const Outcome run = orrery("run " + experiment);
  ASSERT_EQ(run.code, 0) << run.out;
  EXPECT_THAT(run.out, HasSubstr("time 100 % measured"));
}

}  // namespace
}  // namespace recurrent_table_test
