// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "sim/units/hash.h"
#include "workloads/requests/trace_format.h"

namespace orrery {
namespace {

constexpr std::size_t kPieceIds = 16;
constexpr double kNanosecond = 1e-9;

std::shared_ptr<const PrefixHashes> prefix_of(const nlohmann::json& ids) {
  auto prefix = std::make_shared<PrefixHashes>(PrefixHashes{kPieceIds, {}});
  if (!ids.is_array()) throw std::invalid_argument("'input_tok_ids' is no list");
  std::uint64_t state = 0;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    state ^= piece_identifier(ids[i]) + 1;
    state = next_random(state);
    if ((i + 1) % kPieceIds == 0) prefix->pieces.push_back(state);
  }
  return prefix->pieces.empty() ? nullptr : prefix;
}

TracedRequest read_token_ids(const nlohmann::json& line) {
  TracedRequest traced{
      traced_time(line, "arrival_time_ns") * kNanosecond,
      {0, 0, traced_tokens(line, "input_toks"), traced_tokens(line, "output_toks")}};
  if (line.contains("input_tok_ids")) traced.request.prefix = prefix_of(line["input_tok_ids"]);
  return traced;
}

const TraceFormats::Register registered_token_ids(
    "token_ids",
    "ShareGPT prompts as LLMServingSim has them: input_toks, output_toks, arrival_time_ns, "
    "input_tok_ids",
    {[](std::string_view head) {
       return head.find("\"arrival_time_ns\"") != std::string_view::npos;
     },
     [](const TraceText& trace) { return read_trace_lines(trace, read_token_ids); }});

}  // namespace
}  // namespace orrery
