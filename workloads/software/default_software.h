// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

namespace orrery {

struct TrainingSoftware;

/// The software of steps that name none.
std::shared_ptr<const TrainingSoftware> default_software();

}  // namespace orrery
