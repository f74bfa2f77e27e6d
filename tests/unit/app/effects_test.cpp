// SPDX-License-Identifier: Apache-2.0
// Which inputs had no effect, against whole simulations in processes of their own.
#include "sim/app/questions/explain/effects.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "sim/app/sweeps/workers/isolate.h"
#include "sim/app/sweeps/workers/run_point.h"
#include "sim/config/output.h"
#include "tests/unit/app/loaded_text.h"

namespace orrery::effects_test {
namespace {

using test::load;

using Answer = Trials::Answer;
using testing::ElementsAre;

/// All that a whole simulation says, inputs left out.
std::string result_of(const LoadedExperiment& loaded) {
  RunRecord record = simulate_isolated(loaded).record;
  record.identity.clear();
  record.name.clear();
  record.base = nullptr;
  return to_json(record).dump();
}

/// The answers for some leaves, found in a process of their own: trials start SystemC.
std::vector<Answer> answers_of(const LoadedExperiment& loaded,
                               const std::vector<config::Leaf>& leaves) {
  const auto text = run_isolated([&] {
    Trials trials(loaded);
    std::string digits;
    for (const config::Leaf& leaf : leaves)
      digits += std::to_string(static_cast<int>(trials.examine(leaf)));
    return digits;
  });
  std::vector<Answer> answers;
  for (const char digit : std::get<std::string>(text))
    answers.push_back(static_cast<Answer>(digit - '0'));
  return answers;
}

/// Values that other_values() does not try, where the leaf is a number.
std::vector<std::string> further_values(const config::Leaf& leaf) {
  if (!leaf.value || *leaf.value == 0 || leaf.type->kind == config::TypeKind::kInteger)
    return other_values(leaf);
  const std::string unit = leaf.unit.empty() ? "" : " " + leaf.unit;
  return {std::to_string(*leaf.value * 3) + unit, std::to_string(*leaf.value / 3) + unit};
}

/// Whether a whole simulation with one of the values says something else, or refuses it.
bool changes(const std::string& text, const std::string& before, const std::string& path,
             const std::vector<std::string>& values) {
  return std::any_of(values.begin(), values.end(), [&](const std::string& value) {
    try {
      return result_of(load(text, {path + "=" + value})) != before;
    } catch (const std::exception&) {
      return true;
    }
  });
}

bool refused(const std::string& text, const std::string& path, const std::string& value) {
  try {
    result_of(load(text, {path + "=" + value}));
    return false;
  } catch (const std::exception&) {
    return true;
  }
}

/// One key in `step`, from `first`: together the four kinds try each sixth.
void agrees_with_whole_simulations(const std::string& text, std::size_t first, std::size_t step) {
  const LoadedExperiment loaded = load(text);
  const std::string before = result_of(loaded);
  const std::vector<config::Leaf> all = loaded.leaves();
  std::vector<config::Leaf> leaves;
  for (std::size_t i = first; i < all.size(); i += step) leaves.push_back(all[i]);
  const std::vector<Answer> answers = answers_of(loaded, leaves);
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    const std::string& path = leaves[i].path;
    if (answers[i] != Answer::kSame) {
      EXPECT_TRUE(other_values(leaves[i]).empty() ||
                  changes(text, before, path, other_values(leaves[i])))
          << path << " changes nothing";
      continue;
    }
    for (const std::string& value : further_values(leaves[i])) {
      if (refused(text, path, value)) continue;
      EXPECT_FALSE(changes(text, before, path, {value})) << path << "=" << value;
    }
  }
}

constexpr const char* kModel =
    "model: {dimensions: {layers: 2, hidden: 1024, heads: 8, vocabulary: 8192}}";

TEST(Effects, OfAnOperatorAreThoseOfWholeSimulations) {
  agrees_with_whole_simulations(
      "{experiment: operator, system: dgx_h100, operator: {m: 1024, n: 1024, k: 1024}}", 0, 24);
}

TEST(Effects, OfACollectiveAreThoseOfWholeSimulations) {
  agrees_with_whole_simulations(
      "{experiment: collective, system: dgx_h100, collective: {kind: all_reduce, bytes: 1 MiB}}", 6,
      24);
}

TEST(Effects, OfADecodeStepAreThoseOfWholeSimulations) {
  agrees_with_whole_simulations(
      std::string("{experiment: inference, system: dgx_h100, ") + kModel +
          ", phase: decode, kv_length: 512, parallel: {tp: 8}, batch: {micro: 2}}",
      12, 24);
}

TEST(Effects, OfATrainingStepAreThoseOfWholeSimulations) {
  agrees_with_whole_simulations(
      std::string("{experiment: training, system: dgx_h100, ") + kModel +
          ", parallel: {tp: 2, pp: 2}, batch: {global: 4, sequence: 512}}",
      18, 24);
}

TEST(Effects, AnExperimentThatDoesNotFitHasThemToo) {
  const LoadedExperiment loaded = load(
      "{experiment: inference, system: dgx_h100, model: llama_3_1_70b, phase: decode, "
      "kv_length: 512, batch: {micro: 1}}");
  std::vector<config::Leaf> leaves;
  for (const config::Leaf& leaf : loaded.leaves()) {
    if (leaf.path == "seed" || leaf.path == "system.accelerator.memory.capacity")
      leaves.push_back(leaf);
  }
  EXPECT_THAT(answers_of(loaded, leaves), ElementsAre(Answer::kSame, Answer::kOther));
}

}  // namespace
}  // namespace orrery::effects_test
