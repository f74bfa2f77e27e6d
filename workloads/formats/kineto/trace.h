// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/graph/imported_graph.h"
#include "sim/graph/name_pool.h"
#include "workloads/formats/kineto/block_list.h"
#include "workloads/formats/kineto/event.h"
#include "workloads/formats/kineto/names.h"

namespace orrery::kineto {

inline constexpr std::uint32_t kNone = ~std::uint32_t{0};

/// What runs on the device.
enum class OpKind : std::uint8_t { kKernel, kCopy, kFill };

/// A kernel, copy or fill: 48 bytes, since traces have tens of millions.
struct DeviceOp {
  std::int64_t start = 0;  ///< ns; once it is in the graph: when it ends there
  std::int64_t duration = 0;
  std::int64_t launch = 0;  ///< correlation; then when the host calls; then when its node has ended
  NameId name = 0;
  std::uint32_t detail = kNone;    ///< index of Trace::collectives or Trace::shapes
  std::uint32_t previous = kNone;  ///< the one before in its stream
  std::uint32_t node = kNone;      ///< node of its launch, then its own
  std::uint32_t call = kNone;      ///< index of the call that launches it
  std::uint16_t stream = 0;
  OpKind kind = OpKind::kKernel;
  bool collective : 1 = false;  ///< `detail` is a collective
  bool launched : 1 = false;    ///< the trace has the call
  bool idle : 1 = false;        ///< when it was launched, its stream had nothing to do
};
static_assert(sizeof(DeviceOp) == 48);

/// What a call of the host is for.
enum class CallKind : std::uint8_t {
  kLaunch,
  kDeviceSync,
  kStreamSync,
  kEventSync,
  kQueueSync,  ///< a launch that takes long: the queue may be full
  kCopySync,   ///< a copy that returns once it is done
  kRecord,     ///< cudaEventRecord: marks a place in a stream
  kWait,       ///< cudaStreamWaitEvent: what is launched later waits
};

/// A call of CUDA or HIP that matters: 32 bytes.
struct HostCall {
  std::int64_t start = 0;  ///< when it begins, ns
  std::int64_t end = 0;    ///< ns; then when it lets its kernel or its thread go on
  std::int64_t correlation = 0;
  std::uint32_t op = kNone;  ///< the first that it launches
  std::uint16_t thread = 0;
  CallKind kind = CallKind::kLaunch;
  bool from_flow = false;  ///< no call of its own is recorded, only the flow from it
};
static_assert(sizeof(HostCall) == 32);

/// What cuda_sync says of a call.
struct SyncRecord {
  std::int64_t correlation = 0;
  std::int64_t waited_record = kUnknown;
  std::uint16_t stream = 0;         ///< the stream that waits, or that the host waits for
  std::uint16_t waited_stream = 0;  ///< kNoStream: unknown
};
inline constexpr std::uint16_t kNoStream = 0xFFFF;

/// An operator of PyTorch that says what the kernels which it launches do.
struct OperatorRecord {
  std::int64_t start = 0;
  std::int64_t end = 0;
  std::uint32_t detail = kNone;  ///< index of Trace::collectives or Trace::shapes
  std::uint16_t thread = 0;
  bool collective : 1 = false;
  std::uint8_t kernels : 4 = 1;  ///< how many kernels of its kind it has
};

/// A stream of a device.
struct StreamKey {
  std::int64_t device = 0;
  std::int64_t stream = 0;
  auto operator<=>(const StreamKey&) const = default;
};

/// A thread of the host, and when its events begin and end.
struct ThreadSpan {
  std::int64_t process = 0;
  std::int64_t thread = 0;
  std::int64_t begin = INT64_MAX;
  std::int64_t end = INT64_MIN;
};

/// What a trace leaves behind when it has streamed by.
struct Trace {
  Header header;
  BlockList<DeviceOp> ops;
  BlockList<HostCall> calls;
  BlockList<SyncRecord> syncs;
  BlockList<OperatorRecord> operators;
  std::vector<StreamKey> streams;
  std::vector<ThreadSpan> threads;
  NamePool names;
  std::vector<NameFacts> facts;  ///< facts by NameId
  std::vector<Kernel> shapes;
  std::vector<Collective> collectives;  ///< those that are alike once
  std::vector<std::string> notes;
  std::uint64_t wrong_times = 0;  ///< events that were left out
  std::uint64_t wrong_bytes = 0;  ///< bytes of names that are no UTF-8
};

/// Reads a trace, and keeps what matters of its events.
/// @param notes what had to be mended
/// @throws config::ConfigError for what is no trace, or has more of something than a graph can
Trace read_trace(ByteSource& source, std::vector<std::string>& notes);

/// Joins calls and what they launch, operators and their kernels. Afterwards `ops` and `calls`
/// stand in the order in which they start.
void correlate(Trace& trace);

}  // namespace orrery::kineto
