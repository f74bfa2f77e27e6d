// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace orrery {

class ByteSource;  // sim/config/byte_source.h

namespace kineto {

/// What an event of a trace is, by its `cat`.
enum class Category : std::uint8_t {
  kOther,
  kKernel,
  kMemcpy,
  kMemset,
  kRuntime,     ///< a call of CUDA or HIP on the host
  kSync,        ///< what a call waits for: cuda_sync
  kOperator,    ///< an operator of PyTorch, on the host
  kAnnotation,  ///< a span that the user has named, on the host
  kFlow,        ///< an arrow from a call to what it launches
};

/// Types of tensors, as far as they matter.
enum class Scalar : std::uint8_t {
  kOther,
  kFloat,
  kDouble,
  kHalf,
  kBfloat16,
  kFloat8,
  kInt8,
  kWide
};

/// Sizes of the operands of an operator, as `Input Dims` has them: the first of them.
struct Operands {
  static constexpr std::size_t kMost = 8;
  static constexpr std::size_t kMostSizes = 6;
  std::array<std::array<std::int64_t, kMostSizes>, kMost> sizes{};
  std::array<std::uint8_t, kMost> ranks{};  ///< how many of `sizes` there are
  std::array<Scalar, kMost> types{};
  std::size_t count = 0;
  std::size_t types_count = 0;
};

inline constexpr std::int64_t kUnknown = INT64_MIN;
inline constexpr std::int64_t kMostRanks =
    10'000'000;  ///< ranks of a run: what is above is no rank

/// What record_param_comms says of a collective.
struct Collective {
  std::string name;   ///< "allreduce", "_allgather_base"
  std::string dtype;  ///< type of an element: "Float"
  std::string group;  ///< name of the process group
  std::string ranks;  ///< "[0, 1]", cut by PyTorch where there are many
  std::int64_t in_elements = kUnknown, out_elements = kUnknown;
  std::int64_t group_size = kUnknown, first_rank = kUnknown, rank_stride = kUnknown;
  std::int64_t source = kUnknown, destination = kUnknown;
  auto operator<=>(const Collective&) const = default;
};

/// One event, as far as it matters. Times in ns since whatever epoch the file has.
struct Event {
  char phase = '\0';
  Category category = Category::kOther;
  std::string name;
  std::int64_t start = kUnknown;
  std::int64_t duration = 0;
  bool wrong_time = false;  ///< a time is there and is none
  std::int64_t process = 0;
  std::int64_t thread = 0;
  std::int64_t id = kUnknown;  ///< number of a flow
  // args
  std::int64_t correlation = kUnknown;
  std::int64_t device = kUnknown;
  std::int64_t stream = kUnknown;
  std::int64_t bytes = kUnknown;
  std::int64_t waited_stream = kUnknown;
  std::int64_t waited_record = kUnknown;  ///< correlation of the cudaEventRecord
  Operands operands;
  std::vector<std::string> concrete;  ///< `Concrete Inputs`, the first of them
  bool has_collective = false;
  Collective collective;

  void clear();
};

/// A process group, as distributedInfo describes it.
struct ProcessGroup {
  std::string name;
  std::vector<int> ranks;
};

/// What the file says of itself besides its events.
struct Header {
  std::int64_t rank = kUnknown;
  std::int64_t world_size = kUnknown;
  std::vector<ProcessGroup> groups;
};

/// Receives the events of a file as it streams by.
using EventSink = std::function<void(const Event&)>;

/// Reads a file: an object with `traceEvents` anywhere in it, or an array of events.
/// @param notes what had to be mended
/// @throws config::ConfigError with the offset of what is no JSON
Header read_events(ByteSource& source, const EventSink& sink, std::vector<std::string>& notes);

/// "1712867402348256.123" microseconds as ns; kUnknown for what is no time, or beyond 2^62 ns.
std::int64_t nanoseconds(std::string_view microseconds);

}  // namespace kineto
}  // namespace orrery
