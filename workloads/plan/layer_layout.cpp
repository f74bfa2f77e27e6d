// SPDX-License-Identifier: Apache-2.0
#include "workloads/plan/layer_layout.h"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <stdexcept>
#include <utility>

#include "sim/config/schema.h"

namespace orrery {
namespace {

constexpr std::size_t kMostLetters = 1 << 16;

[[noreturn]] void refuse(const std::string& what) { throw std::invalid_argument(what); }

/// Letters and bars of a layout, repetitions written out.
class Unroller {
 public:
  explicit Unroller(const std::string& text) {
    for (const char c : text)
      if (c != ',' && c != ' ') text_ += c;
  }

  std::string all() {
    std::string letters = sequence();
    if (at_ < text_.size()) refuse("a ')' without its '('");
    return letters;
  }

 private:
  char next() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  std::string sequence() {
    std::string letters;
    while (next() != '\0' && next() != ')') {
      const std::string one = item();
      const std::size_t times = repetitions();
      if (letters.size() + one.size() * times > kMostLetters) refuse("too many layers");
      for (std::size_t i = 0; i < times; ++i) letters += one;
    }
    return letters;
  }

  std::string item() {
    const char c = text_[at_++];
    if (c == '(') {
      std::string inside = sequence();
      if (next() != ')') refuse("a '(' without its ')'");
      ++at_;
      return inside;
    }
    if (std::string("EtmL|").find(c) == std::string::npos)
      refuse(std::string("'") + c +
             "' is none of E (embedding), t (layer), m (module of multi-token prediction), L (head "
             "and loss), | (end of a slice), *n, ( and )");
    return {c};
  }

  /// The number behind '*'; 1 where there is none.
  std::size_t repetitions() {
    if (next() != '*') return 1;
    ++at_;
    std::size_t times = 0;
    bool any = false;
    for (; std::isdigit(static_cast<unsigned char>(next())) != 0; ++at_, any = true)
      times = std::min(kMostLetters + 1, times * 10 + static_cast<std::size_t>(next() - '0'));
    if (!any) refuse("no number behind '*'");
    return times;
  }

  std::string text_;
  std::size_t at_ = 0;
};

/// Embedding first, then layers, then modules in one slice, head last.
void require_order(const std::string& letters) {
  std::string parts = letters;
  std::erase(parts, '|');
  if (parts.empty() || parts.front() != 'E' || std::count(parts.begin(), parts.end(), 'E') != 1)
    refuse("it begins with E (embedding), which is there once");
  if (parts.back() != 'L' || std::count(parts.begin(), parts.end(), 'L') != 1)
    refuse("it ends with L (head and loss), which is there once");
  const std::size_t module = letters.find('m'), last = letters.rfind('m');
  if (module == std::string::npos) return;
  if (letters.find('t', module) != std::string::npos)
    refuse("layers (t) stand before modules of multi-token prediction (m)");
  if (letters.substr(module, last - module).find('|') != std::string::npos)
    refuse("modules of multi-token prediction (m) are in one slice");
}

std::string fault_of(const LayerLayout& layout) {
  if (layout.slices.empty()) return {};
  if (layout.first > 0 || layout.last > 0 || layout.embedding || layout.head)
    return "slices say everything: first, last, embedding and head do not go with them";
  try {
    written_slices(layout.slices);
  } catch (const std::invalid_argument& error) {
    return "no layout of slices such as \"Et*3|(tt|)*29,m|L\": " + std::string(error.what());
  }
  return {};
}

}  // namespace

std::vector<SliceContents> written_slices(const std::string& text) {
  const std::string letters = Unroller(text).all();
  require_order(letters);
  std::vector<SliceContents> slices(1);
  for (const char letter : letters) {
    if (letter == '|') slices.emplace_back();
    if (letter == 't') ++slices.back().layers;
    if (letter == 'm') ++slices.back().modules;
  }
  return slices;
}

const config::Schema<LayerLayout>& LayerLayout::schema() {
  using L = LayerLayout;
  static const config::Schema<L> schema = [] {
    config::Schema<L> s("layout", "how layers are dealt out to the slices of a pipeline");
    s.shorthand("slices")
        .optional("slices", &L::slices,
                  "what each of the pp * vpp slices holds, first to last: E embedding, t layer, m "
                  "module of multi-token prediction, L head and loss, | end of a slice, *n "
                  "repetition: \"Et*3|(tt|)*29,m|L\"")
        .optional("first", &L::first,
                  "layers of the first pipeline stage, all its chunks; 0: as many as the others",
                  config::between(0, 1 << 16))
        .optional("last", &L::last,
                  "layers of the last pipeline stage, all its chunks; 0: as many as the others",
                  config::between(0, 1 << 16))
        .optional("embedding", &L::embedding, "embedding that counts as a layer of the first slice")
        .optional("head", &L::head, "head and loss that count as a layer of the last slice")
        .check(fault_of, "slices")
        .check(
            "a number of layers for an end does not go with ends that count as layers",
            [](const L& l) { return (l.first == 0 && l.last == 0) || (!l.embedding && !l.head); },
            {"first", "last", "embedding", "head"});
    return s;
  }();
  return schema;
}

}  // namespace orrery
