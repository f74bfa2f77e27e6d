// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "sim/app/questions/describe/catalog.h"

namespace orrery {

/// The software of training runs in the library; details of one are its switches, each with its
/// value and where that was read.
std::vector<CatalogEntry> described_software();

}  // namespace orrery
