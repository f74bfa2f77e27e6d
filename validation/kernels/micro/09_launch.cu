// SPDX-License-Identifier: Apache-2.0
// Kernel 9: what it costs to launch: from the host, from a graph, with programmatic dependent
// launch, and over several streams. The kernels do next to nothing, or wait for 2 us.
#include <algorithm>
#include <chrono>
#include <memory>
#include <string>

#include "device/clock.cuh"
#include "device/timing.cuh"
#include "device/words.cuh"

namespace orrery::measure::launch {
namespace {

/// Thread 0 counts the launch after the wait: a launch that is lost shows.
__global__ void counting_kernel(std::uint32_t* count, std::uint64_t wait_cycles) {
  spin(wait_cycles);
  if (threadIdx.x == 0) atomicAdd(count, 1u);
}

/// The same, but lets its successor start at once and itself starts counting only after its
/// predecessor has ended (PTX ISA, "griddepcontrol").
__global__ void dependent_kernel(std::uint32_t* count, std::uint64_t wait_cycles) {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
  spin(wait_cycles);
  if (threadIdx.x == 0) atomicAdd(count, 1u);
}

struct Work {
  std::uint32_t* count = nullptr;
  std::uint64_t wait_cycles = 0;

  const char* name() const { return wait_cycles == 0 ? "empty" : "2us"; }
};

void launch_one(const Work& work, cudaStream_t stream) {
  counting_kernel<<<1, 32, 0, stream>>>(work.count, work.wait_cycles);
  ORRERY_CUDA(cudaGetLastError());
}

void launch_dependent(const Work& work, cudaStream_t stream) {
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(1);
  config.blockDim = dim3(32);
  config.stream = stream;
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  config.attrs = &attribute;
  config.numAttrs = 1;
  ORRERY_CUDA(cudaLaunchKernelEx(&config, dependent_kernel, work.count, work.wait_cycles));
}

/// Streams that fork from one and join it again, in the way that a capture follows.
class Fork {
 public:
  explicit Fork(int width) : streams_(static_cast<std::size_t>(width)), ends_(streams_.size()) {
    ORRERY_CUDA(cudaEventCreateWithFlags(&begin_, cudaEventDisableTiming));
    for (auto& end : ends_) ORRERY_CUDA(cudaEventCreateWithFlags(&end, cudaEventDisableTiming));
  }
  ~Fork() {
    cudaEventDestroy(begin_);
    for (cudaEvent_t end : ends_) cudaEventDestroy(end);
  }
  Fork(const Fork&) = delete;
  Fork& operator=(const Fork&) = delete;

  void launch(const Work& work, cudaStream_t from) const {
    ORRERY_CUDA(cudaEventRecord(begin_, from));
    for (std::size_t s = 0; s < streams_.size(); ++s) {
      ORRERY_CUDA(cudaStreamWaitEvent(streams_[s].get(), begin_, 0));
      launch_one(work, streams_[s].get());
      ORRERY_CUDA(cudaEventRecord(ends_[s], streams_[s].get()));
      ORRERY_CUDA(cudaStreamWaitEvent(from, ends_[s], 0));
    }
  }

 private:
  std::vector<OwnedStream> streams_;
  std::vector<cudaEvent_t> ends_;
  cudaEvent_t begin_ = nullptr;
};

/// Runs the launch 10 times and checks that 10 times `kernels` were counted.
void check_count(const char* test, const Work& work, const Launch& launch, int kernels) {
  constexpr int kTimes = 10;
  ORRERY_CUDA(cudaMemset(work.count, 0, sizeof(std::uint32_t)));
  ORRERY_CUDA(cudaDeviceSynchronize());
  const OwnedStream stream;
  for (int i = 0; i < kTimes; ++i) launch(stream.get(), i);
  ORRERY_CUDA(cudaDeviceSynchronize());
  const std::uint32_t counted = copy_words(work.count, 1)[0];
  if (counted != static_cast<std::uint32_t>(kTimes * kernels)) {
    throw WrongResult(std::string(test) + ": " + std::to_string(counted) + " kernels ran, not " +
                      std::to_string(kTimes * kernels));
  }
}

/// latency_us is the time of all kernels of the row.
void add_row(const Context& context, Table& table, const char* test, const Work& work, int kernels,
             int streams, const Timing& timing) {
  table.add_row(
      with_timing({context.system, std::string(test), std::string(work.name()),
                   std::int64_t{kernels}, std::int64_t{streams}, timing.us.median / kernels},
                  timing));
}

using HostClock = std::chrono::steady_clock;

/// Times `work` on the host, after one call that does not count.
Timing host_timing(const Context& context, int repeats, const std::function<void()>& work,
                   const std::function<void()>& between) {
  std::vector<double> us;
  for (int r = 0; r <= repeats; ++r) {
    const auto start = HostClock::now();
    work();
    const std::chrono::duration<double, std::micro> taken = HostClock::now() - start;
    between();
    if (r > 0) us.push_back(taken.count());
  }
  return {summarise(std::move(us)), context.state()};
}

void host_costs(const Context& context, Table& table, const Work& work) {
  const OwnedStream stream;
  const auto wait = [&] { ORRERY_CUDA(cudaStreamSynchronize(stream.get())); };
  constexpr int kBatch = 256;  // well within the queue of a stream
  const auto batch = [&] {
    for (int i = 0; i < kBatch; ++i) launch_one(work, stream.get());
  };
  add_row(context, table, "host_enqueue", work, kBatch, 1, host_timing(context, 9, batch, wait));
  const auto round_trip = [&] {
    launch_one(work, stream.get());
    wait();
  };
  add_row(context, table, "launch_and_wait", work, 1, 1,
          host_timing(context, 99, round_trip, [] {}));
}

/// A graph of `nodes` kernels one after another.
class Chain {
 public:
  Chain(const Work& work, int nodes, bool dependent) {
    const OwnedStream own;
    cudaStream_t const stream = own.get();
    cudaGraph_t graph = nullptr;
    ORRERY_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    for (int i = 0; i < nodes; ++i) {
      dependent ? launch_dependent(work, stream) : launch_one(work, stream);
    }
    ORRERY_CUDA(cudaStreamEndCapture(stream, &graph));
    ORRERY_CUDA(cudaGraphInstantiate(&instance_, graph, 0));
    cudaGraphDestroy(graph);
  }
  ~Chain() { cudaGraphExecDestroy(instance_); }
  Chain(const Chain&) = delete;
  Chain& operator=(const Chain&) = delete;
  void launch(cudaStream_t stream) const { ORRERY_CUDA(cudaGraphLaunch(instance_, stream)); }

 private:
  cudaGraphExec_t instance_ = nullptr;
};

void graph_costs(const Context& context, Table& table, const Work& work, int nodes,
                 bool dependent) {
  const char* const test = dependent ? "graph_dependent_launch" : "graph";
  const Chain chain(work, nodes, dependent);
  const Launch launch = [&](cudaStream_t stream, int) { chain.launch(stream); };
  check_count(test, work, launch, nodes);
  add_row(context, table, test, work, nodes, 1, time_stream(context, launch));
  if (dependent) return;
  const OwnedStream stream;
  const auto enqueue = [&] { chain.launch(stream.get()); };
  const auto wait = [&] { ORRERY_CUDA(cudaStreamSynchronize(stream.get())); };
  add_row(context, table, "host_graph_launch", work, nodes, 1,
          host_timing(context, 9, enqueue, wait));
}

void stream_costs(const Context& context, Table& table, const Work& work, int kernels,
                  bool dependent) {
  const char* const test = dependent ? "stream_dependent_launch" : "stream";
  const Launch launch = [&](cudaStream_t stream, int) {
    for (int i = 0; i < kernels; ++i) {
      dependent ? launch_dependent(work, stream) : launch_one(work, stream);
    }
  };
  check_count(test, work, launch, kernels);
  TimingOptions options;
  options.inner = 1;
  add_row(context, table, test, work, kernels, 1, time_stream(context, launch, options));
}

void fork_costs(const Context& context, Table& table, const Work& work, int width) {
  const Fork fork(width);
  const Launch launch = [&](cudaStream_t stream, int) { fork.launch(work, stream); };
  check_count("fork_graph", work, launch, width);
  add_row(context, table, "fork_graph", work, width, width, time_graph(context, launch));
  add_row(context, table, "fork_streams", work, width, width, time_stream(context, launch));
}

void run(const Context& context, Table& table) {
  const bool quick = context.depth == Depth::kQuick;
  const DeviceBuffer count(sizeof(std::uint32_t));
  const auto two_us = static_cast<std::uint64_t>(2e-6 * context.device.max_clock_hz);
  keep_busy(context.device, 0.05);
  const std::vector<int> lengths = quick
                                       ? std::vector<int>{1, 10, 100, 1000}
                                       : std::vector<int>{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000};
  for (const std::uint64_t cycles : {std::uint64_t{0}, two_us}) {
    const Work work{count.as<std::uint32_t>(), cycles};
    host_costs(context, table, work);
    for (const int nodes : lengths) {
      for (const bool dependent : {false, true}) {
        if (dependent && !context.device.at_least(9)) continue;
        if (context.out_of_time()) return;
        graph_costs(context, table, work, nodes, dependent);
        stream_costs(context, table, work, nodes, dependent);
      }
    }
    for (int width = 1; width <= (quick ? 16 : 64) && !context.out_of_time(); width *= 2) {
      fork_costs(context, table, work, width);
    }
  }
}

const Registration kLaunch(
    {9, "launch", "cost of launches: host, graphs, dependent launch, streams", 8, 5, 15,
     with_timing_columns({"system", "test", "kernel", "kernels", "streams", "us_per_kernel"}),
     run});

}  // namespace
}  // namespace orrery::measure::launch
