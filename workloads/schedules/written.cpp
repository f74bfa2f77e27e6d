// SPDX-License-Identifier: Apache-2.0
#include "workloads/schedules/written.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <sstream>

#include "sim/config/byte_source.h"
#include "sim/config/diagnostics.h"
#include "workloads/schedules/order_check.h"

namespace orrery {
namespace {

using PassKind = Pass::Kind;

/// Passes of a rank and where they stand in its line.
struct WrittenRank {
  std::vector<Pass> passes;
  std::vector<std::size_t> at;  ///< column of each, from 0
  std::size_t end = 0;          ///< length of the line
  int line = 0;                 ///< line of the file, from 1
};

/// Where the lines of a schedule are from, for what is wrong with them.
struct Source {
  std::string file;  ///< empty: they are items of schedule.passes
  std::string text;

  [[noreturn]] void refuse(std::size_t rank, int line, std::size_t column, std::size_t length,
                           const std::string& message) const {
    if (file.empty()) throw config::KeyError("schedule.passes." + std::to_string(rank), message);
    config::Diagnostics diagnostics;
    diagnostics.add_source(file, text);
    diagnostics.error({file, line, static_cast<int>(column) + 1}, static_cast<int>(length),
                      message);
    diagnostics.throw_if_errors();
    throw config::ConfigError(message);
  }
};

bool take_number(const std::string& word, std::size_t& at, std::int64_t& number) {
  const char* begin = word.data() + at;
  const auto [end, error] = std::from_chars(begin, word.data() + word.size(), number);
  at += static_cast<std::size_t>(end - begin);
  return error == std::errc{};
}

/// "F3.1" at `at` of a word, which is moved behind it.
bool take_pass(const std::string& word, std::size_t& at, Pass& pass) {
  constexpr std::pair<char, PassKind> kKinds[] = {
      {'F', PassKind::kForward}, {'B', PassKind::kBackward}, {'W', PassKind::kWeightGradient}};
  const auto* const kind = std::find_if(std::begin(kKinds), std::end(kKinds), [&](const auto& k) {
    return at < word.size() && k.first == word[at];
  });
  if (kind == std::end(kKinds)) return false;
  pass.kind = kind->second;
  std::int64_t chunk = 0;
  if (!take_number(word, ++at, pass.micro_batch)) return false;
  if (at < word.size() && word[at] == '.' && !take_number(word, ++at, chunk)) return false;
  pass.chunk = static_cast<int>(chunk);
  return true;
}

/// Where a micro-batch has gradients of weights apart, its B are those of activations.
void split_backwards(std::vector<Pass>& passes) {
  for (Pass& pass : passes) {
    const bool split = std::ranges::any_of(passes, [&](const Pass& other) {
      return other.kind == PassKind::kWeightGradient && other.chunk == pass.chunk &&
             other.micro_batch == pass.micro_batch;
    });
    if (pass.kind == PassKind::kBackward && split) pass.kind = PassKind::kInputGradient;
  }
}

WrittenRank parse_rank(const std::string& line, const Source& source, std::size_t rank,
                       int number) {
  WrittenRank written;
  written.line = number;
  written.end = line.size();
  for (std::size_t at = 0; at < line.size();) {
    if (line[at] == ' ' || line[at] == '\t' || line[at] == '\r') {
      ++at;
      continue;
    }
    const std::size_t begin = at;
    Pass pass;
    const bool good = take_pass(line, at, pass);
    pass.with_next = at < line.size() && line[at] == '+';
    const bool ends = at == line.size() || line[at] == ' ' || line[at] == '\t' || line[at] == '\r';
    if (!good || (!pass.with_next && !ends)) {
      const std::size_t end = std::min(line.find(' ', begin), line.size());
      source.refuse(rank, number, begin, end - begin,
                    "'" + line.substr(begin, end - begin) +
                        "' is no pass such as F3, B3.1 (micro-batch 3, chunk 1), W3 or F4+B2");
    }
    if (pass.with_next) ++at;
    written.passes.push_back(pass);
    written.at.push_back(begin);
  }
  if (!written.passes.empty() && written.passes.back().with_next)
    source.refuse(rank, number, line.size() - 1, 1, "nothing stands beside the last pass");
  split_backwards(written.passes);
  return written;
}

class WrittenSchedule final : public PipelineSchedule {
 public:
  WrittenSchedule(std::vector<WrittenRank> ranks, Source source, ChunkPlacement order)
      : ranks_(std::move(ranks)), source_(std::move(source)), order_(order) {}

  ChunkLimits chunks() const override {
    return order_ == ChunkPlacement::kFolded ? ChunkLimits{2, 2} : ChunkLimits{};
  }
  Placement place(const PipelineShape& shape) const override {
    return order_ == ChunkPlacement::kFolded ? Placement::folded(shape.ranks)
                                             : PipelineSchedule::place(shape);
  }
  std::vector<Pass> passes(const PipelineShape&, int rank) const override {
    return ranks_.at(static_cast<std::size_t>(rank)).passes;
  }

  void check(const PipelineShape& shape) const override {
    if (ranks_.size() != static_cast<std::size_t>(shape.ranks))
      throw config::KeyError({"schedule.passes", "schedule", "parallel.pp"},
                             "the schedule has passes of " + std::to_string(ranks_.size()) +
                                 " stages, the pipeline has pp = " + std::to_string(shape.ranks));
    std::vector<std::vector<Pass>> passes;
    for (const WrittenRank& rank : ranks_) passes.push_back(rank.passes);
    const auto fault = first_fault(place(shape), shape, passes);
    if (!fault) return;
    const auto r = static_cast<std::size_t>(fault->rank);
    const WrittenRank& rank = ranks_[r];
    const bool missing = fault->pass == rank.passes.size();
    const std::size_t column = missing ? rank.end : rank.at[fault->pass];
    source_.refuse(r, rank.line, column, missing ? 1 : to_string(rank.passes[fault->pass]).size(),
                   fmt::format("stage {}: {}", fault->rank, fault->message));
  }

 private:
  std::vector<WrittenRank> ranks_;
  Source source_;
  ChunkPlacement order_;
};

/// Lines of a text that are not empty and no comment, with their numbers.
std::vector<std::pair<std::string, int>> lines_of(const std::string& text) {
  std::vector<std::pair<std::string, int>> lines;
  std::istringstream rest(text);
  std::string line;
  for (int number = 1; std::getline(rest, line); ++number) {
    line.resize(std::min(line.find('#'), line.size()));
    if (line.find_first_not_of(" \t\r") != std::string::npos) lines.emplace_back(line, number);
  }
  return lines;
}

}  // namespace

std::shared_ptr<const PipelineSchedule> ScheduleConfig::written() const {
  if (file.empty() && passes.empty()) return nullptr;
  Source source{file.path, file.empty() ? std::string() : read_input(file.path)};
  std::vector<std::pair<std::string, int>> lines;
  if (file.empty()) {
    for (const std::string& line : passes) lines.emplace_back(line, 0);
  } else {
    lines = lines_of(source.text);
  }
  std::vector<WrittenRank> ranks;
  ranks.reserve(lines.size());
  for (const auto& [line, number] : lines)
    ranks.push_back(parse_rank(line, source, ranks.size(), number));
  return std::make_shared<WrittenSchedule>(std::move(ranks), std::move(source), chunks);
}

const config::Schema<ScheduleConfig>& ScheduleConfig::schema() {
  using S = ScheduleConfig;
  static const auto schema =
      config::Schema<S>("schedule", "order in which the stages of a pipeline work")
          .shorthand("name")
          .optional("name", &S::name,
                    "a name of `orrery describe schedules`, or auto: interleaved with vpp > 1, "
                    "else 1f1b")
          .optional("file", &S::file,
                    "text with a line of passes for each stage: F3.1 is the forward pass of "
                    "micro-batch 3 through chunk 1, B a backward pass, W its gradients of weights "
                    "where they come apart, F4+B2 two side by side")
          .optional("passes", &S::passes, "lines of a file, a text for each stage")
          .optional("chunks", &S::chunks,
                    "slices of the chunks of written passes: round_robin, or folded, two that lie "
                    "as a V")
          .check("a schedule is a name, a file or passes",
                 [](const S& s) {
                   return (s.name != kAutoSchedule) + !s.file.empty() + !s.passes.empty() <= 1;
                 },
                 {"name", "file", "passes"});
  return schema;
}

}  // namespace orrery
