// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "sim/app/questions/describe/catalog.h"

namespace orrery {

/// The lists of layers of the library; details of one are its layers and sizes.
std::vector<CatalogEntry> described_layer_models();

/// One by the path of its file.
CatalogEntry described_layer_model(const std::string& path);

}  // namespace orrery
