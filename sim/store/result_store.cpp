// SPDX-License-Identifier: Apache-2.0
#include "sim/store/result_store.h"

#include <fmt/core.h>

#include <algorithm>

#include "sim/results/record_bytes.h"
#include "sim/results/version.h"
#include "sim/store/record_reader.h"
#include "sim/store/record_writer.h"
#include "sim/store/row_groups.h"
#include "sim/store/schema.h"
#include "sim/store/store_file.h"

namespace orrery {
namespace {

std::string difference(const RunRecord& stored, const RunRecord& computed) {
  if (stored.status != computed.status)
    return fmt::format("status {} and {}", to_string(stored.status), to_string(computed.status));
  for (const Metric& metric : computed.metrics) {
    const Metric* other = stored.find(metric.name);
    if (other && other->value != metric.value)  // digits enough to tell any two doubles apart
      return fmt::format("{} {:.17g} and {:.17g} {}", metric.name, other->value, metric.value,
                         metric.unit);
  }
  return "the same metrics, but other labels, intervals, classes or provenance";
}

[[noreturn]] void throw_nondeterministic(Database& database, const RunRecord& record) {
  const std::optional<RunRecord> stored = RecordReader(database).find(record.identity);
  throw DeterminismError(fmt::format("point {} ({}) gave two results: {}", record.identity,
                                     record.name, difference(stored.value(), record)));
}

}  // namespace

ResultStore::ResultStore(std::filesystem::path path, bool may_write, std::uint64_t max_bytes)
    : path_(std::move(path)),
      may_write_(may_write),
      max_bytes_(max_bytes),
      database_(open_store_to_read(path_)) {}

ResultStore::ResultStore(ResultStore&&) noexcept = default;

ResultStore::~ResultStore() {
  reader_.reset();
  writer_.reset();
  if (writing_ && database_) settle_store(*database_);
}

ResultStore ResultStore::open(const std::filesystem::path& path, std::uint64_t max_bytes) {
  const std::filesystem::path folder = std::filesystem::absolute(path).parent_path();
  if (!std::filesystem::is_directory(folder))
    throw StoreError(
        StoreFault::kUnreachable,
        fmt::format("{}: there is no folder {} to create it in", path.string(), folder.string()));
  return ResultStore(path, true, max_bytes);
}

ResultStore ResultStore::open_read_only(const std::filesystem::path& path) {
  ResultStore store(path, false, 0);
  if (!store.database_)
    throw StoreError(StoreFault::kUnreachable, path.string() + ": there is no result store here");
  return store;
}

void ResultStore::begin_writing() {
  if (!may_write_) throw std::logic_error(path_.string() + " was opened to be read");
  if (writing_) return;
  reader_.reset();
  database_ = open_store_to_write(path_, max_bytes_);
  writer_ = std::make_unique<RecordWriter>(*database_);
  writing_ = true;
}

ResultStore::Batch::Batch(ResultStore& store) : store_(store), transaction_(*store.database_) {}

ResultStore::Batch::~Batch() {
  if (!committed_) store_.writer_->forget();
}

void ResultStore::Batch::commit() {
  store_.writer_->add_row_groups();
  transaction_.commit();
  committed_ = true;
}

SaveOutcome ResultStore::Batch::save(const RunRecord& record, const RunTimes& times,
                                     const std::vector<TileRow>& tiles) {
  const SaveOutcome outcome = save({record, {times}, kEngineVersion});
  insert_tiles(*store_.database_, tiles);
  return outcome;
}

SaveOutcome ResultStore::Batch::save(const StoredPoint& stored_elsewhere) {
  const auto& [record, attempts, engine_version] = stored_elsewhere;
  require_valid(record);
  if (record.identity.empty()) throw std::logic_error("a result without identity");
  Database& database = *store_.database_;
  const std::string digest = result_digest(record);
  std::optional<RecordWriter::Stored> stored = store_.writer_->find(record.identity);
  SaveOutcome outcome = SaveOutcome::kAdded;
  std::vector<RunTimes> earlier;
  if (stored && stored->digest != digest) {
    if (stored->status == RunStatus::kFailed) {
      earlier = store_.writer_->remove(stored->point);
      stored.reset();
      outcome = SaveOutcome::kReplacedFailure;
    } else if (record.status != RunStatus::kFailed) {
      throw_nondeterministic(database, record);
    }
  }
  if (stored) outcome = SaveOutcome::kAlreadyThere;
  const std::int64_t point =
      stored ? stored->point
             : store_.writer_->insert(record, digest, engine_version,
                                      attempts.empty() ? 0 : attempts.back().exit_code);
  for (const RunTimes& attempt : earlier) store_.writer_->insert_attempt(point, attempt);
  for (const RunTimes& attempt : attempts) store_.writer_->insert_attempt(point, attempt);
  return outcome;
}

ResultStore::Batch ResultStore::begin() {
  begin_writing();
  return Batch(*this);
}

SaveOutcome ResultStore::save(const RunRecord& record, const RunTimes& times,
                              const std::vector<TileRow>& tiles) {
  require_valid(record);  // before anything is created
  Batch batch = begin();
  const SaveOutcome outcome = batch.save(record, times, tiles);
  batch.commit();
  return outcome;
}

void ResultStore::group_rows() {
  if (!writing_) return;
  // Some 60 ms each, and others may wait for the lock.
  constexpr std::int64_t kMostAtOnce = 32;
  for (std::int64_t next = 0, last = -1; next != last;) {
    last = next;
    Transaction transaction(*database_);
    next = add_row_groups(*database_, last, kMostAtOnce);
    transaction.commit();
  }
}

RecordReader& ResultStore::reader() const {
  if (!reader_) reader_ = std::make_unique<RecordReader>(*database_);
  return *reader_;
}

std::optional<RunStatus> ResultStore::status(std::string_view identity) const {
  return database_ ? reader().status(identity) : std::nullopt;
}

std::optional<RunRecord> ResultStore::find(std::string_view identity) const {
  if (!database_) return std::nullopt;
  try {
    return reader().find(identity);
  } catch (...) {
    reader_.reset();  // with what it had open
    throw;
  }
}

std::optional<StoredPoint> ResultStore::point(std::string_view identity) const {
  std::optional<RunRecord> record = find(identity);
  if (!record) return std::nullopt;
  Statement version = database_->prepare("SELECT engine_version FROM points WHERE identity = ?");
  version.bind(1, identity).step();
  return StoredPoint{std::move(*record), times(identity), version.text(0)};
}

std::optional<std::string> ResultStore::next_identity(std::string_view identity) const {
  return database_ ? reader().next_identity(identity) : std::nullopt;
}

std::vector<RunTimes> ResultStore::times(std::string_view identity) const {
  if (!database_) return {};
  Statement select = database_->prepare("SELECT point FROM points WHERE identity = ?");
  select.bind(1, identity);
  return select.step() ? read_attempts(*database_, select.integer(0)) : std::vector<RunTimes>{};
}

void ResultStore::for_each(const std::function<void(const RunRecord&)>& visit) const {
  // From identity to identity rather than one long SELECT, which would keep writers waiting while
  // the visitor works.
  for (auto next = next_identity(""); next; next = next_identity(*next))
    if (const std::optional<RunRecord> record = find(*next)) visit(*record);
}

std::vector<RunRecord> ResultStore::all() const {
  std::vector<RunRecord> records;
  for_each([&](const RunRecord& record) { records.push_back(record); });
  return records;
}

std::vector<TileRow> ResultStore::tiles() const {
  return database_ ? read_tiles(*database_) : std::vector<TileRow>{};
}

std::optional<SearchRow> ResultStore::search(std::string_view key) const {
  if (!database_) return std::nullopt;
  for (SearchRow& row : read_searches(*database_))
    if (row.key == key) return std::move(row);
  return std::nullopt;
}

void ResultStore::begin_search(const SearchRow& row) {
  Batch batch = begin();
  insert_search(*database_, row);
  batch.commit();
}

void ResultStore::verify() const {
  if (!database_) return;
  const std::string integrity = database_->text("PRAGMA integrity_check");
  if (integrity != "ok") throw StoreError(StoreFault::kCorrupt, path_.string() + ": " + integrity);
  if (const std::string table = database_->text("PRAGMA foreign_key_check"); !table.empty())
    throw StoreError(
        StoreFault::kCorrupt,
        fmt::format("{}: table {} refers to a point that is not there", path_.string(), table));
  for_each([](const RunRecord&) {});
  read_tiles(*database_);
  read_searches(*database_);
}

}  // namespace orrery
