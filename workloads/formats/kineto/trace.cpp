// SPDX-License-Identifier: Apache-2.0
#include "workloads/formats/kineto/trace.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <string_view>

#include "sim/config/byte_source.h"
#include "sim/config/diagnostics.h"
#include "sim/config/text_check.h"
#include "workloads/formats/base/whole_number.h"

namespace orrery::kineto {
namespace {

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

/// What a call is for, by its name in CUDA's or HIP's runtime or driver; nothing: it launches
/// nothing and waits for nothing.
std::optional<CallKind> call_kind(std::string_view name) {
  if (contains(name, "EventRecord")) return CallKind::kRecord;
  if (contains(name, "StreamWaitEvent")) return CallKind::kWait;
  if (contains(name, "EventSynchronize")) return CallKind::kEventSync;
  if (contains(name, "StreamSynchronize")) return CallKind::kStreamSync;
  // Memory is given back once nothing on the device uses it.
  if (contains(name, "DeviceSynchronize") || contains(name, "CtxSynchronize") ||
      name == "cudaFree" || name == "hipFree" || name == "cuMemFree_v2")
    return CallKind::kDeviceSync;
  if (contains(name, "aunch") || contains(name, "emcpy") || contains(name, "emset"))
    return CallKind::kLaunch;
  return std::nullopt;
}

/// UTF-8, as names of nodes have to be: other bytes become question marks.
std::string as_utf8(std::string_view text, std::uint64_t& mended) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = text.front() == '\0' ? 0 : config::utf8_length(text);
    if (length == 0) {
      result += '?';
      ++mended;
    }
    result += text.substr(0, length);
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return result;
}

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) - 1U < 0x7FU; });
}

/// Keeps what matters of the events of a trace.
class Collector {
 public:
  Collector(Trace& trace, const std::string& file) : trace_(trace), file_(file) {}
  void add(const Event& event) {
    if (event.category == Category::kFlow) return add_flow(event);
    if (event.phase != 'X' || event.category == Category::kOther) return;
    constexpr std::int64_t kLatest = std::numeric_limits<std::int64_t>::max() / 4;
    if (event.wrong_time || event.start == kUnknown || event.start > kLatest ||
        event.duration > kLatest) {
      ++trace_.wrong_times;
      return;
    }
    switch (event.category) {
      case Category::kKernel:
        return add_device(event, OpKind::kKernel);
      case Category::kMemcpy:
        return add_device(event, OpKind::kCopy);
      case Category::kMemset:
        return add_device(event, OpKind::kFill);
      case Category::kRuntime:
        return add_call(event);
      case Category::kSync:
        return add_sync(event);
      default:
        return add_operator(event);
    }
  }

 private:
  void add_device(const Event& event, OpKind kind) {
    if (trace_.ops.size() == kNone / 4) refuse("more than a billion kernels");  // three nodes each
    DeviceOp op;
    op.start = event.start;
    op.duration = event.duration;
    op.launch = event.correlation;
    op.name = name(event.name);
    op.kind = kind;
    op.stream = stream(event.device != kUnknown ? event.device : event.process,
                       event.stream != kUnknown ? event.stream : event.thread);
    if (kind == OpKind::kKernel && event.has_collective && trace_.facts[op.name].collective) {
      op.detail = collective(event.collective);
      op.collective = true;
    } else if (kind != OpKind::kKernel && event.bytes >= 0) {
      op.detail = shape(copy_of(event.name, event.bytes));
    }
    trace_.ops.push_back(op);
  }

  void add_call(const Event& event) {
    const std::uint16_t of = thread(event);
    const std::optional<CallKind> kind = call_kind(event.name);
    if (!kind || (*kind == CallKind::kLaunch && event.correlation == kUnknown)) return;
    HostCall call;
    call.start = event.start;
    call.end = event.start + event.duration;
    call.correlation = event.correlation;
    call.thread = of;
    call.kind = *kind;
    trace_.calls.push_back(call);
    last_call_ = event.correlation;
  }

  void add_sync(const Event& event) {
    if (event.correlation == kUnknown) return;
    const std::int64_t device = event.device != kUnknown ? event.device : event.process;
    const auto known = [&](std::int64_t number) {
      // -1, or 2^32 - 1: none.
      return number < 0 || number == 0xFFFFFFFF ? kNoStream : stream(device, number);
    };
    SyncRecord sync;
    sync.correlation = event.correlation;
    sync.stream = known(event.stream);
    sync.waited_stream = known(event.waited_stream);
    sync.waited_record = event.waited_record < 0 ? kUnknown : event.waited_record;
    trace_.syncs.push_back(sync);
  }

  void add_operator(const Event& event) {
    const std::uint16_t of = thread(event);
    if (event.category != Category::kOperator) return;
    OperatorRecord record;
    if (event.has_collective && event.name == "record_param_comms") {
      record.detail = collective(event.collective);
      record.collective = true;
      record.kernels = 15;
    } else if (const std::optional<Kernel> product = product_of(event)) {
      record.detail = shape(*product);
      record.kernels = event.name == "aten::convolution_backward" ? 2 : 1;  // of both gradients
    } else {
      return;
    }
    record.start = event.start;
    record.end = event.start + event.duration;
    record.thread = of;
    trace_.operators.push_back(record);
  }

  /// The start of a flow stands in for the call, where the trace has left that out.
  void add_flow(const Event& event) {
    if (event.phase != 's' || event.id == kUnknown || event.id == last_call_ ||
        event.start == kUnknown)
      return;
    HostCall call;
    call.start = call.end = event.start;
    call.correlation = event.id;
    call.thread = thread(event);
    call.from_flow = true;
    trace_.calls.push_back(call);
  }

  std::uint16_t stream(std::int64_t device, std::int64_t stream) {
    const auto [known, is_new] = streams_.try_emplace(
        StreamKey{device, stream}, static_cast<std::uint16_t>(trace_.streams.size()));
    if (is_new) {
      constexpr std::size_t kMostStreams = 4096;
      if (trace_.streams.size() == kMostStreams) refuse("more than 4,096 streams of devices");
      trace_.streams.push_back({device, stream});
    }
    return known->second;
  }

  std::uint16_t thread(const Event& event) {
    if (last_thread_ == nullptr || last_thread_->process != event.process ||
        last_thread_->thread != event.thread) {
      const auto [known, is_new] =
          threads_.try_emplace(std::pair(event.process, event.thread),
                               static_cast<std::uint16_t>(trace_.threads.size()));
      if (is_new) {
        if (trace_.threads.size() >= kNoStream / 2) refuse("more than 32,767 threads of the host");
        trace_.threads.push_back({event.process, event.thread});
      }
      last_thread_ = &trace_.threads[known->second];
    }
    last_thread_->begin = std::min(last_thread_->begin, event.start);
    last_thread_->end = std::max(last_thread_->end, event.start + event.duration);
    return static_cast<std::uint16_t>(last_thread_ - trace_.threads.data());
  }

  std::uint32_t shape(const Kernel& kernel) {
    std::string key;
    for (const std::int64_t number :
         {static_cast<std::int64_t>(kernel.kind), static_cast<std::int64_t>(kernel.precision),
          kernel.batch, kernel.m, kernel.n, kernel.k, kernel.attention.kv_heads,
          whole_number(kernel.matrix_flops.base()), whole_number(kernel.read.base()),
          whole_number(kernel.written.base()), whole_number(kernel.host.base())})
      key.append(reinterpret_cast<const char*>(&number), sizeof number);
    const auto [known, is_new] =
        shapes_.try_emplace(std::move(key), static_cast<std::uint32_t>(trace_.shapes.size()));
    if (is_new) trace_.shapes.push_back(kernel);
    return known->second;
  }

  std::uint32_t collective(const Collective& whole) {
    const auto [known, is_new] =
        collectives_.try_emplace(whole, static_cast<std::uint32_t>(trace_.collectives.size()));
    if (is_new) trace_.collectives.push_back(whole);
    return known->second;
  }

  NameId name(const std::string& text) {
    const NameId known =
        trace_.names.add(is_ascii(text) ? text : as_utf8(text, trace_.wrong_bytes));
    if (known == trace_.facts.size()) trace_.facts.push_back(facts_of(text));
    return known;
  }

  [[noreturn]] void refuse(const char* what) const {
    throw config::ConfigError(fmt::format("{}: {}", file_, what));
  }

  Trace& trace_;
  const std::string& file_;
  std::map<StreamKey, std::uint16_t> streams_;
  std::map<std::pair<std::int64_t, std::int64_t>, std::uint16_t> threads_;
  std::map<std::string, std::uint32_t> shapes_;  ///< numbers by what tells kernels apart
  std::map<Collective, std::uint32_t> collectives_;
  std::int64_t last_call_ = kUnknown;  ///< correlation of the last call
  ThreadSpan* last_thread_ = nullptr;
};

}  // namespace

Trace read_trace(ByteSource& source, std::vector<std::string>& notes) {
  Trace trace;
  Collector collector(trace, source.path());
  trace.header = read_events(
      source, [&](const Event& event) { collector.add(event); }, notes);
  return trace;
}

}  // namespace orrery::kineto
