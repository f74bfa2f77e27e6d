// SPDX-License-Identifier: Apache-2.0
#include "sim/app/questions/describe/describe_accelerator.h"

#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "sim/app/questions/describe/derived_figures.h"
#include "sim/config/output.h"
#include "sim/machine/doubts.h"
#include "sim/results/table.h"

namespace orrery {
namespace {

using Json = nlohmann::ordered_json;

// The text of one of the keys of a Fact, or empty.
std::string fact_text(const config::Node* fact, const char* key) {
  const config::Node* text = fact ? fact->find(key) : nullptr;
  return text ? text->text() : std::string();
}

// A row of the table of an accelerator. Sentences do not stand in its columns of values: what is
// left out is printed below the table, and a source that is a key of its own is a source.
void add_value(Table& table, const std::string& path, const std::string& value,
               const std::string& nameplate, const std::string& origin) {
  const std::string_view source_key = ".source";
  const bool is_source = path.size() > source_key.size() &&
                         path.compare(path.size() - source_key.size(), path.npos, source_key) == 0;
  if (is_remark(path)) return;
  if (is_source) {
    table.add_row({path, "", "", value});
  } else {
    table.add_row({path, value, nameplate, origin});
  }
}

}  // namespace

Answer describe_accelerator(const std::string& name, const AcceleratorConfig& accelerator,
                            const config::Node& file) {
  Table table({{name, Table::Align::kLeft},
               {"simulations use", Table::Align::kRight},
               {"published", Table::Align::kRight},
               {"source", Table::Align::kLeft}});
  Json values = Json::array();
  for (const auto& leaf : config::flatten(file, AcceleratorConfig::schema().record())) {
    const config::Node* fact = file.at_path(leaf.path);
    const std::string source = fact_text(fact, "source");
    const std::string nameplate = fact_text(fact, "nameplate");
    const std::string nameplate_source = fact_text(fact, "nameplate_source");
    const std::string reason = fact_text(fact, "reason");
    std::string origin = source;
    if (!nameplate.empty())
      origin.append("; published: ").append(nameplate_source).append("; ").append(reason);
    add_value(table, leaf.path, leaf.text, nameplate, origin);
    Json row = {{"path", leaf.path}, {"text", leaf.text}};
    if (leaf.value) row["value"] = *leaf.value;
    row.update({{"unit", leaf.unit}, {"source", source}, {"origin", leaf.origin}});
    if (!nameplate.empty()) {
      row.update(
          {{"nameplate", nameplate}, {"nameplate_source", nameplate_source}, {"reason", reason}});
    }
    values.push_back(std::move(row));
  }
  const Answer figures = derived_figures(accelerator);
  config::Diagnostics doubtful;
  for (const config::KeyError& doubt : doubts(accelerator))
    config::report(doubt, file, doubtful, config::Diagnostic::Severity::kWarning);
  Answer answer{.parts = {std::move(table)},
                .json = {{"name", name}, {"values", std::move(values)}}};
  answer.add(figures);
  answer.json.update(figures.json);
  answer.warnings = doubtful.render_warnings();
  return answer;
}

}  // namespace orrery
