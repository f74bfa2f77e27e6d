// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <ostream>
#include <stdexcept>
#include <string>
#include <vector>

#include "host/table.h"

namespace orrery::measure {

enum class Depth { kQuick, kFull, kPriority };

constexpr const char* name_of(Depth depth) {
  return depth == Depth::kQuick ? "quick" : depth == Depth::kFull ? "full" : "priority";
}

/// Properties of the GPU, as the CUDA runtime reports them. Read, never set.
struct DeviceInfo {
  int index = 0;
  std::string name;
  int major = 0, minor = 0;  ///< compute capability
  int sms = 0;
  double max_clock_hz = 0;
  std::int64_t l2_bytes = 0;
  std::int64_t memory_bytes = 0;
  std::int64_t shared_bytes_per_block = 0;  ///< opt-in maximum
  int peers = 0;                            ///< other GPUs that this one can read directly

  bool at_least(int wanted) const { return major >= wanted; }
};

/// SM clock, board power and temperature at one moment; NaN where the driver does not tell.
struct DeviceState {
  double sm_clock_mhz = 0, power_w = 0, temperature_c = 0;
};
/// Reads the state of the device; an implementation that loads NVML at run time is in
/// device/nvml.h.
using StateReader = std::function<DeviceState()>;

/// What a measurement is given.
struct Context {
  DeviceInfo device;
  std::string system;  ///< name of the system in the CSV files: "h200_sxm"
  Depth depth = Depth::kQuick;
  std::uint64_t seed = 0;                            ///< seed of random inputs
  std::chrono::steady_clock::time_point deadline{};  ///< stop adding rows after this moment
  StateReader state;
  std::ostream* log = nullptr;  ///< progress and warnings for people

  bool out_of_time() const { return std::chrono::steady_clock::now() >= deadline; }
};

/// One CSV file: what is measured, its columns, and the function that fills it. A measurement is
/// one file that registers itself; `orrery-measure --list` shows what is registered.
struct Measurement {
  int number = 0;                  ///< 1-12: the microbenchmarks; from 13: operators
  std::string name;                ///< "pointer_chase": the CSV is <name>.csv
  std::string what;                ///< one line: what is measured, and what it identifies
  int capability = 8;              ///< least compute capability (major)
  double quick_s = 0, full_s = 0;  ///< time budget on an H200; both 0: `--priority` only
  std::vector<std::string> columns;
  /// Throws on failure: the rows so far are kept, the failure is noted in environment.yaml and the
  /// program goes on.
  void (*run)(const Context& context, Table& table) = nullptr;

  bool only_priority() const { return quick_s == 0 && full_s == 0; }
};

/// All measurements, by number.
const std::vector<Measurement>& measurements();

/// `static const Registration chase({...});` at namespace scope of the measurement's file.
struct Registration {
  explicit Registration(Measurement measurement);
};

/// A kernel computed something else than its reference: it is not timed.
class WrongResult : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The wrong results of one sweep, which goes on with its other points; the first few are named.
class Failures {
 public:
  void add(const WrongResult& error) {
    constexpr int kNamed = 5;
    if (++count_ <= kNamed) text_ += std::string(count_ == 1 ? "" : "; ") + error.what();
  }

  /// Ends the sweep. @throws WrongResult when there was one.
  void raise() const {
    if (count_ > 0) throw WrongResult(std::to_string(count_) + " wrong: " + text_);
  }

 private:
  std::string text_;
  int count_ = 0;
};

}  // namespace orrery::measure
