// SPDX-License-Identifier: Apache-2.0
// Infrastructure of InfraGraph as one system of kind `graph`: an accelerator for every `xpu`, a
// switch for every other component, a wire for every edge, the same both ways.
#include <filesystem>
#include <sstream>

#include "sim/config/diagnostics.h"
#include "sim/config/library.h"
#include "sim/config/load.h"
#include "sim/units/text.h"
#include "validation/importers/gpu_parts.h"
#include "validation/importers/importer.h"
#include "validation/importers/infragraph.h"

namespace orrery {
namespace {

/// The accelerator of a system of the library; empty where it is written out there.
std::string accelerator_of(const std::string& system) {
  const config::Library& library = config::default_library();
  config::Diagnostics diagnostics;
  const config::Node node =
      config::load_file(library.locate("systems", system, ""), diagnostics, library, "systems");
  diagnostics.throw_if_errors();
  const config::Node* accelerator = node.find("accelerator");
  return accelerator != nullptr && accelerator->is_scalar() ? accelerator->text() : std::string();
}

std::string quoted(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return quoted + "\"";
}

class InfraText {
 public:
  InfraText(const std::string& file, const InfraSystem& system) : system_(system) {
    source_ = std::filesystem::path(file).filename().string();
  }

  /// @param ports ports of the accelerator; null: the base has an accelerator of its own
  std::string text(const std::string& base, const std::string& accelerator,
                   const InfraPorts* ports) {
    const std::string name = system_.name().empty() ? source_ : system_.name();
    out_ << "# Components and links of an InfraGraph" << (base.empty() ? "" : "; all else as ")
         << base << ".\n";
    if (!base.empty()) out_ << "extends: " << base << "\n";
    out_ << "system: infragraph\nname: " << quoted(name) << "\n";
    put_accelerator(accelerator, ports);
    const std::size_t all = system_.accelerators(), of_copy = system_.accelerators_of_copy();
    out_ << "accelerators: " << fact(std::to_string(all), "components of type xpu")
         << "\naccelerators_per_node: " << (of_copy > 0 ? of_copy : all) << "\n";
    put_scale_up(base.empty());
    if (base.empty()) put_rest();
    return out_.str();
  }

 private:
  std::string fact(const std::string& value, const std::string& why) const {
    return "{value: " + value + ", source: " + quoted(source_ + ": " + why) + "}";
  }
  static std::string estimate(const std::string& value, const std::string& why) {
    return "{value: " + value + ", source: " + quoted("estimate: " + why) + "}";
  }

  void put_accelerator(const std::string& accelerator, const InfraPorts* known) {
    if (known == nullptr) return;
    const auto ports = system_.ports();
    if (!ports || known->told(InfraKind::kScaleUp) == ports->first) {
      out_ << "accelerator: " << accelerator << "\n";
      return;
    }
    out_ << "accelerator:\n  extends: " << accelerator
         << "\n  scale_up:\n    kind: links of an InfraGraph\n    bandwidth: "
         << fact(print(ports->first), "edges of an xpu that are no host's") << "\n    links: "
         << fact(std::to_string(ports->second), "edges of an xpu that are no host's") << "\n";
  }

  void put_scale_up(bool alone) {
    out_ << "scale_up:\n  kind: graph\n";
    if (system_.tells_latency()) {
      out_ << "  latency: "
           << fact(print(system_.step_latency()), "links between the nearest xpus, no software")
           << "\n";
    } else if (alone) {
      out_ << "  latency: " << estimate("2 us", "the file tells none; a kernel and its message")
           << "\n";
    }
    if (system_.tells_hop_latency())
      out_ << "  hop_latency: "
           << fact(print(system_.hop_latency()), "links between the farthest xpus") << "\n";
    if (alone) out_ << "  efficiency: " << fact("1", "no overhead") << "\n";
    out_ << "  wires:\n";
    for (const std::vector<ImportedCell>& row : system_.rows()) {
      out_ << "    - {from: " << quoted(to_text(row[0])) << ", to: " << quoted(to_text(row[1]))
           << ", kind: " << to_text(row[2]) << ", links: " << to_text(row[3])
           << ", bandwidth: " << print(BytesPerSecond(std::get<double>(row[4]))) << "}\n";
    }
  }

  /// Systems need these; no message takes them here, where all is one system.
  void put_rest() {
    out_ << "scale_out:\n  latency: " << estimate("5 us", "between copies of the whole")
         << "\n  efficiency: " << estimate("1", "between copies of the whole")
         << "\nhost:\n  processors: "
         << fact(std::to_string(std::max<std::size_t>(1, system_.processors())),
                 "components of type cpu")
         << "\n  memory: " << estimate("2 TB", "the file tells none") << "\n";
  }

  const InfraSystem& system_;
  std::string source_;
  std::ostringstream out_;
};

ImportedTable import_infragraph(const std::string& path, const ImportOptions& options) {
  const std::string& base = options.system;
  if (!base.empty()) require_system(base);
  if (base.empty() && options.accelerator.empty())
    throw config::ConfigError(
        path +
        ": the file does not tell which accelerators its xpus are; name one with "
        "--accelerator, or a system of the library with --system");
  InfraSystem system(path, read_infragraph(path));
  const std::string accelerator =
      options.accelerator.empty() ? accelerator_of(base) : options.accelerator;
  std::optional<InfraPorts> ports;
  if (!accelerator.empty()) ports.emplace(accelerator);
  system.fill_bandwidths(ports ? &*ports : nullptr);
  ImportedTable table;
  table.columns = {"from", "to", "kind", "links", "bytes_per_s"};
  table.rows = system.rows();
  const bool is_path = config::Library::is_path(base);
  const std::string extended = is_path ? std::filesystem::absolute(base).string() : base;
  table.document = InfraText(path, system).text(extended, accelerator, ports ? &*ports : nullptr);
  for (const std::string& note : system.notes())
    table.notes.push_back(std::string(path).append(": ").append(note));
  if (!system.tells_latency())
    table.notes.push_back(path + ": no latency between the nearest xpus: a step takes " +
                          (base.empty() ? "2 us (estimate)" : "that of " + base));
  return table;
}

const ImporterRegistry::Register registered_infragraph(
    "infragraph",
    "infrastructure of InfraGraph (ASTRA-sim 3.0; YAML or JSON): -o writes a system of kind graph",
    import_infragraph);

}  // namespace
}  // namespace orrery
