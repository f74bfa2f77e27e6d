// SPDX-License-Identifier: Apache-2.0
// The JSON form of Chakra traces: {"workload_graph": [{"Id": 1, "Name": "a", "NodeType": 4, ...}]},
// as Chakra's feeder reads it, or the one that protobuf makes of nodes, with a list "attr".
#include <algorithm>
#include <array>
#include <cmath>
#include <list>
#include <memory>

#include "sim/config/byte_source.h"
#include "sim/config/diagnostics.h"
#include "workloads/formats/base/rapid_reader.h"
#include "workloads/formats/chakra/nodes.h"
#include "workloads/formats/graph_format.h"

namespace orrery {
namespace {

/// Characters of a source as RapidJSON takes them.
class ChakraJsonBytes {
 public:
  using Ch = char;
  explicit ChakraJsonBytes(ByteSource& source) : source_(source), before_(source.offset()) {
    refill();
  }

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
  std::uint64_t before_;
  std::string_view chunk_;
  std::size_t at_ = 0;
};

constexpr std::string_view kTimes[] = {"runtime", "duration_micros", "durationMicros"};
constexpr std::string_view kAmounts[] = {"num_ops", "tensor_size", "comm_size"};
constexpr std::string_view kWholes[] = {"comm_type", "comm_src", "comm_dst", "comm_tag",
                                        "stream",    "rf_id",    "root_rank"};

template <std::size_t N>
bool is_one_of(const std::string_view (&keys)[N], std::string_view key) {
  return std::find(std::begin(keys), std::end(keys), key) != std::end(keys);
}

constexpr std::pair<std::string_view, ChakraType> kTypeWords[] = {
    {"METADATA_NODE", ChakraType::kMetadata},     {"MEM_LOAD_NODE", ChakraType::kMemoryLoad},
    {"MEM_STORE_NODE", ChakraType::kMemoryStore}, {"COMP_NODE", ChakraType::kCompute},
    {"COMM_SEND_NODE", ChakraType::kSend},        {"COMM_RECV_NODE", ChakraType::kReceive},
    {"COMM_COLL_NODE", ChakraType::kCollective}};

std::int64_t type_of_word(std::string_view word) {
  for (const auto& [known, type] : kTypeWords)
    if (known == word) return static_cast<std::int64_t>(type);
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
      fault_.clear();
      has_id_ = false;
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
      if (!has_id_) require(false, "has no Id");
      if (!fault_.empty()) nodes_.refuse(node_, began_, fault_);
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
  bool Uint64(std::uint64_t value) {
    value_.set(static_cast<std::int64_t>(value));
    form_ = Form::kWhole;
    return scalar();
  }
  bool Double(double value) {
    value_.set_real(value);
    form_ = value >= 0 && std::isfinite(value) ? Form::kReal : Form::kOther;
    return scalar();
  }
  bool String(const char* text, rapidjson::SizeType length, bool) {
    text_.assign(text, length);
    value_.text = text_;
    // Protobuf prints numbers of 64 bits as texts.
    if (const auto number = number_in<std::int64_t>(text_)) return integer(*number);
    form_ = Form::kOther;
    return scalar();
  }

 private:
  /// Nodes are objects in the list of the outermost object.
  int node_depth() const { return list_depth_ > 0 ? 2 : -1; }
  bool in_attributes() const { return list_depth_ > 1 && list_key_ == "attr"; }

  /// How the last scalar counts as a number.
  enum class Form { kWhole, kBelowZero, kReal, kOther };

  bool integer(std::int64_t value) {
    value_.set(value);
    form_ = value >= 0 ? Form::kWhole : Form::kBelowZero;
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
          list_key_ == "ctrlDeps") {
        require(form_ == Form::kWhole,
                "depends on what is no Id of a node: whole numbers from 0 on");
        node_.after.push_back(static_cast<std::uint64_t>(value_.integer));
      }
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

  /// Remembers what is wrong with a node; the first of it is told.
  void require(bool holds, const std::string& fault) {
    if (!holds && fault_.empty()) fault_ = fault;
  }

  void require_number(const std::string& key) {
    const bool amount = form_ == Form::kWhole || form_ == Form::kReal;
    if (is_one_of(kTimes, key)) require(amount, "has a " + key + " that is no time from 0 us on");
    if (is_one_of(kAmounts, key)) require(amount, "has a " + key + " that is no number from 0 on");
    if (is_one_of(kWholes, key))
      require(form_ == Form::kWhole || form_ == Form::kBelowZero,
              "has a " + key + " that is no whole number");
  }

  void set(const std::string& key) {
    require_number(key);
    if (key == "Id" || key == "id") {
      has_id_ = true;
      require(form_ == Form::kWhole, "has an Id that is no whole number from 0 on");
      if (form_ == Form::kWhole) node_.id = static_cast<std::uint64_t>(value_.integer);
    } else if (key == "Name" || key == "name") {
      name_ = text_;
    } else if (key == "NodeType" || key == "type") {
      node_.type = value_.text.empty() || value_.integer > 0 ? value_.integer : type_of_word(text_);
    } else if (is_one_of(kTimes, key)) {
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
  Form form_ = Form::kOther;
  bool has_id_ = false;
  std::string fault_;  ///< what is wrong with the node; empty: nothing
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
    if (result.IsError())
      refuse_at_byte(source.path(), result.Offset(), rapidjson::GetParseError_En(result.Code()));
    nodes.finish(notes);
  }
};

const GraphFormatRegistry::Register chakra_json("chakra-json", "Chakra traces in JSON",
                                                std::make_shared<ChakraJsonFormat>());

}  // namespace
}  // namespace orrery
