// SPDX-License-Identifier: Apache-2.0
#include "workloads/operators/operator.h"

namespace orrery {
namespace {

using namespace literals;

enum class Direction { kHostToDevice, kDeviceToHost, kDeviceToDevice };

constexpr const char* name_of(Direction direction) {
  switch (direction) {
    case Direction::kHostToDevice:
      return "copy_host_to_device";
    case Direction::kDeviceToHost:
      return "copy_device_to_host";
    default:
      return "copy_device_to_device";
  }
}

template <Direction kDirection>
struct Copy final : OperatorConfig {
  Copy() { kind = name_of(kDirection); }

  std::vector<Kernel> kernels(Precision) const override {
    Kernel kernel;
    kernel.name = "copy";
    kernel.kind = KernelClass::kCopy;
    kernel.read = kDirection == Direction::kHostToDevice ? Bytes() : bytes;
    kernel.written = kDirection == Direction::kDeviceToHost ? Bytes() : bytes;
    kernel.host = kDirection == Direction::kDeviceToDevice ? Bytes() : bytes;
    return {kernel};
  }

  Bytes bytes;

  static const config::Schema<Copy>& schema() {
    static const config::Schema<Copy> schema =
        operator_schema<Copy>(name_of(kDirection), "a copy by a copy engine")
            .required("bytes", &Copy::bytes, "size", config::between(1_B, 1000_TB));
    return schema;
  }
};

const RegisterOperator<Copy<Direction::kHostToDevice>> from_host(
    name_of(Direction::kHostToDevice), "a copy engine reads host memory over the host link");
const RegisterOperator<Copy<Direction::kDeviceToHost>> to_host(
    name_of(Direction::kDeviceToHost), "a copy engine writes host memory over the host link");
const RegisterOperator<Copy<Direction::kDeviceToDevice>> on_device(
    name_of(Direction::kDeviceToDevice), "a copy engine reads and writes device memory");

}  // namespace
}  // namespace orrery
