// SPDX-License-Identifier: Apache-2.0
// The door of libFuzzer: all targets are in one program, the environment says which.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "tests/fuzz/target.h"

namespace {

const orrery::FuzzTarget& chosen() {
  const char* name = std::getenv("ORRERY_FUZZ_TARGET");
  for (const orrery::FuzzTarget& target : orrery::fuzz_targets())
    if (name != nullptr && std::string_view(target.name) == name) return target;
  std::fputs("ORRERY_FUZZ_TARGET names one of:", stderr);
  for (const orrery::FuzzTarget& target : orrery::fuzz_targets())
    std::fprintf(stderr, " %s", target.name);
  std::fputs("\n", stderr);
  std::exit(2);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const orrery::FuzzTarget& target = chosen();
  target.run({reinterpret_cast<const char*>(data), size});
  return 0;
}
