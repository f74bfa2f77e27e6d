// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "sim/graph/imported_graph.h"
#include "sim/graph/name_pool.h"
#include "workloads/formats/kineto/block_list.h"
#include "workloads/formats/kineto/event.h"
#include "workloads/formats/kineto/names.h"

namespace orrery::kineto {

/// More of something than a graph can have.
class TooMany : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

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

/// One collective as it is recorded, those that are alike once.
struct Collective {
  std::string name, dtype, group, ranks;
  std::int64_t in_elements = 0, out_elements = 0, group_size = 0;
  std::int64_t first_rank = 0, rank_stride = 0;
  std::int64_t source = 0, destination = 0;
  auto operator<=>(const Collective&) const = default;
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
  std::vector<Collective> collectives;
  std::vector<std::string> notes;
  std::uint64_t wrong_times = 0;  ///< events that were left out
  std::uint64_t wrong_bytes = 0;  ///< bytes of names that are no UTF-8
};

/// Keeps what matters of the events of a trace.
class Collector final : public EventSink {
 public:
  explicit Collector(Trace& trace) : trace_(trace) {}
  void add(const Event& event) override;

 private:
  void add_device(const Event& event, OpKind kind);
  void add_call(const Event& event);
  void add_sync(const Event& event);
  void add_operator(const Event& event);
  void add_flow(const Event& event);
  std::uint16_t stream(std::int64_t device, std::int64_t stream);
  std::uint16_t thread(const Event& event);
  std::uint32_t shape(const Kernel& kernel);
  std::uint32_t collective(const CollectiveArguments& arguments);
  NameId name(const std::string& text);

  Trace& trace_;
  std::map<StreamKey, std::uint16_t> streams_;
  std::map<std::pair<std::int64_t, std::int64_t>, std::uint16_t> threads_;
  std::map<std::string, std::uint32_t> shapes_;  ///< numbers by what tells kernels apart
  std::map<Collective, std::uint32_t> collectives_;
  std::int64_t last_call_ = kUnknown;  ///< correlation of the last call
  ThreadSpan* last_thread_ = nullptr;
};

/// Joins calls and what they launch, operators and their kernels. Afterwards `ops` and `calls`
/// stand in the order in which they start.
void correlate(Trace& trace);

}  // namespace orrery::kineto
