// SPDX-License-Identifier: Apache-2.0
#include "sim/results/record_bytes.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "sim/results/identity.h"
#include "sim/units/sha256.h"

namespace orrery {
namespace {

void add(ByteWriter& bytes, const Metric& metric) {
  bytes.add(metric.name);
  bytes.add(metric.unit);
  bytes.add(metric.value);
  bytes.add(std::uint64_t{metric.interval.has_value()});
  if (!metric.interval) return;
  bytes.add(metric.interval->first);
  bytes.add(metric.interval->second);
}

void read(ByteReader& bytes, Metric& metric) {
  metric.name = bytes.text();
  metric.unit = bytes.text();
  metric.value = bytes.real();
  if (bytes.number() == 0) return;
  const double p10 = bytes.real();
  metric.interval = {p10, bytes.real()};
}

void add(ByteWriter& bytes, const Label& label) {
  bytes.add(label.name);
  bytes.add(label.value);
}

void read(ByteReader& bytes, Label& label) {
  label.name = bytes.text();
  label.value = bytes.text();
}

void add(ByteWriter& bytes, const ClassBreakdown& c) {
  bytes.add(c.name);
  bytes.add(c.count);
  for (const double number : {c.time_s, c.flops, c.bytes}) bytes.add(number);
}

void read(ByteReader& bytes, ClassBreakdown& c) {
  c.name = bytes.text();
  c.count = bytes.number();
  for (double* number : {&c.time_s, &c.flops, &c.bytes}) *number = bytes.real();
}

void add(ByteWriter& bytes, const ComponentUse& use) {
  bytes.add(use.name);
  for (const double number : {use.busy_share, use.sent_bytes}) bytes.add(number);
}

void read(ByteReader& bytes, ComponentUse& use) {
  use.name = bytes.text();
  for (double* number : {&use.busy_share, &use.sent_bytes}) *number = bytes.real();
}

void add(ByteWriter& bytes, const LinkUse& use) {
  bytes.add(use.name);
  bytes.add(use.links);
  for (const double number : {use.bytes, use.busy_share, use.peak_share}) bytes.add(number);
}

void read(ByteReader& bytes, LinkUse& use) {
  use.name = bytes.text();
  use.links = bytes.number();
  for (double* number : {&use.bytes, &use.busy_share, &use.peak_share}) *number = bytes.real();
}

void add(ByteWriter& bytes, const ResultRows& rows) {
  bytes.add(rows.name);
  bytes.add(std::uint64_t{rows.values.size()});
  for (const double value : rows.values) bytes.add(value);
}

void read(ByteReader& bytes, ResultRows& rows) {
  rows.name = bytes.text();
  rows.values.resize(bytes.number());
  for (double& value : rows.values) value = bytes.real();
}

/// Their number, then each.
template <class Item>
void add_all(ByteWriter& bytes, const std::vector<Item>& items) {
  bytes.add(std::uint64_t{items.size()});
  for (const Item& item : items) add(bytes, item);
}

template <class Item>
void read_all(ByteReader& bytes, std::vector<Item>& items) {
  items.resize(bytes.number());
  for (Item& item : items) read(bytes, item);
}

template <class Item>
std::vector<const Item*> by_name(const std::vector<Item>& items) {
  std::vector<const Item*> sorted;
  sorted.reserve(items.size());
  for (const Item& item : items) sorted.push_back(&item);
  std::sort(sorted.begin(), sorted.end(),
            [](const Item* a, const Item* b) { return a->name < b->name; });
  return sorted;
}

}  // namespace

const RowTableKind& row_table(std::string_view name) {
  const auto* found = std::find_if(kRowTables.begin(), kRowTables.end(),
                                   [name](const RowTableKind& kind) { return kind.name == name; });
  if (found == kRowTables.end()) throw std::out_of_range("no rows are called " + std::string(name));
  return *found;
}

void ByteWriter::add(std::uint64_t number) {
  bytes_.append(reinterpret_cast<const char*>(&number), sizeof number);
}

void ByteWriter::add(double number) {
  number += 0.0;  // -0 is 0: SQLite does not keep the sign
  bytes_.append(reinterpret_cast<const char*>(&number), sizeof number);
}

void ByteWriter::add(std::string_view text) {
  add(std::uint64_t{text.size()});
  bytes_.append(text);
}

const char* ByteReader::take(std::size_t count) {
  if (count > rest_.size()) throw std::out_of_range("bytes of a record are missing");
  const char* start = rest_.data();
  rest_.remove_prefix(count);
  return start;
}

std::uint64_t ByteReader::number() {
  std::uint64_t number = 0;
  std::memcpy(&number, take(sizeof number), sizeof number);
  return number;
}

double ByteReader::real() {
  double number = 0;
  std::memcpy(&number, take(sizeof number), sizeof number);
  return number;
}

std::string ByteReader::text() {
  const auto size = static_cast<std::size_t>(number());
  return {take(size), size};
}

void add(ByteWriter& bytes, const RunRecord& record) {
  for (const std::string* text : {&record.identity, &record.experiment, &record.name})
    bytes.add(*text);
  bytes.add(static_cast<std::uint64_t>(record.status));
  bytes.add(record.reason);
  add_all(bytes, record.metrics);
  add_all(bytes, record.labels);
  add_all(bytes, record.classes);
  add_all(bytes, record.components);
  add_all(bytes, record.link_classes);
  add_all(bytes, record.links);
  add_all(bytes, record.rows);
  bytes.add(record.provenance.dump());
}

RunRecord read_record(ByteReader& bytes) {
  RunRecord record;
  for (std::string* text : {&record.identity, &record.experiment, &record.name})
    *text = bytes.text();
  record.status = static_cast<RunStatus>(bytes.number());
  record.reason = bytes.text();
  read_all(bytes, record.metrics);
  read_all(bytes, record.labels);
  read_all(bytes, record.classes);
  read_all(bytes, record.components);
  read_all(bytes, record.link_classes);
  read_all(bytes, record.links);
  read_all(bytes, record.rows);
  record.provenance = nlohmann::ordered_json::parse(bytes.text());
  return record;
}

std::string result_digest(const RunRecord& record) {
  ByteWriter bytes;
  bytes.add(std::string_view(to_string(record.status)));
  bytes.add(record.reason);
  for (const Metric* metric : by_name(record.metrics))
    if (metric->name != kWallTimeMetric) add(bytes, *metric);
  for (const Label* label : by_name(record.labels)) add(bytes, *label);
  add_all(bytes, record.classes);
  add_all(bytes, record.link_classes);
  add_all(bytes, record.links);
  for (const ResultRows& rows : record.rows) add(bytes, rows);
  bytes.add(canonical_json(record.provenance));
  return sha256_hex(bytes.bytes());
}

}  // namespace orrery
