// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/config/load.h"
#include "sim/units/units.h"

namespace orrery {

/// A small configuration with every type of member, for the tests of sim/config.
enum class Format { kBf16, kFp8, kInt8 };

struct Store {
  std::string kind = "HBM";
  Fact<Bytes> capacity;
  Fact<BytesPerSecond> bandwidth;
  static const config::Schema<Store>& schema();
};

struct Chip {
  std::string id;
  Store memory;
  std::map<Format, Fact<FlopsPerSecond>> peak;
  int dies = 1;
  static const config::Schema<Chip>& schema();
};

struct Cooling {
  Watts power;
  bool liquid = true;
  static const config::Schema<Cooling>& schema();
};

struct Layer {
  std::int64_t window = 0;
  static const config::Schema<Layer>& schema();
};

struct Rack {
  std::string name = "rack";
  Chip chip;
  int chips = 8;
  std::int64_t seed = 7;
  double efficiency = 0.9;
  bool cooled = false;
  Format format = Format::kBf16;
  std::vector<int> links = {4, 4};
  std::map<std::string, Seconds> delays;
  std::optional<Cooling> cooling;
  std::optional<Watts> budget;
  std::vector<Layer> layers;
  FilePath trace;
  config::Node extra;
  static const config::Schema<Rack>& schema();
};

namespace config {
template <>
struct EnumNames<Format> {
  static constexpr std::pair<Format, const char*> values[] = {
      {Format::kBf16, "bf16"}, {Format::kFp8, "fp8"}, {Format::kInt8, "int8"}};
};
}  // namespace config

inline const config::Schema<Store>& Store::schema() {
  using namespace literals;
  static const auto schema =
      config::Schema<Store>("memory", "device memory")
          .optional("kind", &Store::kind, "technology")
          .required("capacity", &Store::capacity, "bytes of one chip", config::between(1_KB, 10_TB))
          .required("bandwidth", &Store::bandwidth, "peak of one chip",
                    config::between(1_MB / 1_s, 1000_TBps));
  return schema;
}

inline const config::Schema<Chip>& Chip::schema() {
  static const auto schema =
      config::Schema<Chip>("chip", "an accelerator")
          .named("chip", &Chip::id)
          .required("memory", &Chip::memory, "device memory")
          .optional("peak", &Chip::peak, "dense peak by format")
          .optional("dies", &Chip::dies, "dies of the package", config::at_least(1));
  return schema;
}

inline const config::Schema<Cooling>& Cooling::schema() {
  static const auto schema =
      config::Schema<Cooling>("cooling", "pumps and fans")
          .required("power", &Cooling::power, "what it draws", config::positive())
          .optional("liquid", &Cooling::liquid, "water instead of air");
  return schema;
}

inline const config::Schema<Layer>& Layer::schema() {
  static const auto schema = config::Schema<Layer>("layer", "one layer")
                                 .optional("window", &Layer::window, "tokens", config::at_least(0));
  return schema;
}

inline const config::Schema<Rack>& Rack::schema() {
  static const auto schema =
      config::Schema<Rack>("rack", "a rack of chips")
          .optional("name", &Rack::name, "what it is called")
          .reference("chip", &Rack::chip, "chips", "the accelerator")
          .optional("chips", &Rack::chips, "accelerators", config::at_least(1))
          .optional("seed", &Rack::seed, "of random numbers")
          .optional("efficiency", &Rack::efficiency, "share of the peak", config::between(0, 1))
          .optional("cooled", &Rack::cooled, "whether it is cooled")
          .optional("format", &Rack::format, "number format")
          .optional("links", &Rack::links, "links by switch", config::at_least(0))
          .optional("delays", &Rack::delays, "delay by name")
          .optional("cooling", &Rack::cooling, "the cooling")
          .optional("budget", &Rack::budget, "power limit")
          .optional("layers", &Rack::layers, "layers")
          .optional("trace", &Rack::trace, "request trace")
          .optional("extra", &Rack::extra, "anything")
          .alias("accelerators", "chips")
          .alias("cooling_power", "cooling.power")
          .check(
              "chips must be a multiple of dies",
              [](const Rack& r) { return r.chips % r.chip.dies == 0; }, "chips");
  return schema;
}

/// A folder with a library of two chips and the files of a test, removed at the end.
class SampleFolder {
 public:
  SampleFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "orrery_XXXXXX").string();
    root_ = mkdtemp(pattern.data());
    write("library/chips/alpha.yaml",
          "chip: alpha\n"
          "memory:\n"
          "  capacity: {value: 80 GB, source: alpha datasheet}\n"
          "  bandwidth: 2 TB/s\n"
          "peak: {bf16: 300 TFLOP/s}\n");
    write("library/chips/beta.yaml",
          "chip: beta\n"
          "extends: alpha\n"
          "memory: {bandwidth: 3 TB/s}\n");
  }
  ~SampleFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(root_, ignored);
  }
  SampleFolder(const SampleFolder&) = delete;
  SampleFolder& operator=(const SampleFolder&) = delete;

  std::string path(const std::string& name) const { return root_ + "/" + name; }
  std::string write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(path(name)).parent_path());
    std::ofstream(path(name), std::ios::binary) << text;
    return path(name);
  }
  config::Library library() const { return config::Library(path("library")); }

 private:
  std::string root_;
};

/// The smallest valid rack, and its chip inline.
inline const char* const kInlineRack =
    "chip:\n"
    "  memory:\n"
    "    capacity: 80 GB\n"
    "    bandwidth: 2 TB/s\n";

}  // namespace orrery
