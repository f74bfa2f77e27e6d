// SPDX-License-Identifier: Apache-2.0
#include "workloads/formats/kineto/handler.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <utility>

namespace orrery::kineto {
namespace {

constexpr std::size_t kMostConcrete = 12;
constexpr std::size_t kMostGroups = 1U << 20U;

/// A number that may be a text, or have a fraction or a sign; kUnknown where it is none.
std::int64_t integer(std::string_view text) {
  const bool hexadecimal = text.starts_with("0x");
  if (hexadecimal) text.remove_prefix(2);
  std::int64_t value = 0;
  const auto [at, error] =
      std::from_chars(text.data(), text.data() + text.size(), value, hexadecimal ? 16 : 10);
  if (error != std::errc() || at == text.data()) return kUnknown;
  return value;
}

/// Threads and processes may have names instead of numbers.
std::int64_t identity(std::string_view text) {
  if (const std::int64_t number = integer(text); number != kUnknown) return number;
  std::uint64_t hash = 0xCBF29CE484222325U;  // FNV-1a
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3U;
  return static_cast<std::int64_t>(hash | (std::uint64_t{1} << 63U));  // apart from small numbers
}

Category category_of(std::string_view text) {
  static constexpr std::pair<std::string_view, Category> kCategories[] = {
      {"kernel", Category::kKernel},
      {"Kernel", Category::kKernel},
      {"gpu_memcpy", Category::kMemcpy},
      {"Memcpy", Category::kMemcpy},
      {"gpu_memset", Category::kMemset},
      {"Memset", Category::kMemset},
      {"cuda_runtime", Category::kRuntime},
      {"cuda_driver", Category::kRuntime},
      {"hip_runtime", Category::kRuntime},
      {"privateuse1_runtime", Category::kRuntime},
      {"xpu_runtime", Category::kRuntime},
      {"Runtime", Category::kRuntime},
      {"cuda_sync", Category::kSync},
      {"cpu_op", Category::kOperator},
      {"Operator", Category::kOperator},
      {"user_annotation", Category::kAnnotation},
      {"python_function", Category::kAnnotation},
      {"ac2g", Category::kFlow},
      {"async_cpu_to_gpu", Category::kFlow},
      {"async_gpu", Category::kFlow},
  };
  for (const auto& [name, category] : kCategories)
    if (text == name) return category;
  return Category::kOther;
}

Scalar scalar_of(std::string_view text) {
  static constexpr std::pair<std::string_view, Scalar> kScalars[] = {
      {"float", Scalar::kFloat},      {"double", Scalar::kDouble},
      {"c10::Half", Scalar::kHalf},   {"c10::BFloat16", Scalar::kBfloat16},
      {"at::Half", Scalar::kHalf},    {"at::BFloat16", Scalar::kBfloat16},
      {"signed char", Scalar::kInt8}, {"unsigned char", Scalar::kInt8},
      {"long int", Scalar::kWide},    {"long", Scalar::kWide},
  };
  for (const auto& [name, scalar] : kScalars)
    if (text == name) return scalar;
  return text.find("Float8") != std::string_view::npos ? Scalar::kFloat8 : Scalar::kOther;
}

}  // namespace

bool EventHandler::RawNumber(const char* text, rapidjson::SizeType length, bool /*copy*/) {
  value({text, length}, false);
  return true;
}

bool EventHandler::String(const char* text, rapidjson::SizeType length, bool /*copy*/) {
  value({text, length}, true);
  return true;
}

bool EventHandler::Key(const char* text, rapidjson::SizeType length, bool /*copy*/) {
  if (place() != Place::kOther) key_.assign(text, length);
  return true;
}

EventHandler::Place EventHandler::below(bool is_object) {
  if (depth_ == 0) return is_object ? Place::kFile : Place::kEvents;
  switch (place()) {
    case Place::kFile:
      if (key_ == "traceEvents" && !is_object) return Place::kEvents;
      return key_ == "distributedInfo" && is_object ? Place::kDistributed : Place::kOther;
    case Place::kEvents:
      return is_object ? Place::kEvent : Place::kOther;
    case Place::kEvent:
      return key_ == "args" && is_object ? Place::kArguments : Place::kOther;
    case Place::kArguments:
      if (is_object) return Place::kOther;
      if (key_ == "Input Dims" || key_ == "Input dims") return Place::kDims;
      if (key_ == "Input type") return Place::kTypes;
      return key_ == "Concrete Inputs" ? Place::kConcrete : Place::kOther;
    case Place::kDims:
      return is_object ? Place::kOther : Place::kOperand;
    case Place::kDistributed:
      return key_ == "pg_config" && !is_object ? Place::kGroups : Place::kOther;
    case Place::kGroups:
      return is_object ? Place::kGroup : Place::kOther;
    case Place::kGroup:
      return key_ == "ranks" && !is_object ? Place::kRanks : Place::kOther;
    default:
      return Place::kOther;
  }
}

bool EventHandler::enter(bool is_object) {
  if (depth_ == kMostNested) {
    problem_ = "values are nested deeper than 64";
    return false;
  }
  const Place entered = below(is_object);
  places_[depth_++] = entered;
  if (entered == Place::kEvents) has_events_ = true;
  if (entered == Place::kEvent) event_.clear();
  if (entered == Place::kDims) event_.operands.count = 0;
  if (entered == Place::kTypes) event_.operands.types_count = 0;
  if (entered == Place::kOperand && event_.operands.count < Operands::kMost)
    event_.operands.ranks[event_.operands.count] = 0;
  if (entered == Place::kGroup) {
    if (header_.groups.size() == kMostGroups) {
      problem_ = "more than a million process groups";
      return false;
    }
    header_.groups.emplace_back();
  }
  return true;
}

bool EventHandler::leave() {
  const Place left = places_[--depth_];
  if (left == Place::kEvent) sink_.add(event_);
  if (left == Place::kOperand) ++event_.operands.count;
  return true;
}

void EventHandler::value(std::string_view text, bool /*is_text*/) {
  switch (place()) {
    case Place::kEvent:
      return event_value(text);
    case Place::kArguments:
      return argument(text);
    case Place::kDistributed:
      if (key_ == "rank") header_.rank = integer(text);
      if (key_ == "world_size") header_.world_size = integer(text);
      return;
    case Place::kGroup:
      return group_value(text);
    case Place::kOperand:
    case Place::kTypes:
    case Place::kConcrete:
    case Place::kRanks:
      return element(text);
    default:
      return;
  }
}

void EventHandler::event_value(std::string_view text) {
  if (key_ == "ph") {
    event_.phase = text.size() == 1 ? text[0] : '\0';
  } else if (key_ == "cat") {
    event_.category = category_of(text);
  } else if (key_ == "name") {
    event_.name.assign(text);
  } else if (key_ == "ts" || key_ == "dur") {
    const std::int64_t time = nanoseconds(text);
    (key_ == "ts" ? event_.start : event_.duration) = time;
    if (time == kUnknown || (key_ == "dur" && time < 0)) event_.wrong_time = true;
  } else if (key_ == "pid") {
    event_.process = identity(text);
  } else if (key_ == "tid") {
    event_.thread = identity(text);
  } else if (key_ == "id") {
    event_.id = integer(text);
  }
}

void EventHandler::argument(std::string_view text) {
  if (key_ == "correlation") {
    event_.correlation = integer(text);
  } else if (key_ == "stream") {
    event_.stream = integer(text);
  } else if (key_ == "device") {
    event_.device = integer(text);
  } else if (key_ == "bytes") {
    event_.bytes = integer(text);
  } else if (key_ == "wait_on_stream") {
    event_.waited_stream = integer(text);
  } else if (key_ == "wait_on_cuda_event_record_corr_id") {
    event_.waited_record = integer(text);
  } else if (!key_.empty() && key_[0] <= 'Z') {
    collective_argument(text);  // the others have a capital, but one
  } else if (key_ == "dtype") {
    event_.collective.dtype.assign(text);
    event_.has_collective = true;
  }
}

void EventHandler::collective_argument(std::string_view text) {
  CollectiveArguments& collective = event_.collective;
  static constexpr std::pair<std::string_view, std::string CollectiveArguments::*> kTexts[] = {
      {"Collective name", &CollectiveArguments::name},
      {"Process Group Name", &CollectiveArguments::group},
      {"Process Group Ranks", &CollectiveArguments::ranks},
  };
  static constexpr std::pair<std::string_view, std::int64_t CollectiveArguments::*> kNumbers[] = {
      {"In msg nelems", &CollectiveArguments::in_elements},
      {"Out msg nelems", &CollectiveArguments::out_elements},
      {"Group size", &CollectiveArguments::group_size},
      {"Global rank start", &CollectiveArguments::first_rank},
      {"Global rank stride", &CollectiveArguments::rank_stride},
      {"Src Rank", &CollectiveArguments::source},
      {"Dst Rank", &CollectiveArguments::destination},
  };
  for (const auto& [name, member] : kTexts) {
    if (key_ != name) continue;
    (collective.*member).assign(text);
    event_.has_collective = true;
  }
  for (const auto& [name, member] : kNumbers) {
    if (key_ != name) continue;
    collective.*member = integer(text);
    event_.has_collective = true;
  }
}

void EventHandler::group_value(std::string_view text) {
  ProcessGroup& group = header_.groups.back();
  if (key_ == "pg_name") group.name.assign(text);
  if (key_ == "pg_size") group.size = integer(text);
}

void EventHandler::element(std::string_view text) {
  Operands& operands = event_.operands;
  switch (place()) {
    case Place::kOperand:
      if (operands.count < Operands::kMost) {
        std::uint8_t& rank = operands.ranks[operands.count];
        // More than kMostSizes: the rank says so, and nobody takes it for a product.
        if (rank < Operands::kMostSizes) operands.sizes[operands.count][rank] = integer(text);
        if (rank <= Operands::kMostSizes) ++rank;
      }
      return;
    case Place::kTypes:
      if (operands.types_count < Operands::kMost)
        operands.types[operands.types_count++] = scalar_of(text);
      return;
    case Place::kConcrete:
      if (event_.concrete.size() < kMostConcrete) event_.concrete.emplace_back(text);
      return;
    default: {
      std::vector<int>& ranks = header_.groups.back().ranks;
      const std::int64_t rank = integer(text);
      if (rank >= 0 && rank <= std::numeric_limits<int>::max() && ranks.size() < kMostGroups)
        ranks.push_back(static_cast<int>(rank));
      return;
    }
  }
}

}  // namespace orrery::kineto
