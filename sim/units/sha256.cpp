// SPDX-License-Identifier: Apache-2.0
#include "sim/units/sha256.h"

#include <openssl/evp.h>

#include <array>
#include <stdexcept>

namespace orrery {
namespace {

[[noreturn]] void refuse() { throw std::runtime_error("OpenSSL cannot compute SHA-256"); }

std::string hex_of(const unsigned char* digest, unsigned int size) {
  std::string text(std::size_t{2} * size, '0');
  for (std::size_t i = 0; i < size; ++i) {
    text[2 * i] = "0123456789abcdef"[digest[i] >> 4];
    text[2 * i + 1] = "0123456789abcdef"[digest[i] & 15];
  }
  return text;
}

}  // namespace

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

std::string Sha256::hex(std::span<const std::string_view> rest) const {
  thread_local const State whole;  // overwritten by each call
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  bool good = EVP_MD_CTX_copy_ex(whole.context, state_->context) == 1;
  for (const std::string_view bytes : rest)
    good = good && EVP_DigestUpdate(whole.context, bytes.data(), bytes.size()) == 1;
  if (!good || EVP_DigestFinal_ex(whole.context, digest.data(), &size) != 1) refuse();
  return hex_of(digest.data(), size);
}

/// Begins with a state that has looked up the digest, which OpenSSL 3 does for each new one.
std::string sha256_hex(std::string_view bytes) {
  static const Sha256 empty;
  return empty.hex({&bytes, 1});
}

}  // namespace orrery
