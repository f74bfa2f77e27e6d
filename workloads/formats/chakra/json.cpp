// SPDX-License-Identifier: Apache-2.0
// The JSON form of Chakra traces: {"workload_graph": [{"Id": 1, "Name": "a", "NodeType": 4, ...}]},
// as Chakra's feeder reads it, or the one that protobuf makes of nodes, with a list "attr".
#include <algorithm>
#include <array>
#include <charconv>
#include <list>
#include <memory>

#include "sim/config/byte_source.h"
#include "sim/config/diagnostics.h"
#include "workloads/formats/chakra/nodes.h"
#include "workloads/formats/graph_format.h"
#include "workloads/formats/rapid_reader.h"

namespace orrery {
namespace {

/// Characters of a source as RapidJSON takes them.
class ChakraJsonBytes {
 public:
  using Ch = char;
  explicit ChakraJsonBytes(ByteSource& source) : source_(source) { refill(); }

  // RapidJSON's names. NOLINTBEGIN(readability-identifier-naming)
  char Peek() const { return at_ == chunk_.size() ? '\0' : chunk_[at_]; }
  char Take() {
    const char taken = Peek();
    if (at_ < chunk_.size() && ++at_ == chunk_.size()) refill();
    return taken;
  }
  std::size_t Tell() const { return static_cast<std::size_t>(before_) + at_; }
  // Only of streams that are written to.
  char* PutBegin() { return nullptr; }
  void Put(char) {}
  void Flush() {}
  std::size_t PutEnd(char*) { return 0; }
  // NOLINTEND(readability-identifier-naming)

 private:
  void refill() {
    before_ += chunk_.size();
    chunk_ = source_.next();
    at_ = 0;
  }

  ByteSource& source_;
  std::string_view chunk_;
  std::size_t at_ = 0;
  std::uint64_t before_ = 0;
};

struct TypeWord {
  std::string_view word;
  ChakraType type;
};
constexpr TypeWord kTypeWords[] = {
    {"METADATA_NODE", ChakraType::kMetadata},     {"MEM_LOAD_NODE", ChakraType::kMemoryLoad},
    {"MEM_STORE_NODE", ChakraType::kMemoryStore}, {"COMP_NODE", ChakraType::kCompute},
    {"COMM_SEND_NODE", ChakraType::kSend},        {"COMM_RECV_NODE", ChakraType::kReceive},
    {"COMM_COLL_NODE", ChakraType::kCollective}};

std::int64_t type_of_word(std::string_view word) {
  for (const TypeWord& known : kTypeWords)
    if (known.word == word) return static_cast<std::int64_t>(known.type);
  return 0;
}

/// Takes the events of a JSON reader and hands over nodes.
class ChakraJsonHandler
    : public rapidjson::BaseReaderHandler<rapidjson::UTF8<>, ChakraJsonHandler> {
 public:
  ChakraJsonHandler(ChakraNodes& nodes, const ChakraJsonBytes& bytes)
      : nodes_(nodes), bytes_(bytes) {}

  bool saw_nodes() const { return saw_nodes_; }

  bool StartObject() {
    ++depth_;
    if (depth_ == node_depth()) {
      node_.clear();
      name_.clear();
      group_.clear();
      for (std::string& text : tensors_) text.clear();
      kept_.clear();
      began_ = bytes_.Tell();
    }
    if (depth_ == node_depth() + 1 && list_depth_ == 1) object_key_ = key_;
    if (in_attributes() && depth_ == node_depth() + 1) {
      attribute_.clear();
      value_ = ChakraValue();
    }
    return true;
  }
  bool EndObject(rapidjson::SizeType) {
    if (in_attributes() && depth_ == node_depth() + 1) set(attribute_);
    if (depth_ == node_depth()) {
      node_.name = name_;
      node_.group = group_;
      node_.in = {tensors_[0], tensors_[1], tensors_[2]};
      node_.out = {tensors_[3], tensors_[4], tensors_[5]};
      nodes_.add(node_, began_);
    }
    --depth_;
    return true;
  }
  bool StartArray() {
    if (depth_ == 1 && list_depth_ == 0 && (key_ == "workload_graph" || key_ == "nodes")) {
      list_depth_ = 1;
      saw_nodes_ = true;
    } else if (list_depth_ > 0) {
      if (depth_ == node_depth()) list_key_ = key_;
      ++list_depth_;
    }
    return true;
  }
  bool EndArray(rapidjson::SizeType) {
    if (list_depth_ > 0) --list_depth_;
    if (list_depth_ == 1) {
      if (list_key_ == "involved_dim") node_.dimensions = flags_;
      flags_.clear();
      list_key_.clear();
    }
    return true;
  }
  bool Key(const char* text, rapidjson::SizeType length, bool) {
    key_.assign(text, length);
    return true;
  }
  bool Null() { return true; }
  bool Bool(bool value) { return integer(value ? 1 : 0); }
  bool Int(int value) { return integer(value); }
  bool Uint(unsigned value) { return integer(value); }
  bool Int64(std::int64_t value) { return integer(value); }
  bool Uint64(std::uint64_t value) { return integer(static_cast<std::int64_t>(value)); }
  bool Double(double value) {
    value_.set_real(value);
    return scalar();
  }
  bool String(const char* text, rapidjson::SizeType length, bool) {
    text_.assign(text, length);
    value_.text = text_;
    // Protobuf prints numbers of 64 bits as texts.
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(text_.data(), text_.data() + length, number);
    if (error == std::errc() && end == text_.data() + length) value_.set(number);
    return scalar();
  }

 private:
  /// Nodes are objects in the list of the outermost object.
  int node_depth() const { return list_depth_ > 0 ? 2 : -1; }
  bool in_attributes() const { return list_depth_ > 1 && list_key_ == "attr"; }

  bool integer(std::int64_t value) {
    value_.set(value);
    return scalar();
  }

  bool scalar() {
    if (list_depth_ == 0) return true;
    if (in_attributes()) {
      if (key_ == "name" && depth_ == node_depth() + 1) attribute_ = text_;
      return true;
    }
    if (depth_ == node_depth() && list_depth_ > 1) {
      if (list_key_ == "data_deps" || list_key_ == "ctrl_deps" || list_key_ == "dataDeps" ||
          list_key_ == "ctrlDeps")
        node_.after.push_back(static_cast<std::uint64_t>(value_.integer));
      if (list_key_ == "involved_dim") flags_.push_back(value_.integer != 0);
      return true;
    }
    if (depth_ == node_depth() + 1) {
      keep_tensors();
      return true;
    }
    if (depth_ == node_depth()) set(key_);
    return true;
  }

  /// Keeps texts of {"inputs": {"values": "...", "shapes": "...", "types": "..."}, "outputs":
  /// {...}}.
  void keep_tensors() {
    constexpr std::string_view kTexts[] = {"values", "shapes", "types"};
    const auto* const text = std::find(std::begin(kTexts), std::end(kTexts), key_);
    const bool in = object_key_ == "inputs", out = object_key_ == "outputs";
    if (text == std::end(kTexts) || (!in && !out)) return;
    tensors_[static_cast<std::size_t>(text - std::begin(kTexts)) + (out ? std::size(kTexts) : 0)] =
        text_;
  }

  void set(const std::string& key) {
    if (key == "Id" || key == "id") {
      node_.id = static_cast<std::uint64_t>(value_.integer);
    } else if (key == "Name" || key == "name") {
      name_ = text_;
    } else if (key == "NodeType" || key == "type") {
      node_.type = value_.text.empty() || value_.integer > 0 ? value_.integer : type_of_word(text_);
    } else if (key == "runtime" || key == "duration_micros" || key == "durationMicros") {
      node_.duration_us = static_cast<std::uint64_t>(std::max<std::int64_t>(0, value_.integer));
    } else if (key == "pg_name") {
      group_ = value_.text.empty() ? std::to_string(value_.integer) : text_;
    } else {
      if (!value_.text.empty()) value_.text = kept_.emplace_back(text_);
      node_.set(key, value_);
    }
    value_ = ChakraValue();
  }

  ChakraNodes& nodes_;
  const ChakraJsonBytes& bytes_;
  ChakraNode node_;
  std::uint64_t began_ = 0;
  std::string name_, group_, text_, key_, list_key_, object_key_, attribute_;
  std::array<std::string, 6> tensors_;  ///< texts of the inputs, then of the outputs
  std::list<std::string> kept_;         ///< texts that the node looks at
  ChakraValue value_;
  std::vector<bool> flags_;
  int depth_ = 0;
  int list_depth_ = 0;  ///< lists around the present place, that of the nodes included
  bool saw_nodes_ = false;
};

class ChakraJsonFormat final : public GraphFormat {
 public:
  bool recognises(std::string_view head, std::string_view) const override {
    const std::size_t first = head.find_first_not_of(" \t\r\n");
    return first != std::string_view::npos && head[first] == '{' &&
           head.find("\"workload_graph\"") != std::string_view::npos;
  }

  void read(ByteSource& source, const GraphReadOptions& options, Communicators& communicators,
            GraphBuilder& graph, std::vector<std::string>& notes) const override {
    ChakraNodes nodes(source.path(), options, communicators, graph);
    ChakraJsonBytes bytes(source);
    ChakraJsonHandler handler(nodes, bytes);
    rapidjson::Reader reader;
    constexpr unsigned kFlags =
        rapidjson::kParseIterativeFlag | rapidjson::kParseNanAndInfFlag;  // no recursion
    const rapidjson::ParseResult result = reader.Parse<kFlags>(bytes, handler);
    if (result.IsError()) {
      throw config::ConfigError(source.path() + ": at byte " + std::to_string(result.Offset()) +
                                ": " + rapidjson::GetParseError_En(result.Code()));
    }
    nodes.finish(notes);
  }
};

const GraphFormatRegistry::Register chakra_json("chakra-json", "Chakra traces in JSON",
                                                std::make_shared<ChakraJsonFormat>());

}  // namespace
}  // namespace orrery
