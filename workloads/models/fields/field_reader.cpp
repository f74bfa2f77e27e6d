// SPDX-License-Identifier: Apache-2.0
#include "workloads/models/fields/field_reader.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "sim/units/spelling.h"
#include "workloads/models/fields/unsupported_model.h"

namespace orrery {
namespace {

using nlohmann::json;

/// Parts of the names of fields that change parameters, operators or the KV cache. Collected from
/// configurations of published models: mixture of experts, latent, linear, sparse and windowed
/// attention, state-space layers, layers that differ, multi-token prediction, parallel blocks.
constexpr std::array kStructural = {
    "expert",
    "moe",
    "lora_rank",
    "mamba",
    "ssm",
    "linear_",
    "index_",
    "compress_r",
    "sparse",
    "hybrid",
    "conv_",
    "nextn",
    "mtp",
    "qk_norm",
    "qk_layernorm",
    "output_gate",
    "sliding_window",
    "layer_types",
    "block_configs",
    "layers_block_type",
    "attention_chunk",
    "hc_mult",
    "per_layer_input",
    "kv_shared",
    "cross_attention",
    "parallel_",
    "alibi",
    "attn_type_list",
    "altup",
    "laurel",
    "num_hash_layers",
    "v_head_dim",
    "qkv_bias",
    "shared_",
    "swa_",
    "is_encoder_decoder",
};

/// Defaults of classes of language models that wrappers leave out: those of LLaVA 1.5 and 1.6
/// (transformers 4.36, configuration_llama.py and configuration_mistral.py) and of Gemma 3
/// (configuration_gemma3.py).
struct ClassDefaults {
  const char* name;
  std::map<std::string, std::int64_t> fields;
};

const std::map<std::string, ClassDefaults>& defaults_by_type() {
  static const std::map<std::string, ClassDefaults> all = {{"llama",
                                                            {"LlamaConfig",
                                                             {{"hidden_size", 4096},
                                                              {"num_hidden_layers", 32},
                                                              {"num_attention_heads", 32},
                                                              {"intermediate_size", 11008},
                                                              {"vocab_size", 32000}}}},
                                                           {"mistral",
                                                            {"MistralConfig",
                                                             {{"hidden_size", 4096},
                                                              {"num_hidden_layers", 32},
                                                              {"num_attention_heads", 32},
                                                              {"num_key_value_heads", 8},
                                                              {"intermediate_size", 14336},
                                                              {"vocab_size", 32000}}}},
                                                           {"gemma3_text",
                                                            {"Gemma3TextConfig",
                                                             {{"vocab_size", 262208},
                                                              {"num_attention_heads", 8},
                                                              {"num_key_value_heads", 4},
                                                              {"head_dim", 256}}}}};
  return all;
}

bool is_structural(const std::string& field) {
  return std::ranges::any_of(
      kStructural, [&field](const char* part) { return field.find(part) != std::string::npos; });
}

/// Null, false, zero and empty switch a feature off.
bool says_something(const json& value) {
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_number()) return value.get<double>() != 0;
  if (value.is_string()) return !value.get_ref<const std::string&>().empty();
  return !value.empty();
}

/// A value in an error message: short, and never failing on text that is not UTF-8.
std::string shown(const json& value) {
  constexpr std::size_t kLongest = 40;
  if (value.is_structured()) return value.is_array() ? "a list" : "an object";
  std::string text = value.dump(-1, ' ', true, json::error_handler_t::replace);
  if (text.size() > kLongest) text = text.substr(0, kLongest) + "...";
  return text;
}

}  // namespace

FieldReader::FieldReader(const json& fields, std::string origin, const json* wrapper)
    : fields_(&fields), origin_(std::move(origin)), wrapper_(wrapper) {
  if (!fields_->is_object()) wrong("configuration", "an object", *fields_);
  model_type_ = text_or({"model_type"}, "");
  if (model_type_.empty()) missing("model_type");
}

FieldReader::FieldReader(const json& fields, const FieldReader& outer)
    : fields_(&fields), origin_(outer.origin_), wrapper_(nullptr), model_type_(outer.model_type_) {}

std::optional<FieldReader> FieldReader::section(const char* name) {
  const json* value = find({name}).value;
  if (value == nullptr) return std::nullopt;
  if (!value->is_object()) wrong(name, "an object", *value);
  if (value->empty()) return std::nullopt;
  return FieldReader(*value, *this);
}

std::vector<bool> FieldReader::switches_or(const char* name, std::size_t layers, bool fallback) {
  if (!has(name)) return std::vector<bool>(layers, fallback);
  std::vector<bool> switches;
  for (const std::int64_t value : counts_or_empty(name, 1)) switches.push_back(value == 1);
  require_entries(name, switches.size(), layers);
  return switches;
}

bool FieldReader::has(const char* name) const {
  const auto found = fields_->find(name);
  return found != fields_->end() && !found->is_null();
}

FieldReader::Found FieldReader::find(Names names) {
  read_.insert(names.begin(), names.end());
  const auto* const first = std::ranges::find_if(names, [this](auto name) { return has(name); });
  return first == names.end() ? Found() : Found{*first, &fields_->at(*first)};
}

std::int64_t FieldReader::integer(Names names, std::int64_t lowest, std::int64_t limit,
                                  const std::int64_t* fallback) {
  const auto [field, value] = find(names);
  if (value != nullptr) return checked(*value, field, lowest, limit);
  if (const std::int64_t known = inner_default(*names.begin()); known > 0) return known;
  if (fallback == nullptr) missing(*names.begin());
  return *fallback;
}

std::int64_t FieldReader::inner_default(const std::string& field) {
  const auto known = defaults_by_type().find(model_type_);
  if (wrapper_ == nullptr || known == defaults_by_type().end()) return 0;
  const auto value = known->second.fields.find(field);
  if (value == known->second.fields.end()) return 0;
  defaults_are_of(known->second.name);
  note_class_default(field, std::to_string(value->second));
  return value->second;
}

std::string FieldReader::class_defaults() const {
  if (class_defaults_.empty()) return {};
  return "fields that the file leaves out are those of " + class_ + ": " + class_defaults_;
}

std::int64_t FieldReader::checked(const json& value, const std::string& field, std::int64_t lowest,
                                  std::int64_t limit) const {
  const std::string expected = lowest > 0 ? "a positive integer" : "an integer, not negative";
  if (!value.is_number_integer()) wrong(field, expected, value);
  // An unsigned number above the signed range would come out negative.
  const bool above =
      value.is_number_unsigned() && value.get<std::uint64_t>() > static_cast<std::uint64_t>(limit);
  if (above || value.get<std::int64_t>() > limit)
    wrong(field, fmt::format("at most {}", limit), value);
  if (value.get<std::int64_t>() < lowest) wrong(field, expected, value);
  return value.get<std::int64_t>();
}

std::int64_t FieldReader::size(Names names, std::int64_t limit) {
  return integer(names, 1, limit, nullptr);
}

std::int64_t FieldReader::size_or(Names names, std::int64_t limit, std::int64_t fallback) {
  return integer(names, 1, limit, &fallback);
}

std::int64_t FieldReader::size_or_word(Names names, const char* word, std::int64_t limit,
                                       std::int64_t fallback) {
  const auto [field, value] = find(names);
  if (value == nullptr || (value->is_string() && value->get<std::string>() == word))
    return fallback;
  return checked(*value, field, 1, limit);
}

std::int64_t FieldReader::size_of_class(Names names, std::int64_t limit, std::int64_t fallback) {
  const auto [field, value] = find(names);
  if (value != nullptr) return checked(*value, field, 1, limit);
  note_class_default(*names.begin(), std::to_string(fallback));
  return fallback;
}

bool FieldReader::flag_of_class(const char* name, bool fallback) {
  if (!has(name)) note_class_default(name, fallback ? "true" : "false");
  return flag(name, fallback);
}

void FieldReader::note_class_default(const std::string& field, const std::string& value) {
  class_defaults_ += fmt::format("{}{} {}", class_defaults_.empty() ? "" : ", ", field, value);
}

std::int64_t FieldReader::count_or(Names names, std::int64_t limit, std::int64_t fallback) {
  return integer(names, 0, limit, &fallback);
}

bool FieldReader::flag(const char* name, bool fallback) {
  const json* value = find({name}).value;
  if (value == nullptr) return fallback;
  if (!value->is_boolean()) wrong(name, "true or false", *value);
  return value->get<bool>();
}

std::string FieldReader::text_or(Names names, const std::string& fallback) {
  const auto [field, value] = find(names);
  if (value == nullptr) return fallback;
  if (!value->is_string()) wrong(field, "a text", *value);
  return value->get<std::string>();
}

std::vector<std::int64_t> FieldReader::counts_or_empty(const char* name, std::int64_t limit) {
  const json* value = find({name}).value;
  if (value == nullptr) return {};
  if (!value->is_array()) wrong(name, "a list of integers", *value);
  std::vector<std::int64_t> counts;
  for (const json& item : *value) counts.push_back(checked(item, name, 0, limit));
  return counts;
}

std::vector<std::string> FieldReader::texts_or_empty(const char* name) {
  const json* value = find({name}).value;
  if (value == nullptr) return {};
  if (!value->is_array()) wrong(name, "a list of texts", *value);
  std::vector<std::string> texts;
  for (const json& item : *value) {
    if (!item.is_string()) wrong(name, "a list of texts", item);
    texts.push_back(item.get<std::string>());
  }
  return texts;
}

double FieldReader::fraction_or(Names names, double fallback) {
  const auto [field, value] = find(names);
  if (value == nullptr) return fallback;
  const bool fits = value->is_number() && value->get<double>() >= 0 && value->get<double>() <= 1;
  if (!fits) wrong(field, "a number from 0 to 1", *value);
  return value->get<double>();
}

double FieldReader::number(Names names, double limit) {
  const auto [field, value] = find(names);
  if (value == nullptr) missing(*names.begin());
  const bool fits = value->is_number() && value->get<double>() > 0 && value->get<double>() <= limit;
  if (!fits) wrong(field, "a positive number", *value);
  return value->get<double>();
}

std::vector<FieldReader> FieldReader::inner(const char* name) {
  const json* value = find({name}).value;
  if (value == nullptr) return {};
  std::vector<FieldReader> readers;
  const auto add = [&](const json& object) {
    if (!object.is_object()) wrong(name, "an object, or a list of them", object);
    FieldReader& reader = readers.emplace_back(*this);
    reader.fields_ = &object;
    reader.read_.clear();
    reader.wrapper_ = nullptr;
  };
  if (value->is_array()) {
    readers.reserve(value->size());
    for (const json& object : *value) add(object);
  } else {
    add(*value);
  }
  return readers;
}

bool FieldReader::tied_embeddings(bool fallback) {
  constexpr const char* kField = "tie_word_embeddings";
  if (!has(kField) && wrapper_ != nullptr && wrapper_->contains(kField)) {
    const json& value = wrapper_->at(kField);
    if (!value.is_boolean()) wrong(kField, "true or false", value);
    return value.get<bool>();
  }
  return flag(kField, fallback);
}

void FieldReader::unsupported(const std::string& reason) const {
  throw UnsupportedModel(
      fmt::format("{}: unsupported: model_type '{}': {}", origin_, model_type_, reason));
}

void FieldReader::invalid(const std::string& field, const std::string& message) const {
  throw FieldError(origin_, field, message);
}

void FieldReader::wrong(const std::string& field, const std::string& expected,
                        const json& got) const {
  invalid(field, fmt::format("expected {}, got {}", expected, shown(got)));
}

void FieldReader::require_entries(const std::string& field, std::size_t entries,
                                  std::size_t wanted) const {
  if (entries != wanted)
    invalid(field, fmt::format("expected {} entries, got {}", wanted, entries));
}

void FieldReader::require_divides(const std::string& field, std::int64_t part, std::int64_t whole,
                                  const char* what) const {
  if (whole % part != 0) invalid(field, fmt::format("{} does not divide {} {}", part, whole, what));
}

void FieldReader::require_divides_width(const std::string& field, std::int64_t part,
                                        std::int64_t width) const {
  if (width % part != 0)
    invalid(field, fmt::format("{} does not divide the width {}", part, width));
}

void FieldReader::missing(const std::string& field) const {
  std::vector<std::string> unread;
  if (fields_->is_object())
    for (const auto& [name, value] : fields_->items())
      if (!read_.contains(name)) unread.push_back(name);
  const std::string meant = nearest_name(field, unread);
  if (!meant.empty()) invalid(meant, "unknown field; did you mean '" + field + "'?");
  if (wrapper_ != nullptr)
    unsupported("the language model inside leaves out " + field +
                ", which would be a default of the transformers library");
  invalid(field, "missing");
}

void FieldReader::refuse_unread_structure() const {
  for (const auto& [field, value] : fields_->items())
    if (!read_.contains(field) && is_structural(field) && says_something(value))
      unsupported("'" + field + "' is not modelled for this family");
}

}  // namespace orrery
