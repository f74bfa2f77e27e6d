// SPDX-License-Identifier: Apache-2.0
#include "workloads/llm/huggingface.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string_view>
#include <system_error>

#include "workloads/llm/families/family.h"

namespace orrery {
namespace {

using config::ConfigError;
using nlohmann::json;

constexpr std::uintmax_t kLargestFile = std::uintmax_t{16} << 20;
constexpr int kDeepestNesting = 64;

/// The object that describes the language model inside a wrapper; null where there is no wrapper.
const json* wrapped_language_model(const json& configuration) {
  for (const char* key : {"text_config", "llm_config", "language_config"}) {
    const auto found = configuration.find(key);
    if (found != configuration.end() && found->is_object()) return &*found;
  }
  return nullptr;
}

/// A model is taken for a Llama only with every field that a Llama has, `rms_norm_eps` included,
/// which keeps models with LayerNorm out.
void build_llama_like(FieldReader& reader, LlmConfig& model) {
  for (const char* field :
       {"hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads",
        "intermediate_size", "vocab_size", "rms_norm_eps", "hidden_act"}) {
    if (!reader.has(field)) {
      reader.unsupported(std::string("it is not known, and without '") + field +
                         "' it is not like a Llama");
    }
  }
  const std::string activation = reader.text_or({"hidden_act"}, "");
  if (activation != "silu" && activation != "swish" && activation.rfind("gelu", 0) != 0) {
    reader.unsupported("it is not known, and its hidden_act '" + activation +
                       "' is not that of a gated MLP");
  }
  build_llama(reader, model);
  model.warnings.push_back("model_type '" + reader.model_type() +
                           "' is not known: treated as llama-like");
}

bool at_word(const std::string& text, std::size_t position, std::string_view word) {
  return text.compare(position, word.size(), word) == 0;
}

/// Python writes NaN and Infinity, which JSON does not have; no field that is read can be one.
std::string without_nonfinite_numbers(const std::string& text) {
  constexpr std::array<std::string_view, 3> kWords = {"NaN", "-Infinity", "Infinity"};
  std::string result;
  result.reserve(text.size());
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (quoted && text[i] == '\\' && i + 1 < text.size()) {
      result += text[i++];
    } else if (text[i] == '"') {
      quoted = !quoted;
    } else if (!quoted) {
      const std::string_view* word = nullptr;
      for (const std::string_view& w : kWords) word = at_word(text, i, w) ? &w : word;
      if (word != nullptr) {
        result += "null";
        i += word->size() - 1;
        continue;
      }
    }
    result += text[i];
  }
  return result;
}

json parse(const std::string& text, const std::string& origin) {
  const auto limit_depth = [&origin](int depth, json::parse_event_t, json&) {
    if (depth > kDeepestNesting) {
      throw ConfigError(origin + ": nested deeper than " + std::to_string(kDeepestNesting));
    }
    return true;
  };
  try {
    return json::parse(without_nonfinite_numbers(text), limit_depth);
  } catch (const json::exception& error) {
    throw ConfigError(origin + ": not valid JSON: " + error.what());
  }
}

std::string read_text(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) {
    throw ConfigError(path.string() + ": no such file");
  }
  if (std::filesystem::file_size(path, error) > kLargestFile) {
    throw ConfigError(path.string() + ": larger than 16 MiB, not a model configuration");
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) throw ConfigError(path.string() + ": cannot be read");
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

/// The error at the first place where its field is written.
[[noreturn]] void throw_located(const FieldError& error, const std::string& text,
                                const std::string& origin) {
  const std::string key = '"' + error.field() + '"';
  const std::size_t at = text.find(key);
  if (at == std::string::npos) throw FieldError(error);
  const auto begin = text.begin(), end = begin + static_cast<std::ptrdiff_t>(at);
  const std::size_t line_end = text.rfind('\n', at);  // none: npos, which wraps to 0 below
  config::Diagnostics diagnostics;
  diagnostics.add_source(origin, text);
  diagnostics.error(
      {origin, 1 + static_cast<int>(std::count(begin, end, '\n')), static_cast<int>(at - line_end)},
      static_cast<int>(key.size()), error.field() + ": " + error.message());
  diagnostics.throw_if_errors();
  throw FieldError(error);
}

}  // namespace

LlmConfig from_huggingface(const json& configuration, const std::string& name,
                           const std::string& origin) {
  const json* inner = wrapped_language_model(configuration);
  FieldReader reader(inner != nullptr ? *inner : configuration, origin,
                     inner != nullptr ? &configuration : nullptr);
  refuse_unmodelled_family(reader);
  LlmConfig model;
  model.name = name;
  model.family = reader.model_type();
  if (inner != nullptr) model.warnings.emplace_back("vision tower left out");
  const FamilyBuilder build = find_family(reader.model_type());
  (build != nullptr ? build : build_llama_like)(reader, model);
  reader.refuse_unread_structure();
  return model;
}

LlmConfig load_huggingface(const std::filesystem::path& path) {
  const std::string origin = path.string();
  const bool generic = path.filename() == "config.json" && path.has_parent_path();
  const std::string name = generic ? path.parent_path().filename().string() : path.stem().string();
  const std::string text = read_text(path);
  try {
    return from_huggingface(parse(text, origin), name, origin);
  } catch (const FieldError& error) {
    throw_located(error, text, origin);
  }
}

}  // namespace orrery
