// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "validation/importers/importer.h"
#include "validation/importers/log_text.h"

namespace orrery {

/// @param name collective that the user says; empty: none
/// @throws config::ConfigError when it is none of nccl-tests, rccl-tests or hccl_test
void check_collective(const std::string& name);

/// The collective of the program that a line names ("./build/all_reduce_perf -b 8" with the suffix
/// "_perf"). Nothing where it names several, such as a list of files.
std::string named_collective(std::string_view line, std::string_view suffix);

/// Bus over algorithm bandwidth (doc/PERFORMANCE.md of nccl-tests); empty where it is not known.
/// Versions of 2018 and before count only the bytes that leave a rank, or those of one rank.
std::vector<double> bus_factors(const std::string& collective, std::int64_t ranks);

/// The library that was measured, as far as lines have told it.
class NcclLibrary {
 public:
  /// "# nccl-tests version 2.17 nccl-headers=22703 nccl-library=22703", "NCCL version 2.27.3+..."
  /// with NCCL_DEBUG=VERSION, or "RCCL version : 2.22.3-...". The number is 10000 major + 100 minor
  /// + patch (NCCL_VERSION in nccl.h, since 2.9).
  void read(std::string_view line);
  /// "nccl-tests__nccl_2.27.3", "rccl-tests"
  std::string source() const;

 private:
  std::string name_ = "nccl", version_;
};

/// The ranks that a run of nccl-tests lists before its table:
///   #  Rank  0 Group  0 Pid 4711 on host device  0 [0x07] NVIDIA H100 80GB HBM3
/// Groups are communicators that run at the same time (NCCL_TESTS_SPLIT); older versions have none.
class NcclRanks {
 public:
  /// What the list says of each communicator.
  struct Communicator {
    std::int64_t ranks = 0;   ///< ranks of one group
    std::int64_t listed = 0;  ///< ranks of one group in a list without gaps; 0: there is none
    std::int64_t groups = 1;  ///< communicators that ran at the same time
    std::optional<std::int64_t>
        nodes;  ///< nodes of one group; nothing: groups differ or ranks lack
  };

  /// @param words of the line, "Rank" the first
  /// @return what is wrong with it; empty: nothing
  std::string add(const LogWord* words, std::size_t count);

  /// Adds the ranks that another process has listed, as old versions print them: each its own. A
  /// list with a rank 0 is that of another run, and not added.
  void add_apart(const NcclRanks& other);

  /// Name of the accelerator of the first rank in the list; empty where none is told.
  const std::string& device() const { return device_; }
  /// Whether ranks have accelerators of different names.
  bool mixed() const { return mixed_; }

  /// @param said ranks of a communicator as the user says; 0: as the list says
  /// @param fault gets what is wrong: ranks that are not 0 to n - 1, groups of different sizes
  Communicator communicator(std::int64_t said, std::string& fault) const;

 private:
  struct Group {
    std::set<std::int64_t> ranks;
    std::set<std::string> hosts;
  };
  std::string gap() const;

  std::set<std::pair<std::int64_t, std::int64_t>> members_;  // group, rank
  std::map<std::int64_t, Group> groups_;
  std::string device_;
  bool mixed_ = false;
};

/// Where the columns of a table of nccl-tests stand among the cells of a row. A position of 0 is
/// that of the size: such a column is not there.
struct NcclColumns {
  struct Half {
    std::size_t time = 0, algorithm = 0, bus = 0, wrong = 0;
  };
  std::size_t count = 0;  ///< cells of a row; 0: there was no header yet
  std::size_t type = 0, redop = 0, root = 0;
  std::vector<Half> halves;  ///< out of place, in place
  /// The last column of a half is the largest deviation of a value (versions before 2.12), not a
  /// number of wrong values.
  bool deviations = false;

  /// @param words of the line "# size count type ...", "#" the first
  /// @return nothing where a column lacks that is read
  static std::optional<NcclColumns> from_header(const std::vector<LogWord>& words);
};

/// Cells of a row, or the first ones of a row that was cut.
struct NcclCells {
  std::vector<LogWord> cells;       ///< empty: there is none in the line
  std::optional<LogWord> misfit{};  ///< the word that is no cell and ended them
};

/// The row of a table in a line. Logs of libraries have their lines anywhere: before a row, after
/// it, or between its parts, so that the row may begin at any word.
NcclCells find_nccl_row(const std::vector<LogWord>& words, const NcclColumns& columns);

/// Adds the cells of a line that goes on with a row which was cut. Rows are printed in three parts:
/// up to the root, out of place, in place.
/// @return whether the line has at least one further part
bool continue_nccl_row(std::vector<LogWord>& cells, const std::vector<LogWord>& words,
                       const NcclColumns& columns);

/// The precision of a type that nccl-tests and rccl-tests name; nothing for unknown ones.
std::optional<std::string_view> nccl_precision(std::string_view type);

/// Whether a result is wrong: as #wrong counts, by the asterisk of older versions, or beyond the
/// deviation that those allow for the type (DeltaMaxValue in their src/common.cu).
/// @return nothing where the cell is neither a number nor N/A
std::optional<bool> is_wrong_result(std::string_view cell, std::string_view type, bool deviation);

/// An empty table of collectives as nccl-tests and hccl_test measure them.
ImportedTable collective_measurements();

/// Whether a text has a table of Huawei's hccl_test, the sister of nccl-tests for Ascend.
bool is_hccl_test(const std::string& text);

/// Reads the tables of hccl_test in the columns of nccl-tests (Ascend documentation, "HCCL
/// performance test tool"):
///   mpirun -n 8 ./bin/all_reduce_test -p 8 -b 8K -e 64M -f 2 -d fp32 -o sum
///   data_size(Bytes):  | aveg_time(us):  | alg_bandwidth(GB/s):  | check_result:
///   8192               | 43.50           | 0.18832               | success
/// The type, the operation and the number of ranks stand in the command alone, where it is printed.
/// @throws config::ConfigError for what is wrong, with its place
ImportedTable read_hccl_test(const std::string& path, const std::string& text,
                             const ImportOptions& options);

}  // namespace orrery
