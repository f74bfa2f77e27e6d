// SPDX-License-Identifier: Apache-2.0
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <map>
#include <memory>
#include <sstream>
#include <utility>
#include <vector>

#include "sim/config/load.h"
#include "sim/config/text_check.h"
#include "sim/units/printable.h"

namespace orrery::config {
namespace {

constexpr std::size_t kDeepest = 64;
// What yaml-cpp calls scalars without a tag, outside and inside of quotes.
constexpr std::string_view kPlainTag = "?";
constexpr std::string_view kQuotedTag = "!";
constexpr int kMostNodes = 1'000'000;

/// Parsing cannot go on.
struct NoYaml {
  YAML::Mark mark;
  std::string message;
};

/// Builds our tree from the events of yaml-cpp. Its own tree would let duplicate keys pass, look
/// keys up linearly and unfold aliases without end.
class TreeBuilder final : public YAML::EventHandler {
 public:
  TreeBuilder(std::shared_ptr<const std::string> file, Diagnostics& diagnostics)
      : file_(std::move(file)), diagnostics_(diagnostics) {}

  Node take_root() { return std::move(root_); }

  /// Only the last scalar in quotes can lack its end.
  void check_last_quote(std::string_view text) const {
    if (!last_quoted_.is_null() &&
        !quote_is_closed(text, static_cast<std::size_t>(last_quoted_.pos))) {
      throw NoYaml{last_quoted_, "not valid YAML: a quote that is not closed"};
    }
  }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ > 1) throw NoYaml{mark, "a second document; a file holds one"};
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    deliver(Node::null(origin(mark)), mark, anchor, nodes_);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    refuse_tag(tag, mark);
    if (tag == kQuotedTag) last_quoted_ = mark;
    // "\e[2J" in quotes is a control character, which no name, result or trace may bring to a
    // terminal; text blocks keep their lines.
    const std::string text = orrery::printable(value, "\n\r\t");
    deliver(Node::scalar(text, origin(mark), tag == kQuotedTag), mark, anchor, nodes_);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) throw NoYaml{mark, "an alias inside of what it stands for"};
    count(mark, found->second.nodes);
    deliver(found->second.node, mark, 0, nodes_);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value /*style*/) override {
    open(Node::sequence(origin(mark)), mark, tag, anchor);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value /*style*/) override {
    open(Node::map(origin(mark)), mark, tag, anchor);
  }
  void OnMapEnd() override { close(); }

 private:
  /// A sequence or map whose end has not come.
  struct Frame {
    Node node;
    YAML::Mark mark;
    YAML::anchor_t anchor;
    int first_node;
    bool has_key = false;
    Node key;
  };
  struct Anchored {
    Node node;
    int nodes;
  };

  Origin origin(const YAML::Mark& mark) const {
    return {Origin::Kind::kFile, file_, mark.line + 1, mark.column + 1};
  }

  void refuse_tag(const std::string& tag, const YAML::Mark& mark) {
    if (tag.empty() || tag == kPlainTag || tag == kQuotedTag) return;
    diagnostics_.error(origin(mark).location(), 1, "tags ('!name') are not supported");
  }

  void count(const YAML::Mark& mark, int nodes) {
    nodes_ += nodes;
    if (nodes_ > kMostNodes) {
      throw NoYaml{mark, "more than " + std::to_string(kMostNodes) + " values, aliases unfolded"};
    }
  }

  void open(Node node, const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) {
    if (stack_.size() == kDeepest) {
      throw NoYaml{mark, "nested deeper than " + std::to_string(kDeepest) + " levels"};
    }
    refuse_tag(tag, mark);
    stack_.push_back({std::move(node), mark, anchor, nodes_, false, {}});
  }

  void close() {
    Frame frame = std::move(stack_.back());
    stack_.pop_back();
    deliver(std::move(frame.node), frame.mark, frame.anchor, frame.first_node);
  }

  void deliver(Node node, const YAML::Mark& mark, YAML::anchor_t anchor, int first_node) {
    count(mark, 1);
    if (anchor != 0) anchors_[anchor] = {node, nodes_ - first_node};
    if (stack_.empty()) {
      root_ = std::move(node);
      return;
    }
    Frame& parent = stack_.back();
    if (parent.node.is_sequence()) {
      parent.node.append(std::move(node));
    } else if (!parent.has_key) {
      take_key(parent, std::move(node), mark);
    } else {
      add_entry(parent, std::move(node));
    }
  }

  void take_key(Frame& parent, Node key, const YAML::Mark& mark) {
    if (!key.is_scalar()) throw NoYaml{mark, "a key must be text"};
    if (key.text() == "<<" && !key.quoted()) {
      diagnostics_.error(key.where(), key.length(),
                         "merge keys ('<<') are not supported; use 'extends'");
    }
    parent.key = std::move(key);
    parent.has_key = true;
  }

  void add_entry(Frame& parent, Node value) {
    parent.has_key = false;
    // yaml-cpp places a value that is left out at the next token.
    if (value.is_null() && value.origin().line != parent.key.origin().line) {
      value.take_origin(parent.key.origin());
    }
    const std::string& key = parent.key.text();
    if (parent.node.find(key) != nullptr) {
      diagnostics_.error(parent.key.where(), parent.key.length(), "duplicate key '" + key + "'", {},
                         {"first at " + parent.node.key_origin(key).text()});
    } else if (key != "<<" || parent.key.quoted()) {
      parent.node.set(key, std::move(value), parent.key.origin());
    }
  }

  std::shared_ptr<const std::string> file_;
  Diagnostics& diagnostics_;
  std::vector<Frame> stack_;
  std::map<YAML::anchor_t, Anchored> anchors_;
  Node root_;
  YAML::Mark last_quoted_ = YAML::Mark::null_mark();
  int nodes_ = 0;
  int documents_ = 0;
};

bool ends_with(const std::string& text, std::string_view ending) {
  return text.size() >= ending.size() &&
         text.compare(text.size() - ending.size(), ending.size(), ending) == 0;
}

/// Checks the bytes and registers the text for quotation; false if it cannot be parsed.
bool check_text(const std::string& text, const std::string& name, Diagnostics& diagnostics) {
  const std::optional<TextFault> fault = find_text_fault(text, ends_with(name, ".json"));
  std::string shown = text;
  if (fault) {
    std::replace_if(
        shown.begin(), shown.end(), [](unsigned char c) { return c == 0 || c >= 0x80; }, '?');
  }
  diagnostics.add_source(name, std::move(shown));
  if (!fault) return true;
  diagnostics.error({name, fault->line, fault->column}, 1, fault->message);
  return false;
}

}  // namespace

Node parse_yaml(const std::string& text, const std::string& name, Diagnostics& diagnostics) {
  if (text.compare(0, kByteOrderMark.size(), kByteOrderMark) == 0) {
    return parse_yaml(text.substr(kByteOrderMark.size()), name, diagnostics);
  }
  if (!check_text(text, name, diagnostics)) return {};
  const auto fail = [&](const YAML::Mark& mark, const std::string& message) {
    diagnostics.error({name, mark.line + 1, mark.column + 1}, 1, message);
    return Node();
  };
  TreeBuilder builder(std::make_shared<const std::string>(name), diagnostics);
  std::istringstream stream(text);
  try {
    YAML::Parser parser(stream);
    if (!parser.HandleNextDocument(builder)) {
      diagnostics.error({name, 0, 0}, 1, "the file is empty");
      return {};
    }
    while (parser.HandleNextDocument(builder)) {
    }
    builder.check_last_quote(text);
  } catch (const NoYaml& stop) {
    return fail(stop.mark, stop.message);
  } catch (const YAML::ParserException& error) {
    return fail(error.mark, "not valid YAML: " + error.msg);
  }
  return builder.take_root();
}

}  // namespace orrery::config
