// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "workloads/formats/base/rapid_reader.h"
#include "workloads/formats/kineto/event.h"

namespace orrery::kineto {

/// Takes what RapidJSON finds, puts events together and passes each on. Keys and values stand in
/// any order.
class EventHandler : public rapidjson::BaseReaderHandler<rapidjson::UTF8<>, EventHandler> {
 public:
  explicit EventHandler(EventSink& sink) : sink_(sink) {}

  // RapidJSON's names. NOLINTBEGIN(readability-identifier-naming)
  bool Default() { return true; }
  bool RawNumber(const char* text, rapidjson::SizeType length, bool copy);
  bool String(const char* text, rapidjson::SizeType length, bool copy);
  bool StartObject() { return enter(true); }
  bool Key(const char* text, rapidjson::SizeType length, bool copy);
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
  Place below(bool is_object);
  bool enter(bool is_object);
  bool leave();
  void value(std::string_view text, bool is_text);
  void event_value(std::string_view text);
  void argument(std::string_view text);
  void collective_argument(std::string_view text);
  void group_value(std::string_view text);
  void element(std::string_view text);

  EventSink& sink_;
  Header header_;
  Event event_;
  std::string key_;
  std::array<Place, kMostNested> places_{};
  std::size_t depth_ = 0;
  bool has_events_ = false;
  std::string problem_;
};

}  // namespace orrery::kineto
