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

void add_metric(ByteWriter& bytes, const Metric& metric) {
  bytes.add(metric.name);
  bytes.add(metric.unit);
  bytes.add(metric.value);
  bytes.add(std::uint64_t{metric.interval.has_value()});
  if (!metric.interval) return;
  bytes.add(metric.interval->first);
  bytes.add(metric.interval->second);
}

Metric read_metric(ByteReader& bytes) {
  Metric metric;
  metric.name = bytes.text();
  metric.unit = bytes.text();
  metric.value = bytes.real();
  if (bytes.number() == 0) return metric;
  const double p10 = bytes.real();
  metric.interval = {p10, bytes.real()};
  return metric;
}

void add_label(ByteWriter& bytes, const Label& label) {
  bytes.add(label.name);
  bytes.add(label.value);
}

void add_classes(ByteWriter& bytes, const std::vector<ClassBreakdown>& classes) {
  bytes.add(std::uint64_t{classes.size()});
  for (const ClassBreakdown& c : classes) {
    bytes.add(c.name);
    bytes.add(c.count);
    for (const double number : {c.time_s, c.flops, c.bytes}) bytes.add(number);
  }
}

std::vector<ClassBreakdown> read_classes(ByteReader& bytes) {
  std::vector<ClassBreakdown> classes(bytes.number());
  for (ClassBreakdown& c : classes) {
    c.name = bytes.text();
    c.count = bytes.number();
    for (double* number : {&c.time_s, &c.flops, &c.bytes}) *number = bytes.real();
  }
  return classes;
}

void add_links(ByteWriter& bytes, const std::vector<LinkUse>& links) {
  bytes.add(std::uint64_t{links.size()});
  for (const LinkUse& use : links) {
    bytes.add(use.name);
    bytes.add(use.links);
    for (const double number : {use.bytes, use.busy_share, use.peak_share}) bytes.add(number);
  }
}

std::vector<LinkUse> read_links(ByteReader& bytes) {
  std::vector<LinkUse> links(bytes.number());
  for (LinkUse& use : links) {
    use.name = bytes.text();
    use.links = bytes.number();
    for (double* number : {&use.bytes, &use.busy_share, &use.peak_share}) *number = bytes.real();
  }
  return links;
}

void add_rows(ByteWriter& bytes, const std::vector<ResultRows>& tables) {
  for (const ResultRows& rows : tables) {
    bytes.add(rows.name);
    bytes.add(std::uint64_t{rows.values.size()});
    for (const double value : rows.values) bytes.add(value);
  }
}

std::vector<ResultRows> read_rows(ByteReader& bytes) {
  std::vector<ResultRows> tables(bytes.number());
  for (ResultRows& rows : tables) {
    rows.name = bytes.text();
    rows.values.resize(bytes.number());
    for (double& value : rows.values) value = bytes.real();
  }
  return tables;
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
  bytes.add(std::uint64_t{record.metrics.size()});
  for (const Metric& metric : record.metrics) add_metric(bytes, metric);
  bytes.add(std::uint64_t{record.labels.size()});
  for (const Label& label : record.labels) add_label(bytes, label);
  add_classes(bytes, record.classes);
  bytes.add(std::uint64_t{record.components.size()});
  for (const ComponentUse& use : record.components) {
    bytes.add(use.name);
    bytes.add(use.busy_share);
    bytes.add(use.sent_bytes);
  }
  add_links(bytes, record.link_classes);
  add_links(bytes, record.links);
  bytes.add(std::uint64_t{record.rows.size()});
  add_rows(bytes, record.rows);
  bytes.add(record.provenance.dump());
}

RunRecord read_record(ByteReader& bytes) {
  RunRecord record;
  for (std::string* text : {&record.identity, &record.experiment, &record.name})
    *text = bytes.text();
  record.status = static_cast<RunStatus>(bytes.number());
  record.reason = bytes.text();
  record.metrics.resize(bytes.number());
  for (Metric& metric : record.metrics) metric = read_metric(bytes);
  record.labels.resize(bytes.number());
  for (Label& label : record.labels) {
    label.name = bytes.text();
    label.value = bytes.text();
  }
  record.classes = read_classes(bytes);
  record.components.resize(bytes.number());
  for (ComponentUse& use : record.components) {
    use.name = bytes.text();
    use.busy_share = bytes.real();
    use.sent_bytes = bytes.real();
  }
  record.link_classes = read_links(bytes);
  record.links = read_links(bytes);
  record.rows = read_rows(bytes);
  record.provenance = nlohmann::ordered_json::parse(bytes.text());
  return record;
}

std::string result_digest(const RunRecord& record) {
  ByteWriter bytes;
  bytes.add(std::string_view(to_string(record.status)));
  bytes.add(record.reason);
  for (const Metric* metric : by_name(record.metrics))
    if (metric->name != kWallTimeMetric) add_metric(bytes, *metric);
  for (const Label* label : by_name(record.labels)) add_label(bytes, *label);
  add_classes(bytes, record.classes);
  add_links(bytes, record.link_classes);
  add_links(bytes, record.links);
  add_rows(bytes, record.rows);
  bytes.add(canonical_json(record.provenance));
  return sha256_hex(bytes.bytes());
}

}  // namespace orrery
