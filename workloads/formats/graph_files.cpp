// SPDX-License-Identifier: Apache-2.0
#include "workloads/formats/graph_files.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "sim/config/byte_source.h"
#include "sim/config/diagnostics.h"
#include "workloads/formats/communicators.h"
#include "workloads/formats/graph_builder.h"
#include "workloads/formats/graph_format.h"
#include "workloads/formats/graph_fusion.h"

namespace orrery {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kHead = std::size_t{64} << 10U;
constexpr int kMostRanks = 10'000'000;

/// Where the last number of a name stands, and how long it is.
struct NumberPlace {
  std::size_t begin = 0, length = 0;
};

/// The last number of a file's name, endings such as ".json.gz" and ".et" apart.
std::optional<NumberPlace> last_number(std::string_view name) {
  constexpr std::string_view kDigits = "0123456789";
  const std::size_t last = name.find_last_of(kDigits);
  if (last == std::string_view::npos) return std::nullopt;
  const std::size_t begin = name.find_last_not_of(kDigits, last) + 1;  // npos + 1 is 0
  return NumberPlace{begin, last + 1 - begin};
}

int number_at(std::string_view name, NumberPlace place, const std::string& path) {
  std::int64_t number = 0;
  for (const char digit : name.substr(place.begin, place.length)) {
    number = number * 10 + (digit - '0');
    if (number > kMostRanks) throw config::ConfigError(path + ": its name has no rank");
  }
  return static_cast<int>(number);
}

/// The rank in the name of a file that stands alone: one that is said to be one.
int rank_of_single(const std::string& path) {
  const std::string name = fs::path(path).filename().string();
  const auto place = last_number(name);
  if (!place) return 0;
  const std::string_view before = std::string_view(name).substr(0, place->begin);
  const std::string_view after = std::string_view(name).substr(place->begin + place->length);
  const bool et = before.ends_with(".") && after.starts_with(".et");
  const bool told =
      before.ends_with("rank") || before.ends_with("rank_") || before.ends_with("rank-");
  return et || told ? number_at(name, *place, path) : 0;
}

const GraphFormat* format_of(const std::string& path, ByteSource& source) {
  const std::string_view head = source.peek(kHead);
  for (const auto& [name, item] : GraphFormatRegistry::items())
    if (item.entry->recognises(head, path)) return item.entry.get();
  return nullptr;
}

/// What a file says itself of its rank, -1 where it does not; nothing for what is no graph.
std::optional<RankFile> told_file(const std::string& path) {
  ByteSource source(path);
  const GraphFormat* const format = format_of(path, source);
  if (format == nullptr) return std::nullopt;
  const std::string_view head = source.peek(kHead);
  const int rank = format->rank(head);
  return RankFile{rank, path, rank >= 0, rank >= 0 && format->is_part(head)};
}

/// The rank in the name of a file, behind a prefix; -1: there is none.
int named_rank(const RankFile& file, std::size_t prefix) {
  const std::string name = fs::path(file.path).filename().string();
  const auto place = last_number(name);
  return place && place->begin >= prefix ? number_at(name, *place, file.path) : -1;
}

/// Whether a name begins with a prefix that does not end within a word of it.
bool begins_with_words(const std::string& name, const std::string& prefix) {
  const auto letter = [](char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; };
  return name.starts_with(prefix) && (prefix.empty() || !letter(prefix.back()) ||
                                      name.size() == prefix.size() || !letter(name[prefix.size()]));
}

/// Files of a folder whose names begin so and have a number behind that.
std::vector<RankFile> files_of(const fs::path& folder, const std::string& prefix) {
  std::vector<RankFile> files;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (!entry.is_regular_file() || !begins_with_words(name, prefix)) continue;
    if (std::optional<RankFile> told = told_file(entry.path().string()))
      files.push_back(std::move(*told));
  }
  if (error) throw config::ConfigError(folder.string() + ": " + error.message());
  if (!std::all_of(files.begin(), files.end(), [](const RankFile& file) { return file.told; })) {
    for (RankFile& file : files) file = {named_rank(file, prefix.size()), file.path, false, false};
    std::erase_if(files, [](const RankFile& file) { return file.rank < 0; });
  }
  std::sort(files.begin(), files.end(), [](const RankFile& a, const RankFile& b) {
    return std::pair(a.rank, a.path) < std::pair(b.rank, b.path);
  });
  return files;
}

/// Refuses files of one rank, and gaps, unless they are a part that was cut out.
void check_ranks_are_whole(const std::vector<RankFile>& files, const std::string& path) {
  const bool part =
      std::all_of(files.begin(), files.end(), [](const RankFile& file) { return file.part; });
  for (std::size_t i = 0; i < files.size(); ++i) {
    if (i > 0 && files[i].rank == files[i - 1].rank)
      throw config::ConfigError(fmt::format("{}: two files of rank {}: {} and {}", path,
                                            files[i].rank, files[i - 1].path, files[i].path));
    if (!part && files[i].rank != static_cast<int>(i))
      throw config::ConfigError(
          fmt::format("{}: there is no file of rank {}, but one of rank {}: {}", path, i,
                      files.back().rank, files.back().path));
  }
}

/// The most that ranks are numbered by, in groups and messages.
int ranks_mentioned(const ImportedRun& run, int least) {
  int ranks = least;
  for (const std::vector<int>& group : run.groups)
    for (const int rank : group) ranks = std::max(ranks, rank + 1);
  for (const ImportedGraph& graph : run.graphs)
    for (const ImportedMessage& message : graph.messages) ranks = std::max(ranks, message.peer + 1);
  return ranks;
}

/// Reads files one after the other; ranks whose files are equal share a graph.
class RunReader {
 public:
  explicit RunReader(const GraphFiles& files) : files_(files) {
    if (!files.groups.empty())
      read_.files.push_back(
          {"groups", files.groups, read_communicators(files.groups, communicators_)});
  }

  /// @param alone the file may be that of another rank than it seems
  void read(const RankFile& file, int ranks, bool alone) {
    const std::string role = fmt::format("rank {}", file.rank);
    const std::uintmax_t size = fs::file_size(file.path);
    if (sizes_.contains(size)) {
      ByteSource bytes(file.path);
      const std::string hash = hash_of_all(bytes);
      if (const auto known = graphs_.find(hash); known != graphs_.end()) {
        read_.files.push_back({role, file.path, hash});
        return place(file.rank, known->second);
      }
    }
    ByteSource source(file.path);
    const GraphFormat* format = format_of(file.path, source);
    if (format == nullptr)
      throw config::ConfigError(file.path + ": is no operator graph of a form that is known");
    GraphBuilder builder;
    if (files_.fuse_kernels) builder.collect_tensors();
    const GraphReadOptions options{file.rank,        ranks,       files_.dimensions,
                                   files_.precision, files_.fuse, files_.repair};
    format->read(source, options, communicators_, builder, read_.run.notes);
    const std::string hash = hash_of_all(source);
    ImportedGraph graph = builder.finish(file.path, files_.repair, read_.run.notes);
    if (files_.fuse_kernels)
      read_.run.notes.push_back(file.path + ": " + fuse_kernels(graph, builder.tensors()).text());
    read_.run.graphs.push_back(std::move(graph));
    read_.files.push_back({role, file.path, hash});
    const auto number = static_cast<std::uint32_t>(read_.run.graphs.size() - 1);
    if (!builder.of_its_rank()) graphs_[hash] = number;
    sizes_.insert(size);
    place(alone && builder.rank() >= 0 ? builder.rank() : file.rank, number);
  }

  /// @param alone one file, of one of several ranks
  /// @param partial ranks that are mentioned may be without a file
  ImportedFiles finish(bool alone, bool partial) {
    read_.run.groups = communicators_.groups();
    if (!partial) return std::move(read_);
    auto& ranks = read_.run.graph_of_rank;
    if (alone && read_.run.graphs.front().messages.empty()) ranks = {ranks.back()};
    const auto known = static_cast<int>(ranks.size());
    const int all = ranks_mentioned(read_.run, known);
    ranks.resize(static_cast<std::size_t>(all), ImportedRun::kAbsent);
    if (alone && all > 1) {
      read_.run.notes.push_back(
          fmt::format("the file is that of rank {} of {}; the others are taken to come to its "
                      "transfers when it does",
                      known - 1, all));
    } else if (const auto absent = std::count(ranks.begin(), ranks.end(), ImportedRun::kAbsent)) {
      read_.run.notes.push_back(
          fmt::format("{} no file: they are taken to come to transfers with the last",
                      absent == 1 ? "1 rank has" : fmt::format("{} ranks have", absent)));
    }
    return std::move(read_);
  }

 private:
  /// What is left of the file is read too.
  static std::string hash_of_all(ByteSource& source) {
    while (!source.next().empty()) {
    }
    return source.sha256();
  }

  void place(int rank, std::uint32_t graph) {
    auto& ranks = read_.run.graph_of_rank;
    const auto needed = static_cast<std::size_t>(rank) + 1;
    if (ranks.size() < needed) ranks.resize(needed, ImportedRun::kAbsent);
    ranks[needed - 1] = graph;
  }

  const GraphFiles& files_;
  ImportedFiles read_;
  Communicators communicators_;
  std::map<std::string, std::uint32_t> graphs_;  ///< graphs by hash of their file
  std::set<std::uintmax_t> sizes_;               ///< sizes of those files
};

}  // namespace

std::vector<RankFile> find_rank_files(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  std::vector<RankFile> files;
  if (fs::is_directory(status)) {
    files = files_of(path, "");
    if (files.empty())
      throw config::ConfigError(path +
                                ": the folder has no operator graph with a rank in its name");
  } else if (fs::exists(status)) {
    const RankFile told = told_file(path).value_or(RankFile{-1, path, false, false});
    return {{told.told ? told.rank : rank_of_single(path), path, told.told, told.part}};
  } else {
    const fs::path folder = fs::path(path).parent_path();
    const std::string prefix = fs::path(path).filename().string();
    if (!prefix.empty() && fs::is_directory(folder.empty() ? "." : folder))
      files = files_of(folder.empty() ? "." : folder, prefix);
    if (files.empty())
      throw config::ConfigError(fmt::format(
          "{0}: no such file, and no operator graphs of ranks ({0}.0.et) either", path));
  }
  check_ranks_are_whole(files, path);
  return files;
}

ImportedFiles read_graph_files(const GraphFiles& files) {
  const std::vector<RankFile> ranks = find_rank_files(files.path);
  RunReader reader(files);
  const bool alone = ranks.size() == 1 && !fs::is_directory(files.path);
  for (const RankFile& file : ranks) reader.read(file, static_cast<int>(ranks.size()), alone);
  return reader.finish(alone, alone || ranks.front().told);
}

}  // namespace orrery
