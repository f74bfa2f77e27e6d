// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "sim/config/registry.h"
#include "sim/graph/program.h"
#include "workloads/formats/graph_builder.h"

namespace orrery {

struct PricedSteps;   // workloads/formats/chakra/writer.h: a program with what it costs
class ByteSource;     // sim/config/byte_source.h: the bytes of a file, gzip unpacked, as a stream
class Communicators;  // workloads/formats/communicators.h: groups of ranks by name and by members

/// What a reader is told besides the file.
struct GraphReadOptions {
  int rank = 0;   ///< whose graph the file is
  int ranks = 1;  ///< ranks of the whole run, as far as its files tell
  std::map<std::string, std::int64_t> dimensions = {};  ///< sizes of symbolic dimensions
  /// What floating-point numbers are run in, where that is not what the file says.
  std::optional<Precision> precision = {};
  bool fuse = true;     ///< whether kernels are fused, where the file has operators (fusion.h)
  bool repair = false;  ///< whether a collective without a type takes that of its name
};

/// A form in which operator graphs stand in files. `graph export --format` names one to write; a
/// file is read by the one that recognises how it begins. A file that derives a class and registers
/// an object of it adds another.
class GraphFormat {
 public:
  virtual ~GraphFormat() = default;

  /// Whether files that begin so (up to 64 KiB, unpacked) are of this form.
  virtual bool recognises(std::string_view /*head*/, std::string_view /*path*/) const {
    return false;
  }
  /// Whose graph a file that begins so is; -1: the form does not say it, or not there.
  virtual int rank(std::string_view /*head*/) const { return -1; }
  /// Whether a file that begins so is of a part of a run, so that ranks may be without a file.
  virtual bool is_part(std::string_view /*head*/) const { return false; }
  /// Reads the graph of one rank, in memory that does not grow with what is not kept.
  /// @param notes what was left out, for people
  /// @throws config::ConfigError with the file and the offset of what cannot be read
  virtual void read(ByteSource& /*source*/, const GraphReadOptions& /*options*/,
                    Communicators& /*communicators*/, GraphBuilder& /*graph*/,
                    std::vector<std::string>& /*notes*/) const {
    throw std::logic_error("this form of graphs is not read");
  }

  /// Whether programs can be written in this form.
  virtual bool writes() const { return false; }
  /// Writes every block of a program, each once however often it is called.
  /// @param name of the whole, for people
  virtual void write(const Program& /*program*/, const std::string& /*name*/,
                     std::ostream& /*out*/) const {
    throw std::logic_error("this form of graphs is not written");
  }

  /// Whether programs are written as they run, with times, a file for each rank.
  virtual bool writes_ranks() const { return false; }
  /// Takes a file: what its name ends in, and who writes it.
  using Files = std::function<void(const std::string& ending,
                                   const std::function<void(std::ostream&)>& write)>;
  /// Writes the files of all ranks, and what belongs to them. @returns nodes of all
  virtual std::uint64_t write_ranks(const PricedSteps& /*steps*/, const Files& /*files*/) const {
    throw std::logic_error("this form of graphs has no files of ranks");
  }

  /// Whether graphs that were read can be written in this form.
  virtual bool writes_runs() const { return false; }
  /// Writes the graphs of all ranks that have one, and what belongs to them. @returns nodes of all
  virtual std::uint64_t write_run(const ImportedRun& /*run*/, const Files& /*files*/) const {
    throw std::logic_error("this form of graphs has no graphs that were read");
  }
};

using GraphFormatRegistry = Registry<std::shared_ptr<const GraphFormat>>;

}  // namespace orrery
