// SPDX-License-Identifier: Apache-2.0
#include "sim/store/old_records.h"

#include <array>
#include <charconv>
#include <exception>
#include <nlohmann/json.hpp>
#include <utility>

#include "sim/results/identity.h"
#include "sim/store/record_reader.h"
#include "sim/units/sha256.h"

namespace orrery {
namespace {

constexpr const char* kClassScope = "class";
constexpr const char* kLinkScope = "link";

/// printf's %.17g in the C locale, as digests of those versions were made.
std::string canonical_decimal(double value) {
  std::array<char, 32> digits{};
  value += 0.0;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value,
                                 std::chars_format::general, 17);
  return {digits.data(), end.ptr};
}

nlohmann::ordered_json canonical_metrics(const RunRecord& record) {
  nlohmann::ordered_json metrics = nlohmann::ordered_json::object();
  for (const Metric& metric : record.metrics) {
    if (metric.name == kWallTimeMetric) continue;
    nlohmann::ordered_json entry = {canonical_decimal(metric.value), metric.unit};
    if (metric.interval) {
      entry.push_back(canonical_decimal(metric.interval->first));
      entry.push_back(canonical_decimal(metric.interval->second));
    }
    metrics[metric.name] = std::move(entry);
  }
  return metrics;
}

nlohmann::ordered_json canonical_links(const std::vector<LinkUse>& links) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const LinkUse& use : links) {
    list.push_back({use.name, use.links, canonical_decimal(use.bytes),
                    canonical_decimal(use.busy_share), canonical_decimal(use.peak_share)});
  }
  return list;
}

std::string old_digest(const RunRecord& record) {
  nlohmann::ordered_json labels = nlohmann::ordered_json::object();
  for (const Label& label : record.labels) labels[label.name] = label.value;
  nlohmann::ordered_json classes = nlohmann::ordered_json::array();
  for (const ClassBreakdown& c : record.classes) {
    classes.push_back({c.name, c.count, canonical_decimal(c.time_s), canonical_decimal(c.flops),
                       canonical_decimal(c.bytes)});
  }
  nlohmann::ordered_json results = {{"status", to_string(record.status)},
                                    {"reason", record.reason},
                                    {"metrics", canonical_metrics(record)},
                                    {"labels", labels},
                                    {"classes", classes},
                                    {"provenance", record.provenance}};
  // Results of store versions 1 and 2 have none.
  if (!record.link_classes.empty()) results["link_classes"] = canonical_links(record.link_classes);
  if (!record.links.empty()) results["links"] = canonical_links(record.links);
  return sha256_hex(canonical_json(results));
}

}  // namespace

OldRecordReader::OldRecordReader(Database& database, const std::string& prefix)
    : database_(database),
      point_(database.prepare("SELECT point, identity, experiment, name, status, reason, "
                              "configuration, provenance, digest FROM " +
                              prefix + "points WHERE identity = ?")),
      next_(database.prepare("SELECT min(identity) FROM " + prefix + "points WHERE identity > ?")),
      engine_(
          database.prepare("SELECT engine_version FROM " + prefix + "points WHERE identity = ?")),
      metrics_(database.prepare("SELECT name, value, text, unit, p10, p90 FROM " + prefix +
                                "metrics WHERE point = ? ORDER BY position")),
      classes_(database.prepare("SELECT name, count, time_s, flops, bytes FROM " + prefix +
                                "classes WHERE point = ? ORDER BY position")),
      parameters_(database.prepare("SELECT path, value, unit, text, origin FROM " + prefix +
                                   "parameters WHERE point = ? ORDER BY position")),
      runs_(database.prepare("SELECT started, wall_s, host FROM " + prefix + "runs JOIN " + prefix +
                             "points USING (point) WHERE identity = ? ORDER BY started, host")) {
  if (database.integer("SELECT count(*) FROM sqlite_schema WHERE name = '" + prefix + "links'") ==
      0)
    return;
  links_ = database.prepare("SELECT name, links, bytes, busy_share, peak_share FROM " + prefix +
                            "links WHERE point = ? AND scope = ? ORDER BY position");
}

std::optional<RunRecord> OldRecordReader::find(std::string_view identity) {
  point_.reset();
  point_.bind(1, identity);
  if (!point_.step()) return std::nullopt;
  RunRecord record;
  const std::int64_t point = point_.integer(0);
  record.identity = point_.text(1);
  record.experiment = point_.text(2);
  record.name = point_.text(3);
  record.reason = point_.text(5);
  const std::string digest = point_.text(8);
  auto configuration = std::make_shared<Configuration>();
  try {
    record.status = stored_status(database_, identity, point_.text(4));
    configuration->canonical = std::make_shared<const nlohmann::ordered_json>(
        nlohmann::ordered_json::parse(point_.text(6)));
    record.provenance = nlohmann::ordered_json::parse(point_.text(7));
  } catch (const StoreError&) {
    throw;
  } catch (const std::exception& error) {
    database_.refuse(StoreFault::kCorrupt, "result " + record.identity + ": " + error.what());
  }
  read_metrics(point, record);
  read_classes(point, record);
  read_links(point, kClassScope, record.link_classes);
  read_links(point, kLinkScope, record.links);
  configuration->parameters = read_parameters(point);
  record.base = std::move(configuration);
  // Only now: all reads of a connection see the state that its first open statement saw.
  point_.reset();
  if (old_digest(record) != digest) {
    database_.refuse(StoreFault::kCorrupt, "result " + record.identity + " (" + record.name +
                                               ") does not match its digest");
  }
  return record;
}

std::optional<std::string> OldRecordReader::next_identity(std::string_view identity) {
  next_.bind(1, identity);
  next_.step();
  std::optional<std::string> next;
  if (!next_.is_null(0)) next = next_.text(0);
  next_.reset();
  return next;
}

void OldRecordReader::read_metrics(std::int64_t point, RunRecord& record) {
  metrics_.bind(1, point);
  while (metrics_.step()) {
    if (!metrics_.is_null(2)) {
      record.labels.push_back({metrics_.text(0), metrics_.text(2)});
      continue;
    }
    Metric metric{metrics_.text(0), metrics_.real(1), metrics_.text(3)};
    if (!metrics_.is_null(4)) metric.interval = {metrics_.real(4), metrics_.real(5)};
    record.metrics.push_back(std::move(metric));
  }
  metrics_.reset();
}

void OldRecordReader::read_classes(std::int64_t point, RunRecord& record) {
  classes_.bind(1, point);
  while (classes_.step()) {
    record.classes.push_back({classes_.text(0), static_cast<std::uint64_t>(classes_.integer(1)),
                              classes_.real(2), classes_.real(3), classes_.real(4)});
  }
  classes_.reset();
}

void OldRecordReader::read_links(std::int64_t point, const char* scope,
                                 std::vector<LinkUse>& links) {
  if (!links_) return;
  links_->bind(1, point).bind(2, scope);
  while (links_->step()) {
    links.push_back({links_->text(0), static_cast<std::uint64_t>(links_->integer(1)),
                     links_->real(2), links_->real(3), links_->real(4)});
  }
  links_->reset();
}

std::vector<Parameter> OldRecordReader::read_parameters(std::int64_t point) {
  std::vector<Parameter> parameters;
  parameters_.bind(1, point);
  while (parameters_.step()) {
    parameters.push_back({parameters_.text(0), parameters_.text(3), parameters_.optional_real(1),
                          parameters_.text(2), parameters_.text(4)});
  }
  parameters_.reset();
  return parameters;
}

std::string OldRecordReader::engine_version(std::string_view identity) {
  engine_.bind(1, identity);
  std::string version = engine_.step() ? engine_.text(0) : std::string();
  engine_.reset();
  return version;
}

std::vector<RunTimes> OldRecordReader::times(std::string_view identity) {
  std::vector<RunTimes> times;
  runs_.bind(1, identity);
  while (runs_.step()) times.push_back({runs_.text(0), runs_.real(1), runs_.text(2)});
  runs_.reset();
  return times;
}

}  // namespace orrery
