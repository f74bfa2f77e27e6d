// SPDX-License-Identifier: Apache-2.0
#include "sim/results/identity.h"

#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <system_error>
#include <tuple>

namespace orrery {
namespace {

class Sha256 {
 public:
  Sha256() : context_(EVP_MD_CTX_new()) {
    require(context_ && EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) == 1);
  }
  void add(std::string_view bytes) {
    require(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) == 1);
  }
  std::string hex() {
    std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
    unsigned int size = 0;
    require(EVP_DigestFinal_ex(context_.get(), digest.data(), &size) == 1);
    std::string text;
    for (unsigned int i = 0; i < size; ++i) {
      text += "0123456789abcdef"[digest[i] >> 4];
      text += "0123456789abcdef"[digest[i] & 15];
    }
    return text;
  }

 private:
  struct Free {
    void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
  };
  static void require(bool done) {
    if (!done) throw std::runtime_error("OpenSSL cannot compute SHA-256");
  }
  std::unique_ptr<EVP_MD_CTX, Free> context_;
};

// Above 2^53 a double no longer tells neighbouring integers apart, so they keep their own spelling.
constexpr double kExactIntegers = 9007199254740992.0;

// nlohmann::json sorts keys; what is left to do is one spelling for a number.
nlohmann::json canonical(const nlohmann::ordered_json& value) {
  if (value.is_object()) {
    nlohmann::json object = nlohmann::json::object();
    for (const auto& item : value.items()) object[item.key()] = canonical(item.value());
    return object;
  }
  if (value.is_array()) {
    nlohmann::json array = nlohmann::json::array();
    for (const auto& item : value) array.push_back(canonical(item));
    return array;
  }
  if (!value.is_number_float()) return value;
  const double number = value.get<double>();
  if (!std::isfinite(number)) throw std::logic_error("a configuration holds no finite number");
  if (std::fabs(number) < kExactIntegers && number == std::trunc(number)) {
    return static_cast<std::int64_t>(number);
  }
  return number;
}

}  // namespace

std::string sha256_hex(std::string_view bytes) {
  Sha256 hash;
  hash.add(bytes);
  return hash.hex();
}

std::string sha256_hex_of_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::system_error(errno, std::generic_category(), path);
  Sha256 hash;
  std::array<char, 65536> block{};
  while (in.read(block.data(), block.size()) || in.gcount() > 0) {
    hash.add({block.data(), static_cast<std::size_t>(in.gcount())});
  }
  // A folder opens, but cannot be read.
  if (in.bad()) throw std::system_error(EIO, std::generic_category(), path);
  return hash.hex();
}

std::string canonical_json(const nlohmann::ordered_json& value) { return canonical(value).dump(); }

std::string point_identity(const nlohmann::ordered_json& configuration, std::vector<FileHash> files,
                           std::string_view engine_version) {
  std::sort(files.begin(), files.end(), [](const FileHash& a, const FileHash& b) {
    return std::tie(a.role, a.sha256) < std::tie(b.role, b.sha256);
  });
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const FileHash& file : files) list.push_back({file.role, file.sha256});
  return sha256_hex(canonical_json(
      {{"configuration", configuration}, {"engine", engine_version}, {"files", list}}));
}

}  // namespace orrery
