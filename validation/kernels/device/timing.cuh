// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "host/measurement.h"
#include "host/sampling.h"

namespace orrery::measure {

/// @throws std::runtime_error with the CUDA error's name, text, file and line.
void check(cudaError_t status, const char* file, int line);
#define ORRERY_CUDA(call) ::orrery::measure::check((call), __FILE__, __LINE__)

/// Device memory that frees itself.
class DeviceBuffer {
 public:
  explicit DeviceBuffer(std::size_t bytes);
  ~DeviceBuffer();
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;
  DeviceBuffer(DeviceBuffer&& other) noexcept;
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept;

  template <class T = void>
  T* as() const {
    return static_cast<T*>(data_);
  }
  std::size_t bytes() const { return bytes_; }

 private:
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};

/// A stream of its own, which does not wait for the legacy default stream.
class OwnedStream {
 public:
  OwnedStream();
  ~OwnedStream();
  OwnedStream(const OwnedStream&) = delete;
  OwnedStream& operator=(const OwnedStream&) = delete;
  cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

/// How a launch is timed.
struct TimingOptions {
  int warm_up = 3;
  int repeats = 9;      ///< samples; each is the mean over `inner` launches
  int inner = 0;        ///< launches in one sample; 0: chosen so that a sample lasts 200 us
  int copies = 1;       ///< buffers the launch rotates over: a chosen `inner` visits them all
  double steady_s = 0;  ///< run this long before sampling ("steady"); 0: "boost"
};

/// Time of one launch and the state of the device around it.
struct Timing {
  Statistics us;
  DeviceState state;
};

/// Enqueues launch number i on the stream; i picks the rotated buffers.
using Launch = std::function<void(cudaStream_t stream, int i)>;

/// Times `launch`, captured `inner` times into a CUDA graph and replayed between two events, so
/// that the host takes no part. @throws std::runtime_error when a launch fails.
Timing time_graph(const Context& context, const Launch& launch, const TimingOptions& options = {});

/// The same without a graph, for what cannot be captured or is about launching itself.
Timing time_stream(const Context& context, const Launch& launch, const TimingOptions& options = {});

/// The standard columns of a timing, for the end of a row: latency_us, spread, repeats,
/// sm_clock_mhz, power_w, temperature_c.
std::vector<std::string> with_timing_columns(std::vector<std::string> columns);
std::vector<Cell> with_timing(std::vector<Cell> cells, const Timing& timing);

}  // namespace orrery::measure
