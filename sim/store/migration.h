// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/store/sqlite.h"

namespace orrery {

/// Makes the tables of schema.h in an empty file.
void create_tables(Database& database);

/// Brings the tables of an older version up to date, within the caller's transaction. Points keep
/// their results and their old identity.
/// @throws StoreError (kCorrupt) where a result does not match its digest
void update_tables(Database& database);

}  // namespace orrery
