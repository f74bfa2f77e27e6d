// SPDX-License-Identifier: Apache-2.0
#include "sim/store/result_store.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "sim/results/identity.h"
#include "sim/store/record_rows.h"
#include "sim/store/store_file.h"

namespace orrery {
namespace {

/// printf's %.17g in the C locale: enough digits to tell any two doubles apart.
std::string canonical_decimal(double value) {
  std::array<char, 32> digits{};
  value += 0.0;  // -0 is 0: SQLite does not keep the sign
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

std::string difference(const RunRecord& stored, const RunRecord& computed) {
  if (stored.status != computed.status) {
    return std::string("status ") + to_string(stored.status) + " and " + to_string(computed.status);
  }
  for (const Metric& metric : computed.metrics) {
    const Metric* other = stored.find(metric.name);
    if (other && other->value != metric.value) {
      return metric.name + " " + canonical_decimal(other->value) + " and " +
             canonical_decimal(metric.value) + " " + metric.unit;
    }
  }
  return "the same metrics, but other labels, intervals, classes or provenance";
}

struct StoredPoint {
  std::int64_t point;
  RunStatus status;
  std::string digest;
};

std::optional<StoredPoint> stored_point(const Database& database, std::string_view identity) {
  Statement select =
      database.prepare("SELECT point, status, digest FROM points WHERE identity = ?");
  select.bind(1, identity);
  if (!select.step()) return std::nullopt;
  return StoredPoint{select.integer(0), run_status_from(select.text(1)), select.text(2)};
}

[[noreturn]] void throw_nondeterministic(Database& database, const RunRecord& record) {
  const std::optional<RunRecord> stored = RecordReader(database).find(record.identity);
  throw DeterminismError("point " + record.identity + " (" + record.name +
                         ") gave two results: " + difference(stored.value(), record));
}

nlohmann::ordered_json canonical_links(const std::vector<LinkUse>& links) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const LinkUse& use : links) {
    list.push_back({use.name, use.links, canonical_decimal(use.bytes),
                    canonical_decimal(use.busy_share), canonical_decimal(use.peak_share)});
  }
  return list;
}

}  // namespace

std::string result_digest(const RunRecord& record) {
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

ResultStore::ResultStore(std::filesystem::path path, bool may_write, std::uint64_t max_bytes)
    : path_(std::move(path)),
      may_write_(may_write),
      max_bytes_(max_bytes),
      database_(open_store_to_read(path_)) {}

ResultStore::ResultStore(ResultStore&&) noexcept = default;

ResultStore::~ResultStore() {
  if (writing_ && database_) settle_store(*database_);
}

ResultStore ResultStore::open(const std::filesystem::path& path, std::uint64_t max_bytes) {
  const std::filesystem::path folder = std::filesystem::absolute(path).parent_path();
  if (!std::filesystem::is_directory(folder)) {
    throw StoreError(StoreFault::kUnreachable, path.string() + ": there is no folder " +
                                                   folder.string() + " to create it in");
  }
  return ResultStore(path, true, max_bytes);
}

ResultStore ResultStore::open_read_only(const std::filesystem::path& path) {
  ResultStore store(path, false, 0);
  if (!store.database_) {
    throw StoreError(StoreFault::kUnreachable, path.string() + ": there is no result store here");
  }
  return store;
}

void ResultStore::begin_writing() {
  if (!may_write_) throw std::logic_error(path_.string() + " was opened to be read");
  if (writing_) return;
  database_ = open_store_to_write(path_, max_bytes_);
  writing_ = true;
}

SaveOutcome ResultStore::save(const RunRecord& record, const RunTimes& times,
                              const std::vector<TileRow>& tiles) {
  require_valid(record);
  if (record.identity.empty()) throw std::logic_error("a result without identity");
  begin_writing();
  Transaction transaction(*database_);
  std::optional<StoredPoint> stored = stored_point(*database_, record.identity);
  SaveOutcome outcome = SaveOutcome::kAdded;
  if (stored && stored->digest != result_digest(record)) {
    if (stored->status == RunStatus::kFailed) {
      database_->prepare("DELETE FROM points WHERE point = ?").bind(1, stored->point).run();
      stored.reset();
      outcome = SaveOutcome::kReplacedFailure;
    } else if (record.status != RunStatus::kFailed) {
      throw_nondeterministic(*database_, record);
    }
  }
  if (stored) outcome = SaveOutcome::kAlreadyThere;
  insert_run(*database_, stored ? stored->point : insert_record(*database_, record), times);
  insert_tiles(*database_, tiles);
  transaction.commit();
  return outcome;
}

std::optional<RunStatus> ResultStore::status(std::string_view identity) const {
  if (!database_) return std::nullopt;
  const std::optional<StoredPoint> stored = stored_point(*database_, identity);
  return stored ? std::optional(stored->status) : std::nullopt;
}

std::optional<RunRecord> ResultStore::find(std::string_view identity) const {
  if (!database_) return std::nullopt;
  return RecordReader(*database_).find(identity);
}

std::vector<RunTimes> ResultStore::times(std::string_view identity) const {
  std::vector<RunTimes> times;
  if (!database_) return times;
  Statement select = database_->prepare(
      "SELECT started, wall_s, host FROM runs JOIN points USING (point) WHERE identity = ? "
      "ORDER BY started, host");
  select.bind(1, identity);
  while (select.step()) times.push_back({select.text(0), select.real(1), select.text(2)});
  return times;
}

void ResultStore::for_each(const std::function<void(const RunRecord&)>& visit) const {
  if (!database_) return;
  // From identity to identity rather than one long SELECT, which would keep writers waiting while
  // the visitor works.
  RecordReader reader(*database_);
  for (auto next = reader.next_identity(""); next; next = reader.next_identity(*next)) {
    if (const std::optional<RunRecord> record = reader.find(*next)) visit(*record);
  }
}

std::vector<RunRecord> ResultStore::all() const {
  std::vector<RunRecord> records;
  for_each([&](const RunRecord& record) { records.push_back(record); });
  return records;
}

std::vector<TileRow> ResultStore::tiles() const {
  return database_ ? read_tiles(*database_) : std::vector<TileRow>{};
}

void ResultStore::verify() const {
  if (!database_) return;
  const std::string integrity = database_->text("PRAGMA integrity_check");
  if (integrity != "ok") {
    throw StoreError(StoreFault::kCorrupt, path_.string() + ": " + integrity);
  }
  if (const std::string table = database_->text("PRAGMA foreign_key_check"); !table.empty()) {
    throw StoreError(StoreFault::kCorrupt,
                     path_.string() + ": table " + table + " refers to a point that is not there");
  }
  for_each([](const RunRecord&) {});
  read_tiles(*database_);
}

}  // namespace orrery
