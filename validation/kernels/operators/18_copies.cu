// SPDX-License-Identifier: Apache-2.0
// Copies by the driver: within the device, to and from the host, to another GPU. bytes_per_s counts
// every byte once; within a device each is also read once.
#include <algorithm>
#include <string>

#include "device/timing.cuh"
#include "device/words.cuh"
#include "host/sweeps.h"

namespace orrery::measure::copies {
namespace {

/// Page-locked host memory, which the GPU reads by itself.
class PinnedBuffer {
 public:
  explicit PinnedBuffer(std::size_t bytes) { ORRERY_CUDA(cudaMallocHost(&data_, bytes)); }
  ~PinnedBuffer() { cudaFreeHost(data_); }
  PinnedBuffer(const PinnedBuffer&) = delete;
  PinnedBuffer& operator=(const PinnedBuffer&) = delete;
  std::uint32_t* words() const { return static_cast<std::uint32_t*>(data_); }

 private:
  void* data_ = nullptr;
};

/// Memory of another GPU, allocated while that one is the current device.
class PeerBuffer {
 public:
  PeerBuffer(int home, int peer, std::size_t bytes) : home_(home), peer_(peer) {
    ORRERY_CUDA(cudaSetDevice(peer_));
    const cudaError_t status = cudaMalloc(&data_, bytes);
    ORRERY_CUDA(cudaSetDevice(home_));
    ORRERY_CUDA(status);
  }
  ~PeerBuffer() {
    cudaSetDevice(peer_);
    cudaFree(data_);
    cudaSetDevice(home_);
  }
  PeerBuffer(const PeerBuffer&) = delete;
  PeerBuffer& operator=(const PeerBuffer&) = delete;
  char* bytes() const { return static_cast<char*>(data_); }

 private:
  int home_, peer_;
  void* data_ = nullptr;
};

constexpr std::size_t kCheckWords = (1 << 18) + 37;  ///< not a whole number of pages

bool holds(const std::uint32_t* words, std::uint64_t seed) {
  for (std::size_t i = 0; i < kCheckWords; ++i) {
    if (words[i] != random_word(seed, i)) return false;
  }
  return true;
}

void require(bool right, const char* what) {
  if (!right) throw WrongResult(std::string(what) + ": the copy differs from the original");
}

void copy(void* to, const void* from, std::size_t bytes, cudaStream_t stream) {
  ORRERY_CUDA(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream));
}

/// Device to host is checked against what a kernel wrote; then the others by way of it.
void check_host(const DeviceBuffer& device, std::uint32_t* host, std::uint64_t seed) {
  constexpr std::size_t kBytes = kCheckWords * sizeof(std::uint32_t);
  fill_words(device.as<std::uint32_t>(), kCheckWords, seed);
  std::fill(host, host + kCheckWords, 0u);
  copy(host, device.as(), kBytes, nullptr);
  ORRERY_CUDA(cudaDeviceSynchronize());
  require(holds(host, seed), "copy to the host");
  for (std::size_t i = 0; i < kCheckWords; ++i) host[i] = random_word(seed + 1, i);
  copy(device.as(), host, kBytes, nullptr);
  ORRERY_CUDA(cudaDeviceSynchronize());
  require(holds(copy_words(device.as<std::uint32_t>(), kCheckWords).data(), seed + 1),
          "copy to the device");
}

/// Copies `from` to `to`, both memory that a GPU can read, and looks at the result.
void check_devices(const DeviceBuffer& from, void* to, std::uint64_t seed, const char* what) {
  constexpr std::size_t kBytes = kCheckWords * sizeof(std::uint32_t);
  fill_words(from.as<std::uint32_t>(), kCheckWords, seed);
  copy(to, from.as(), kBytes, nullptr);
  ORRERY_CUDA(cudaDeviceSynchronize());
  std::vector<std::uint32_t> got(kCheckWords);
  ORRERY_CUDA(cudaMemcpy(got.data(), to, kBytes, cudaMemcpyDefault));
  require(holds(got.data(), seed), what);
}

class Copies {
 public:
  Copies(const Context& context, Table& table) : context_(context), table_(table) {}

  /// Within the device or to a peer: rotated and timed as a graph.
  void devices(const char* kind, const DeviceBuffer& from, char* to, std::int64_t bytes) {
    const auto size = static_cast<std::size_t>(bytes);
    TimingOptions options;
    options.copies = rotation(context_.device, 2 * size, 2 * from.bytes());
    const int copies = options.copies;
    const Launch launch = [&](cudaStream_t stream, int i) {
      const std::size_t at = static_cast<std::size_t>(i % copies) * size;
      copy(to + at, from.as<char>() + at, size, stream);
    };
    add_row(kind, "none", bytes, time_graph(context_, launch, options));
  }

  /// Between host and device; a pageable copy passes through the driver's own buffers, which no
  /// graph can hold.
  void host(bool to_device, bool pinned, const DeviceBuffer& device, std::uint32_t* words,
            std::int64_t bytes) {
    const auto size = static_cast<std::size_t>(bytes);
    TimingOptions options;
    options.repeats = 5;
    options.warm_up = 2;
    const Launch launch = [&](cudaStream_t stream, int) {
      to_device ? copy(device.as(), words, size, stream) : copy(words, device.as(), size, stream);
    };
    add_row(to_device ? "host_to_device" : "device_to_host", pinned ? "pinned" : "pageable", bytes,
            time_stream(context_, launch, options));
  }

 private:
  void add_row(const char* kind, const char* memory, std::int64_t bytes, const Timing& timing) {
    table_.add_row(with_timing({context_.system, std::string(kind), std::string(memory), bytes,
                                static_cast<double>(bytes) / (1e-6 * timing.us.median)},
                               timing));
  }

  const Context& context_;
  Table& table_;
};

/// A GPU that this one reads directly, or -1.
int first_peer(const DeviceInfo& device) {
  int devices = 0;
  ORRERY_CUDA(cudaGetDeviceCount(&devices));
  for (int other = 0; other < devices; ++other) {
    int can = 0;
    if (other == device.index) continue;
    ORRERY_CUDA(cudaDeviceCanAccessPeer(&can, device.index, other));
    if (can != 0) return other;
  }
  return -1;
}

void peer_copies(const Context& context, Copies& copies, const DeviceBuffer& from,
                 const std::vector<std::int64_t>& sizes) {
  const int peer = first_peer(context.device);
  if (peer < 0) return;
  ORRERY_CUDA(cudaDeviceEnablePeerAccess(peer, 0));
  const PeerBuffer to(context.device.index, peer, from.bytes());
  check_devices(from, to.bytes(), context.seed, "copy to a peer");
  for (const std::int64_t bytes : sizes) {
    if (context.out_of_time()) return;
    copies.devices("device_to_peer", from, to.bytes(), bytes);
  }
}

void run(const Context& context, Table& table) {
  const bool quick = context.depth == Depth::kQuick;
  const std::int64_t most = std::min(2 * kGiB, context.device.memory_bytes / 8);
  const std::int64_t host_most = std::min(quick ? 128 * kMiB : 512 * kMiB, most);
  const DeviceBuffer from(static_cast<std::size_t>(most)), to(static_cast<std::size_t>(most));
  const PinnedBuffer pinned(static_cast<std::size_t>(host_most));
  std::vector<std::uint32_t> pageable(static_cast<std::size_t>(host_most) / 4);
  check_host(from, pinned.words(), context.seed);
  check_host(from, pageable.data(), context.seed);
  check_devices(from, to.as(), context.seed, "copy within the device");
  fill_words(from.as<std::uint32_t>(), from.bytes() / 4, context.seed);
  Copies copies(context, table);
  std::vector<std::int64_t> sizes;
  for (std::int64_t bytes = 4 * kKiB; bytes <= most; bytes *= quick ? 8 : 2) sizes.push_back(bytes);
  for (const std::int64_t bytes : sizes) {
    if (context.out_of_time()) return;
    copies.devices("device_to_device", from, to.as<char>(), bytes);
  }
  for (const std::int64_t bytes : sizes) {
    if (bytes > host_most) continue;
    for (const bool to_device : {true, false}) {
      if (context.out_of_time()) return;
      copies.host(to_device, true, from, pinned.words(), bytes);
      copies.host(to_device, false, from, pageable.data(), bytes);
    }
  }
  peer_copies(context, copies, from, sizes);
}

const Registration kCopies(
    {18, "copies", "copies by the driver: device, host, peer", 8, 7, 20,
     with_timing_columns({"system", "kind", "host_memory", "bytes", "bytes_per_s"}), run});

}  // namespace
}  // namespace orrery::measure::copies
