// SPDX-License-Identifier: Apache-2.0
#include "host/environment.h"

#include <array>
#include <cmath>
#include <cstdio>
#include <ctime>

namespace orrery::measure {
namespace {

/// A double-quoted YAML scalar (YAML 1.2, section 7.3.1): the text of errors may hold anything.
std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      std::array<char, 8> escape{};
      std::snprintf(escape.data(), escape.size(), "\\x%02x",
                    static_cast<unsigned>(static_cast<unsigned char>(c)));
      result += escape.data();
    } else {
      result += c;
    }
  }
  return result + '"';
}

std::string number(double value) {
  if (!std::isfinite(value)) return "null";
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.10g", value);
  return text.data();
}

std::string text_or_null(const std::string& text) { return text.empty() ? "null" : quoted(text); }

std::string line(int indent, const char* key, const std::string& value) {
  return std::string(static_cast<std::size_t>(indent), ' ') + key + ": " + value + '\n';
}

constexpr const char* kStatusNames[] = {"ok", "failed", "skipped"};

std::string outcome_yaml(const Outcome& outcome) {
  std::string text = "  - number: " + std::to_string(outcome.number) + '\n';
  text += line(4, "name", outcome.name);
  text += line(4, "status", kStatusNames[static_cast<int>(outcome.status)]);
  if (!outcome.reason.empty()) text += line(4, "reason", quoted(outcome.reason));
  text += line(4, "rows", std::to_string(outcome.rows));
  return text + line(4, "seconds", number(outcome.seconds));
}

}  // namespace

std::string device_yaml(const DeviceReport& report) {
  const DeviceInfo& device = report.device;
  std::string text = "device:\n";
  text += line(2, "index", std::to_string(device.index));
  text += line(2, "name", quoted(device.name));
  text += line(2, "system", quoted(report.system));
  text += line(2, "uuid", text_or_null(report.uuid));
  text += line(2, "compute_capability",
               quoted(std::to_string(device.major) + "." + std::to_string(device.minor)));
  text += line(2, "driver", text_or_null(report.driver));
  text += line(2, "cuda_driver", text_or_null(report.cuda_driver));
  text += line(2, "cuda_runtime", text_or_null(report.cuda_runtime));
  text += line(2, "multiprocessors", std::to_string(device.sms));
  text += line(2, "memory_bytes", std::to_string(device.memory_bytes));
  text += line(2, "l2_bytes", std::to_string(device.l2_bytes));
  text += line(2, "peers", std::to_string(device.peers));
  text += line(2, "max_sm_clock_mhz", number(report.max_sm_clock_mhz));
  text += line(2, "max_memory_clock_mhz", number(report.max_memory_clock_mhz));
  text += line(2, "sm_clock_mhz_at_start", number(report.state.sm_clock_mhz));
  text += line(2, "memory_clock_mhz_at_start", number(report.memory_clock_mhz));
  text += line(2, "power_cap_w", number(report.power_cap_w));
  text += line(2, "power_w_at_start", number(report.state.power_w));
  text += line(2, "temperature_c_at_start", number(report.state.temperature_c));
  return text + line(2, "ecc", text_or_null(report.ecc));
}

std::string environment_yaml(const RunInfo& run, const std::string& device_section,
                             const std::vector<Outcome>& outcomes) {
  std::string text = line(0, "program", quoted("orrery-measure " + run.version));
  text += line(0, "date", quoted(run.date));
  text += line(0, "command_line", quoted(run.command_line));
  text += line(0, "depth", name_of(run.depth));
  text += line(0, "seed", std::to_string(run.seed));
  text += device_section;
  text += outcomes.empty() ? "measurements: []\n" : "measurements:\n";
  for (const Outcome& outcome : outcomes) text += outcome_yaml(outcome);
  return text;
}

std::string utc(std::chrono::system_clock::time_point moment) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(moment);
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text.data();
}

}  // namespace orrery::measure
