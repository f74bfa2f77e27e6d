// SPDX-License-Identifier: Apache-2.0
#include "sim/config/diagnostics.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <tuple>

#include "sim/config/input_files.h"
#include "sim/units/spelling.h"

namespace orrery::config {
namespace {

constexpr int kMostErrors = 20;  // shown
constexpr int kMostKept = 1000;  // later errors are only counted
constexpr std::size_t kMostMessageBytes = 400;
constexpr std::size_t kMostLineBytes = 160;

bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; }

/// Without control characters, which would break the layout or the terminal.
std::string printable(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7F; }, ' ');
  return text;
}

/// Whether messages may show what a file holds: a path may lead to any file of the machine, and
/// only those are that are named as the files that Orrery reads. Arguments and pipes are no files.
bool may_be_shown(const std::string& file) {
  constexpr std::string_view kEndings[] = {".yaml", ".yml", ".json", ".jsonl", ".csv",
                                           ".tsv",  ".log", ".out",  ".txt",   ".xml"};
  const std::string_view plain =
      file.ends_with(".gz") ? std::string_view(file).substr(0, file.size() - 3) : file;
  std::error_code ignored;
  return std::any_of(std::begin(kEndings), std::end(kEndings),
                     [&](std::string_view ending) { return plain.ends_with(ending); }) ||
         !std::filesystem::is_regular_file(file, ignored);
}

/// The text of a file that was read before; none of a pipe, which has been read to its end.
std::string text_of(const std::string& file) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(file, ignored) ? input_files().read(file).text : "";
}

/// A message without what it quotes. An apostrophe behind a letter quotes nothing.
std::string without_quotes(std::string_view message) {
  std::string text;
  while (!message.empty()) {
    std::size_t begin = message.find('\'');
    while (begin != std::string_view::npos && begin > 0 &&
           std::isalnum(static_cast<unsigned char>(message[begin - 1])) != 0)
      begin = message.find('\'', begin + 1);
    const std::size_t end = begin == std::string_view::npos ? begin : message.find('\'', begin + 1);
    if (end == std::string_view::npos) return text.append(message);
    text.append(message.substr(0, begin)).append("'...'");
    message.remove_prefix(end + 1);
  }
  return text;
}

/// At most `most` bytes, cut between characters.
std::string shortened(std::string text, std::size_t most) {
  if (text.size() <= most) return text;
  while (most > 0 && is_continuation(text[most])) --most;
  return text.substr(0, most) + "...";
}

std::string_view line_of(std::string_view text, int line) {
  for (int i = 1; i < line && !text.empty(); ++i) {
    const std::size_t end = text.find('\n');
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
  }
  text = text.substr(0, text.find('\n'));
  return text.substr(0, text.find('\r'));
}

std::size_t characters(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return !is_continuation(c); }));
}

/// The line that a diagnostic points to and the marks below it. Columns count bytes, marks
/// characters.
std::string quote(std::string_view line, const Diagnostic& diagnostic) {
  const auto column = static_cast<std::size_t>(std::max(diagnostic.where.column - 1, 0));
  if (column > line.size()) return {};
  std::size_t start =
      column > kMostLineBytes / 2 && line.size() > kMostLineBytes ? column - kMostLineBytes / 2 : 0;
  while (start > 0 && is_continuation(line[start])) --start;
  const std::string shown = shortened(printable(std::string(line.substr(start))), kMostLineBytes);
  const std::string_view before = line.substr(start, column - start);
  const std::string_view marked =
      line.substr(column, static_cast<std::size_t>(std::max(diagnostic.length, 1)));
  const std::size_t marks = std::clamp<std::size_t>(characters(marked), 1, kMostLineBytes / 2);
  return fmt::format("{:5} | {}\n      | {}^{}\n", diagnostic.where.line, shown,
                     std::string(characters(before), ' '), std::string(marks - 1, '~'));
}

/// The whole of an error that nobody can place.
std::string unplaced(const std::string& path, const std::string& message, const Advice& advice) {
  std::string text = fmt::format("{}: {}{}", path, message, did_you_mean(advice.suggestion));
  for (const std::string& note : advice.notes) text += "; " + note;
  return text;
}

}  // namespace

KeyError::KeyError(const std::string& path, std::string message, Advice advice)
    : KeyError(std::vector<std::string>{path}, std::move(message), std::move(advice)) {}
KeyError::KeyError(std::initializer_list<const char*> paths, std::string message, Advice advice)
    : KeyError(std::vector<std::string>(paths.begin(), paths.end()), std::move(message),
               std::move(advice)) {}
KeyError::KeyError(std::vector<std::string> paths, std::string message, Advice advice)
    : ConfigError(unplaced(paths.front(), message, advice)),
      paths_(std::move(paths)),
      message_(std::move(message)),
      advice_(std::move(advice)) {}
KeyError::KeyError(const KeyError&) = default;
KeyError& KeyError::operator=(const KeyError&) = default;
KeyError::~KeyError() = default;

std::string Location::text() const {
  if (line == 0) return file;
  return fmt::format("{}:{}:{}", file, line, column);
}

void Diagnostics::add(Diagnostic diagnostic) {
  const bool is_error = diagnostic.severity == Diagnostic::Severity::kError;
  if (is_error && errors_ >= kMostKept) {
    ++errors_;
    return;
  }
  if (!may_be_shown(diagnostic.where.file)) {
    diagnostic.message = without_quotes(diagnostic.message);
    diagnostic.suggestion.clear();
  }
  diagnostic.message = shortened(printable(std::move(diagnostic.message)), kMostMessageBytes);
  // A file that is referenced twice is checked twice.
  const bool known =
      std::any_of(diagnostics_.begin(), diagnostics_.end(), [&](const Diagnostic& other) {
        return other.where == diagnostic.where && other.message == diagnostic.message;
      });
  if (known) return;
  if (is_error) ++errors_;
  if (const Location& where = diagnostic.where; where.line > 0 && sources_.count(where.file) == 0)
    add_source(where.file, text_of(where.file));
  diagnostics_.push_back(std::move(diagnostic));
}

void Diagnostics::error(Location where, int length, std::string message, std::string suggestion,
                        std::vector<std::string> notes) {
  add({Diagnostic::Severity::kError, std::move(where), length, std::move(message),
       std::move(suggestion), std::move(notes)});
}

void Diagnostics::warning(Location where, int length, std::string message,
                          std::vector<std::string> notes) {
  add({Diagnostic::Severity::kWarning,
       std::move(where),
       length,
       std::move(message),
       {},
       std::move(notes)});
}

std::string Diagnostics::render(const Diagnostic& diagnostic) const {
  const bool is_error = diagnostic.severity == Diagnostic::Severity::kError;
  std::string text =
      fmt::format("{}: {}: {}{}\n", diagnostic.where.text(), is_error ? "error" : "warning",
                  diagnostic.message, did_you_mean(diagnostic.suggestion));
  const auto source = sources_.find(diagnostic.where.file);
  if (source != sources_.end() && diagnostic.where.line > 0 &&
      may_be_shown(diagnostic.where.file)) {
    text += quote(line_of(source->second, diagnostic.where.line), diagnostic);
  }
  for (const std::string& note : diagnostic.notes) text += "   = " + printable(note) + "\n";
  return text;
}

std::string Diagnostics::render_selected(bool errors, bool warnings) const {
  std::map<std::string, std::size_t> file_order;
  std::vector<const Diagnostic*> selected;
  for (const Diagnostic& diagnostic : diagnostics_) {
    file_order.try_emplace(diagnostic.where.file, file_order.size());
    const bool is_error = diagnostic.severity == Diagnostic::Severity::kError;
    if (is_error ? errors : warnings) selected.push_back(&diagnostic);
  }
  const auto position = [&](const Diagnostic* d) {
    return std::tuple(file_order.at(d->where.file), d->where.line, d->where.column);
  };
  std::stable_sort(selected.begin(), selected.end(), [&](const Diagnostic* a, const Diagnostic* b) {
    return position(a) < position(b);
  });
  std::string text;
  int shown_errors = 0;
  for (const Diagnostic* diagnostic : selected) {
    const bool is_error = diagnostic->severity == Diagnostic::Severity::kError;
    if (is_error && ++shown_errors > kMostErrors) continue;
    text += render(*diagnostic);
  }
  if (errors && errors_ > kMostErrors) {
    text += fmt::format("and {} more errors\n", errors_ - kMostErrors);
  }
  return text;
}

void throw_error(const std::string& text, Location where, int length, std::string message,
                 std::string suggestion) {
  Diagnostics diagnostics;
  diagnostics.add_source(where.file, text);
  diagnostics.error(std::move(where), length, std::move(message), std::move(suggestion));
  throw ConfigError(diagnostics.render(), diagnostics.all());
}

}  // namespace orrery::config
