// SPDX-License-Identifier: Apache-2.0
// What is written as Chakra traces is what Chakra's own description of the format says.
#include "workloads/formats/chakra/writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "workloads/formats/graph_format.h"

namespace orrery::chakra_writer_test {
namespace {

/// Begin of the names of files and folders of this process.
const std::string kTemp = testing::TempDir() + std::to_string(::getpid()) + "_";

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

/// Field numbers of mlcommons/chakra, schema/protobuf/et_def.proto.
constexpr const char* kSchema = R"(syntax = "proto3";
message Lists { repeated int64 values = 1; }
message Texts { repeated string values = 1; }
message AttributeProto {
  string name = 1;
  string doc_string = 2;
  oneof value {
    double double_val = 3; float float_val = 5; int32 int32_val = 7; int64 int64_val = 9;
    uint32 uint32_val = 11; uint64 uint64_val = 13; bool bool_val = 27; Lists bool_list = 28;
    string string_val = 29; Texts string_list = 30;
  }
}
enum NodeType {
  INVALID_NODE = 0; METADATA_NODE = 1; MEM_LOAD_NODE = 2; MEM_STORE_NODE = 3; COMP_NODE = 4;
  COMM_SEND_NODE = 5; COMM_RECV_NODE = 6; COMM_COLL_NODE = 7;
}
message IOInfo { string values = 1; string shapes = 2; string types = 3; }
message GlobalMetadata { string version = 1; repeated AttributeProto attr = 2; }
message Node {
  uint64 id = 1; string name = 2; NodeType type = 3;
  repeated uint64 ctrl_deps = 4; repeated uint64 data_deps = 5;
  uint64 start_time_micros = 6; uint64 duration_micros = 7;
  IOInfo inputs = 8; IOInfo outputs = 9; repeated AttributeProto attr = 10;
}
)";

/// Two ranks: a product, a reduction, a message from the first to the second.
class WrittenChakra : public testing::Test {
 protected:
  WrittenChakra() {
    Kernel kernel;
    kernel.kind = KernelClass::kGemm;
    kernel.matrix_flops = Flops(2e9);
    kernel.read = Bytes(3e6);
    program_.kernels = {kernel};
    Transfer reduction, message;
    reduction.bytes = Bytes(4096);
    reduction.groups = {{0, 1}};
    message.kind = TransferKind::kSendReceive;
    message.bytes = Bytes(100);
    message.groups = {{0, 1}};
    program_.transfers = {reduction, message};
    program_.streams = {"compute", "communication"};
    program_.ranks = 2;
    for (const OperatorKind last : {OperatorKind::kSend, OperatorKind::kReceive}) {
      OperatorGraph block;
      const OperatorId product = block.add({.name = "product"});
      const OperatorId sum =
          block.add({"reduce", OperatorKind::kCollective, Category::kCommunication, 1, 0});
      block.depends(sum, product);
      block.depends(block.add({"message", last, Category::kCommunication, 1, 1}), sum);
      program_.blocks.push_back(block);
    }
    program_.block_names = {"first", "second"};
    program_.roles = {{"first", {0}, {0}}, {"second", {1}, {1}}};
    costs_.kernels.resize(1);
    costs_.kernels[0].duration = 7'654'321;
    GraphFormatRegistry::at("graph format", "chakra")
        ->write_ranks(
            {program_, costs_, {0, 0}},
            [this](const std::string& ending, const std::function<void(std::ostream&)>& write) {
              std::ostringstream out;
              write(out);
              files_[ending] = out.str();
            });
  }

  /// The messages of a file, behind each other without their lengths; the first apart.
  static std::pair<std::string, std::string> messages(const std::string& file) {
    std::pair<std::string, std::string> parts;
    for (std::size_t at = 0, number = 0; at < file.size(); ++number) {
      std::size_t length = 0;
      for (unsigned shift = 0;; shift += 7) {
        const auto byte = static_cast<unsigned char>(file.at(at++));
        length |= static_cast<std::size_t>(byte & 0x7fU) << shift;
        if (byte < 0x80U) break;
      }
      (number == 0 ? parts.first : parts.second) += file.substr(at, length);
      at += length;
    }
    return parts;
  }

  /// What protoc reads. Nodes behind each other are one: lists are joined, the last number counts.
  static std::string decoded(const std::string& type, const std::string& message) {
    const std::filesystem::path folder = std::filesystem::path(kTemp + "chakra_writer");
    std::filesystem::create_directories(folder);
    std::ofstream(folder / "et_def.proto") << kSchema;
    std::ofstream(folder / "message", std::ios::binary) << message;
    const std::string command = "protoc --proto_path=" + folder.string() + " --decode=" + type +
                                " et_def.proto < " + (folder / "message").string() + " > " +
                                (folder / "text").string();
    EXPECT_EQ(std::system(command.c_str()), 0);
    std::ostringstream text;
    text << std::ifstream(folder / "text").rdbuf();
    std::filesystem::remove_all(folder);
    return text.str();
  }

  Program program_;
  Costs costs_;
  std::map<std::string, std::string> files_;
};

TEST_F(WrittenChakra, HasAFileForEachRankAndOneOfGroups) {
  EXPECT_EQ(files_.size(), 3U);
  EXPECT_EQ(files_.count(".0.et"), 1U);
  EXPECT_EQ(files_.count(".1.et"), 1U);
  EXPECT_EQ(files_[".groups.json"], "{\"1\": [0, 1]}\n");
}

TEST_F(WrittenChakra, IsWhatChakraDescribes) {
  if (std::system("protoc --version > /dev/null 2>&1") != 0) GTEST_SKIP() << "no protoc";
  const auto [head, nodes] = messages(files_[".0.et"]);
  EXPECT_EQ(decoded("GlobalMetadata", head), "version: \"0.0.4\"\n");
  const std::string text = decoded("Node", nodes);
  EXPECT_THAT(text, Not(ContainsRegex("(^|\n) *[0-9]+[:{ ]"))) << "fields that Chakra lacks";
  EXPECT_THAT(text, AllOf(HasSubstr("type: COMM_SEND_NODE"), HasSubstr("duration_micros: 8"),
                          HasSubstr("name: \"num_ops\"\n  int64_val: 2000000000"),
                          HasSubstr("name: \"comm_size\"\n  int64_val: 4096"),
                          HasSubstr("name: \"pg_name\"\n  string_val: \"1\""),
                          HasSubstr("name: \"comm_dst\"\n  int32_val: 1")));
  EXPECT_THAT(decoded("Node", messages(files_[".1.et"]).second), HasSubstr("type: COMM_RECV_NODE"));
}

}  // namespace
}  // namespace orrery::chakra_writer_test
