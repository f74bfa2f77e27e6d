// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <charconv>

#include "sim/app/experiments/keys/inference_keys.h"
#include "sim/config/load.h"
#include "sim/config/schema.h"
#include "workloads/base/require.h"

namespace orrery {
namespace {

constexpr double kMostDraftTokens = 32;

/// Finds the first map below a node whose keys are numbers of draft tokens, or the one below a
/// path.
const config::Node* means_below(const config::Node& node) {
  if (!node.is_map()) return nullptr;
  if (node.find("1") != nullptr) return &node;
  for (const config::Node::Entry& entry : node.entries())
    if (const config::Node* found = means_below(entry.value)) return found;
  return nullptr;
}

/// What stands at keys that '/' joins: names of models have dots in them.
const config::Node* below(const config::Node& node, const std::string& path) {
  if (path.empty()) return &node;
  const std::size_t slash = path.find('/');
  const config::Node* next = node.find(path.substr(0, slash));
  if (next == nullptr || slash == std::string::npos) return next;
  return below(*next, path.substr(slash + 1));
}

[[noreturn]] void complain(const config::Node& node, const std::string& message) {
  config::Diagnostics diagnostics;
  diagnostics.error(node.where(), node.length(), message);
  diagnostics.throw_if_errors();
  throw config::ConfigError(message);
}

double number_of(const config::Node& node) {
  double value = 0;
  const std::string& text = node.text();
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (!node.is_scalar() || code != std::errc() || end != text.data() + text.size() || value < 1)
    complain(node, "expected the mean tokens of an iteration, at least 1");
  return value;
}

/// Mean tokens of an iteration with one draft token, two, and so on.
std::vector<double> means_of(const std::string& path, const std::string& of,
                             std::int64_t draft_tokens) {
  config::Diagnostics diagnostics;
  const config::Node file = config::load_file(path, diagnostics);
  diagnostics.throw_if_errors();
  const config::Node* start = below(file, of);
  if (start == nullptr) complain(file, "has nothing at '" + of + "'");
  const config::Node* table = means_below(*start);
  if (table == nullptr) complain(*start, "has no means by numbers of draft tokens (1: 1.8)");
  std::vector<double> means;
  for (std::int64_t i = 1; i <= draft_tokens; ++i) {
    const config::Node* mean = table->find(std::to_string(i));
    if (mean == nullptr)
      complain(*table, "does not say what " + std::to_string(i) + " draft tokens give");
    means.push_back(number_of(*mean));
  }
  return means;
}

bool says_one(const SpeculativeConfig& s) {
  return (s.acceptance_length ? 1 : 0) + (s.acceptance_rates.empty() ? 0 : 1) +
             (s.acceptance_table.path.empty() ? 0 : 1) ==
         1;
}

bool are_shares(const SpeculativeConfig& s) {
  return std::ranges::all_of(s.acceptance_rates, [](double r) { return r >= 0 && r <= 1; });
}

bool has_draft(const SpeculativeConfig& s) {
  return !s.model.hf.path.empty() || s.model.dimensions.has_value();
}
}  // namespace

const config::Schema<SpeculativeConfig>& SpeculativeConfig::schema() {
  using S = SpeculativeConfig;
  static const auto schema =
      config::Schema<S>("speculative", "draft tokens, which the step verifies")
          .optional(
              "method", &S::method,
              "the draft model: the model's module of multi-token prediction (mtp), a model of its "
              "own (draft_model; an EAGLE head is one), or a look into the prompt (ngram)")
          .required("num_speculative_tokens", &S::num_speculative_tokens,
                    "draft tokens that an iteration verifies for each sequence",
                    config::between(1, kMostDraftTokens))
          .optional_reference("model", &S::model, "models", "the draft model")
          .optional("acceptance_length", &S::acceptance_length,
                    "mean output tokens that an iteration gives, all draft tokens being right "
                    "equally often",
                    config::between(1, kMostDraftTokens + 1))
          .optional("acceptance_rates", &S::acceptance_rates,
                    "how often each draft token is right where all before it are")
          .optional("acceptance_table", &S::acceptance_table,
                    "YAML file with mean tokens of an iteration by number of draft tokens")
          .optional("acceptance_of", &S::acceptance_of,
                    "what of the table: keys joined by slashes (glm-5.2-fp8/thinking_on); by "
                    "itself the first")
          .check(
              "one of acceptance_length, acceptance_rates and acceptance_table says how often "
              "draft tokens are right",
              says_one, {"acceptance_length", "acceptance_rates", "acceptance_table"})
          .check("acceptance_length is at most one more than num_speculative_tokens",
                 [](const S& s) {
                   return !s.acceptance_length ||
                          *s.acceptance_length <= static_cast<double>(s.num_speculative_tokens) + 1;
                 },
                 {"acceptance_length"})
          .check("needs a rate for each of num_speculative_tokens draft tokens",
                 [](const S& s) {
                   return s.acceptance_rates.empty() ||
                          static_cast<std::int64_t>(s.acceptance_rates.size()) ==
                              s.num_speculative_tokens;
                 },
                 {"acceptance_rates"})
          .check("rates are between 0 and 1", are_shares, {"acceptance_rates"})
          .check("a draft_model needs the key 'model', and only it has one",
                 [](const S& s) {
                   return has_draft(s) == (s.method == SpeculativeMethod::kDraftModel);
                 },
                 {"model", "method"});
  return schema;
}

Speculation SpeculativeConfig::speculation() const {
  if (acceptance_length) return Speculation::of_mean(num_speculative_tokens, *acceptance_length);
  if (!acceptance_table.path.empty())
    return Speculation::of_means(
        means_of(acceptance_table.path, acceptance_of, num_speculative_tokens));
  Speculation speculation;
  double all = 1;
  for (const double rate : acceptance_rates) speculation.right.push_back(all *= rate);
  return speculation;
}

std::optional<LlmConfig> SpeculativeConfig::draft(const LlmConfig& target) const {
  if (method == SpeculativeMethod::kNgram) return std::nullopt;
  if (method == SpeculativeMethod::kDraftModel) return model.build();
  require(target.mtp_layers > 0, "speculative.method",
          "model '" + target.name + "' has no module of multi-token prediction",
          {"draft_model", {}});
  LlmConfig module = target;
  module.name += " MTP";
  module.layers = {target.layers.back()};
  return module;
}

const config::Schema<ImageConfig>& ImageConfig::schema() {
  static const auto schema =
      config::Schema<ImageConfig>("image", "pixels of an image before it is resized")
          .optional("height", &ImageConfig::height, "rows of pixels", config::between(1, 65536))
          .optional("width", &ImageConfig::width, "columns of pixels", config::between(1, 65536));
  return schema;
}

}  // namespace orrery
