// SPDX-License-Identifier: Apache-2.0
#include "sim/config/byte_source.h"

#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <cstdio>
#include <fstream>

#include "sim/config/diagnostics.h"
#include "sim/units/sha256.h"

namespace orrery::byte_source_test {
namespace {

std::string gzip(const std::string& text) {
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  std::string packed(text.size() + text.size() / 100 + 256, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));  // NOLINT
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  deflate(&stream, Z_FINISH);
  packed.resize(packed.size() - stream.avail_out);
  deflateEnd(&stream);
  return packed;
}

/// 3 MB that does not pack well.
std::string long_text() {
  std::string text;
  text.reserve(3'000'000);
  for (std::uint32_t i = 0, x = 1; i < 3'000'000; ++i, x = x * 1664525 + 1013904223)
    text.push_back(static_cast<char>(x >> 24U));
  text.front() = 'x';
  return text;
}

std::string all_of(ByteSource& source) {
  std::string all;
  for (std::string_view part = source.next(); !part.empty(); part = source.next()) all += part;
  return all;
}

TEST(ReadInput, TheMarkThatSpreadsheetsWriteIsNoPartOfTheText) {
  const std::string path = testing::TempDir() + std::to_string(::getpid()) + "_marked.csv";
  for (const std::string& bytes : {std::string("\xEF\xBB\xBF"
                                               "a,b\n"),
                                   gzip("\xEF\xBB\xBF"
                                        "a,b\n"),
                                   std::string("a,b\n")}) {
    std::ofstream(path, std::ios::binary) << bytes;
    EXPECT_EQ(read_input(path), "a,b\n");
  }
  std::remove(path.c_str());
}

TEST(ByteSource, GzipOfSeveralMembersIsUnpackedOnTheWay) {
  const std::string text = long_text();
  const std::string packed = gzip(text) + gzip("tail") + std::string(512, '\0');
  ByteSource source("x.gz", packed);
  EXPECT_EQ(all_of(source), text + "tail");
  EXPECT_EQ(source.offset(), text.size() + 4);
  EXPECT_EQ(source.sha256(), sha256_hex(packed));
}

TEST(ByteSource, WhatIsPeekedAtIsNotTaken) {
  ByteSource source("x", long_text());
  EXPECT_EQ(source.peek(1'000'000), long_text().substr(0, 1'000'000));
  source.take(999'990);
  EXPECT_EQ(source.peek(20), long_text().substr(999'990, 20));
  EXPECT_EQ(all_of(source), long_text().substr(999'990));
  EXPECT_TRUE(source.at_end());
  EXPECT_EQ(source.sha256(), sha256_hex(long_text()));
}

TEST(ByteSource, CutAndDamagedGzipIsRefused) {
  const std::string packed = gzip(long_text());
  ByteSource cut("cut.gz", std::string_view(packed).substr(0, packed.size() / 2));
  EXPECT_THROW(all_of(cut), config::ConfigError);
  std::string damaged = packed;
  for (std::size_t i = 1000; i < 1100; ++i) damaged[i] = '\xff';
  ByteSource broken("broken.gz", damaged);
  EXPECT_THROW(all_of(broken), config::ConfigError);
  EXPECT_THROW(ByteSource("/nowhere/at/all"), config::ConfigError);
  EXPECT_THROW(ByteSource("/"), config::ConfigError);
}

}  // namespace
}  // namespace orrery::byte_source_test
