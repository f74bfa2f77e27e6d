// SPDX-License-Identifier: Apache-2.0
#include "sim/app/cli/published_table.h"

#include <iostream>

#include "sim/results/table.h"

namespace orrery {

void print_sources(const std::vector<PublishedSummary>& sources) {
  Table table({{"source"},
               {"n", Table::Align::kRight},
               {"mean absolute error", Table::Align::kRight},
               {"worst", Table::Align::kRight}});
  for (const PublishedSummary& s : sources) {
    const bool any = s.predicted > 0;
    table.add_row({s.source, std::to_string(s.rows), any ? format_percent(s.mean_absolute) : "-",
                   any ? format_difference(s.worst) : "-"});
  }
  table.print(std::cout);
}

}  // namespace orrery
