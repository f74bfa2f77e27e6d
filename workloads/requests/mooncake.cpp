// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "sim/units/hash.h"
#include "workloads/requests/trace_format.h"

namespace orrery {
namespace {

constexpr std::int64_t kTracedPieceTokens = 512;
constexpr double kMillisecond = 1e-3;

/// Ids of pieces stand for their contents and for all before them.
TracedRequest read_mooncake(const nlohmann::json& line) {
  TracedRequest traced{
      traced_time(line, "timestamp") * kMillisecond,
      {0, 0, traced_tokens(line, "input_length"), traced_tokens(line, "output_length")}};
  auto prefix = std::make_shared<PrefixHashes>(PrefixHashes{kTracedPieceTokens, {}});
  const nlohmann::json ids = line.value("hash_ids", nlohmann::json::array());
  if (!ids.is_array()) throw std::invalid_argument("'hash_ids' is no list");
  const auto whole = static_cast<std::size_t>(traced.request.prompt / kTracedPieceTokens);
  for (const auto& id : ids) {
    if (prefix->pieces.size() == whole) break;
    std::uint64_t mixed = piece_identifier(id);
    prefix->pieces.push_back(next_random(mixed));
  }
  if (!prefix->pieces.empty()) traced.request.prefix = std::move(prefix);
  return traced;
}

const TraceFormats::Register registered_mooncake(
    "mooncake", "Mooncake: timestamp (ms), input_length, output_length, hash_ids of 512 tokens",
    {[](std::string_view head) { return head.find("\"hash_ids\"") != std::string_view::npos; },
     [](const TraceText& trace) { return read_trace_lines(trace, read_mooncake); }});

}  // namespace
}  // namespace orrery
