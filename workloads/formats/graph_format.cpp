// SPDX-License-Identifier: Apache-2.0
#include "workloads/formats/graph_format.h"

#include <stdexcept>

namespace orrery {

bool GraphFormat::recognises(std::string_view /*head*/, std::string_view /*path*/) const {
  return false;
}

int GraphFormat::rank(std::string_view /*head*/) const { return -1; }

bool GraphFormat::is_part(std::string_view /*head*/) const { return false; }

void GraphFormat::read(ByteSource& /*source*/, const GraphReadOptions& /*options*/,
                       Communicators& /*communicators*/, GraphBuilder& /*graph*/,
                       std::vector<std::string>& /*notes*/) const {
  throw std::logic_error("this form of graphs is not read");
}

void GraphFormat::write(const Program& /*program*/, const std::string& /*name*/,
                        std::ostream& /*out*/) const {
  throw std::logic_error("this form of graphs is not written");
}

std::uint64_t GraphFormat::write_ranks(const PricedSteps& /*steps*/, const Files& /*files*/) const {
  throw std::logic_error("this form of graphs has no files of ranks");
}

std::uint64_t GraphFormat::write_run(const ImportedRun& /*run*/, const Files& /*files*/) const {
  throw std::logic_error("this form of graphs has no graphs that were read");
}

}  // namespace orrery
