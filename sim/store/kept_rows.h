// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/results/record_bytes.h"
#include "sim/store/sqlite.h"

namespace orrery {

/// The time of a kernel's thread blocks, as the table `tiles` keeps it: what need not be played
/// again.
struct TileRow {
  std::string key;     ///< SHA-256 of all that the result depends on, engine version included
  std::string device;  ///< name of the accelerator, for people
  std::string kernel;  ///< class of the kernel, for people: "gemm"
  std::string precision;
  std::string shape;  ///< shape for people: "1 x 4096 x 8192 x 8192"
  double units = 1;   ///< share of the SMs that the kernel had
  double memory = 1;  ///< share of the memory bandwidth that the kernel had
  double duration_us = 0;
  std::int64_t events = 0;
};

/// Adds rows inside the caller's transaction; a key that is there stays as it is, since equal keys
/// have equal results.
void insert_tiles(Database& database, const std::vector<TileRow>& rows);

/// Rows of this engine, in order of their keys.
/// @throws StoreError when a row is not what was written.
std::vector<TileRow> read_tiles(const Database& database);

/// Between processes: rows as bytes, and back.
void add(ByteWriter& bytes, const std::vector<TileRow>& rows);
std::vector<TileRow> read_tiles(ByteReader& bytes);

/// The beginning of a search, as the table `searches` keeps it: with it, and with results, a search
/// goes the same way again whatever else the store has got since.
struct SearchRow {
  std::string key;    ///< SHA-256 of what is searched and how
  std::string sweep;  ///< name of the sweep, for people
  std::int64_t seed = 0;
  std::vector<std::uint64_t> begun_from;  ///< places of the plan that the store had results of
};

/// Adds a row inside the caller's transaction; one that is there stays as it is.
void insert_search(Database& database, const SearchRow& row);

/// Every row, in order of keys.
/// @throws StoreError when a row is not what was written
std::vector<SearchRow> read_searches(const Database& database);

}  // namespace orrery
