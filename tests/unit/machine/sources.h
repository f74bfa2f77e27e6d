// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fstream>
#include <map>
#include <regex>
#include <string>
#include <vector>

#include "sim/config/node.h"
#include "sim/config/schema.h"

namespace orrery {

/// Whether somebody can look a value up: "TITLE (YEAR)" or "(TITLE, YEAR)", also with month and
/// day. A number of that size elsewhere ("2032 MHz") is no year.
inline bool names_a_document(const std::string& source) {
  static const std::regex year(
      R"re(.*(\((19|20)\d\d\b|\b(19|20)\d\d(-\d\d)*\)|\b(19|20)\d\d: [^()]*\)).*)re");
  constexpr std::size_t kTitle = 8;  // characters before the year: "JESD238 (2022)"
  return source.size() > kTitle + std::string("(2022)").size() && std::regex_match(source, year);
}

/// Whether a source says that the value is not published, and has the reasoning behind it.
inline bool is_estimate(const std::string& source) {
  static const std::regex marked(R"(^(prior, )?estimate: .{6,}$)");
  return std::regex_match(source, marked);
}

/// What is wrong with a source; empty: nothing.
inline std::string source_fault(const std::string& source) {
  for (const char* nobody : {"community", "analysts", "public CUDA", "not re-read"}) {
    if (source.find(nobody) != source.npos)
      return std::string("names what nobody can look up: '") + nobody + "'";
  }
  if (names_a_document(source) || is_estimate(source)) return {};
  return "needs a document with its year in parentheses, or 'estimate: ' and the reasoning, not '" +
         source + "'";
}

/// Finds the values of a file of the library whose source is missing or says too little. Facts have
/// a `source`; a struct may have one for all its numbers; a plain number has a comment on its line,
/// above it or above a key that it is below.
class SourceCheck {
 public:
  /// @param folder values written elsewhere (a protocol that a system extends) are left out
  explicit SourceCheck(std::string folder) : folder_(std::move(folder)) {}

  /// One line a fault: "FILE:LINE: KEY needs ...".
  std::vector<std::string> faults;

  void walk(const config::Type& type, const config::Node& node, const std::string& key,
            bool commented = false) {
    using enum config::TypeKind;
    if (node.origin().kind != config::Origin::Kind::kFile || node.is_null()) return;
    switch (type.kind) {
      case kFact:
        return fact(node, key);
      case kOptional:
        return walk(*type.element, node, key, commented);
      case kList:
        for (const config::Node& item : node.items()) walk(*type.element, item, key, commented);
        return;
      case kMap:
        for (const auto& entry : node.entries())
          walk(*type.element, entry.value, key + "." + entry.key,
               commented || comment_at(entry.key_origin));
        return;
      case kRecord:
        return record(type.record(), node, key, commented);
      case kInteger:
      case kReal:
      case kQuantity:
        if (!commented)
          fault(node, key, "needs a comment with a document and its year, or 'estimate: '");
        return;
      default:
        return;
    }
  }

 private:
  void fault(const config::Node& node, const std::string& key, const std::string& what) {
    const config::Origin& origin = node.origin();
    if (origin.file->find("/" + folder_ + "/") == std::string::npos) return;
    faults.push_back(*origin.file + ":" + std::to_string(origin.line) + ": " + key + " " + what);
  }

  void text(const config::Node& node, const std::string& key, const char* name) {
    const config::Node* source = node.find(name);
    const std::string what = source ? source_fault(source->text()) : "";
    if (!source) fault(node, key, std::string("has no ") + name);
    if (!what.empty()) fault(*source, key + "." + name, what);
  }

  void fact(const config::Node& node, const std::string& key) {
    text(node, key, "source");
    if (node.find("nameplate")) text(node, key, "nameplate_source");
  }

  void record(const config::Record& record, const config::Node& node, const std::string& key,
              bool commented) {
    const bool sourced = node.find("source") != nullptr;
    if (sourced) text(node, key, "source");
    for (const config::Field& field : record.fields()) {
      const config::Node* value = node.find(field.key);
      if (!value) continue;
      const bool said = commented || sourced || comment_at(node.key_origin(field.key));
      walk(*field.type, *value, key.empty() ? field.key : key + "." + field.key, said);
    }
  }

  /// Whether the comment on a key's line or right above it says where what is below comes from.
  bool comment_at(const config::Origin& origin) {
    if (origin.kind != config::Origin::Kind::kFile) return false;
    const std::vector<std::string>& lines = text_of(*origin.file);
    std::size_t line = static_cast<std::size_t>(origin.line) - 1;
    if (line >= lines.size()) return false;  // no file
    if (said_in(lines[line])) return true;
    std::string above;
    while (line > 0 && lines[line - 1].find_first_not_of(' ') != std::string::npos &&
           lines[line - 1][lines[line - 1].find_first_not_of(' ')] == '#')
      above = lines[--line] + " " + above;
    return said_in(above);
  }

  static bool said_in(const std::string& line) {
    const std::size_t hash = line.find("# ");
    if (hash == std::string::npos) return false;
    const std::string comment = line.substr(hash);
    return names_a_document(comment) || comment.find("estimate: ") != std::string::npos;
  }

  const std::vector<std::string>& text_of(const std::string& file) {
    std::vector<std::string>& lines = texts_[file];
    if (!lines.empty()) return lines;
    std::ifstream in(file);
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    return lines;
  }

  std::string folder_;
  std::map<std::string, std::vector<std::string>> texts_;
};

}  // namespace orrery
