// SPDX-License-Identifier: Apache-2.0
#include "workloads/formats/chakra/classes.h"

#include <algorithm>
#include <array>
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

struct NamedClass {
  constexpr NamedClass(std::string_view text, KernelClass of)
      : part(text), letters(letters_of(text)), kind(of) {}
  std::string_view part;
  std::uint32_t letters;
  KernelClass kind;
};
/// What names of operators and kernels tell, in lower case; the first that is found.
constexpr NamedClass kNamedClasses[] = {
    {"gemm", KernelClass::kGemm},
    {"matmul", KernelClass::kGemm},
    {"addmm", KernelClass::kGemm},
    {"::mm", KernelClass::kGemm},
    {"bmm", KernelClass::kGemm},
    {"linear", KernelClass::kGemm},
    {"flash", KernelClass::kAttentionPrefill},
    {"attention", KernelClass::kAttentionPrefill},
    {"norm", KernelClass::kNormalization},
    {"softmax", KernelClass::kSoftmax},
    {"embedding", KernelClass::kEmbedding},
    {"adam", KernelClass::kOptimizer},
    {"optimizer", KernelClass::kOptimizer},
    {"memcpy", KernelClass::kCopy},
    {"conv", KernelClass::kConvolution},
    {"elementwise", KernelClass::kElementwise},
    {"relu", KernelClass::kElementwise},
    {"gelu", KernelClass::kElementwise},
    {"silu", KernelClass::kElementwise},
    {"dropout", KernelClass::kElementwise},
    {"quantize", KernelClass::kQuantize},
};

/// Where a part of a name begins, whatever the case of its letters.
bool contains(std::string_view name, std::string_view part) {
  const auto same = [](char a, char b) { return (a >= 'A' && a <= 'Z' ? a - 'A' + 'a' : a) == b; };
  return std::search(name.begin(), name.end(), part.begin(), part.end(), same) != name.end();
}

}  // namespace

std::optional<KernelClass> class_of_name(std::string_view name) {
  const std::uint32_t letters = letters_of(name);
  for (const NamedClass& known : kNamedClasses) {
    if ((letters & known.letters) == known.letters && contains(name, known.part)) return known.kind;
  }
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

}  // namespace orrery
