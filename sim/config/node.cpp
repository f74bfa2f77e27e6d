// SPDX-License-Identifier: Apache-2.0
#include "sim/config/node.h"

#include <charconv>
#include <utility>

#include "sim/config/proportional.h"

namespace orrery::config {
namespace {

/// The item of a sequence or the value of a map that one part of a dotted path names.
const Node* child(const Node& node, std::string_view part) {
  if (!node.is_sequence()) return node.find(part);
  std::size_t index = 0;
  const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), index);
  const bool is_index = error == std::errc{} && end == part.data() + part.size();
  return is_index && index < node.items().size() ? &node.items()[index] : nullptr;
}

}  // namespace

std::string Origin::text() const {
  switch (kind) {
    case Kind::kFile:
      return location().text();
    case Kind::kOverride:
      return "--set";
    case Kind::kDefault:
      break;
  }
  return "default";
}

// Entries are complete here, not in the class.
Node::Node(Kind kind, Origin origin) : kind_(kind), origin_(std::move(origin)) {}
Node Node::null(Origin origin) { return {Kind::kNull, std::move(origin)}; }
Node Node::sequence(Origin origin) { return {Kind::kSequence, std::move(origin)}; }
Node Node::map(Origin origin) { return {Kind::kMap, std::move(origin)}; }

Node Node::scalar(std::string text, Origin origin, bool quoted) {
  Node node(Kind::kScalar, std::move(origin));
  node.text_ = std::move(text);
  node.quoted_ = quoted;
  return node;
}

int Node::length() const {
  constexpr int kQuotes = 2;
  return kind_ == Kind::kScalar ? static_cast<int>(text_.size()) + (quoted_ ? kQuotes : 0) : 1;
}

void Node::append(Node item) { items_.push_back(std::move(item)); }

const Node* Node::find(std::string_view key) const {
  const auto found = index_.find(key);
  return found == index_.end() ? nullptr : &entries_[found->second].value;
}

Node* Node::find(std::string_view key) {
  const auto found = index_.find(key);
  return found == index_.end() ? nullptr : &entries_[found->second].value;
}

const Node* Node::at_path(std::string_view path) const {
  const Node* node = this;
  while (node != nullptr && !path.empty()) {
    const std::size_t dot = path.find('.');
    node = child(*node, path.substr(0, dot));
    path = dot == std::string_view::npos ? std::string_view{} : path.substr(dot + 1);
  }
  return node;
}

const Origin& Node::key_origin(std::string_view key) const {
  const auto found = index_.find(key);
  return found == index_.end() ? origin_ : entries_[found->second].key_origin;
}

void Node::set(const std::string& key, Node value, Origin key_origin) {
  const auto [found, added] = index_.try_emplace(key, entries_.size());
  if (added) {
    entries_.push_back({key, std::move(key_origin), std::move(value)});
  } else {
    entries_[found->second] = {key, std::move(key_origin), std::move(value)};
  }
}

void Node::set_layer(std::string_view key, int layer) {
  const auto found = index_.find(key);
  if (found != index_.end()) entries_[found->second].layer = layer;
}

void Node::erase(std::string_view key) {
  const auto found = index_.find(key);
  if (found == index_.end()) return;
  const std::size_t position = found->second;
  index_.erase(found);
  entries_.erase(entries_.begin() + static_cast<std::ptrdiff_t>(position));
  for (auto& [name, index] : index_) {
    if (index > position) --index;
  }
}

void Node::relocate(const Origin& origin) {
  origin_ = origin;
  for (Node& item : items_) item.relocate(origin);
  for (Entry& entry : entries_) {
    entry.key_origin = origin;
    entry.value.relocate(origin);
  }
}

void Node::set_before(std::shared_ptr<const Node> before) {
  before_ = std::move(before);
  in_what_if_ = false;
}

void Node::begin_what_if() {
  if (in_what_if_) return;
  before_ = std::make_shared<const Node>(*this);
  in_what_if_ = true;
}

Node merge(const Node& base, const Node& over) {
  if (!base.is_map() || !over.is_map() || over.find("value") != nullptr) return over;
  Node result = base;
  const int layer = result.add_layer();
  for (const Node::Entry& entry : over.entries()) {
    const Node* below = base.find(entry.key);
    result.set(entry.key, below != nullptr ? merge(*below, entry.value) : entry.value,
               entry.key_origin);
    result.set_layer(entry.key, layer);
  }
  for (const Node::Entry& entry : over.entries()) {
    const Node* before = has_proportional(entry.key) ? base.find(entry.key) : nullptr;
    if (before != nullptr) scale_proportional(result, entry.key, *before);
  }
  return result;
}

}  // namespace orrery::config
