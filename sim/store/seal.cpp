// SPDX-License-Identifier: Apache-2.0
#include "sim/store/seal.h"

#include "sim/results/record_bytes.h"
#include "sim/units/sha256.h"

namespace orrery {
namespace {

/// A value of a column together with what it is, so that 1 and "1" differ.
void add(ByteWriter& bytes, const Statement& statement, int column) {
  if (statement.is_null(column)) {
    bytes.add(std::uint64_t{0});
  } else if (statement.is_integer(column)) {
    bytes.add(std::uint64_t{1});
    bytes.add(static_cast<std::uint64_t>(statement.integer(column)));
  } else if (statement.is_real(column)) {
    bytes.add(std::uint64_t{2});
    bytes.add(statement.real(column));
  } else {
    bytes.add(std::uint64_t{3});
    bytes.add(std::string_view(statement.text(column)));
  }
}

constexpr int kPointColumns = 11;
constexpr int kVariedColumns = 5;

}  // namespace

Seal::Seal(const Database& database)
    : point_(database.prepare("SELECT identity, points.experiment, name, status, reason, "
                              "exit_code, engine_version, digest, "
                              "old_identity, configurations.hash, layouts.json FROM points "
                              "LEFT JOIN configurations USING (base) LEFT JOIN layouts USING "
                              "(layout) WHERE point = ?")),
      varied_(database.prepare("SELECT position, axis, value, text, origin FROM varied "
                               "WHERE point = ? ORDER BY position")),
      put_(database.prepare("UPDATE points SET seal = ? WHERE point = ?")),
      row_(database.prepare("SELECT identity, seal FROM points WHERE point = ?")) {}

std::string Seal::of(std::int64_t point) {
  ByteWriter bytes;
  point_.bind(1, point);
  if (point_.step())
    for (int column = 0; column < kPointColumns; ++column) add(bytes, point_, column);
  point_.reset();
  varied_.bind(1, point);
  while (varied_.step())
    for (int column = 0; column < kVariedColumns; ++column) add(bytes, varied_, column);
  varied_.reset();
  return sha256_hex(bytes.bytes());
}

bool Seal::holds(std::int64_t point, std::string_view identity) {
  row_.bind(1, point);
  const bool same = row_.step() && row_.text(0) == identity && row_.text(1) == of(point);
  row_.reset();
  return same;
}

void Seal::put(std::int64_t point) {
  put_.bind(1, of(point)).bind(2, point);
  put_.run();
}

}  // namespace orrery
