// SPDX-License-Identifier: Apache-2.0
#include "workloads/llm/huggingface.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "sim/config/input_files.h"
#include "workloads/llm/checkpoint_format.h"
#include "workloads/llm/families/family.h"

namespace orrery {
namespace {

using config::ConfigError;
using nlohmann::json;

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

std::string read_text(const std::string& path) {
  config::FileText file = config::input_files().read(path);
  if (!file.fault.empty()) throw ConfigError(path + ": " + file.fault);
  return std::move(file.text);
}

/// With its size where that can be told.
std::string left_out_tower(const json& configuration) {
  const std::int64_t parameters = vision_parameters(configuration);
  std::string text = "vision tower left out: the language model alone is modelled";
  if (parameters > 0) {
    text += "; about " + std::to_string((parameters + 500'000) / 1'000'000) +
            " M parameters by its width and depth";
  }
  return text;
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
  if (inner != nullptr) model.warnings.push_back(left_out_tower(configuration));
  const FamilyBuilder build = find_family(reader.model_type());
  (build != nullptr ? build : build_llama_like)(reader, model);
  reader.refuse_unread_structure();
  read_quantization(configuration, model);
  return model;
}

std::optional<Quantization> load_quantization(const std::filesystem::path& path) {
  const std::string origin = path.string();
  const json configuration = parse(read_text(path), origin);
  LlmConfig model = from_huggingface(configuration, {}, origin);
  return read_quantization(configuration, model);
}

LlmConfig load_huggingface(const std::filesystem::path& path) {
  const std::string origin = path.string();
  const bool generic = path.filename() == "config.json" && path.has_parent_path();
  const std::string name = generic ? path.parent_path().filename().string() : path.stem().string();
  const std::string text = read_text(origin);
  try {
    return from_huggingface(parse(text, origin), name, origin);
  } catch (const FieldError& error) {
    throw_located(error, text, origin);
  }
}

}  // namespace orrery
