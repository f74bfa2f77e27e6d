// SPDX-License-Identifier: Apache-2.0
// A topology of NCCL as a system of kind `graph`, or of kind `pcie` where its cards have nothing
// but slots and bridges, that extends one of the library, which has what NCCL does not write down:
// the accelerator, latencies, power. The PCI identity of the GPUs tells which one.
#include <filesystem>
#include <sstream>

#include "sim/config/diagnostics.h"
#include "sim/config/library.h"
#include "sim/units/text.h"
#include "validation/importers/gpu_parts.h"
#include "validation/importers/importer.h"
#include "validation/importers/pcie_box.h"
#include "validation/importers/topology_file.h"

namespace orrery {
namespace {

/// The system that a topology extends.
struct TopologyBase {
  std::string system;
  const char* accelerator = nullptr;  ///< another one than that of the system
};

std::string hexadecimal(std::uint16_t number) {
  constexpr std::string_view kHexDigits = "0123456789abcdef";
  std::string text(4, '0');
  for (std::size_t i = 0; i < text.size(); ++i) text[i] = kHexDigits[number >> (12 - 4 * i) & 0xFU];
  return text;
}

/// "NVIDIA H100 PCIe (PCI device 10de:2331)", as far as it is told.
std::string name_of(const TopologyFile::Identity& gpu) {
  const GpuPart* part = find_gpu_part(gpu.vendor, gpu.device);
  constexpr std::uint16_t kHygon = 0x1d94;
  std::string text = part != nullptr        ? part->name
                     : gpu.vendor == kHygon ? "a Hygon DCU"
                                            : "a GPU that is not known";
  if (gpu.device != 0) {
    text += " (PCI device " + hexadecimal(gpu.vendor) + ":" + hexadecimal(gpu.device) + ")";
  } else if (!gpu.architecture.empty()) {
    text += " (gcn " + gpu.architecture + ")";
  } else if (gpu.sm != 0) {
    text += " (sm " + std::to_string(gpu.sm) + ")";
  }
  return text;
}

/// @throws config::ConfigError where the file does not tell, or the library lacks the part
TopologyBase base_of(const std::string& path, const TopologyFile& file, ImportedTable& table) {
  const TopologyFile::Identity gpu = file.identity();
  const GpuPart* part = find_gpu_part(gpu.vendor, gpu.device);
  if (file.is_stub()) {
    const bool known = part != nullptr && part->system != nullptr;
    throw config::ConfigError(
        path +
        ": there is no <gpu>, so that the links between the GPUs are not known; name the "
        "system that has them with --system" +
        (known ? std::string(", such as ") + part->system + ", for its GPUs are " + part->name
               : ""));
  }
  if (part != nullptr && part->system != nullptr) return {part->system, part->accelerator};
  const char* usual = gpu.device == 0 && gpu.architecture.empty() && file.has_scale_up()
                          ? usual_system(gpu.sm)
                          : nullptr;
  if (usual == nullptr) {
    throw config::ConfigError(path + ": the library has no system of " + name_of(gpu) +
                              "; name one with --system that the topology extends");
  }
  table.notes.push_back(path + ": the file tells no PCI device of its GPUs; sm " +
                        std::to_string(gpu.sm) + " is taken for " + usual +
                        " (say --system for another one)");
  return {usual, nullptr};
}

/// What the user names counts; where the file says another part, that is told.
TopologyBase base_as_said(const std::string& path, const std::string& system,
                          const TopologyFile& file, ImportedTable& table) {
  require_system(system);
  const TopologyFile::Identity gpu = file.identity();
  const GpuPart* part = find_gpu_part(gpu.vendor, gpu.device);
  if (part == nullptr || part->system == nullptr || part->system != system) {
    table.notes.push_back(path + ": the file's GPUs are " + name_of(gpu) +
                          "; accelerator and latencies are those of " + system);
  }
  // The system that is written may lie in another folder than the file that it extends.
  return {config::Library::is_path(system) ? std::filesystem::absolute(system).string() : system,
          nullptr};
}

std::string topology_yaml(const TopologyFile& file, const TopologyBase& base) {
  std::ostringstream out;
  out << "# Links of a node as NCCL dumped them; all else as the system that it extends.\n"
      << "extends: " << base.system << "\n"
      << "name: " << base.system << " with the links of an NCCL topology\n";
  if (base.accelerator != nullptr) out << "accelerator: " << base.accelerator << "\n";
  out << "accelerators: {value: " << file.gpus() << ", source: the topology of NCCL}\n"
      << "accelerators_per_node: "
      << (file.gpus() % file.hosts() == 0 ? file.gpus() / file.hosts() : file.gpus()) << "\n";
  if (file.is_stub()) return out.str();
  const auto box = is_pcie_system(base.system) ? pcie_box(file) : std::nullopt;
  if (box) return out.str() + box->yaml();
  out << "\nscale_up:\n  kind: graph\n  wires:\n";
  for (const TopologyWire& wire : file.wires()) {
    out << "    - {from: " << wire.from << ", to: " << wire.to << ", kind: " << wire.kind
        << ", links: " << wire.links;
    if (wire.bandwidth) out << ", bandwidth: " << print(*wire.bandwidth);
    out << "}\n";
  }
  return out.str();
}

ImportedTable import_nccl_topology(const std::string& path, const ImportOptions& options) {
  const TopologyFile file(path);
  ImportedTable table;
  table.notes = file.notes();
  const TopologyBase base = options.system.empty()
                                ? base_of(path, file, table)
                                : base_as_said(path, options.system, file, table);
  if (file.is_stub()) {
    table.notes.push_back(path + ": there is no <gpu>: links between GPUs are those of " +
                          base.system + ", the PCI tree stands in the table alone");
  } else if (!file.has_scale_up() && file.gpus() > 1) {
    table.notes.push_back(path +
                          ": no GPU has a link to another one or to a switch: messages "
                          "between them take the PCI tree");
  }
  table.columns = {"from", "to", "kind", "links", "bytes_per_s"};
  for (const TopologyWire& wire : file.wires()) {
    table.rows.push_back({wire.from, wire.to, std::string(wire.kind), wire.links,
                          wire.bandwidth ? ImportedCell(wire.bandwidth->base()) : ImportedCell()});
  }
  table.document = topology_yaml(file, base);
  return table;
}

const ImporterRegistry::Register registered_nccl_topology(
    "nccl-topology",
    "NCCL_TOPO_DUMP_FILE or NCCL_TOPO_FILE of NCCL or RCCL: a system of kind graph",
    import_nccl_topology);

}  // namespace

}  // namespace orrery
