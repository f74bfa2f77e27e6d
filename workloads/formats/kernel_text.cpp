// SPDX-License-Identifier: Apache-2.0
#include "workloads/formats/kernel_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>

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

const RealField kReals[] = {
    {"matrix_flops", [](const Kernel& k) { return k.matrix_flops.base(); },
     [](Kernel& k, double v) { k.matrix_flops = Flops(v); }},
    {"vector_flops", [](const Kernel& k) { return k.vector_flops.base(); },
     [](Kernel& k, double v) { k.vector_flops = Flops(v); }},
    {"exponentials", [](const Kernel& k) { return k.exponentials.base(); },
     [](Kernel& k, double v) { k.exponentials = Flops(v); }},
    {"read", [](const Kernel& k) { return k.read.base(); },
     [](Kernel& k, double v) { k.read = Bytes(v); }},
    {"written", [](const Kernel& k) { return k.written.base(); },
     [](Kernel& k, double v) { k.written = Bytes(v); }},
    {"host", [](const Kernel& k) { return k.host.base(); },
     [](Kernel& k, double v) { k.host = Bytes(v); }},
    {"reuse", [](const Kernel& k) { return k.reuse.base(); },
     [](Kernel& k, double v) { k.reuse = Bytes(v); }},
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

template <class T>
std::optional<T> number_in(std::string_view text) {
  T value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// Takes one key and its value; false for a value that is none.
bool set_field(Kernel& kernel, std::string_view name, std::string_view value) {
  if (name == "precision") {
    for (const Precision precision : kPrecisions) {
      if (value != to_string(precision)) continue;
      kernel.precision = precision;
      return true;
    }
    return false;
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
