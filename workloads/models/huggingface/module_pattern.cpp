// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cctype>
#include <string_view>
#include <utility>

#include "workloads/models/huggingface/checkpoint_format.h"

namespace orrery {
namespace {

/// '*' stands for any text.
bool matches_glob(const std::string& pattern, const std::string& text) {
  std::size_t p = 0, t = 0, star = std::string::npos, from = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] != '*' && (pattern[p] == text[t] || pattern[p] == '?')) {
      ++p;
      ++t;
    } else if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      from = t;
    } else if (star != std::string::npos) {
      p = star + 1;
      t = ++from;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

/// Whether words are among those of a name, one after the other; dots stand between words.
bool has_words(const std::string& name, const std::string& words) {
  if (words.empty()) return false;
  for (std::size_t at = name.find(words); at != std::string::npos; at = name.find(words, at + 1)) {
    const std::size_t end = at + words.size();
    if ((at == 0 || name[at - 1] == '.') && (end == name.size() || name[end] == '.')) return true;
  }
  return false;
}

/// Whether an expression is ".*" and another, the whole of it: no alternative stands beside ".*".
bool begins_anywhere(std::string_view expression) {
  if (expression.substr(0, 2) != ".*" || expression.find_first_of("?+{*", 2) == 2) return false;
  int depth = 0;
  for (const char c : expression) {
    depth += c == '(' ? 1 : c == ')' ? -1 : 0;
    if (c == '|' && depth <= 0) return false;
  }
  return true;
}

bool is_word(const std::string& expression) {
  return !expression.empty() && std::ranges::all_of(expression, [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
  });
}

/// Whether an expression ends in ".*".
bool ends_anywhere(const std::string& expression) {
  const std::size_t size = expression.size();
  return size > 2 && expression.compare(size - 2, 2, ".*") == 0 && expression[size - 3] != '\\';
}

}  // namespace

ModulePattern::ModulePattern(std::string text) : text_(std::move(text)) {
  constexpr std::string_view kRegex = "re:";
  constexpr std::size_t kLongest = 200;  // std::regex recurses by length
  if (text_.rfind(kRegex, 0) != 0) {
    kind_ = text_.find('*') == std::string::npos ? Kind::kWords : Kind::kGlob;
    return;
  }
  try {
    if (text_.size() <= kLongest) {
      std::string expression = text_.substr(kRegex.size());
      anywhere_ = begins_anywhere(expression);
      if (anywhere_) {  // std::regex tries every end of ".*"
        expression.erase(0, 2);
        if (ends_anywhere(expression)) expression.erase(expression.size() - 2);
      }
      if (anywhere_ && is_word(expression)) {
        text_ = expression;
        kind_ = Kind::kPart;
        return;
      }
      regex_ = std::regex(expression);
      kind_ = Kind::kRegex;
    }
  } catch (const std::regex_error&) {
    kind_ = Kind::kWords;  // which "re:" is in no name
  }
}

bool ModulePattern::names(const std::string& module) const {
  if (kind_ == Kind::kRegex)
    return std::regex_search(
        module, regex_,
        anywhere_ ? std::regex_constants::match_default : std::regex_constants::match_continuous);
  if (kind_ == Kind::kPart) return module.find(text_) != std::string::npos;
  if (kind_ == Kind::kWords) return has_words(module, text_);
  for (std::size_t end = module.find('.'); end != std::string::npos;
       end = module.find('.', end + 1)) {
    if (matches_glob(text_, module.substr(0, end))) return true;
  }
  return matches_glob(text_, module);
}

}  // namespace orrery
