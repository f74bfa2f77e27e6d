// SPDX-License-Identifier: Apache-2.0
#include "device/timing.cuh"

#include <chrono>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>

namespace orrery::measure {
namespace {

using Clock = std::chrono::steady_clock;

class Event {
 public:
  Event() { ORRERY_CUDA(cudaEventCreate(&event_)); }
  ~Event() { cudaEventDestroy(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  void record(cudaStream_t stream) const { ORRERY_CUDA(cudaEventRecord(event_, stream)); }
  double us_since(const Event& start) const {
    float ms = 0;
    ORRERY_CUDA(cudaEventElapsedTime(&ms, start.event_, event_));
    return 1e3 * static_cast<double>(ms);
  }

 private:
  cudaEvent_t event_ = nullptr;
};

/// `count` launches captured as one graph.
class Graph {
 public:
  Graph(const Launch& launch, int count, cudaStream_t stream) {
    cudaGraph_t graph = nullptr;
    ORRERY_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    try {
      for (int i = 0; i < count; ++i) launch(stream, i);
    } catch (...) {
      // A stream that is left capturing would spoil everything that follows on it.
      if (cudaStreamEndCapture(stream, &graph) == cudaSuccess) cudaGraphDestroy(graph);
      throw;
    }
    ORRERY_CUDA(cudaStreamEndCapture(stream, &graph));
    const cudaError_t status = cudaGraphInstantiate(&instance_, graph, 0);
    cudaGraphDestroy(graph);
    ORRERY_CUDA(status);
  }
  ~Graph() { cudaGraphExecDestroy(instance_); }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  void launch(cudaStream_t stream) const { ORRERY_CUDA(cudaGraphLaunch(instance_, stream)); }

 private:
  cudaGraphExec_t instance_ = nullptr;
};

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double timed_us(cudaStream_t stream, const std::function<void()>& work) {
  const Event start, stop;
  start.record(stream);
  work();
  stop.record(stream);
  ORRERY_CUDA(cudaStreamSynchronize(stream));
  return stop.us_since(start);
}

/// Warms up and says how many launches a sample takes.
int calibrate(const Launch& launch, const TimingOptions& options, cudaStream_t stream) {
  for (int i = 0; i < options.warm_up; ++i) launch(stream, i);
  ORRERY_CUDA(cudaStreamSynchronize(stream));
  if (options.inner > 0) return options.inner;
  double one_us = timed_us(stream, [&] { launch(stream, 0); });
  if (one_us < 100) {  // too short for one pair of events
    constexpr int kMore = 16;
    one_us = timed_us(stream,
                      [&] {
                        for (int i = 0; i < kMore; ++i) launch(stream, i);
                      }) /
             kMore;
  }
  return launches_per_sample(one_us, options.copies);
}

/// Replays until `seconds` have passed, never far ahead of the GPU.
void run_for(double seconds, cudaStream_t stream, const std::function<void()>& replay) {
  const auto start = Clock::now();
  while (seconds_since(start) < seconds) {
    const double one_s = 1e-6 * timed_us(stream, replay);
    // Chunks of 20 ms, so that the gaps between them are no rest for the chip.
    const int more = std::min(static_cast<int>(20e-3 / std::max(one_s, 1e-6)), 1000);
    for (int i = 0; i < more; ++i) replay();
    ORRERY_CUDA(cudaStreamSynchronize(stream));
  }
}

/// A GPU that has idled needs some milliseconds of work to raise its clock again.
void wake(cudaStream_t stream, const std::function<void()>& replay, Clock::time_point last_busy) {
  constexpr double kIdle_s = 0.1, kWake_s = 0.03;
  if (seconds_since(last_busy) > kIdle_s) run_for(kWake_s, stream, replay);
}

DeviceState state_of(const Context& context) {
  if (context.state) return context.state();
  constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
  return {kUnknown, kUnknown, kUnknown};
}

/// Samples `replay`, which enqueues `inner` launches. All samples are enqueued behind one that does
/// not count, so that the GPU never waits for the host, and the state is read while they run.
Timing sample(const Context& context, const TimingOptions& options, int inner, cudaStream_t stream,
              const std::function<void()>& replay) {
  static Clock::time_point last_busy{};
  wake(stream, replay, last_busy);
  if (options.steady_s > 0) run_for(options.steady_s, stream, replay);
  const auto repeats = static_cast<std::size_t>(options.repeats);
  const std::vector<Event> starts(repeats), stops(repeats);
  replay();
  for (std::size_t r = 0; r < repeats; ++r) {
    starts[r].record(stream);
    replay();
    stops[r].record(stream);
  }
  Timing timing;
  timing.state = state_of(context);
  ORRERY_CUDA(cudaStreamSynchronize(stream));
  ORRERY_CUDA(cudaGetLastError());
  last_busy = Clock::now();
  std::vector<double> us;
  for (std::size_t r = 0; r < repeats; ++r) us.push_back(stops[r].us_since(starts[r]) / inner);
  timing.us = summarise(std::move(us));
  return timing;
}

}  // namespace

void check(cudaError_t status, const char* file, int line) {
  if (status == cudaSuccess) return;
  throw std::runtime_error(std::string(cudaGetErrorName(status)) + ": " +
                           cudaGetErrorString(status) + " at " + file + ':' + std::to_string(line));
}

OwnedStream::OwnedStream() {
  ORRERY_CUDA(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
}
OwnedStream::~OwnedStream() { cudaStreamDestroy(stream_); }

DeviceBuffer::DeviceBuffer(std::size_t bytes) : bytes_(bytes) {
  ORRERY_CUDA(cudaMalloc(&data_, bytes));
}
DeviceBuffer::~DeviceBuffer() { cudaFree(data_); }
DeviceBuffer::DeviceBuffer(DeviceBuffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
DeviceBuffer& DeviceBuffer::operator=(DeviceBuffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

Timing time_graph(const Context& context, const Launch& launch, const TimingOptions& options) {
  const OwnedStream stream;
  const int inner = calibrate(launch, options, stream.get());
  const Graph graph(launch, inner, stream.get());
  return sample(context, options, inner, stream.get(), [&] { graph.launch(stream.get()); });
}

Timing time_stream(const Context& context, const Launch& launch, const TimingOptions& options) {
  const OwnedStream stream;
  const int inner = calibrate(launch, options, stream.get());
  return sample(context, options, inner, stream.get(), [&] {
    for (int i = 0; i < inner; ++i) launch(stream.get(), i);
  });
}

std::vector<std::string> with_timing_columns(std::vector<std::string> columns) {
  for (const char* column :
       {"latency_us", "spread", "repeats", "sm_clock_mhz", "power_w", "temperature_c"}) {
    columns.emplace_back(column);
  }
  return columns;
}

std::vector<Cell> with_timing(std::vector<Cell> cells, const Timing& timing) {
  cells.emplace_back(timing.us.median);
  cells.emplace_back(timing.us.spread());
  cells.emplace_back(std::int64_t{timing.us.repeats});
  cells.emplace_back(timing.state.sm_clock_mhz);
  cells.emplace_back(timing.state.power_w);
  cells.emplace_back(timing.state.temperature_c);
  return cells;
}

}  // namespace orrery::measure
