// SPDX-License-Identifier: Apache-2.0
#include "workloads/formats/chakra/python_text.h"

#include <algorithm>
#include <utility>

#include "workloads/formats/base/whole_number.h"

namespace orrery {
namespace {

constexpr int kDeepestList = 16;
constexpr std::size_t kMostValues = std::size_t{1} << 16U;

class PythonReader {
 public:
  explicit PythonReader(std::string_view text) : text_(text) {}

  bool value(PythonValue& out, int depth) {
    blanks();
    if (at_ == text_.size() || ++values_ > kMostValues) return false;
    const char c = text_[at_];
    if (c == '[' || c == '(') return list(out, c == '[' ? ']' : ')', depth);
    if (c == '\'' || c == '"') return quoted(out, c);
    const std::size_t end = text_.find_first_of(",])'\"[(", at_);
    out.text = text_.substr(at_, end == std::string_view::npos ? end : end - at_);
    at_ += out.text.size();
    while (!out.text.empty() && out.text.back() == ' ') out.text.remove_suffix(1);
    return !out.text.empty();
  }
  bool at_end() {
    blanks();
    return at_ == text_.size();
  }

 private:
  void blanks() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }

  bool list(PythonValue& out, char close, int depth) {
    if (depth == 0) return false;
    const std::size_t begin = at_++;
    out.is_list = true;
    for (blanks(); at_ < text_.size() && text_[at_] != close; blanks()) {
      PythonValue item;
      if (!value(item, depth - 1)) return false;
      out.items.push_back(std::move(item));
      blanks();
      if (at_ < text_.size() && text_[at_] == ',') {
        ++at_;
      } else if (at_ == text_.size() || text_[at_] != close) {
        return false;
      }
    }
    if (at_ == text_.size()) return false;
    out.text = text_.substr(begin, ++at_ - begin);
    return true;
  }

  bool quoted(PythonValue& out, char quote) {
    const std::size_t begin = ++at_;
    while (at_ < text_.size() && text_[at_] != quote) at_ += text_[at_] == '\\' ? 2U : 1U;
    if (at_ >= text_.size()) return false;
    out.text = text_.substr(begin, at_++ - begin);
    return true;
  }

  std::string_view text_;
  std::size_t at_ = 0, values_ = 0;
};

}  // namespace

std::optional<PythonValue> python_value(std::string_view text) {
  PythonReader reader(text);
  PythonValue value;
  if (!reader.value(value, kDeepestList) || !reader.at_end()) return std::nullopt;
  return value;
}

std::int64_t natural_number(std::string_view text) {
  return std::max<std::int64_t>(-1, number_in<std::int64_t>(text).value_or(-1));
}

}  // namespace orrery
