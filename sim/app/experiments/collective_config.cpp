// SPDX-License-Identifier: Apache-2.0
#include "sim/app/experiments/collective_config.h"

#include "sim/app/experiments/keys/enum_names.h"
#include "sim/app/experiments/part_keys.h"
#include "sim/app/experiments/token_keys.h"

namespace orrery {

using config::between;
using config::Schema;
using namespace literals;

const Schema<CollectiveConfig>& CollectiveConfig::schema() {
  static const auto schema = with_part_keys(with_token_keys(
      Schema<CollectiveConfig>("collective", "one collective operation")
          .required("kind", &CollectiveConfig::kind, "which collective operation")
          .optional("bytes", &CollectiveConfig::bytes,
                    "size as nccl-tests prints it; a barrier has none", between(1_B, 1000_TB))
          .optional("ranks", &CollectiveConfig::ranks, "the first ranks of the machine; 0: all",
                    between(0, 1e7))
          .optional("algorithm", &CollectiveConfig::algorithm,
                    "a name of `orrery describe collectives`, the path of a user-written one, or "
                    "auto: what the library takes where the system has protocols, else the fastest")
          .optional("protocol", &CollectiveConfig::protocol,
                    "ll, ll128, simple, or auto: what the library takes")
          .optional("precision", &CollectiveConfig::precision,
                    "number format of the elements; bytes (int8) are not reduced in switches; "
                    "dispatch, combine: "
                    "that of the "
                    "tokens on the wire, to which scales of fp8, nvfp4 and int8 come")));
  return schema;
}

}  // namespace orrery
