// SPDX-License-Identifier: Apache-2.0
#include "workloads/operators/operator.h"

namespace orrery {
namespace {

using namespace literals;

enum class Direction { kHostToDevice, kDeviceToHost, kDeviceToDevice };

/// Who copies: engines beside the units, or a kernel on the units.
enum class Engine { kCopy, kUnits };

}  // namespace

template <>
struct config::EnumNames<Engine> {
  static constexpr std::pair<Engine, const char*> values[] = {{Engine::kCopy, "copy"},
                                                              {Engine::kUnits, "sm"}};
};

namespace {

constexpr const char* name_of(Direction direction) {
  return direction == Direction::kHostToDevice   ? "copy_host_to_device"
         : direction == Direction::kDeviceToHost ? "copy_device_to_host"
                                                 : "copy_device_to_device";
}

template <Direction kDirection>
struct Copy final : OperatorConfig {
  Copy() { kind = name_of(kDirection); }

  std::vector<Kernel> kernels(Precision) const override {
    const Bytes all = bytes * static_cast<double>(copies);
    Kernel kernel;
    kernel.name = "copy";
    kernel.kind = engine == Engine::kCopy ? KernelClass::kCopy : KernelClass::kElementwise;
    kernel.batch = copies;
    kernel.read = kDirection == Direction::kHostToDevice ? Bytes() : all;
    kernel.written = kDirection == Direction::kDeviceToHost ? Bytes() : all;
    kernel.host = kDirection == Direction::kDeviceToDevice ? Bytes() : all;
    return {kernel};
  }

  Bytes bytes;
  std::int64_t copies = 1;
  Engine engine = Engine::kCopy;

  static const config::Schema<Copy>& schema() {
    static const config::Schema<Copy> schema =
        operator_schema<Copy>(name_of(kDirection), "copies that start together")
            .required("bytes", &Copy::bytes, "size of each copy", config::between(1_B, 1000_TB))
            .optional("copies", &Copy::copies, "copies at the same time, which share the way",
                      config::between(1, 1000))
            .optional("engine", &Copy::engine,
                      "copy: copy engines, beside the units; sm: a kernel on the units");
    return schema;
  }
};

const RegisterOperator<Copy<Direction::kHostToDevice>> from_host(
    name_of(Direction::kHostToDevice), "copies of host memory to the device, over the host link");
const RegisterOperator<Copy<Direction::kDeviceToHost>> to_host(
    name_of(Direction::kDeviceToHost), "copies to host memory, over the host link");
const RegisterOperator<Copy<Direction::kDeviceToDevice>> on_device(
    name_of(Direction::kDeviceToDevice), "copies within device memory");

}  // namespace
}  // namespace orrery
