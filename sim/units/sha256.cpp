// SPDX-License-Identifier: Apache-2.0
#include "sim/units/sha256.h"

#include <openssl/evp.h>

#include <array>
#include <stdexcept>

namespace orrery {
namespace {

[[noreturn]] void refuse() { throw std::runtime_error("OpenSSL cannot compute SHA-256"); }

std::string hex_of(const unsigned char* digest, unsigned int size) {
  std::string text;
  for (unsigned int i = 0; i < size; ++i) {
    text += "0123456789abcdef"[digest[i] >> 4];
    text += "0123456789abcdef"[digest[i] & 15];
  }
  return text;
}

}  // namespace

std::string sha256_hex(std::string_view bytes) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  if (EVP_Digest(bytes.data(), bytes.size(), digest.data(), &size, EVP_sha256(), nullptr) != 1)
    refuse();
  return hex_of(digest.data(), size);
}

struct Sha256::State {
  State() = default;
  ~State() { EVP_MD_CTX_free(context); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  EVP_MD_CTX* context = EVP_MD_CTX_new();
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
  if (EVP_DigestInit_ex(state_->context, EVP_sha256(), nullptr) != 1) refuse();
}

Sha256::~Sha256() = default;

void Sha256::add(std::string_view bytes) {
  if (EVP_DigestUpdate(state_->context, bytes.data(), bytes.size()) != 1) refuse();
}

std::string Sha256::hex() const {
  const State copy;
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  if (EVP_MD_CTX_copy_ex(copy.context, state_->context) != 1 ||
      EVP_DigestFinal_ex(copy.context, digest.data(), &size) != 1)
    refuse();
  return hex_of(digest.data(), size);
}

}  // namespace orrery
