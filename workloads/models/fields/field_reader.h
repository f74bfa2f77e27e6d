// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/core.h>

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sim/config/diagnostics.h"

namespace orrery {

/// A field of a configuration that says what it must not; who has the text knows where it stands.
class FieldError : public config::ConfigError {
 public:
  FieldError(const std::string& origin, std::string field, std::string message)
      : ConfigError(fmt::format("{}: {}: {}", origin, field, message)),
        field_(std::move(field)),
        message_(std::move(message)) {}
  const std::string& field() const { return field_; }
  const std::string& message() const { return message_; }

 private:
  std::string field_, message_;
};

/// Reads the fields of one Hugging Face configuration, checks each, and remembers which were read:
/// a field that changes the structure of a model and that nobody read means that the model would be
/// built wrong. A field that is null counts as absent, as in the transformers library.
class FieldReader {
 public:
  /// Names of one field, canonical first; the first one present is taken.
  using Names = std::initializer_list<const char*>;

  /// @param origin path of the file, for errors.
  /// @param wrapper the object that holds `fields` as its language model; null where there is none.
  FieldReader(const nlohmann::json& fields, std::string origin, const nlohmann::json* wrapper);

  const std::string& model_type() const { return model_type_; }
  bool has(const char* name) const;
  /// The object at a field, read as fields of this model; absent where it is not there or empty.
  std::optional<FieldReader> section(const char* name);

  /// A positive integer of at most `limit`.
  std::int64_t size(Names names, std::int64_t limit);
  std::int64_t size_or(Names names, std::int64_t limit, std::int64_t fallback);
  /// Like size_or, where a word stands for the fallback too.
  std::int64_t size_or_word(Names names, const char* word, std::int64_t limit,
                            std::int64_t fallback);
  /// Like size_or and flag, where what stands for a field that is left out is a default of a class
  /// of the transformers library; see class_defaults().
  std::int64_t size_of_class(Names names, std::int64_t limit, std::int64_t fallback);
  bool flag_of_class(const char* name, bool fallback);
  void note_class_default(const std::string& field, const std::string& value);
  /// Fields that were taken from a class, with their values, and from which: "fields that the file
  /// leaves out are those of LlamaConfig: hidden_size 4096". Empty: none were.
  std::string class_defaults() const;
  void defaults_are_of(const char* class_name) { class_ = class_name; }
  /// Like size_or, but 0 is allowed too.
  std::int64_t count_or(Names names, std::int64_t limit, std::int64_t fallback);
  bool flag(const char* name, bool fallback);
  std::string text_or(Names names, const std::string& fallback);
  std::vector<std::int64_t> counts_or_empty(const char* name, std::int64_t limit);
  std::vector<std::string> texts_or_empty(const char* name);
  double fraction_or(Names names, double fallback);  ///< a number from 0 to 1
  double number(Names names, double limit);          ///< a positive number
  /// Readers of an object inside of this one, or of each of a list of them; none where it is left
  /// out.
  std::vector<FieldReader> inner(const char* name);
  /// Counts fields as read that sound like structure and change no size, operator or cache.
  void ignore(Names names) { read_.insert(names.begin(), names.end()); }
  /// `tie_word_embeddings`, which a wrapper may hold for its language model.
  bool tied_embeddings(bool fallback);

  /// @throws UnsupportedModel "ORIGIN: unsupported: model_type 'TYPE': REASON".
  [[noreturn]] void unsupported(const std::string& reason) const;
  /// @throws FieldError "ORIGIN: FIELD: MESSAGE".
  [[noreturn]] void invalid(const std::string& field, const std::string& message) const;

  /// @throws FieldError where a list has not `wanted` entries, or `part` does not divide `whole` of
  /// `what`, or the width of the model.
  void require_entries(const std::string& field, std::size_t entries, std::size_t wanted) const;
  void require_divides(const std::string& field, std::int64_t part, std::int64_t whole,
                       const char* what) const;
  void require_divides_width(const std::string& field, std::int64_t part, std::int64_t width) const;
  /// @throws UnsupportedModel where a structural field that says something was not read.
  void refuse_unread_structure() const;

  /// 0 and 1 for each layer, or `fallback` for all where there is no list.
  std::vector<bool> switches_or(const char* name, std::size_t layers, bool fallback);

 private:
  FieldReader(const nlohmann::json& fields, const FieldReader& outer);
  /// The first name present, with its value, or null; marks all names as read.
  struct Found {
    std::string field;
    const nlohmann::json* value = nullptr;
  };
  Found find(Names names);
  std::int64_t integer(Names names, std::int64_t lowest, std::int64_t limit,
                       const std::int64_t* fallback);
  /// What the class of a language model inside a wrapper has for a field that is left out; 0:
  /// nothing.
  std::int64_t inner_default(const std::string& field);
  std::int64_t checked(const nlohmann::json& value, const std::string& field, std::int64_t lowest,
                       std::int64_t limit) const;
  [[noreturn]] void wrong(const std::string& field, const std::string& expected,
                          const nlohmann::json& got) const;
  /// Points at a field that nobody read and that is nearly of that name, if there is one.
  [[noreturn]] void missing(const std::string& field) const;

  const nlohmann::json* fields_;
  std::string origin_;
  const nlohmann::json* wrapper_;
  std::string model_type_;
  std::set<std::string, std::less<>> read_;
  std::string class_defaults_;  ///< "hidden_size 4096, num_hidden_layers 32"
  std::string class_ = "the transformers library";
};

}  // namespace orrery
