// SPDX-License-Identifier: Apache-2.0
// Chakra execution traces (https://github.com/mlcommons/chakra, schema/protobuf/et_def.proto): a
// message GlobalMetadata and then a message Node for each node, each behind its length.
#include <fmt/core.h>

#include <array>
#include <memory>

#include "sim/config/byte_source.h"
#include "workloads/formats/base/wire_cursor.h"
#include "workloads/formats/chakra/graphs.h"
#include "workloads/formats/chakra/nodes.h"
#include "workloads/formats/chakra/writer.h"
#include "workloads/formats/graph_format.h"

namespace orrery {
namespace {

constexpr std::size_t kLongestMessage = ByteSource::kWindow - 16;

std::int64_t zigzag(std::uint64_t value) {
  return static_cast<std::int64_t>(value >> 1U) ^ -static_cast<std::int64_t>(value & 1U);
}

/// A list {repeated values = 1} of flags, packed or not.
std::vector<bool> flags_of(WireCursor list) {
  std::vector<bool> flags;
  while (list.next()) {
    if (list.field() == 1 && list.wire() == WireCursor::kBytes) {
      for (const char flag : list.bytes()) flags.push_back(flag != 0);
    } else if (list.field() == 1 && list.wire() == WireCursor::kVarint) {
      flags.push_back(list.varint() != 0);
    } else {
      list.skip();
    }
  }
  return flags;
}

/// Takes the field of the `oneof` that has the value; the numbers are those of et_def.proto.
void read_value(WireCursor& attribute, ChakraValue& value) {
  const std::uint64_t field = attribute.field();
  if (attribute.wire() == WireCursor::kVarint) {
    const std::uint64_t raw = attribute.varint();
    const bool is_zigzag = field == 15 || field == 17;
    value.set(is_zigzag ? zigzag(raw) : static_cast<std::int64_t>(raw));
    if (field == 13) value.number = static_cast<double>(raw);  // uint64 above 2^63
  } else if (attribute.wire() == WireCursor::kFixed64) {
    const std::uint64_t raw = attribute.fixed64();
    if (field == 3) {
      value.set_real(std::bit_cast<double>(raw));
    } else {
      value.set(static_cast<std::int64_t>(raw));
    }
  } else if (attribute.wire() == WireCursor::kFixed32) {
    const std::uint32_t raw = attribute.fixed32();
    if (field == 5) {
      value.set_real(std::bit_cast<float>(raw));
    } else {
      value.set(field == 23 ? static_cast<std::int32_t>(raw) : static_cast<std::int64_t>(raw));
    }
  } else if (field == 28) {
    value.flags = flags_of(attribute.message());
  } else if (field == 30) {
    WireCursor list = attribute.message();  // {repeated string values = 1}
    while (list.next(1, WireCursor::kBytes)) value.texts.push_back(list.bytes());
  } else if (field == 29 || field == 31) {
    value.text = attribute.bytes();
  } else {
    attribute.skip();
  }
}

void read_attribute(WireCursor attribute, ChakraNode& node) {
  std::string_view name;
  ChakraValue value;
  while (attribute.next()) {
    const std::uint64_t field = attribute.field();
    if (field == 1 && attribute.wire() == WireCursor::kBytes) {
      name = attribute.bytes();
    } else if (field >= 3 && field <= 32) {
      read_value(attribute, value);
    } else {
      attribute.skip();
    }
  }
  node.set(name, value);
}

/// Identifiers of dependencies, packed or one by one.
void read_dependencies(WireCursor& message, const std::string& file, std::uint64_t offset,
                       std::vector<std::uint64_t>& after) {
  if (message.wire() == WireCursor::kVarint) {
    after.push_back(message.varint());
    return;
  }
  if (message.wire() != WireCursor::kBytes) return message.skip();
  WireCursor packed(message.bytes(), file, offset);
  while (!packed.at_end()) after.push_back(packed.varint());
}

/// IOInfo {string values = 1, shapes = 2, types = 3}.
TensorTexts read_tensors(WireCursor io) {
  TensorTexts texts;
  std::string_view* const fields[] = {&texts.values, &texts.shapes, &texts.types};
  while (io.next()) {
    const std::uint64_t field = io.field();
    if (field >= 1 && field <= std::size(fields) && io.wire() == WireCursor::kBytes) {
      *fields[field - 1] = io.bytes();
    } else {
      io.skip();
    }
  }
  return texts;
}

void read_node(WireCursor message, const std::string& file, std::uint64_t offset,
               ChakraNode& node) {
  node.clear();
  while (message.next()) {
    const bool number = message.wire() == WireCursor::kVarint;
    const bool bytes = message.wire() == WireCursor::kBytes;
    const std::uint64_t field = message.field();
    if (field == 1 && number) {
      node.id = message.varint();
    } else if (field == 2 && bytes) {
      node.name = message.bytes();
    } else if (field == 3 && number) {
      node.type = static_cast<std::int64_t>(message.varint());
    } else if (field == 4 || field == 5) {
      read_dependencies(message, file, offset, node.after);
    } else if (field == 7 && number) {
      node.duration_us = message.varint();
    } else if (field == 8 && bytes) {
      node.in = read_tensors(message.message());
    } else if (field == 9 && bytes) {
      node.out = read_tensors(message.message());
    } else if (field == 10 && bytes) {
      read_attribute(message.message(), node);
    } else {
      message.skip();
    }
  }
}

/// The length of the message that comes next, taken; nothing at the end of the file.
std::optional<std::size_t> next_length(ByteSource& source) {
  constexpr std::size_t kLongestVarint = 10;
  const std::string_view head = source.peek(kLongestVarint);
  if (head.empty()) return std::nullopt;
  std::size_t digits = 0;
  while (digits < head.size() && (static_cast<unsigned char>(head[digits]) & 0x80U) != 0) ++digits;
  WireCursor cursor(head.substr(0, std::min(digits + 1, head.size())), source.path(),
                    source.offset());
  const std::uint64_t length = cursor.varint();
  if (length > kLongestMessage)
    cursor.refuse(fmt::format("a message of {} bytes; this is no Chakra trace", length));
  source.take(digits + 1);
  return static_cast<std::size_t>(length);
}

std::string_view next_message(ByteSource& source, std::size_t length) {
  const std::string_view message = source.peek(length);
  if (message.size() < length)
    throw config::ConfigError(
        fmt::format("{}: at byte {}: the file ends within a message of {} bytes", source.path(),
                    source.offset(), length));
  return message;
}

/// Whether a message may be GlobalMetadata {string version = 1; repeated AttributeProto attr = 2}.
bool is_metadata(std::string_view message) {
  const std::string nowhere;
  try {
    WireCursor cursor(message, nowhere, 0);
    while (cursor.next()) {
      if (cursor.field() > 2 || cursor.wire() != WireCursor::kBytes) return false;
      cursor.skip();
    }
  } catch (const config::ConfigError&) {
    return false;
  }
  return true;
}

/// The rank that an attribute orrery.rank of GlobalMetadata tells; -1: none does.
int rank_of_metadata(std::string_view message) {
  constexpr std::int64_t kHighestRank = 10'000'000;
  const std::string nowhere;
  ChakraNode node;
  WireCursor metadata(message, nowhere, 0);
  while (metadata.next(2, WireCursor::kBytes)) read_attribute(metadata.message(), node);
  return node.rank >= 0 && node.rank <= kHighestRank ? static_cast<int>(node.rank) : -1;
}

class ChakraFormat final : public GraphFormat {
 public:
  /// There is no magic: a whole first message of metadata, and the first node, or the file's end.
  bool recognises(std::string_view head, std::string_view path) const override {
    ByteSource source(std::string(path), head);
    try {
      const auto length = next_length(source);
      if (!length || *length > head.size() - source.offset()) return false;
      if (!is_metadata(source.peek(*length))) return false;
      source.take(*length);
      if (source.at_end()) return *length > 0;
      const auto first = next_length(source);
      ChakraNode node;
      const std::string_view message = source.peek(first.value_or(0));
      if (message.size() < first.value_or(0)) return true;  // longer than the head
      read_node({message, source.path(), 0}, source.path(), 0, node);
      return true;
    } catch (const config::ConfigError&) {
      return false;
    }
  }

  int rank(std::string_view head) const override {
    ByteSource source("", head);
    const auto length = next_length(source);
    if (!length || *length > head.size() - source.offset()) return -1;
    return rank_of_metadata(source.peek(*length));
  }
  /// Only ranks of parts stand in files.
  bool is_part(std::string_view head) const override { return rank(head) >= 0; }

  bool writes_runs() const override { return true; }
  std::uint64_t write_run(const ImportedRun& run, const Files& files) const override {
    const ChakraGraphWriter writer(run);
    std::uint64_t nodes = 0;
    for (int rank = 0; rank < run.ranks(); ++rank) {
      if (run.graph_of_rank[static_cast<std::size_t>(rank)] == ImportedRun::kAbsent) continue;
      files(fmt::format(".{}.et", rank),
            [&](std::ostream& out) { nodes += writer.write(rank, out); });
    }
    if (!run.groups.empty())
      files(".groups.json", [&](std::ostream& out) { writer.write_groups(out); });
    return nodes;
  }

  bool writes_ranks() const override { return true; }
  std::uint64_t write_ranks(const PricedSteps& steps, const Files& files) const override {
    const ChakraWriter writer(steps);
    std::uint64_t nodes = 0;
    for (int rank = 0; rank < steps.program.ranks; ++rank)
      files(fmt::format(".{}.et", rank),
            [&](std::ostream& out) { nodes += writer.write(rank, out); });
    files(".groups.json", [&](std::ostream& out) { writer.write_groups(out); });
    return nodes;
  }

  void read(ByteSource& source, const GraphReadOptions& options, Communicators& communicators,
            GraphBuilder& graph, std::vector<std::string>& notes) const override {
    if (const auto length = next_length(source)) {
      next_message(source, *length);  // GlobalMetadata
      source.take(*length);
    }
    ChakraNodes nodes(source.path(), options, communicators, graph);
    ChakraNode node;
    while (const auto length = next_length(source)) {
      const std::string_view message = next_message(source, *length);
      read_node({message, source.path(), source.offset()}, source.path(), source.offset(), node);
      nodes.add(node, source.offset());
      source.take(*length);
    }
    nodes.finish(notes);
  }
};

const GraphFormatRegistry::Register chakra(
    "chakra", "Chakra execution traces (MLCommons), a file for each rank",
    std::make_shared<ChakraFormat>());

}  // namespace
}  // namespace orrery
