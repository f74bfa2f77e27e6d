// SPDX-License-Identifier: Apache-2.0
#include "sim/units/sha256.h"

#include <gtest/gtest.h>

#include <array>
#include <string>

namespace orrery::sha256_test {
namespace {

// FIPS 180-4, examples of NIST's Computer Security Resource Center.
TEST(Sha256, HasTheDigestsOfItsStandard) {
  EXPECT_EQ(sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Sha256, TextsWithOneBeginningHaveTheDigestsOfTheWhole) {
  const std::string beginning(200, 'a');
  Sha256 begun;
  begun.add(beginning);
  for (const std::string end : {"", "b", "a longer end"}) {
    const std::array<std::string_view, 2> rest = {"middle ", end};
    EXPECT_EQ(begun.hex(rest), sha256_hex(beginning + "middle " + end));
  }
  EXPECT_EQ(begun.hex(), sha256_hex(beginning));
}

}  // namespace
}  // namespace orrery::sha256_test
