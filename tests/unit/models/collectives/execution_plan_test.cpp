// SPDX-License-Identifier: Apache-2.0
#include "models/collectives/plans/execution_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>

#include "models/collectives/plans/user_algorithm.h"
#include "sim/config/load.h"
#include "tests/unit/models/transfers/flow_checks.h"
#include "tests/unit/models/transfers/test_systems.h"

namespace orrery::execution_plan_test {
namespace {

using namespace orrery::fixtures;
using testing::AllOf;
using testing::HasSubstr;

const std::string kOfLibrary =
    std::string(ORRERY_SOURCE_DIR) + "/configs/collectives/put_all_gather_8.json";

/// Writes a file of its own for every text.
std::string file_with(const std::string& text) {
  static int count = 0;
  const std::string path =
      testing::TempDir() + std::to_string(::getpid()) + "plan" + std::to_string(count++) + ".json";
  std::ofstream(path) << text;
  return path;
}

std::string error_of(const std::string& text) {
  try {
    find_algorithm(file_with(text));
  } catch (const config::ConfigError& e) {
    return e.what();
  }
  return "no error";
}

std::string changed(std::string text, const std::string& from, const std::string& to) {
  text.replace(text.find(from), from.size(), to);
  return text;
}

struct PlanOfTwo {
  std::string collective = "allreduce";
  int input = 2, output = 2, scratch = 2;
  std::string ops[2];  ///< operations of the one thread block of each rank
  std::string more;    ///< further keys in front
};

/// A plan of two ranks in place, each with a thread block that has a channel to the other one and
/// reaches its buffers: 0 its input, 1 its output, 2 its scratch memory.
std::string text_of(const PlanOfTwo& plan) {
  std::string text = "{\"name\": \"test\", \"collective\": \"" + plan.collective +
                     "\", \"protocol\": \"Simple\", \"inplace\": true,\n" + plan.more +
                     " \"gpus\": [";
  for (int rank = 0; rank < 2; ++rank) {
    const std::string other = std::to_string(1 - rank);
    text += std::string(rank == 0 ? "" : ",") + "\n{\"id\": " + std::to_string(rank) +
            ", \"input_chunks\": " + std::to_string(plan.input) +
            ", \"output_chunks\": " + std::to_string(plan.output) +
            ", \"scratch_chunks\": " + std::to_string(plan.scratch) +
            ", \"channels\": [{\"channel_type\": \"memory\", \"connected_to\": [" + other +
            "]}],\n \"remote_buffers\": [";
    for (const char* type : {"i", "o", "s"})
      text += std::string(type[0] == 'i' ? "" : ", ") + "{\"rank\": " + other + ", \"type\": \"" +
              type + "\", \"access_channel_types\": [\"memory\"]}";
    text +=
        "],\n \"threadblocks\": [{\"id\": 0, \"channels\": [{\"channel_type\": \"memory\", "
        "\"channel_ids\": [0]}], \"remote_buffer_refs\": [{\"access_channel_type\": "
        "\"memory\", \"remote_buffer_ids\": [0, 1, 2]}], \"ops\": [\n" +
        plan.ops[rank] + "]}]}";
  }
  return text + "]}\n";
}

std::string own(const std::string& type, int index) {
  return "{\"type\": \"" + type + "\", \"index\": " + std::to_string(index) + ", \"size\": 1}";
}
std::string of_other(int buffer, int index) {
  return "{\"buffer_id\": " + std::to_string(buffer) + ", \"index\": " + std::to_string(index) +
         ", \"size\": 1}";
}
std::string move(const std::string& name, const std::string& from, const std::string& to,
                 const std::string& more = "") {
  return "{\"name\": \"" + name + "\", \"channel_type\": \"memory\", \"src_buff\": [" + from +
         "], \"dst_buff\": [" + to + "]" + more + "}";
}
const std::string kSignal = R"({"name": "signal", "channel_type": "memory", "channel_ids": [0]})";
const std::string kWait = R"({"name": "wait", "channel_type": "memory", "channel_ids": [0]})";

/// Rank r adds the other's chunk r to its own and writes the sum to it.
PlanOfTwo two_shots() {
  PlanOfTwo plan;
  for (int r = 0; r < 2; ++r)
    plan.ops[r] =
        move("rres", own("i", r) + ", " + of_other(0, r), own("i", r) + ", " + of_other(0, r)) +
        ",\n" + kSignal + ", " + kWait;
  return plan;
}

/// Each rank sends the other's half as packets; that adds it to its own and sends the sum back so.
PlanOfTwo packets() {
  PlanOfTwo plan;
  for (int r = 0; r < 2; ++r)
    plan.ops[r] =
        move("ppkt", own("i", 1 - r), of_other(2, 0)) + ",\n" +
        move("respkt", own("i", r) + ", " + own("s", 0), own("i", r) + ", " + of_other(2, 1)) +
        ",\n" + move("upkt", own("s", 1), own("i", 1 - r));
  return plan;
}

PricedTransfer priced(const std::string& path, TransferKind kind, int ranks, Bytes bytes) {
  return FlowModel(dgx_h100(), 1, path).price(transfer(kind, bytes, {range(0, ranks)}));
}

TEST(ExecutionPlan, PuttingToAllPeersIsAnAllGatherInOneStep) {
  const PricedTransfer all = priced(kOfLibrary, TransferKind::kAllGather, 8, 8_MB);
  EXPECT_EQ(all.algorithm, kOfLibrary);
  EXPECT_EQ(all.scale_up_steps, 1);
  // Each rank sends 1 MB to each of seven at 450 GB/s, after a step of 1 us.
  EXPECT_DOUBLE_EQ(all.isolated_time.base(), 1e-6 + 7e6 / 450e9);
}

TEST(ExecutionPlan, ReadingASumAndWritingItBackAreTwoSteps) {
  const std::string path = file_with(text_of(two_shots()));
  const PricedTransfer sum = priced(path, TransferKind::kAllReduce, 2, 2_MB);
  EXPECT_EQ(sum.algorithm, path);
  EXPECT_EQ(sum.scale_up_steps, 2);
  // A chunk of 1 MB is read from each rank, and one is written to it.
  EXPECT_DOUBLE_EQ(sum.isolated_time.base(), 2e-6 + 2e6 / 450e9);
}

TEST(ExecutionPlan, PacketsCrossLinksWithAsManyBytesOfFlags) {
  const std::string path = file_with(text_of(packets()));
  const PricedTransfer sum = priced(path, TransferKind::kAllReduce, 2, 2_MB);
  EXPECT_EQ(sum.scale_up_steps, 2);
  EXPECT_DOUBLE_EQ(sum.isolated_time.base(), 2e-6 + 4e6 / 450e9);
}

TEST(ExecutionPlan, AllToAllInPlaceNeedsScratchMemory) {
  PlanOfTwo plan{.collective = "alltoall", .ops = {}, .more = {}};
  for (int r = 0; r < 2; ++r)
    plan.ops[r] = move("put", own("i", 1 - r), of_other(2, 0)) + ", " + kSignal + ", " + kWait +
                  ",\n" + move("copy", own("s", 0), own("o", 1 - r));
  EXPECT_EQ(priced(file_with(text_of(plan)), TransferKind::kAllToAll, 2, 2_MB).scale_up_steps, 1);
  for (int r = 0; r < 2; ++r)  // into the place that the other one still reads
    plan.ops[r] = move("put", own("i", 1 - r), of_other(1, r)) + ", " + kSignal + ", " + kWait;
  EXPECT_THAT(error_of(text_of(plan)), HasSubstr("thread block 0 of rank 0 may"));
}

TEST(ExecutionPlan, ThreadBlocksThatShareAChunkCarryTheirPartsOfIt) {
  PlanOfTwo plan{.collective = "allgather", .input = 1, .scratch = 0, .ops = {}, .more = {}};
  for (int r = 0; r < 2; ++r) {
    for (int block = 0; block < 2; ++block)
      plan.ops[r] +=
          move("put", own("o", r), of_other(1, r),
               ", \"tbg_info\": {\"tb_id\": " + std::to_string(block) + ", \"tbg_size\": 2}") +
          ", ";
    plan.ops[r] += kSignal + ", " + kWait;
  }
  const std::string text = text_of(plan);
  EXPECT_DOUBLE_EQ(priced(file_with(text), TransferKind::kAllGather, 2, 2_MB).isolated_time.base(),
                   1e-6 + 1e6 / 450e9);
  EXPECT_THAT(error_of(changed(text, "\"tb_id\": 1", "\"tb_id\": 0")),
              HasSubstr("rank 1 ends with chunk 1 without the contribution of rank 0"));
}

// Rounds that wait for each other cost a step each, though their data does not: rank 0 writes the
// second half once rank 1 has signalled that it has the first.
TEST(ExecutionPlan, AWaitForASignalBehindDataIsAStep) {
  PlanOfTwo plan{
      .collective = "allgather", .input = 2, .output = 4, .scratch = 0, .ops = {}, .more = {}};
  for (int r = 0; r < 2; ++r)
    for (int half = 0; half < 2; ++half)
      plan.ops[r] += std::string(half == 0 ? "" : ",\n") +
                     move("put", own("o", 2 * r + half), of_other(1, 2 * r + half)) + ", " +
                     kSignal + ", " + kWait;
  EXPECT_EQ(priced(file_with(text_of(plan)), TransferKind::kAllGather, 2, 4_MB).scale_up_steps, 2);
  for (int r = 0; r < 2; ++r)  // a handshake before there is data costs none
    plan.ops[r] = kSignal + ", " + kWait + ",\n" +
                  move("put", own("o", 2 * r) + ", " + own("o", 2 * r + 1),
                       of_other(1, 2 * r) + ", " + of_other(1, 2 * r + 1)) +
                  ", " + kSignal + ", " + kWait;
  EXPECT_EQ(priced(file_with(text_of(plan)), TransferKind::kAllGather, 2, 4_MB).scale_up_steps, 1);
}

/// The other form, with one channel between the two inputs.
std::string older_plan() {
  std::string text =
      "{\"name\": \"older\", \"collective\": \"allreduce\", \"inplace\": true, \"gpus\": [";
  for (int rank = 0; rank < 2; ++rank) {
    const std::string r = std::to_string(rank);
    text += std::string(rank == 0 ? "" : ",") + "\n{\"id\": " + r +
            ", \"inputChunks\": 2, \"outputChunks\": 0, \"scratchChunks\": 0, \"chunkGroups\": 1,"
            " \"channels\": [{\"srcbuff\": \"i\", \"dstbuff\": \"i\", \"type\": \"sm\","
            " \"connectedTo\": [" +
            std::to_string(1 - rank) +
            "]}], \"threadblocks\": [{\"id\": 0, \"channels\": [{\"src\": \"i\", \"dst\": \"i\","
            " \"ctype\": \"sm\", \"cids\": [0]}], \"ops\": [\n{\"name\": \"rrcs\", \"ctype\": "
            "\"sm\", \"i_buff\": {\"src\": \"i\", \"dst\": \"i\"}, \"i_cids\": [{\"id\": 0, "
            "\"off\": " +
            r +
            "}], \"o_buff\": {\"src\": \"i\", \"dst\": \"i\"}, \"o_cids\": [{\"id\": 0, "
            "\"off\": " +
            r + "}], \"srcbuff\": \"i\", \"srcoff\": " + r +
            ", \"dstbuff\": \"i\", \"dstoff\": " + r +
            ", \"cnt\": 1},\n{\"name\": \"signal\", \"ctype\": \"sm\", \"o_buff\": {\"src\": "
            "\"i\", \"dst\": \"i\"}, \"o_cids\": [{\"id\": 0, \"off\": 0}], \"cnt\": 1}]}]}";
  }
  return text + "]}\n";
}

TEST(ExecutionPlan, TheOlderFormSaysTheSame) {
  const PricedTransfer older = priced(file_with(older_plan()), TransferKind::kAllReduce, 2, 2_MB);
  const PricedTransfer newer =
      priced(file_with(text_of(two_shots())), TransferKind::kAllReduce, 2, 2_MB);
  EXPECT_EQ(older.isolated_time, newer.isolated_time);
  EXPECT_EQ(older.scale_up_steps, newer.scale_up_steps);
}

TEST(ExecutionPlan, AReadThatNothingOrdersIsShownInItsPlace) {
  PlanOfTwo plan{.collective = "allgather", .input = 1, .ops = {}, .more = {}};
  for (int r = 0; r < 2; ++r)
    plan.ops[r] = move("put", own("o", r), of_other(2, 0)) + ", " + kSignal + ",\n" + kWait +
                  ",\n" + move("copy", own("s", 0), own("o", 1 - r));
  const std::string text = text_of(plan);
  EXPECT_EQ(error_of(text), "no error");
  EXPECT_THAT(error_of(changed(text, kWait + ",\n", "")),
              AllOf(HasSubstr(".json:7:10: "),
                    HasSubstr("error: reads chunk 0 of the scratch memory of rank 0")));
}

TEST(ExecutionPlan, AWaitForNothingIsShownInItsPlace) {
  const std::string text = text_of(two_shots());
  EXPECT_THAT(error_of(changed(text, kSignal + ", ", "")),
              AllOf(HasSubstr(".json:"), HasSubstr("waits for something that never comes")));
}

TEST(ExecutionPlan, AnotherCollectiveThanItSaysIsRefused) {
  const std::string text = text_of(two_shots());
  const std::string targets = "\"dst_buff\": [" + own("i", 0) + ", " + of_other(0, 0) + "]";
  const std::string stays = changed(text, targets, "\"dst_buff\": [" + own("i", 0) + "]");
  EXPECT_THAT(error_of(changed(stays, "\"rres\"", "\"rre\"")),
              AllOf(HasSubstr("rank 1 ends with chunk 0 without the contribution of rank 0"),
                    HasSubstr("this is no all_reduce")));
  const std::string twice =
      changed(text, ", " + of_other(0, 0) + "], \"dst_buff\"",
              ", " + of_other(0, 0) + ", " + of_other(0, 0) + "], \"dst_buff\"");
  EXPECT_THAT(error_of(twice),
              AllOf(HasSubstr(".json:6:10: error: step"),
                    HasSubstr("gets the contribution of rank 1 to chunk 0 twice")));
}

TEST(ExecutionPlan, OperationsOfSwitchesAreRefusedInTheirPlace) {
  const std::string text = text_of(two_shots());
  EXPECT_THAT(error_of(changed(text, "\"rres\"", "\"glres\"")),
              AllOf(HasSubstr(".json:6:10: error: 'glres' reduces or multicasts in switches"),
                    HasSubstr("algorithm: nvls")));
  EXPECT_THAT(error_of(changed(text, "\"rres\"", "\"rre\"")),
              HasSubstr("this operation has one target"));
  EXPECT_THAT(error_of(changed(text, "\"rres\"", "\"rresx\"")),
              HasSubstr("unknown operation 'rresx'"));
  EXPECT_THAT(error_of(changed(text, "\"allreduce\"", "\"sendrecv\"")),
              HasSubstr("no plan of 'sendrecv' can be carried out here"));
}

TEST(ExecutionPlan, BuffersHaveTheirSizes) {
  const std::string text = text_of(two_shots());
  EXPECT_THAT(error_of(changed(text, "\"index\": 0", "\"index\": 2")),
              HasSubstr("buffer i of rank 0 has 2 chunks"));
  EXPECT_THAT(error_of(changed(text, "\"input_chunks\": 2", "\"input_chunks\": 4")),
              HasSubstr("ranks have different numbers of chunks"));
  PlanOfTwo uneven = two_shots();
  uneven.input = 4;
  EXPECT_THAT(error_of(text_of(uneven)), HasSubstr("4 chunks of input and 2 of output are no"));
  EXPECT_THAT(error_of(changed(text, "\"channel_ids\": [0]}, {\"name\": \"wait\"",
                               "\"channel_ids\": [1]}, {\"name\": \"wait\"")),
              HasSubstr("the thread block has 1 channels of type 'memory'"));
}

TEST(ExecutionPlan, OtherSizesThanItsOwnAreLeftToOthers) {
  PlanOfTwo plan = two_shots();
  plan.more = "\"min_message_size\": 1048576, \"max_message_size\": 2097152,";
  const std::string path = file_with(text_of(plan));
  EXPECT_EQ(priced(path, TransferKind::kAllReduce, 2, 1_MiB).algorithm, path);
  EXPECT_EQ(priced(path, TransferKind::kAllReduce, 2, 2_MiB).algorithm, path);
  EXPECT_NE(priced(path, TransferKind::kAllReduce, 2, 1_MB).algorithm, path);
  EXPECT_NE(priced(path, TransferKind::kAllReduce, 2, 3_MB).algorithm, path);
}

/// Damaged files: a plan or a ConfigError that names the file, and never anything else.
TEST(ExecutionPlan, DamagedFilesAreRefusedWithTheirName) {
  std::ifstream stream(kOfLibrary);
  const std::string of_library{std::istreambuf_iterator<char>(stream), {}};
  std::mt19937 random(20250101);
  const char* words[] = {"-1", "99999999999", "null", "\"s\"", "[]", "{}", "0", "\"", "]", ","};
  int plans = 0, errors = 0;
  for (int round = 0; round < 300; ++round) {
    std::string text = round % 3 == 0   ? of_library
                       : round % 3 == 1 ? text_of(packets())
                                        : older_plan();
    for (int n = 0; n < 1 + round % 3; ++n) {
      const std::size_t start = random() % text.size();
      if (random() % 8 == 0) {
        text.resize(start + 1);
      } else {
        text.replace(start, random() % 6, words[random() % std::size(words)]);
      }
    }
    const std::string path = file_with(text);
    try {
      find_algorithm(path);
      ++plans;
    } catch (const config::ConfigError& error) {
      ++errors;
      EXPECT_THAT(std::string(error.what()), HasSubstr(path));
    }
    std::filesystem::remove(path);
  }
  EXPECT_GT(plans, 0);
  EXPECT_GT(errors, 0);
}

}  // namespace
}  // namespace orrery::execution_plan_test
