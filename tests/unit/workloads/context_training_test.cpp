// SPDX-License-Identifier: Apache-2.0
#include "workloads/layers/attention/context_training.h"
#include "workloads/software/training_software.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "sim/config/diagnostics.h"
#include "sim/graph/memory_profile.h"
#include "sim/graph/verify.h"
#include "tests/unit/workloads/example_models.h"
#include "workloads/steps/figures/memory.h"
#include "workloads/steps/figures/statistics.h"

namespace orrery::context_training_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TrainingConfig shared(ParallelConfig parallel, ContextExchange exchange = ContextExchange::kP2p) {
  TrainingConfig config;
  config.parallel = parallel;
  config.micro_batch = 2;
  config.global_batch = 4L * parallel.dp;
  config.sequence = 32;
  auto software = std::make_shared<TrainingSoftware>();
  software->cp_comm_type.value = exchange;
  config.software = software;
  return config;
}

/// cp 4 by each way of exchange.
std::vector<TrainingConfig> all_exchanges() {
  const ParallelConfig plan{.cp = 4};
  ParallelConfig both = plan;
  both.cp_a2a = 2;
  return {shared(plan), shared(plan, ContextExchange::kAllGather),
          shared(plan, ContextExchange::kA2a), shared(both, ContextExchange::kA2aP2p)};
}

ProgramStatistics statistics(const LlmConfig& model, const TrainingConfig& config) {
  return program_statistics(build_training(model, config).program);
}

TEST(ContextTraining, ProgramsAreSoundUnderEveryExchange) {
  for (TrainingConfig config : all_exchanges()) {
    for (const bool sp : {false, true}) {
      config.parallel.tp = sp ? 2 : 1;
      config.parallel.sp = sp;
      config.parallel.pp = 2;
      config.parallel.dp = 2;
      config.global_batch = 8;
      const LlmConfig model = small_llama(4);
      if (sp && context_split(config.parallel, config.software->cp_comm_type.value).heads > 2)
        continue;  // 2 KV heads a rank
      const Program program = build_training(model, config, true).program;
      EXPECT_THAT(verify(program), IsEmpty());
      EXPECT_THAT(verify_tensors(program), IsEmpty());
      EXPECT_EQ(program.ranks, config.parallel.ranks());
    }
  }
}

/// Every query sees the keys before it once, whoever computes that.
TEST(ContextTraining, ComputesWhatOneRankWould) {
  const LlmConfig model = small_llama(2);
  const double whole = statistics(model, shared({})).matrix_flops().base();
  for (const TrainingConfig& config : all_exchanges())
    EXPECT_DOUBLE_EQ(statistics(model, config).matrix_flops().base(), whole)
        << static_cast<int>(config.software->cp_comm_type.value);
  // And with experts, whose tokens are shared as well.
  const double experts = statistics(small_moe(2), shared({})).matrix_flops().base();
  EXPECT_DOUBLE_EQ(statistics(small_moe(2), shared({.cp = 4})).matrix_flops().base(), experts);
}

/// Bytes of transfers of context parallel ranks of one rank in one layer and micro-batch.
std::map<std::string, double> exchanged(const TrainingConfig& config) {
  const ProgramStatistics rank = role_statistics(build_training(small_llama(1), config).program, 0);
  std::map<std::string, double> bytes;
  for (const auto& [name, entry] : rank.transfers)
    if (name.ends_with(" cp"))
      bytes[name] = entry.bytes.base() / static_cast<double>(config.micro_batches());
  return bytes;
}

TEST(ContextTraining, MovesKeysValuesAndTheirGradients) {
  // 2 sequences of 8 tokens on a rank, keys and values of 4 heads of 8, 2 B each.
  const double keys = 2 * 8 * 2 * 4 * 8 * 2.0;
  // All heads of queries.
  const double queries = 2 * 8 * 8 * 8 * 2.0;
  const std::vector<TrainingConfig> configs = all_exchanges();
  const auto is = [](const char* name, double bytes) {
    return std::pair<const std::string, double>(name, bytes);
  };
  // Three steps forward; backward three of keys and three of gradients.
  EXPECT_THAT(exchanged(configs[0]), ElementsAre(is("send_receive cp", 3 * keys * (1 + 2))));
  EXPECT_THAT(exchanged(configs[1]),
              ElementsAre(is("all_gather cp", 2 * 4 * keys), is("reduce_scatter cp", 4 * keys)));
  // Queries, keys and values, results; and the gradients of all of them.
  EXPECT_THAT(exchanged(configs[2]), ElementsAre(is("all_to_all cp", 2 * (2 * queries + keys))));
  // Rings of two, with half of the heads of twice the tokens.
  EXPECT_THAT(exchanged(configs[3]), ElementsAre(is("all_to_all cp", 2 * (2 * queries + keys)),
                                                 is("send_receive cp", keys * (1 + 2))));
}

TEST(ContextTraining, SendsToTheNextRankOfTheRing) {
  TrainingConfig config = shared({.tp = 2, .cp = 4, .cp_a2a = 2}, ContextExchange::kA2aP2p);
  const Program program = build_training(small_llama(1), config).program;
  for (const Transfer& transfer : program.transfers) {
    if (transfer.purpose != "cp") continue;
    if (transfer.kind == TransferKind::kAllToAll) {
      EXPECT_THAT(transfer.groups, ElementsAre(ElementsAre(0, 2), ElementsAre(4, 6),
                                               ElementsAre(1, 3), ElementsAre(5, 7)));
    } else {
      EXPECT_THAT(transfer.groups[0], ElementsAre(0, 4));
      EXPECT_THAT(transfer.groups[1], ElementsAre(4, 0));
    }
  }
}

TEST(ContextTraining, SharesActivationsAndStates) {
  const LlmConfig model = library_model("llama_3_1_8b");
  TrainingConfig config;
  config.sequence = 8192;
  const MemoryUse alone = training_memory(model, config).front();
  config.parallel.cp = 4;
  const MemoryUse use = training_memory(model, config).front();
  EXPECT_DOUBLE_EQ(use.activations.base(), alone.activations.base() / 4);
  EXPECT_DOUBLE_EQ(use.logits.base(), alone.logits.base() / 4);
  EXPECT_DOUBLE_EQ(use.weights.base(), alone.weights.base());
  EXPECT_DOUBLE_EQ(use.optimizer.base(), alone.optimizer.base() / 4);
  // Backward: what is sent and what arrives of keys, values and their gradients, 2048 tokens of
  // 2 x 8 heads of 128.
  const auto working = [&model](const TrainingConfig& plan) {
    const Program program = build_training(model, plan, true).program;
    return memory_profile(program, program.roles[0]).peak(TensorRole::kWorking).base();
  };
  TrainingConfig one = config;
  one.parallel.cp = 1;
  EXPECT_DOUBLE_EQ(working(one), 0);
  const double keys = 2048.0 * 2 * 8 * 128 * 2, results = 2048.0 * 32 * 128 * 2;
  // Forward: three buffers of keys and values; outputs of the own step, of two for all queries and
  // of one for half of them.
  EXPECT_DOUBLE_EQ(working(config), std::max(4 * keys, 3 * keys + 3.5 * results));
}

TEST(ContextTraining, ReducesGradientsOverAllThatHoldTheWeights) {
  const LlmConfig model = small_llama(2);
  const auto reduced = [&](const ParallelConfig& plan) {
    return role_statistics(build_training(model, shared(plan)).program, 0)
        .transfers.at("reduce_scatter dp")
        .bytes.base();
  };
  EXPECT_DOUBLE_EQ(reduced({.cp = 4}), reduced({.dp = 4}));
  const Program program = build_training(model, shared({.dp = 2, .cp = 2})).program;
  for (const Transfer& transfer : program.transfers) {
    if (transfer.purpose != "dp") continue;
    EXPECT_THAT(transfer.groups, ElementsAre(ElementsAre(0, 1, 2, 3)));
  }
}

TEST(ContextTraining, SaysWhatCannotBeShared) {
  const auto message = [](const TrainingConfig& config, const LlmConfig& model) -> std::string {
    try {
      require_supported(model, config);
    } catch (const config::ConfigError& error) {
      return error.what();
    }
    return "";
  };
  const LlmConfig model = small_llama(2);
  EXPECT_EQ(message(shared({.cp = 4}), model), "");
  EXPECT_THAT(message(shared({.cp = 3}), model), HasSubstr("do not divide by 2 * cp = 6"));
  EXPECT_THAT(message(shared({.cp = 8}, ContextExchange::kA2a), model),
              HasSubstr("4 KV heads of a rank cannot be shared by 8"));
  EXPECT_THAT(message(shared({.cp = 4}, ContextExchange::kA2aP2p), model), HasSubstr("above 1"));
  EXPECT_THAT(message(shared({.cp = 4, .cp_a2a = 2}), model), HasSubstr("cp_comm_type"));
  TrainingConfig stored = shared({.cp = 2});
  stored.flash_attention = false;
  EXPECT_THAT(message(stored, model), HasSubstr("flash_attention: true"));
  LlmConfig windows = model;
  windows.layers[0].window = 8;
  EXPECT_THAT(message(shared({.cp = 2}), windows), HasSubstr("sliding windows"));
}

}  // namespace
}  // namespace orrery::context_training_test
