// SPDX-License-Identifier: Apache-2.0
#include "workloads/models/huggingface/huggingface.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "sim/config/input_files.h"
#include "workloads/models/families/family.h"
#include "workloads/models/fields/json_fields.h"
#include "workloads/models/huggingface/checkpoint_format.h"
#include "workloads/models/vision/tower_reader.h"

namespace orrery {
namespace {

using config::ConfigError;
using nlohmann::json;

constexpr int kDeepestNesting = 64;

/// A model is taken for a Llama only with every field that a Llama has, `rms_norm_eps` included,
/// which keeps models with LayerNorm out.
void build_llama_like(FieldReader& reader, LlmConfig& model) {
  for (const char* field :
       {"hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads",
        "intermediate_size", "vocab_size", "rms_norm_eps", "hidden_act"}) {
    if (!reader.has(field))
      reader.unsupported(std::string("it is not known, and without '") + field +
                         "' it is not like a Llama");
  }
  const std::string activation = reader.text_or({"hidden_act"}, "");
  if (activation != "silu" && activation != "swish" && activation.rfind("gelu", 0) != 0)
    reader.unsupported("it is not known, and its hidden_act '" + activation +
                       "' is not that of a gated MLP");
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
    if (depth > kDeepestNesting)
      throw ConfigError(fmt::format("{}: nested deeper than {}", origin, kDeepestNesting));
    return true;
  };
  try {
    return json::parse(without_nonfinite_numbers(text), limit_depth);
  } catch (const json::exception& error) {
    throw ConfigError(origin + ": not valid JSON: " + error.what());
  }
}

std::string read_text(const std::string& path) {
  config::FileText file = config::input_files().read(path);
  if (!file.fault.empty()) throw ConfigError(path + ": " + file.fault);
  return std::move(file.text);
}

/// Takes what ModelOpt says in a file of its own for what the configuration leaves out.
void add_quantization_file(json& configuration, const std::filesystem::path& path) {
  if (!configuration.is_object() || has_quantization(configuration)) return;
  const std::filesystem::path beside = quantization_file(path);
  if (beside.empty()) return;
  const json file = parse(read_text(beside.string()), beside.string());
  if (const json* stored = json_fields::object_at(file, "quantization"))
    configuration["quantization_config"] = *stored;
}

/// The configuration in a file, with what lies beside it.
json parsed_file(const std::string& text, const std::filesystem::path& path) {
  json configuration = parse(text, path.string());
  add_quantization_file(configuration, path);
  return configuration;
}

/// The folder of a `config.json`, else the file.
std::string name_of(const std::filesystem::path& path) {
  const bool generic = path.filename() == "config.json" && path.has_parent_path();
  return generic ? path.parent_path().filename().string() : path.stem().string();
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
  const json* inner = json_fields::language_model(configuration);
  FieldReader reader(inner != nullptr ? *inner : configuration, origin,
                     inner != nullptr ? &configuration : nullptr);
  refuse_unmodelled_family(reader);
  LlmConfig model;
  model.name = name;
  model.family = reader.model_type();
  const FamilyBuilder* build = FamilyRegistry::find(reader.model_type());
  (build != nullptr ? *build : build_llama_like)(reader, model);
  if (const std::string given = reader.class_defaults(); !given.empty())
    model.warnings.push_back(given);
  reader.refuse_unread_structure();
  read_vision_tower(configuration, origin, model);
  read_quantization(configuration, model);
  return model;
}

std::filesystem::path quantization_file(const std::filesystem::path& configuration) {
  const bool generic = configuration.filename() == "config.json";
  if (!generic && !is_named_quantised(configuration.stem().string())) return {};
  const std::filesystem::path beside = configuration.parent_path() / "hf_quant_config.json";
  std::error_code ignored;
  return std::filesystem::is_regular_file(beside, ignored) ? beside : std::filesystem::path();
}

std::optional<Quantization> load_quantization(const std::filesystem::path& path) {
  const std::string origin = path.string();
  const json configuration = parsed_file(read_text(path), path);
  LlmConfig model = from_huggingface(configuration, name_of(path), origin);
  return read_quantization(configuration, model);
}

LlmConfig load_huggingface(const std::filesystem::path& path) {
  const std::string origin = path.string();
  const std::string text = read_text(origin);
  try {
    return from_huggingface(parsed_file(text, path), name_of(path), origin);
  } catch (const FieldError& error) {
    throw_located(error, text, origin);
  }
}

}  // namespace orrery
