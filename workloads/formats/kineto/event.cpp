// SPDX-License-Identifier: Apache-2.0
// The JSON of a trace as events: RapidJSON's SAX parser, with its numbers as they are written,
// since a double cannot hold the nanoseconds of an epoch.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <string>
#include <utility>

#include "sim/config/byte_source.h"
#include "sim/config/diagnostics.h"
#include "workloads/formats/base/rapid_reader.h"
#include "workloads/formats/kineto/event.h"
#include "workloads/formats/kineto/mended_json.h"

namespace orrery::kineto {
namespace {

constexpr std::int64_t kMostTime = std::int64_t{1} << 62U;
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
  static const std::pair<Category, std::vector<std::string_view>> kCategories[] = {
      {Category::kKernel, {"kernel", "Kernel"}},
      {Category::kMemcpy, {"gpu_memcpy", "Memcpy"}},
      {Category::kMemset, {"gpu_memset", "Memset"}},
      {Category::kRuntime,
       {"cuda_runtime", "cuda_driver", "hip_runtime", "privateuse1_runtime", "xpu_runtime",
        "Runtime"}},
      {Category::kSync, {"cuda_sync"}},
      {Category::kOperator, {"cpu_op", "Operator"}},
      {Category::kAnnotation, {"user_annotation", "python_function"}},
      {Category::kFlow, {"ac2g", "async_cpu_to_gpu", "async_gpu"}},
  };
  for (const auto& [category, names] : kCategories)
    if (std::find(names.begin(), names.end(), text) != names.end()) return category;
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

/// Takes what RapidJSON finds, puts events together and passes each on. Keys and values stand in
/// any order.
class EventHandler : public rapidjson::BaseReaderHandler<rapidjson::UTF8<>, EventHandler> {
 public:
  explicit EventHandler(const EventSink& sink) : sink_(sink) {}

  // RapidJSON's names. NOLINTBEGIN(readability-identifier-naming)
  bool Default() { return true; }
  bool RawNumber(const char* text, rapidjson::SizeType length, bool copy) {
    return String(text, length, copy);
  }
  bool String(const char* text, rapidjson::SizeType length, bool /*copy*/) {
    value({text, length});
    return true;
  }
  bool StartObject() { return enter(true); }
  bool Key(const char* text, rapidjson::SizeType length, bool /*copy*/) {
    if (place() != Place::kOther) key_.assign(text, length);
    return true;
  }
  bool EndObject(rapidjson::SizeType /*members*/) { return leave(); }
  bool StartArray() { return enter(false); }
  bool EndArray(rapidjson::SizeType /*elements*/) { return leave(); }
  // NOLINTEND(readability-identifier-naming)

  bool has_events() const { return has_events_; }
  /// The file is an array, and no event has begun and not ended.
  bool between_events_of_an_array() const { return depth_ == 1 && places_[0] == Place::kEvents; }
  /// Why the handler has stopped the parser; empty: it has not.
  const std::string& problem() const { return problem_; }
  Header header() && { return std::move(header_); }

 private:
  /// What is around a value.
  enum class Place : std::uint8_t {
    kOther,
    kFile,    ///< the object that is the file
    kEvents,  ///< the array of events
    kEvent,
    kArguments,
    kDims,  ///< an array, or one of the arrays in it
    kOperand,
    kTypes,
    kConcrete,
    kDistributed,
    kGroups,
    kGroup,
    kRanks,
  };
  static constexpr std::size_t kMostNested = 64;

  Place place() const { return depth_ == 0 ? Place::kOther : places_[depth_ - 1]; }
  Place below(bool is_object) {
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

  bool enter(bool is_object) {
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

  bool leave() {
    const Place left = places_[--depth_];
    if (left == Place::kEvent) sink_(event_);
    if (left == Place::kOperand) ++event_.operands.count;
    return true;
  }

  void value(std::string_view text) {
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
        if (key_ == "pg_name") header_.groups.back().name.assign(text);
        return;
      case Place::kOperand:
      case Place::kTypes:
      case Place::kConcrete:
      case Place::kRanks:
        return element(text);
      default:
        return;
    }
  }

  void event_value(std::string_view text) {
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

  void argument(std::string_view text) {
    static constexpr std::pair<std::string_view, std::int64_t Event::*> kNumbers[] = {
        {"correlation", &Event::correlation},
        {"stream", &Event::stream},
        {"device", &Event::device},
        {"bytes", &Event::bytes},
        {"wait_on_stream", &Event::waited_stream},
        {"wait_on_cuda_event_record_corr_id", &Event::waited_record},
    };
    for (const auto& [name, member] : kNumbers)
      if (key_ == name) event_.*member = integer(text);
    collective_argument(text);
  }

  void collective_argument(std::string_view text) {
    if (key_.empty() || (key_[0] > 'Z' && key_ != "dtype")) return;  // the others have a capital
    static constexpr std::pair<std::string_view, std::string Collective::*> kTexts[] = {
        {"dtype", &Collective::dtype},
        {"Collective name", &Collective::name},
        {"Process Group Name", &Collective::group},
        {"Process Group Ranks", &Collective::ranks},
    };
    static constexpr std::pair<std::string_view, std::int64_t Collective::*> kNumbers[] = {
        {"In msg nelems", &Collective::in_elements},
        {"Out msg nelems", &Collective::out_elements},
        {"Group size", &Collective::group_size},
        {"Global rank start", &Collective::first_rank},
        {"Global rank stride", &Collective::rank_stride},
        {"Src Rank", &Collective::source},
        {"Dst Rank", &Collective::destination},
    };
    for (const auto& [name, member] : kTexts) {
      if (key_ != name) continue;
      (event_.collective.*member).assign(text);
      event_.has_collective = true;
    }
    for (const auto& [name, member] : kNumbers) {
      if (key_ != name) continue;
      event_.collective.*member = integer(text);
      event_.has_collective = true;
    }
  }

  void element(std::string_view text) {
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

  const EventSink& sink_;
  Header header_;
  Event event_;
  std::string key_;
  std::array<Place, kMostNested> places_{};
  std::size_t depth_ = 0;
  bool has_events_ = false;
  std::string problem_;
};

void note_mended(const std::string& path, const MendedJson::Counts& counts,
                 std::vector<std::string>& notes) {
  const auto note = [&](std::uint64_t count, const char* what) {
    if (count > 0) notes.push_back(fmt::format("{}: {}{}", path, count, what));
  };
  note(counts.control_characters, " control characters in texts, taken as spaces");
  note(counts.escapes, " escapes that JSON does not have, taken as question marks");
  note(counts.not_numbers, " values that are no numbers (NaN, infinity), left out");
  note(counts.long_texts, " texts longer than 64 KiB, cut");
}

}  // namespace

std::int64_t nanoseconds(std::string_view text) {
  std::int64_t whole = 0;
  const bool negative = text.starts_with('-');
  const char* const end = text.data() + text.size();
  auto [at, error] = std::from_chars(text.data() + (negative ? 1 : 0), end, whole);
  if (error != std::errc() || whole < 0 || whole >= kMostTime / 1000) return kUnknown;
  std::int64_t part = 0;
  if (at != end && *at == '.') {
    std::int64_t weight = 1000;
    for (++at; at != end && *at >= '0' && *at <= '9'; ++at) {
      if (weight == 1) {
        part += *at >= '5' ? 1 : 0;  // rounded; what follows does not matter
        weight = 0;
      } else if (weight > 1) {
        weight /= 10;
        part += weight * (*at - '0');
      }
    }
  }
  if (at == end) return (negative ? -1 : 1) * (whole * 1000 + part);
  const double value = std::strtod(std::string(text).c_str(), nullptr) * 1000;  // with an exponent
  if (!(std::abs(value) < static_cast<double>(kMostTime))) return kUnknown;
  return std::llround(value);
}

void Event::clear() {
  // The texts keep their room for the next event.
  phase = '\0';
  category = Category::kOther;
  name.clear();
  start = id = correlation = device = stream = bytes = waited_stream = waited_record = kUnknown;
  duration = process = thread = 0;
  wrong_time = false;
  operands.count = operands.types_count = 0;
  concrete.clear();
  if (has_collective) collective = {};
  has_collective = false;
}

Header read_events(ByteSource& source, const EventSink& sink, std::vector<std::string>& notes) {
  constexpr unsigned kFlags = rapidjson::kParseIterativeFlag |
                              rapidjson::kParseNumbersAsStringsFlag |
                              rapidjson::kParseTrailingCommasFlag;
  MendedJson text(source);
  EventHandler handler(sink);
  rapidjson::Reader reader;
  const rapidjson::ParseResult result = reader.Parse<kFlags>(text, handler);
  const std::string& path = source.path();
  if (result.IsError() && text.at_end() && handler.between_events_of_an_array()) {
    // Chrome's form allows it, for programs that are ended while they write.
    notes.push_back(path + ": the array of events is not closed");
  } else if (result.IsError()) {
    if (!handler.problem().empty()) refuse_at_byte(path, text.offset(), handler.problem());
    if (text.at_end()) refuse_at_byte(path, text.offset(), "the file ends too early");
    refuse_at_byte(path, text.offset(),
                   std::string("no JSON: ") + rapidjson::GetParseError_En(result.Code()));
  }
  if (!handler.has_events())
    throw config::ConfigError(path + ": has no traceEvents: no trace of the PyTorch profiler");
  note_mended(path, text.counts(), notes);
  return std::move(handler).header();
}

}  // namespace orrery::kineto
