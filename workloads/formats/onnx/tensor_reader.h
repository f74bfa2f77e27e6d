// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "workloads/formats/base/wire_reader.h"
#include "workloads/formats/onnx/model.h"

namespace orrery::onnx {

/// A TensorProto that ends at an offset: name, type and shape, and its values where there are few.
void read_tensor(WireReader& wire, std::uint64_t end, TensorData& tensor);

/// A repeated field, packed or one by one: its numbers are put behind those that are there.
void read_integers(WireReader& wire, const WireReader::Field& field,
                   std::vector<std::int64_t>& integers);
void read_reals(WireReader& wire, const WireReader::Field& field, std::vector<double>& reals);

}  // namespace orrery::onnx
