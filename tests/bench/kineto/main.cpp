// SPDX-License-Identifier: Apache-2.0
// A trace of the PyTorch profiler of any size, made on the fly and read as it is made: how fast, in
// how much memory. By hand: kineto_bench [GB], 2 unless told.
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "sim/config/byte_source.h"
#include "workloads/formats/communicators.h"
#include "workloads/formats/graph_format.h"

namespace orrery {
namespace {

/// Writes events into a pipe: for each kernel five operators, its call, its flow and itself, as
/// training traces of PyTorch have them; kernels queue behind each other with gaps of a
/// microsecond, and every 64th is on another stream, behind an event.
class Writer {
 public:
  Writer(int descriptor, std::uint64_t bytes) : descriptor_(descriptor), bytes_(bytes) {}
  void write();
  std::uint64_t kernels = 0;
  std::uint64_t written = 0;

 private:
  static constexpr double kPeriod = 12.5;  // us a kernel
  template <typename... Values>
  void put(const char* format, Values... values) {
    char text[1024];
    const int length = std::snprintf(text, sizeof text, format, values...);
    buffer_.append(text, static_cast<std::size_t>(length));
    if (buffer_.size() > (1U << 20U)) flush();
  }
  void flush();
  void kernel();

  int descriptor_;
  std::uint64_t bytes_;
  std::string buffer_;
};

void Writer::flush() {
  for (std::size_t at = 0; at < buffer_.size();) {
    const ssize_t count = ::write(descriptor_, buffer_.data() + at, buffer_.size() - at);
    if (count <= 0) std::abort();
    at += static_cast<std::size_t>(count);
  }
  written += buffer_.size();
  buffer_.clear();
}

void Writer::kernel() {
  const auto number = static_cast<unsigned long long>(kernels);
  const double call = 1.7e12 + kPeriod * static_cast<double>(kernels);
  const bool is_other = kernels % 64 == 63;
  static constexpr const char* kOperators[] = {"aten::linear", "aten::t", "aten::transpose",
                                               "aten::as_strided", "aten::addmm"};
  for (int i = 0; i < 5; ++i)
    put(R"({"ph": "X", "cat": "cpu_op", "name": "%s", "pid": 3113936, "tid": 3113936, "ts": %.3f, "dur": %.3f, "args": {"External id": %llu, "Record function id": 0, "Input Dims": [[1024], [4096, %d], [%d, 1024], [], []], "Input type": ["c10::BFloat16", "c10::BFloat16", "c10::BFloat16", "Scalar", "Scalar"], "Concrete Inputs": ["", "", "", "1", "1"], "Call stack": "torch/nn/modules/linear.py(114): forward;torch/nn/modules/module.py(1194): _call_impl"}},
)",
        kOperators[i], call - 5 + i, 9.0 - 1.5 * i, number * 5 + static_cast<unsigned>(i),
        i == 4 ? 1024 : 1, i == 4 ? 1024 : 1);
  if (is_other) {
    put(R"({"ph": "X", "cat": "cuda_runtime", "name": "cudaStreamWaitEvent", "pid": 3113936, "tid": 3113936, "ts": %.3f, "dur": 0.8, "args": {"External id": 2, "cbid": 147, "correlation": %llu}},
)",
        call - 1, 2 * number + 1);
  }
  put(R"({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 3113936, "tid": 3113936, "ts": %.3f, "dur": 4.512, "args": {"External id": %llu, "cbid": 211, "correlation": %llu}},
{"ph": "s", "id": %llu, "pid": 3113936, "tid": 3113936, "ts": %.3f, "cat": "ac2g", "name": "ac2g"},
)",
      call, number * 5 + 4, 2 * number, 2 * number, call);
  const int stream = is_other ? 20 : 7;
  put(R"({"ph": "X", "cat": "kernel", "name": "%s", "pid": 0, "tid": %d, "ts": %.3f, "dur": %.3f, "args": {"External id": %llu, "queued": 0, "device": 0, "context": 1, "stream": %d, "correlation": %llu, "registers per thread": 90, "shared memory": 49152, "blocks per SM": 0.592, "warps per SM": 2.37, "grid": [64, 1, 1], "block": [128, 1, 1], "est. achieved occupancy %%": 4}},
{"ph": "f", "id": %llu, "pid": 0, "tid": %d, "ts": %.3f, "cat": "ac2g", "name": "ac2g", "bp": "e"},
)",
      kernels % 3 == 0
          ? "nvjet_tst_128x256_64x4_2x1_v_bz_TNN"
          : "void at::native::vectorized_elementwise_kernel<4, "
            "at::native::CUDAFunctor_add<c10::BFloat16>, at::detail::Array<char*, 3> >(int, "
            "at::native::CUDAFunctor_add<c10::BFloat16>, at::detail::Array<char*, 3>)",
      stream, call + 5000, is_other ? 8.0 : kPeriod - 1, number * 5 + 4, stream, 2 * number,
      2 * number, stream, call + 5000);
  ++kernels;
}

void Writer::write() {
  put("%s", "{\n\"schemaVersion\": 1, \"distributedInfo\": {\"rank\": 0},\n\"traceEvents\": [\n");
  while (written < bytes_) kernel();
  put("%s",
      "{\"name\": \"process_name\", \"ph\": \"M\", \"pid\": 0, \"args\": {\"name\": \"p\"}}]}");
  flush();
  ::close(descriptor_);
}

long peak() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss * 1024;
}

/// @returns kernels
std::uint64_t read(std::uint64_t bytes, bool print) {
  int ends[2];
  if (::pipe(ends) != 0) std::abort();
  Writer writer(ends[1], bytes);
  std::thread thread([&] { writer.write(); });
  const auto start = std::chrono::steady_clock::now();
  Communicators communicators;
  GraphBuilder builder;
  std::vector<std::string> notes;
  {
    ByteSource source("/dev/fd/" + std::to_string(ends[0]));
    GraphFormatRegistry::items().at("kineto").entry->read(source, {}, communicators, builder,
                                                          notes);
  }
  const ImportedGraph graph = builder.finish("trace", false, notes);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  thread.join();
  ::close(ends[0]);
  if (!print) return writer.kernels;
  for (const std::string& note : notes) std::printf("%s\n", note.c_str());
  std::printf("%.3f GB, %llu kernels, %zu nodes, %zu dependencies in %.2f s: %.1f MB/s\n",
              static_cast<double>(writer.written) * 1e-9,
              static_cast<unsigned long long>(writer.kernels), graph.size(), graph.next.size(),
              took.count(), static_cast<double>(writer.written) * 1e-6 / took.count());
  return writer.kernels;
}

int run(double gigabytes) {
  constexpr std::uint64_t kSmall = 1U << 22U;
  read(kSmall, false);
  const long before = peak();
  const std::uint64_t kernels = read(static_cast<std::uint64_t>(gigabytes * 1e9), true);
  std::printf("peak %.1f MB, of which %.1f MB whatever the trace: %.1f bytes a kernel\n",
              static_cast<double>(peak()) * 1e-6, static_cast<double>(before) * 1e-6,
              static_cast<double>(peak() - before) / static_cast<double>(kernels));
  return 0;
}

}  // namespace
}  // namespace orrery

int main(int count, char** arguments) {
  return orrery::run(count > 1 ? std::atof(arguments[1]) : 2);
}
