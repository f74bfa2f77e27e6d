// SPDX-License-Identifier: Apache-2.0
#include "sim/results/identity.h"

#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>

namespace orrery::identity_test {
namespace {

using nlohmann::ordered_json;

// NIST, "Secure Hash Standard", FIPS 180-4, and its example values: one block, two blocks, none.
TEST(Sha256, GivesTheExamplesOfTheStandard) {
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

TEST(CanonicalJson, HasSortedKeysAndOneSpellingPerNumber) {
  const auto text = [](const char* json) { return canonical_json(ordered_json::parse(json)); };
  EXPECT_EQ(text(R"({"b": 1.0, "a": {"d": [8e12, 0.5], "c": null}})"),
            R"({"a":{"c":null,"d":[8000000000000,0.5]},"b":1})");
  EXPECT_EQ(text("[8, 8.0, 8e0, -0.0]"), "[8,8,8,0]");
  EXPECT_EQ(text("[1e300]"), "[1e+300]");
  EXPECT_THROW(canonical_json(std::numeric_limits<double>::infinity()), std::logic_error);
}

TEST(PointIdentity, DoesNotDependOnTheOrderOfKeysOrFiles) {
  const ordered_json a = {{"tp", 8}, {"pp", 2}};
  const ordered_json b = {{"pp", 2.0}, {"tp", 8}};
  EXPECT_EQ(point_identity(a, {{"model", "11"}, {"trace", "22"}}),
            point_identity(b, {{"trace", "22"}, {"model", "11"}}));
}

TEST(PointIdentity, ChangesWithEveryInput) {
  const ordered_json configuration = {{"tp", 8}};
  const std::set<std::string> identities = {point_identity(configuration, {}),
                                            point_identity({{"tp", 4}}, {}),
                                            point_identity({{"tp", "8"}}, {}),
                                            point_identity(configuration, {{"model", "11"}}),
                                            point_identity(configuration, {{"model", "12"}}),
                                            point_identity(configuration, {{"trace", "11"}}),
                                            point_identity(configuration, {{"mode", "l11"}}),
                                            point_identity(configuration, {}, "other engine")};
  EXPECT_EQ(identities.size(), 8u);
}

// sha256sum of {"configuration":{"tp":8},"engine":"1","files":[["model","ab"]]}: stored identities
// must stay valid, so the text that is hashed may not change.
TEST(PointIdentity, IsTheHashOfADocumentedText) {
  const std::string text = R"({"configuration":{"tp":8},"engine":"1","files":[["model","ab"]]})";
  EXPECT_EQ(point_identity({{"tp", 8}}, {{"model", "ab"}}, "1"), sha256_hex(text));
  EXPECT_EQ(sha256_hex(text), "ee11a6036e7c6356110f7655b48d7c7afb73c1f2e44ee1271b738e99b044ab82");
}

}  // namespace
}  // namespace orrery::identity_test
