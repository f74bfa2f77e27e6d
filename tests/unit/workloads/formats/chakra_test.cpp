// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "sim/config/byte_source.h"
#include "sim/config/diagnostics.h"
#include "tests/unit/workloads/formats/chakra_file.h"
#include "workloads/formats/communicators.h"
#include "workloads/formats/graph_files.h"
#include "workloads/formats/graph_format.h"

namespace orrery::chakra_test {
namespace {

/// Begin of the names of files and folders of this process.
const std::string kTemp = testing::TempDir() + std::to_string(::getpid()) + "_";

using test::attribute;
using test::chakra_file;
using test::chakra_node;
using test::delimited;
using test::fixed;
using test::int64_attribute;
using test::micros;
using test::number;
using test::text;
using test::varint;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr unsigned kCompute = 4, kSend = 5, kReceive = 6, kCollective = 7;

struct Read {
  ImportedGraph graph;
  std::vector<std::string> notes;
  Communicators communicators;
};

Read read(const std::string& bytes, const GraphReadOptions& options = {}) {
  Read result;
  ByteSource source("t.et", bytes);
  GraphBuilder builder;
  GraphFormatRegistry::at("graph format", "chakra")
      ->read(source, options, result.communicators, builder, result.notes);
  result.graph = builder.finish("t.et", false, result.notes);
  return result;
}

std::string refusal(const std::string& bytes) {
  try {
    read(bytes);
  } catch (const config::ConfigError& error) {
    return error.what();
  }
  return {};
}

bool recognised(const std::string& bytes) {
  return GraphFormatRegistry::at("graph format", "chakra")->recognises(bytes, "t.et");
}

const ImportedMessage& message(const ImportedGraph& graph, NodeId node) {
  return graph.messages[graph.nodes[node].work];
}
const NodeWork& work(const ImportedGraph& graph, NodeId node) {
  return graph.works[graph.nodes[node].work];
}

TEST(Chakra, TensorsOfStgTellWhatANodeReadsAndWrites) {
  const auto tensors = [](const char* name, const std::vector<std::string>& list) {
    std::string values;
    for (const std::string& one : list) values += text(1, one);
    return attribute(name, text(30, values));
  };
  const std::string told = int64_attribute("num_ops", 1000) +
                           tensors("inputs", {"x", "60", "w", "40"}) +
                           tensors("outputs", {"y", "50"});
  const ImportedGraph graph =
      read(chakra_file(
               chakra_node(0, "GEMM", kCompute, {}, told + int64_attribute("tensor_size", 150)) +
               chakra_node(1, "GEMM", kCompute, {}, told + int64_attribute("tensor_size", 999))))
          .graph;
  const Kernel& apart = graph.kernels.at(work(graph, 0).kernel);
  EXPECT_EQ(apart.kind, KernelClass::kGemm);
  EXPECT_EQ(apart.read, Bytes(100));
  EXPECT_EQ(apart.written, Bytes(50));
  EXPECT_EQ(graph.kernels.at(work(graph, 1).kernel).read, Bytes(999)) << "not their sum";
}

TEST(Chakra, ComputeHasItsRecordedTimeAndItsStream) {
  const Read file = read(chakra_file(
      chakra_node(7, "aten::addmm", kCompute, {}, micros(3)) +
      chakra_node(8, "launch", kCompute, {7}, micros(5) + attribute("is_cpu_op", number(27, 1)))));
  ASSERT_EQ(file.graph.size(), 2U);
  EXPECT_EQ(file.graph.nodes[0].kind, NodeKind::kKernel);
  EXPECT_EQ(work(file.graph, 0).recorded, 3'000'000U);
  EXPECT_TRUE(work(file.graph, 0).timed);
  EXPECT_EQ(work(file.graph, 0).kind, KernelClass::kGemm);
  EXPECT_EQ(file.graph.nodes[1].kind, NodeKind::kHost);
  EXPECT_EQ(file.graph.nodes[1].waits, 1U);
  EXPECT_THAT(file.notes, IsEmpty());
}

TEST(Chakra, AttributesAreReadInEveryWidthThatWritersChoose) {
  for (const std::string& value :
       {number(7, 4096), number(9, 4096), number(11, 4096), number(13, 4096), number(15, 8192),
        number(17, 8192), fixed(19, 4, 4096), fixed(21, 8, 4096), fixed(23, 4, 4096),
        fixed(25, 8, 4096), fixed(3, 8, std::bit_cast<std::uint64_t>(4096.0)),
        fixed(5, 4, std::bit_cast<std::uint32_t>(4096.0F))}) {
    const Read file = read(chakra_file(
        chakra_node(0, "ar", kCollective, {},
                    attribute("comm_type", number(7, 0)) + attribute("comm_size", value))));
    EXPECT_EQ(message(file.graph, 0).bytes.base(), 4096);
    EXPECT_EQ(message(file.graph, 0).kind, TransferKind::kAllReduce);
  }
}

TEST(Chakra, UnknownFieldsAndTypesAreTolerated) {
  const std::string unknown =
      text(11, "storage") + number(400, 1) + fixed(12, 8, 0) + attribute("whatever", text(40, "x"));
  const Read file = read(chakra_file(chakra_node(1, "a", 9, {}, unknown) +
                                     chakra_node(2, "b", kCompute, {1}, unknown + micros(1))));
  EXPECT_EQ(file.graph.nodes[0].kind, NodeKind::kMarker);
  EXPECT_THAT(file.notes, ElementsAre(HasSubstr("1 node of the unknown type 9")));
}

TEST(Chakra, WhatAGatherPutsInIsCountedWhole) {
  const auto bytes = [](std::int64_t type) {
    const Read file = read(chakra_file(chakra_node(0, "c", kCollective, {},
                                                   int64_attribute("comm_type", type) +
                                                       int64_attribute("comm_size", 100))),
                           {0, 8, {}});
    return message(file.graph, 0).bytes.base();
  };
  EXPECT_EQ(bytes(0), 100);
  EXPECT_EQ(bytes(2), 800) << "all_gather";
  EXPECT_EQ(bytes(7), 100) << "reduce_scatter";
  EXPECT_EQ(bytes(9), 0) << "barrier";
}

TEST(Chakra, GroupsComeFromMetadataNodesOrAFile) {
  const std::string group = "[{'pg_name': '3', 'pg_desc': 'x', 'ranks': [4, 6], 'group_size': 2}]";
  const std::string reduce = int64_attribute("comm_type", 0) + int64_attribute("comm_size", 1) +
                             attribute("pg_name", text(29, "3"));
  const Read file =
      read(chakra_file(chakra_node(0, "process_group", 1, {}, text(8, text(1, group))) +
                       chakra_node(1, "ar", kCollective, {}, reduce)));
  EXPECT_THAT(file.communicators.groups()[message(file.graph, 1).group], ElementsAre(4, 6));
  EXPECT_THAT(refusal(chakra_file(chakra_node(1, "ar", kCollective, {}, reduce))),
              HasSubstr("node 1 'ar' is in the group '3'"));
}

TEST(Chakra, InvolvedDimensionsMakeGroupsOfTheRanksAlongThem) {
  const std::string flags = text(28, text(1, std::string("\0\1", 2)));
  const std::string bytes =
      chakra_file(chakra_node(0, "ar", kCollective, {},
                              int64_attribute("comm_type", 0) + int64_attribute("comm_size", 1) +
                                  attribute("involved_dim", flags)));
  const Read file = read(bytes, {5, 8, {{"dim0", 4}, {"dim1", 2}}});
  EXPECT_THAT(file.communicators.groups()[message(file.graph, 0).group], ElementsAre(1, 5));
  EXPECT_THAT(refusal(bytes), HasSubstr("dim0 is missing"));
}

TEST(Chakra, MessagesNameTheOtherRank) {
  const Read file = read(
      chakra_file(chakra_node(0, "s", kSend, {},
                              int64_attribute("comm_dst", 3) + int64_attribute("comm_size", 10) +
                                  int64_attribute("comm_tag", 9)) +
                  chakra_node(1, "r", kReceive, {}, int64_attribute("comm_src", 2))));
  EXPECT_EQ(message(file.graph, 0).peer, 3);
  EXPECT_EQ(message(file.graph, 0).tag, 9);
  EXPECT_EQ(file.graph.nodes[1].kind, NodeKind::kReceive);
  EXPECT_EQ(message(file.graph, 1).peer, 2);
  EXPECT_THAT(refusal(chakra_file(chakra_node(0, "s", kSend))), HasSubstr("comm_dst"));
}

TEST(Chakra, FlopsAndBytesMakeAKernel) {
  const Read file = read(chakra_file(chakra_node(
      0, "op", kCompute, {},
      int64_attribute("num_ops", 1'000'000) + attribute("tensor_size", number(13, 4096)))));
  const Kernel& kernel = file.graph.kernels[work(file.graph, 0).kernel];
  EXPECT_EQ(kernel.matrix_flops.base(), 1e6);
  EXPECT_EQ(kernel.read.base(), 4096);
  EXPECT_FALSE(work(file.graph, 0).timed);
}

TEST(Chakra, DamageIsRefusedWithFileAndOffset) {
  const std::string whole = chakra_file(chakra_node(1, "a", kCompute, {}, micros(1)));
  EXPECT_THAT(refusal(whole.substr(0, whole.size() - 2)),
              HasSubstr("t.et: at byte 9: the file ends within a message of"));
  EXPECT_THAT(refusal(chakra_file(std::string(11, '\xff'))),
              HasSubstr("at byte 18: a number of more than 10 bytes"));
  EXPECT_THAT(refusal(chakra_file(varint(std::uint64_t{1} << 40U))), HasSubstr("no Chakra trace"));
  EXPECT_THAT(refusal(chakra_file(delimited(number(1, 1) + varint(2U << 3U | 2U) + varint(99)))),
              HasSubstr("longer than what holds it"));
  EXPECT_THAT(refusal(chakra_file(delimited("\x07"))), HasSubstr("number 0"));
}

TEST(Chakra, EveryPrefixOfATraceIsReadOrRefused) {
  const std::string whole =
      chakra_file(chakra_node(1, "a", kCompute, {}, micros(1)) +
                  chakra_node(2, "ar", kCollective, {1},
                              int64_attribute("comm_type", 0) + int64_attribute("comm_size", 8)));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    try {
      read(whole.substr(0, size));
    } catch (const config::ConfigError& error) {
      EXPECT_THAT(error.what(), HasSubstr("t.et: at byte"));
    }
  }
}

TEST(Chakra, TracesAreToldFromOtherFiles) {
  EXPECT_TRUE(recognised(chakra_file(chakra_node(1, "a", kCompute))));
  EXPECT_TRUE(recognised(chakra_file("")));
  EXPECT_FALSE(recognised(""));
  EXPECT_FALSE(recognised("{\"traceEvents\": []}"));
  EXPECT_FALSE(recognised("topology: [ Ring ]\nnpus_count: [ 8 ]\n"));
  EXPECT_FALSE(recognised("sys[0] finished, 117780 cycles"));
}

/// A folder for files, gone at the end.
class Folder {
 public:
  Folder() : path_(kTemp + "chakra_files") {
    std::filesystem::remove_all(path_);
    std::filesystem::create_directory(path_);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  void write(const std::string& name, const std::string& bytes) const {
    std::ofstream(path_ + "/" + name, std::ios::binary) << bytes;
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::string packed(const std::string& bytes) {
  std::string out(compressBound(bytes.size()) + 64, '\0');
  z_stream stream{};
  deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

TEST(GraphFiles, RanksAreNumbersOfNamesAndEqualFilesShareAGraph) {
  const Folder folder;
  const std::string same = chakra_file(chakra_node(1, "a", kCompute, {}, micros(1)));
  folder.write("t.0.et", same);
  folder.write("t.2.et", same);
  folder.write("t.1.et", packed(chakra_file(chakra_node(1, "b", kCompute, {}, micros(2)))));
  folder.write("notes1.txt", "no trace");
  for (const std::string& path : {folder.path(), folder.path() + "/t"}) {
    const ImportedFiles files = read_graph_files({path, {}, false, {}});
    EXPECT_THAT(files.run.graph_of_rank, ElementsAre(0U, 1U, 0U));
    EXPECT_EQ(files.files.size(), 3U);
    EXPECT_EQ(files.files[0].sha256, files.files[2].sha256);
    EXPECT_EQ(files.run.graphs[1].name(0), "b");
  }
}

TEST(GraphFiles, MissingAndDoubledRanksAreRefused) {
  const Folder folder;
  const auto refused = [&] {
    try {
      read_graph_files({folder.path(), {}, false, {}});
    } catch (const config::ConfigError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_THAT(refused(), HasSubstr("no operator graph"));
  folder.write("t.0.et", chakra_file(""));
  folder.write("t.2.et", chakra_file(""));
  EXPECT_THAT(refused(), HasSubstr("there is no file of rank 1"));
  folder.write("t.1.et", chakra_file(""));
  folder.write("u.1.et", chakra_file(""));
  EXPECT_THAT(refused(), HasSubstr("two files of rank 1"));
}

TEST(GraphFiles, APrefixDoesNotEndWithinAWord) {
  const Folder folder;
  folder.write("layers.0.et", chakra_file(""));
  EXPECT_EQ(find_rank_files(folder.path() + "/layers").size(), 1U);
  EXPECT_THROW(find_rank_files(folder.path() + "/layer"), config::ConfigError);
}

TEST(GraphFiles, AFileAloneMayBeThatOfOneOfSeveralRanks) {
  const Folder folder;
  folder.write("t.1.et", chakra_file(chakra_node(
                             1, "s", kSend, {},
                             int64_attribute("comm_dst", 2) + int64_attribute("comm_size", 8))));
  const ImportedFiles files = read_graph_files({folder.path() + "/t.1.et", {}, false, {}});
  EXPECT_THAT(files.run.graph_of_rank, ElementsAre(ImportedRun::kAbsent, 0U, ImportedRun::kAbsent));
  EXPECT_THAT(files.run.notes, ElementsAre(HasSubstr("rank 1 of 3")));
}

TEST(GraphFiles, GroupsOfAFileAreKnownByName) {
  const Folder folder;
  folder.write("groups.json", R"({"5": [1, 0]})");
  folder.write("t.0.et", chakra_file(chakra_node(1, "ar", kCollective, {},
                                                 int64_attribute("comm_type", 0) +
                                                     int64_attribute("comm_size", 8) +
                                                     attribute("pg_name", text(29, "5")))));
  const ImportedFiles files =
      read_graph_files({folder.path() + "/t.0.et", folder.path() + "/groups.json", false, {}});
  ASSERT_EQ(files.run.groups.size(), 1U);
  EXPECT_THAT(files.run.groups[0], ElementsAre(1, 0));
  EXPECT_EQ(files.files[0].role, "groups");
  folder.write("groups.json", R"({"5": [1, "a"]})");
  EXPECT_THROW(
      read_graph_files({folder.path() + "/t.0.et", folder.path() + "/groups.json", false, {}}),
      config::ConfigError);
}

}  // namespace
}  // namespace orrery::chakra_test
