// SPDX-License-Identifier: Apache-2.0
#include "workloads/formats/kernel_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>

#include "workloads/formats/base/whole_number.h"

namespace orrery {
namespace {

struct IntegerField {
  std::string_view name;
  std::int64_t& (*of)(Kernel&);
};
struct RealField {
  std::string_view name;
  double (*get)(const Kernel&);
  void (*set)(Kernel&, double);
};

/// FLOPs or bytes.
template <auto Member>
constexpr RealField amount(std::string_view name) {
  return {name, [](const Kernel& k) { return (k.*Member).base(); },
          [](Kernel& k, double v) { k.*Member = std::decay_t<decltype(k.*Member)>(v); }};
}

constexpr IntegerField kIntegers[] = {
    {"batch", [](Kernel& k) -> std::int64_t& { return k.batch; }},
    {"m", [](Kernel& k) -> std::int64_t& { return k.m; }},
    {"n", [](Kernel& k) -> std::int64_t& { return k.n; }},
    {"k", [](Kernel& k) -> std::int64_t& { return k.k; }},
    {"sequences", [](Kernel& k) -> std::int64_t& { return k.attention.sequences; }},
    {"kv_heads", [](Kernel& k) -> std::int64_t& { return k.attention.kv_heads; }},
    {"window", [](Kernel& k) -> std::int64_t& { return k.attention.window; }},
    {"weight_bits", [](Kernel& k) -> std::int64_t& { return k.weights.bits; }},
    {"launches", [](Kernel& k) -> std::int64_t& { return k.launches; }},
};

constexpr RealField kReals[] = {
    amount<&Kernel::matrix_flops>("matrix_flops"),
    amount<&Kernel::vector_flops>("vector_flops"),
    amount<&Kernel::exponentials>("exponentials"),
    amount<&Kernel::read>("read"),
    amount<&Kernel::written>("written"),
    amount<&Kernel::host>("host"),
    amount<&Kernel::reuse>("reuse"),
    {"rate", [](const Kernel& k) { return k.rate; }, [](Kernel& k, double v) { k.rate = v; }},
    {"backward", [](const Kernel& k) { return k.attention.backward ? 1.0 : 0.0; },
     [](Kernel& k, double v) { k.attention.backward = v != 0; }},
    {"sparse", [](const Kernel& k) { return k.weights.sparse ? 1.0 : 0.0; },
     [](Kernel& k, double v) { k.weights.sparse = v != 0; }},
};

constexpr Precision kPrecisions[] = {Precision::kFp32,  Precision::kTf32, Precision::kBf16,
                                     Precision::kFp16,  Precision::kFp8,  Precision::kFp8Block,
                                     Precision::kNvfp4, Precision::kInt8};

template <class T>
void put(std::string& text, std::string_view name, T value) {
  std::array<char, 32> digits{};
  const auto [end, error] = std::to_chars(digits.data(), digits.data() + digits.size(), value);
  text += text.empty() ? "" : " ";
  text += name;
  text += '=';
  text.append(digits.data(), end);
}

/// Takes one key and its value; false for a value that is none.
bool set_field(Kernel& kernel, std::string_view name, std::string_view value) {
  if (name == "precision") {
    const auto* const known =
        std::find_if(std::begin(kPrecisions), std::end(kPrecisions),
                     [&](Precision precision) { return value == to_string(precision); });
    if (known == std::end(kPrecisions)) return false;
    kernel.precision = *known;
  }
  for (const IntegerField& field : kIntegers) {
    if (name != field.name) continue;
    const auto number = number_in<std::int64_t>(value);
    if (!number || *number < 0) return false;
    field.of(kernel) = *number;
  }
  for (const RealField& field : kReals) {
    if (name != field.name) continue;
    const auto number = number_in<double>(value);
    if (!number || !(*number >= 0) || !std::isfinite(*number)) return false;
    field.set(kernel, *number);
  }
  return true;
}

}  // namespace

std::string kernel_text(const Kernel& kernel) {
  Kernel of = kernel;
  Kernel other;
  std::string text;
  if (of.precision != other.precision) text = std::string("precision=") + to_string(of.precision);
  for (const IntegerField& field : kIntegers)
    if (field.of(of) != field.of(other)) put(text, field.name, field.of(of));
  for (const RealField& field : kReals)
    if (field.get(of) != field.get(other)) put(text, field.name, field.get(of));
  return text;
}

std::optional<Kernel> kernel_of_text(std::string_view text) {
  Kernel kernel;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    const std::size_t equals = word.find('=');
    if (equals == std::string_view::npos) return std::nullopt;
    if (!set_field(kernel, word.substr(0, equals), word.substr(equals + 1))) return std::nullopt;
  }
  return kernel;
}

}  // namespace orrery
