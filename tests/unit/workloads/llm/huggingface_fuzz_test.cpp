// SPDX-License-Identifier: Apache-2.0
// Mutations of the shipped configurations: each must build a sound model or give a ConfigError.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "workloads/layers/closed_forms.h"
#include "workloads/models/huggingface/huggingface.h"

namespace orrery::huggingface_fuzz_test {
namespace {

using nlohmann::json;

std::vector<std::string> shipped_texts() {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry :
       std::filesystem::directory_iterator(ORRERY_SOURCE_DIR "/configs/models/hf")) {
    paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> texts;
  for (const auto& path : paths) {
    std::ifstream file(path);
    texts.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return texts;
}

/// A model that was built must be usable: every count in range, active within total.
void expect_sound(const LlmConfig& model, const std::string& input) {
  const ParameterCount count = count_parameters(model);
  ASSERT_GT(model.hidden, 0) << input;
  ASSERT_GT(model.layer_count(), 0) << input;
  if (model.has(MixerKind::kAttention)) {
    ASSERT_GT(model.attention.kv_elements_per_token(), 0) << input;
  }
  ASSERT_GT(count.active_matrices, 0) << input;
  ASSERT_LE(count.active_matrices, count.active + count.embedding) << input;
  ASSERT_LE(count.active, count.total) << input;
  ASSERT_GT(model_flops_per_token(model, 4096, true).base(), 0) << input;
}

/// True when it built.
bool build_or_refuse(const json& configuration) {
  try {
    const LlmConfig model = from_huggingface(configuration, "fuzzed", "fuzzed.json");
    expect_sound(model, configuration.dump(-1, ' ', true, json::error_handler_t::replace));
    return true;
  } catch (const config::ConfigError& error) {
    EXPECT_EQ(std::string(error.what()).rfind("fuzzed.json: ", 0), 0U) << error.what();
    return false;
  }
}

const std::vector<json>& hostile_values() {
  static const std::vector<json> values = {nullptr,
                                           true,
                                           false,
                                           0,
                                           1,
                                           -1,
                                           3,
                                           7,
                                           1000003,
                                           1e300,
                                           -0.5,
                                           0.1,
                                           "",
                                           "x",
                                           "64",
                                           "\xff\xfe",
                                           INT64_MAX,
                                           INT64_MIN,
                                           UINT64_MAX,
                                           2147483647,
                                           4294967296,
                                           json::array(),
                                           json::object(),
                                           json::array({1, "a", nullptr}),
                                           json::array({0, -5}),
                                           json{{"hidden_size", 4}}};
  return values;
}

TEST(HuggingFaceFuzz, EveryFieldTakesEveryHostileValueWithoutACrash) {
  int built = 0;
  int refused = 0;
  for (const std::string& text : shipped_texts()) {
    const json original = json::parse(text);
    for (const auto& [field, value] : original.items()) {
      for (const json& hostile : hostile_values()) {
        json mutated = original;
        mutated[field] = hostile;
        ++(build_or_refuse(mutated) ? built : refused);
      }
      json without = original;
      without.erase(field);
      ++(build_or_refuse(without) ? built : refused);
    }
  }
  // Both happen often, or the test would prove nothing.
  EXPECT_GT(built, 1000);
  EXPECT_GT(refused, 1000);
}

TEST(HuggingFaceFuzz, FieldsOfAllFamiliesMixWithoutACrash) {
  std::vector<json> originals;
  for (const std::string& text : shipped_texts()) originals.push_back(json::parse(text));
  std::mt19937_64 random(20240613);
  const auto pick = [&random](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  for (int i = 0; i < 20000; ++i) {
    json mutated = originals[pick(originals.size())];
    const json& donor = originals[pick(originals.size())];
    for (std::size_t change = 0; change <= pick(4); ++change) {
      const auto field = std::next(donor.begin(), static_cast<std::ptrdiff_t>(pick(donor.size())));
      mutated[field.key()] =
          pick(4) == 0 ? hostile_values()[pick(hostile_values().size())] : field.value();
    }
    if (pick(8) == 0) mutated = json{{"model_type", "wrapper"}, {"text_config", mutated}};
    build_or_refuse(mutated);
  }
}

TEST(HuggingFaceFuzz, TextsCutAndFlippedAnywhereDoNotCrash) {
  const std::string path = testing::TempDir() + std::to_string(::getpid()) + "_fuzzed.json";
  const auto load = [&path](const std::string& text) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
    try {
      expect_sound(load_huggingface(path), text);
    } catch (const config::ConfigError& error) {
      EXPECT_EQ(std::string(error.what()).rfind(path, 0), 0U) << error.what();
    }
  };
  std::mt19937_64 random(7);
  for (const std::string& text : shipped_texts()) {
    for (std::size_t cut = 0; cut < text.size(); cut += 37) load(text.substr(0, cut));
    for (int i = 0; i < 40; ++i) {
      std::string flipped = text;
      flipped[random() % text.size()] = static_cast<char>(random() % 256);
      load(flipped);
    }
  }
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace orrery::huggingface_fuzz_test
