// SPDX-License-Identifier: Apache-2.0
#include "workloads/plan/parallel_config.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <stdexcept>
#include <vector>

#include "sim/config/diagnostics.h"
#include "sim/config/schema.h"

namespace orrery {
namespace {

constexpr std::size_t kMostLetters = 1 << 16;

[[noreturn]] void refuse(const std::string& what) { throw std::invalid_argument(what); }

/// Letters and bars of a layout, repetitions written out.
class Unroller {
 public:
  explicit Unroller(const std::string& text) {
    for (const char c : text)
      if (c != ',' && c != ' ') text_ += c;
  }

  std::string all() {
    std::string letters = sequence();
    if (at_ < text_.size()) refuse("a ')' without its '('");
    return letters;
  }

 private:
  char next() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  std::string sequence() {
    std::string letters;
    while (next() != '\0' && next() != ')') {
      const std::string one = item();
      const std::size_t times = repetitions();
      if (letters.size() + one.size() * times > kMostLetters) refuse("too many layers");
      for (std::size_t i = 0; i < times; ++i) letters += one;
    }
    return letters;
  }

  std::string item() {
    const char c = text_[at_++];
    if (c == '(') {
      std::string inside = sequence();
      if (next() != ')') refuse("a '(' without its ')'");
      ++at_;
      return inside;
    }
    if (std::string("EtmL|").find(c) == std::string::npos)
      refuse(std::string("'") + c +
             "' is none of E (embedding), t (layer), m (module of multi-token prediction), L (head "
             "and loss), | (end of a slice), *n, ( and )");
    return {c};
  }

  /// The number behind '*'; 1 where there is none.
  std::size_t repetitions() {
    if (next() != '*') return 1;
    ++at_;
    std::size_t times = 0;
    bool any = false;
    for (; std::isdigit(static_cast<unsigned char>(next())) != 0; ++at_, any = true)
      times = std::min(kMostLetters + 1, times * 10 + static_cast<std::size_t>(next() - '0'));
    if (!any) refuse("no number behind '*'");
    return times;
  }

  std::string text_;
  std::size_t at_ = 0;
};

/// Embedding first, then layers, then modules in one slice, head last.
void require_order(const std::string& letters) {
  std::string parts = letters;
  std::erase(parts, '|');
  if (parts.empty() || parts.front() != 'E' || std::ranges::count(parts, 'E') != 1)
    refuse("it begins with E (embedding), which is there once");
  if (parts.back() != 'L' || std::ranges::count(parts, 'L') != 1)
    refuse("it ends with L (head and loss), which is there once");
  const std::size_t module = letters.find('m'), last = letters.rfind('m');
  if (module == std::string::npos) return;
  if (letters.find('t', module) != std::string::npos)
    refuse("layers (t) stand before modules of multi-token prediction (m)");
  if (letters.substr(module, last - module).find('|') != std::string::npos)
    refuse("modules of multi-token prediction (m) are in one slice");
}

std::string fault_of(const LayerLayout& layout) {
  if (layout.slices.empty()) return {};
  if (layout.first > 0 || layout.last > 0 || layout.embedding || layout.head)
    return "slices say everything: first, last, embedding and head do not go with them";
  try {
    written_slices(layout.slices);
  } catch (const std::invalid_argument& error) {
    return "no layout of slices such as \"Et*3|(tt|)*29,m|L\": " + std::string(error.what());
  }
  return {};
}

int stage_ranks(const ParallelConfig& p) { return p.tp * p.cp * p.dp; }

/// What must hold, once for files and once for configurations made in code.
struct Rule {
  const char* key;
  const char* message;
  bool (*holds)(const ParallelConfig&);
};

constexpr std::array<Rule, 9> kRules{{
    {"tp", "all degrees must be at least 1",
     [](const ParallelConfig& p) {
       return p.tp >= 1 && p.pp >= 1 && p.vpp >= 1 && p.dp >= 1 && p.cp >= 1 && p.cp_a2a >= 1 &&
              p.dcp >= 1 && p.ep >= 1 && p.etp >= 1;
     }},
    {"dcp", "dcp must divide tp: ranks of a tensor parallel group share the cache",
     [](const ParallelConfig& p) { return p.dcp < 1 || p.tp % p.dcp == 0; }},
    {"cp_a2a", "cp_a2a must divide cp: ranks of a context parallel group exchange heads",
     [](const ParallelConfig& p) { return p.cp_a2a < 1 || p.cp % p.cp_a2a == 0; }},
    {"zero", "zero must be 0 (copied optimizer), 1 (distributed optimizer), 2 or 3",
     [](const ParallelConfig& p) { return p.zero >= 0 && p.zero <= 3; }},
    {"dp_shard", "dp_shard needs something to share out: zero of at least 1",
     [](const ParallelConfig& p) { return p.dp_shard == 0 || p.zero >= 1; }},
    {"vpp", "interleaving (vpp > 1) needs at least 2 pipeline stages",
     [](const ParallelConfig& p) { return p.vpp == 1 || p.pp > 1; }},
    {"ep", "ep must divide tp * dp, the ranks of a pipeline stage",
     [](const ParallelConfig& p) { return p.ep < 1 || stage_ranks(p) % p.ep == 0; }},
    {"etp", "ep * etp must divide tp * dp, the ranks of a pipeline stage",
     [](const ParallelConfig& p) {
       return p.ep < 1 || p.etp < 1 || stage_ranks(p) % p.ep != 0 ||
              stage_ranks(p) / p.ep % p.etp == 0;
     }},
    {"sp", "sequence parallelism (sp) needs tp > 1",
     [](const ParallelConfig& p) { return !p.sp || p.tp > 1; }},
}};

/// Each axis of Megatron-Core's default order once, in any order.
std::string order_fault(const std::string& order) {
  if (order == kMegatronOrder) return {};
  const auto sorted = [](const std::string& text) {
    std::vector<std::string> axes(1);
    for (const char c : text) {
      if (c == '-') axes.emplace_back();
      if (c != '-') axes.back() += c;
    }
    std::ranges::sort(axes);
    return axes;
  };
  if (sorted(order) == sorted(kMegatronOrder)) return {};
  return "'" + order + "' is no order of tp, cp, ep, dp and pp such as " + kMegatronOrder;
}

/// What dp ranks cannot be split into.
std::string shard_fault(const ParallelConfig& p) {
  if (p.dp_shard == 0 || (p.dp_shard > 0 && p.dp % p.dp_shard == 0)) return {};
  return fmt::format("dp_shard, the ranks that share out one copy, must divide dp = {}, got {}",
                     p.dp, p.dp_shard);
}

/// Names of Megatron-Core (megatron/core/model_parallel_config.py, transformer_config.py).
void add_megatron_names(config::Schema<ParallelConfig>& schema) {
  schema.alias("tensor_model_parallel_size", "tp")
      .alias("sequence_parallel", "sp")
      .alias("pipeline_model_parallel_size", "pp")
      .alias("virtual_pipeline_model_parallel_size", "vpp")
      .alias("data_parallel_size", "dp")
      .alias("context_parallel_size", "cp")
      .alias("expert_model_parallel_size", "ep")
      .alias("expert_tensor_parallel_size", "etp")
      .alias("pipeline_model_parallel_layout", "layout.slices")
      .alias("num_layers_in_first_pipeline_stage", "layout.first")
      .alias("num_layers_in_last_pipeline_stage", "layout.last")
      .alias("account_for_embedding_in_pipeline_split", "layout.embedding")
      .alias("account_for_loss_in_pipeline_split", "layout.head");
}

}  // namespace

std::vector<SliceContents> written_slices(const std::string& text) {
  const std::string letters = Unroller(text).all();
  require_order(letters);
  std::vector<SliceContents> slices(1);
  for (const char letter : letters) {
    if (letter == '|') slices.emplace_back();
    if (letter == 't') ++slices.back().layers;
    if (letter == 'm') ++slices.back().modules;
  }
  return slices;
}

const config::Schema<LayerLayout>& LayerLayout::schema() {
  using L = LayerLayout;
  static const config::Schema<L> schema = [] {
    config::Schema<L> s("layout", "how layers are dealt out to the slices of a pipeline");
    s.shorthand("slices")
        .optional("slices", &L::slices,
                  "what each of the pp * vpp slices holds, first to last: E embedding, t layer, m "
                  "module of multi-token prediction, L head and loss, | end of a slice, *n "
                  "repetition: \"Et*3|(tt|)*29,m|L\"")
        .optional("first", &L::first,
                  "layers of the first pipeline stage, all its chunks; 0: as many as the others",
                  config::between(0, 1 << 16))
        .optional("last", &L::last,
                  "layers of the last pipeline stage, all its chunks; 0: as many as the others",
                  config::between(0, 1 << 16))
        .optional("embedding", &L::embedding, "embedding that counts as a layer of the first slice")
        .optional("head", &L::head, "head and loss that count as a layer of the last slice")
        .check(fault_of, "slices")
        .check(
            "a number of layers for an end does not go with ends that count as layers",
            [](const L& l) { return (l.first == 0 && l.last == 0) || (!l.embedding && !l.head); },
            {"first", "last", "embedding", "head"});
    return s;
  }();
  return schema;
}

const config::Schema<ParallelConfig>& ParallelConfig::schema() {
  static const config::Schema<ParallelConfig> schema = [] {
    using P = ParallelConfig;
    const auto degree = config::between(1, 1 << 20);
    config::Schema<P> s("parallel", "how the model is spread over ranks");
    s.optional("tp", &P::tp, "tensor parallel ranks, which share every matrix", degree)
        .optional("sp", &P::sp, "norms, residuals and dropout on 1/tp of the tokens")
        .optional("pp", &P::pp, "pipeline stages", degree)
        .optional("vpp", &P::vpp, "chunks of layers per stage (schedule: interleaved)", degree)
        .optional("dp", &P::dp, "data parallel replicas", degree)
        .optional("cp", &P::cp,
                  "context parallel ranks, which share the tokens of sequences in training "
                  "(Megatron-Core: context_parallel_size), in inference those of prompts and the "
                  "cache (vLLM: prefill_context_parallel_size)",
                  degree)
        .optional("cp_a2a", &P::cp_a2a,
                  "training with cp_comm_type a2a+p2p: ranks of cp that exchange heads "
                  "(Megatron-Core: the first of hierarchical_context_parallel_sizes)",
                  degree)
        .optional("dcp", &P::dcp,
                  "ranks of tp that share the cache where they would hold the same KV heads (vLLM: "
                  "decode_context_parallel_size, SGLang: dcp-size)",
                  degree)
        .optional("ep", &P::ep, "ranks of a stage's tp * dp that share the experts", degree)
        .optional("etp", &P::etp,
                  "tensor parallel ranks inside experts: ep * etp of a stage's tp * dp hold all "
                  "experts",
                  degree)
        .optional("zero", &P::zero,
                  "what dp ranks share out: 0 nothing, 1 states of the optimizer (distributed "
                  "optimizer), 2 gradients too, 3 weights too (FSDP)",
                  config::between(0, 3))
        .optional("dp_shard", &P::dp_shard,
                  "ranks of dp that share out one copy, the others hold copies (HSDP; TorchTitan: "
                  "data_parallel_shard_degree); 0: all",
                  config::between(0, 1 << 20))
        .optional("layout", &P::layout,
                  "which layers the slices of a pipeline have, where they have not equally many");
    s.optional("order", &P::order,
               "axes by which ranks are numbered along the machine, the first fastest; "
               "Megatron-Core's --use-tp-pp-dp-mapping is tp-cp-ep-pp-dp")
        .check([](const P& p) { return order_fault(p.order); }, "order")
        .check(shard_fault, "dp_shard");
    add_megatron_names(s);
    for (const Rule& rule : kRules) s.check(rule.message, rule.holds, rule.key);
    return s;
  }();
  return schema;
}

std::string ranks_text(const ParallelConfig& parallel) {
  return fmt::format("tp * pp * {}dp = {}", parallel.cp > 1 ? "cp * " : "", parallel.ranks());
}

void require_consistent(const ParallelConfig& parallel) {
  const std::string fault = order_fault(parallel.order);
  if (!fault.empty()) throw config::KeyError("parallel.order", fault);
  const std::string shards = shard_fault(parallel);
  if (!shards.empty()) throw config::KeyError("parallel.dp_shard", shards);
  for (const Rule& rule : kRules) {
    if (!rule.holds(parallel))
      throw config::KeyError(std::string("parallel.") + rule.key, rule.message);
  }
}

void require_supported(const ParallelConfig& parallel) {
  require_consistent(parallel);
  if (parallel.dcp == 1) return;
  throw config::KeyError("parallel.dcp",
                         "unsupported: training has no cache that dcp ranks could share");
}

}  // namespace orrery
