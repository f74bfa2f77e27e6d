// SPDX-License-Identifier: Apache-2.0
#include "workloads/formats/chakra/names.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

namespace orrery {
namespace {

/// The letters of a text, a bit each: a part can only stand in a name that has all of its letters.
constexpr std::uint32_t letters_of(std::string_view text) {
  std::uint32_t letters = 0;
  for (const char c : text) {
    const unsigned letter = (static_cast<unsigned char>(c) | 0x20U) - unsigned{'a'};
    if (letter < 26) letters |= 1U << letter;
  }
  return letters;
}

struct Part {
  Part(const char* part) : text(part), letters(letters_of(text)) {}  // NOLINT: as a text
  std::string_view text;
  std::uint32_t letters;
};
/// What names of operators and kernels tell, in lower case; the first that is found.
const std::pair<KernelClass, std::vector<Part>> kNamedClasses[] = {
    {KernelClass::kGemm, {"gemm", "matmul", "addmm", "::mm", "bmm", "linear"}},
    {KernelClass::kAttentionPrefill, {"flash", "attention"}},
    {KernelClass::kNormalization, {"norm"}},
    {KernelClass::kSoftmax, {"softmax"}},
    {KernelClass::kEmbedding, {"embedding"}},
    {KernelClass::kOptimizer, {"adam", "optimizer"}},
    {KernelClass::kCopy, {"memcpy"}},
    {KernelClass::kConvolution, {"conv"}},
    {KernelClass::kElementwise, {"elementwise", "relu", "gelu", "silu", "dropout"}},
    {KernelClass::kQuantize, {"quantize"}},
};

/// Whether a part stands in a name, whatever the case of its letters.
bool contains(std::string_view name, std::string_view part) {
  const auto same = [](char a, char b) { return (a >= 'A' && a <= 'Z' ? a - 'A' + 'a' : a) == b; };
  return std::search(name.begin(), name.end(), part.begin(), part.end(), same) != name.end();
}

constexpr std::int64_t kHighestMember = 10'000'000;

/// What stands behind the colon of a key.
std::string_view value_of(std::string_view one, std::string_view key) {
  const auto is_quote = [](char c) { return c == '"' || c == '\''; };
  for (std::size_t at = one.find(key); at != std::string_view::npos; at = one.find(key, at + 1)) {
    const std::size_t end = at + key.size();
    if (at == 0 || !is_quote(one[at - 1]) || end >= one.size() || !is_quote(one[end])) continue;
    const std::size_t colon = one.find(':', end);
    if (colon == std::string_view::npos) return {};
    const std::size_t begin = one.find_first_not_of(' ', colon + 1);
    return begin == std::string_view::npos ? std::string_view() : one.substr(begin);
  }
  return {};
}

std::string text_of(std::string_view one, std::string_view key) {
  std::string_view value = value_of(one, key);
  if (value.empty()) return {};
  const char quote = value[0];
  if (quote != '"' && quote != '\'')
    return std::string(value.substr(0, value.find_first_of(", }")));
  value.remove_prefix(1);
  return std::string(value.substr(0, value.find(quote)));
}

std::vector<int> list_of(std::string_view one, std::string_view key) {
  std::vector<int> ranks;
  const std::string_view value = value_of(one, key);
  if (value.empty() || value[0] != '[') return ranks;
  std::int64_t number = -1;  // none has begun
  for (const char c : value.substr(1)) {
    if (c >= '0' && c <= '9') {
      number = std::min(std::max<std::int64_t>(number, 0) * 10 + (c - '0'), kHighestMember);
    } else if (number >= 0) {
      ranks.push_back(static_cast<int>(number));
      number = -1;
    }
    if (c == ']') break;
  }
  return ranks;
}

}  // namespace

std::optional<KernelClass> class_of_name(std::string_view name) {
  const std::uint32_t letters = letters_of(name);
  for (const auto& [kind, parts] : kNamedClasses)
    for (const Part& part : parts)
      if ((letters & part.letters) == part.letters && contains(name, part.text)) return kind;
  return std::nullopt;
}

std::optional<TransferKind> collective_of_name(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, TransferKind>, 6> kNames = {
      {{"allreduce", TransferKind::kAllReduce},
       {"allgather", TransferKind::kAllGather},
       {"reducescatter", TransferKind::kReduceScatter},
       {"alltoall", TransferKind::kAllToAll},
       {"broadcast", TransferKind::kBroadcast},
       {"barrier", TransferKind::kBarrier}}};
  std::string plain;
  for (const char c : name) {
    if (c >= 'A' && c <= 'Z') plain += static_cast<char>(c - 'A' + 'a');
    if (c >= 'a' && c <= 'z') plain += c;
  }
  for (const auto& [word, kind] : kNames)
    if (plain.find(word) != std::string::npos) return kind;
  return {};
}

std::vector<ProcessGroup> process_groups(std::string_view text) {
  std::vector<ProcessGroup> groups;
  if (text.find("pg_name") == std::string_view::npos) return groups;
  for (std::size_t open = text.find('{'); open != std::string_view::npos;
       open = text.find('{', open + 1)) {
    const std::size_t close = std::min(text.find('}', open), text.size());
    const std::string_view one = text.substr(open, close - open);
    ProcessGroup group{text_of(one, "pg_name"), list_of(one, "ranks")};
    if (!group.name.empty()) groups.push_back(std::move(group));
  }
  return groups;
}

}  // namespace orrery
