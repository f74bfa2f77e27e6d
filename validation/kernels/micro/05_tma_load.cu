// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <vector>

#include "device/random.cuh"
#include "device/swizzle.h"
#include "device/tma.cuh"
#include "host/measurement.h"
#include "host/reference.h"

namespace orrery::measure::tma_loads {
namespace {

constexpr int kRowBytes = 256;  // of a box: whole DRAM bursts, so that boxes are contiguous
constexpr int kRowWords = kRowBytes / 4;
constexpr int kMaxStages = 8;
constexpr int kSlotAlignment = 128;                                  // of a TMA destination
constexpr int kOverheadBytes = kSlotAlignment + 2 * kMaxStages * 8;  // in front of and after slots
constexpr std::int64_t kRegionRows = 512;  // of a cluster that reads L2: 128 KiB
constexpr std::size_t kSourceBytes = std::size_t{4} << 30;

/// One launch: every cluster streams `steps` boxes from its own region through a ring of stages.
struct Stream {
  int box_rows = 0, stages = 0, cluster = 1, steps = 0;
  std::int64_t first_row = 0;    ///< of cluster 0
  std::int64_t region_rows = 0;  ///< the boxes of a cluster wrap around in it
  bool verify = false;           ///< all threads sum up what arrived

  ORRERY_HD int box_bytes() const { return box_rows * kRowBytes; }
  ORRERY_HD std::int64_t row_of(int cluster_index, int step) const {
    const std::int64_t boxes = region_rows / box_rows;
    return first_row + cluster_index * region_rows + step % boxes * box_rows;
  }
};

/// Weight of word `word` of step `step` in the checksum: boxes and words cannot be exchanged.
ORRERY_HD constexpr std::uint64_t weight_of(int step, int word) {
  return static_cast<std::uint64_t>(step) * 65537 + 2 * static_cast<std::uint64_t>(word) + 1;
}

#ifdef ORRERY_HOPPER
struct Ring {
  std::uint32_t slots, full, empty;  ///< shared-memory addresses
  int rank, cluster_index;
};

/// Every block loads its share of the box's rows for the whole cluster. The slot is reused when all
/// blocks of the cluster have released it, because the share is written into all of them.
__device__ void issue(const CUtensorMap& map, const Stream& stream, const Ring& ring, int step) {
  const int slot = step % stream.stages, use = step / stream.stages;
  const std::uint32_t full = ring.full + 8 * slot;
  if (use > 0) barrier_wait(ring.empty + 8 * slot, phase_parity(use - 1));
  barrier_arrive_expect(full, stream.box_bytes());
  const int share_rows = stream.box_rows / stream.cluster;
  const std::uint32_t destination =
      ring.slots + slot * stream.box_bytes() + ring.rank * share_rows * kRowBytes;
  const int row =
      static_cast<int>(stream.row_of(ring.cluster_index, step)) + ring.rank * share_rows;
  if (stream.cluster == 1) {
    tma_load(destination, map, 0, row, full);
  } else {
    tma_load_multicast(destination, map, 0, row, full,
                       static_cast<std::uint16_t>((1 << stream.cluster) - 1));
  }
}

__device__ std::uint64_t sum_box(const std::uint32_t* words, int count, int step) {
  std::uint64_t sum = 0;
  for (int word = static_cast<int>(threadIdx.x); word < count;
       word += static_cast<int>(blockDim.x)) {
    sum += words[word] * weight_of(step, word);
  }
  return sum;
}
#endif

/// Thread 0 keeps `stages` boxes in flight; verifying, all threads read each box before its
/// release.
__global__ void __launch_bounds__(128)
    tma_kernel([[maybe_unused]] const __grid_constant__ CUtensorMap map,
               [[maybe_unused]] const Stream stream, [[maybe_unused]] unsigned long long* checksums,
               [[maybe_unused]] long long* cycles) {
#ifdef ORRERY_HOPPER
  extern __shared__ __align__(16) std::uint8_t dynamic[];
  std::uint8_t* const shared = align_shared<kSlotAlignment>(dynamic);
  std::uint8_t* const barriers = shared + stream.stages * stream.box_bytes();
  const Ring ring{shared_address(shared), shared_address(barriers),
                  shared_address(barriers + 8 * kMaxStages), cluster_rank(),
                  static_cast<int>(blockIdx.x) / stream.cluster};
  if (threadIdx.x == 0) {
    for (int slot = 0; slot < stream.stages; ++slot) {
      barrier_init(ring.full + 8 * slot, 1);
      barrier_init(ring.empty + 8 * slot, stream.cluster);
    }
    barrier_init_fence();
  }
  cluster_sync();
  const long long start = clock64();
  if (threadIdx.x == 0) {
    for (int step = 0; step < min(stream.stages, stream.steps); ++step) {
      issue(map, stream, ring, step);
    }
  }
  if (threadIdx.x == 0 || stream.verify) {
    std::uint64_t sum = 0;
    for (int step = 0; step < stream.steps; ++step) {
      const int slot = step % stream.stages;
      barrier_wait(ring.full + 8 * slot, phase_parity(step / stream.stages));
      if (stream.verify) {
        const std::uint8_t* const box = shared + slot * stream.box_bytes();
        sum += sum_box(reinterpret_cast<const std::uint32_t*>(box), stream.box_bytes() / 4, step);
        __syncthreads();
      }
      if (threadIdx.x == 0 && step + stream.stages < stream.steps) {
        for (int rank = 0; rank < stream.cluster; ++rank) {
          barrier_arrive_remote(ring.empty + 8 * slot, rank);
        }
        issue(map, stream, ring, step + stream.stages);
      }
    }
    if (stream.verify) atomicAdd(checksums + blockIdx.x, static_cast<unsigned long long>(sum));
  }
  if (threadIdx.x == 0) cycles[blockIdx.x] = clock64() - start;
  __syncwarp();    // the cluster barrier wants whole warps
  cluster_sync();  // no block leaves while another still writes to it
#endif
}

struct Config {
  int box_bytes, stages, multicast, ctas;
  bool from_memory;

  std::string label() const {
    return "tma box " + std::to_string(box_bytes) + " B, " + std::to_string(stages) +
           " stages, multicast " + std::to_string(multicast) + ", " + std::to_string(ctas) +
           " blocks";
  }
};

class Bench {
 public:
  explicit Bench(const Context& context)
      : context_(context),
        source_(std::min(kSourceBytes, static_cast<std::size_t>(context.device.memory_bytes / 4) &
                                           ~std::size_t{0xFFFFF})),
        checksums_(4096 * sizeof(unsigned long long)),
        cycles_(4096 * sizeof(long long)) {
    fill(Format::kF32, source_.as(), source_.bytes() / 4, context.seed);
    ORRERY_CUDA(cudaFuncSetAttribute(tma_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                     slots_limit() + kOverheadBytes));
  }

  /// What the slots may take next to the barriers.
  int slots_limit() const {
    return static_cast<int>(context_.device.shared_bytes_per_block) - kOverheadBytes;
  }

  /// Blocks, one on a multiprocessor, that run at once in clusters of `multicast`: the clusters
  /// must fit the chip's groups of multiprocessors, so that these may be fewer than there are.
  int full_grid(int multicast) {
    Config config{kRowBytes * multicast, 1, multicast, context_.device.sms / multicast * multicast,
                  false};
    int clusters = 0;
    with_launch(nullptr, config, [&](const cudaLaunchConfig_t& launch) {
      ORRERY_CUDA(cudaOccupancyMaxActiveClusters(&clusters, tma_kernel, &launch));
    });
    return std::min(clusters * multicast, config.ctas);
  }

  void check(const Config& config) {
    Stream stream = stream_of(config);
    stream.steps = 2 * config.stages + 3;  // every slot is reused, and not all equally often
    stream.verify = true;
    const CUtensorMap map = map_of(config);
    ORRERY_CUDA(cudaMemset(checksums_.as(), 0, checksums_.bytes()));
    launch(nullptr, config, map, stream);
    ORRERY_CUDA(cudaDeviceSynchronize());
    std::vector<unsigned long long> sums(static_cast<std::size_t>(config.ctas));
    ORRERY_CUDA(cudaMemcpy(sums.data(), checksums_.as(), sums.size() * sizeof(sums[0]),
                           cudaMemcpyDeviceToHost));
    for (const int block : {0, config.ctas / 2, config.ctas - 1}) {
      if (sums[static_cast<std::size_t>(block)] != expected(stream, block / config.multicast)) {
        throw WrongResult(config.label() + ": checksum of block " + std::to_string(block));
      }
    }
  }

  void measure(Table& table, const Config& config) {
    Stream stream = stream_of(config);
    stream.steps = std::clamp((2 << 20) / config.box_bytes, 64, 1024);
    const CUtensorMap map = map_of(config);
    const std::int64_t rows = static_cast<std::int64_t>(source_.bytes()) / kRowBytes;
    const std::int64_t launch_rows =
        config.from_memory ? stream.region_rows * (config.ctas / config.multicast) : 0;
    std::int64_t launches = 0;
    TimingOptions options;
    options.inner = 1;
    // Not a graph: every launch reads another part of the source, which a replay could not.
    const Timing timing = time_stream(
        context_,
        [&](cudaStream_t queue, int) {
          const std::int64_t places = launch_rows > 0 ? rows / launch_rows : 1;
          stream.first_row = launches++ % places * launch_rows;
          launch(queue, config, map, stream);
        },
        options);
    const double us = timing.us.median / stream.steps;
    table.add_row(
        with_timing({context_.system, std::int64_t{config.box_bytes}, std::int64_t{config.stages},
                     std::int64_t{config.multicast}, std::int64_t{config.ctas},
                     std::string(config.from_memory ? "memory" : "l2"), std::int64_t{stream.steps},
                     median_cycles(config) / stream.steps, us, config.box_bytes / (us * 1e-6)},
                    timing));
  }

 private:
  static CUtensorMap encode(const void* source, std::int64_t rows, int box_rows) {
    return make_tensor_map({.format = Format::kF32,
                            .data = source,
                            .rows = rows,
                            .row_elements = kRowWords,
                            .box_rows = box_rows,
                            .box_row_elements = kRowWords});
  }

  CUtensorMap map_of(const Config& config) const {
    return encode(source_.as(), static_cast<std::int64_t>(source_.bytes()) / kRowBytes,
                  config.box_bytes / kRowBytes / config.multicast);
  }

  static Stream stream_of(const Config& config) {
    Stream stream;
    stream.box_rows = config.box_bytes / kRowBytes;
    stream.stages = config.stages;
    stream.cluster = config.multicast;
    const std::int64_t streamed =
        std::clamp<std::int64_t>((2 << 20) / config.box_bytes, 64, 1024) * stream.box_rows;
    stream.region_rows = config.from_memory ? streamed : kRegionRows;
    return stream;
  }

  template <class Use>
  void with_launch(cudaStream_t queue, const Config& config, const Use& use) {
    cudaLaunchAttribute cluster{};
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim.x = static_cast<unsigned>(config.multicast);
    cluster.val.clusterDim.y = 1;
    cluster.val.clusterDim.z = 1;
    cudaLaunchConfig_t launch{};
    launch.gridDim = dim3(static_cast<unsigned>(config.ctas));
    launch.blockDim = dim3(128);
    // All of the shared memory, so that there is one block on a multiprocessor.
    launch.dynamicSmemBytes = static_cast<std::size_t>(slots_limit() + kOverheadBytes);
    launch.stream = queue;
    launch.attrs = &cluster;
    launch.numAttrs = 1;
    use(launch);
  }

  void launch(cudaStream_t queue, const Config& config, const CUtensorMap& map,
              const Stream& stream) {
    with_launch(queue, config, [&](const cudaLaunchConfig_t& launch) {
      ORRERY_CUDA(cudaLaunchKernelEx(&launch, tma_kernel, map, stream,
                                     checksums_.as<unsigned long long>(), cycles_.as<long long>()));
    });
  }

  std::uint64_t expected(const Stream& stream, int cluster_index) const {
    std::uint64_t sum = 0;
    for (int step = 0; step < stream.steps; ++step) {
      const auto first = static_cast<std::uint64_t>(stream.row_of(cluster_index, step)) * kRowWords;
      for (int word = 0; word < stream.box_bytes() / 4; ++word) {
        const float value = stored_value(Format::kF32, Data::kRandom, context_.seed,
                                         first + static_cast<std::uint64_t>(word));
        sum += __builtin_bit_cast(std::uint32_t, value) * weight_of(step, word);
      }
    }
    return sum;
  }

  double median_cycles(const Config& config) {
    std::vector<long long> cycles(static_cast<std::size_t>(config.ctas));
    ORRERY_CUDA(cudaMemcpy(cycles.data(), cycles_.as(), cycles.size() * sizeof(cycles[0]),
                           cudaMemcpyDeviceToHost));
    return summarise(std::vector<double>(cycles.begin(), cycles.end())).median;
  }

  const Context& context_;
  DeviceBuffer source_, checksums_, cycles_;
};

std::vector<Config> configs(const Context& context, Bench& bench) {
  const bool full = context.depth == Depth::kFull;
  const std::vector<int> stages =
      full ? std::vector<int>{1, 2, 3, 4, 6, 8} : std::vector<int>{1, 2, 4, 8};
  std::vector<Config> result;
  for (int box = 1024; box <= 65536; box *= full ? 2 : 4) {
    for (const int count : stages) {
      if (box * count > bench.slots_limit()) continue;
      for (const int multicast : {1, 2, 4}) {
        for (const int ctas : {multicast, bench.full_grid(multicast)}) {
          result.push_back({box, count, multicast, ctas, false});
          result.push_back({box, count, multicast, ctas, true});
        }
      }
    }
  }
  return result;
}

void run(const Context& context, Table& table) {
  if (context.device.major != 9) {
    *context.log << "tma_load: needs compute capability 9\n";
    return;
  }
  Bench bench(context);
  Failures failures;
  for (const Config& config : configs(context, bench)) {
    if (context.out_of_time()) break;
    try {
      bench.check(config);
      bench.measure(table, config);
    } catch (const WrongResult& error) {
      failures.add(error);
    }
  }
  failures.raise();
}

const Registration registration({
    .number = 5,
    .name = "tma_load",
    .what = "TMA loads by box, stages and multicast: latency, bandwidth of a multiprocessor",
    .capability = 9,
    .quick_s = 5,
    .full_s = 12,
    .columns = with_timing_columns({"system", "box_bytes", "stages", "multicast", "ctas", "source",
                                    "boxes", "clk_per_box", "box_latency_us",
                                    "bytes_per_s_per_sm"}),
    .run = run,
});

}  // namespace
}  // namespace orrery::measure::tma_loads
