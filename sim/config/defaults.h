// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/config/node.h"
#include "sim/config/schema.h"

namespace orrery::config {

/// A value as the YAML that would give it, all of it with the origin "default".
Node default_node(const Type& type, const void* value);

/// The default of a field: that of its member in the default-constructed `object`.
Node default_node(const Field& field, void* object);

}  // namespace orrery::config
