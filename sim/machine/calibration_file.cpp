// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "sim/config/input_files.h"
#include "sim/config/load.h"
#include "sim/machine/calibration.h"
#include "sim/machine/precision_names.h"
#include "sim/units/comma_separated.h"

namespace orrery {

namespace {

constexpr int kRatioColumn = 7;  // at which lines of a text block in a fit begin

/// A calibration file without its texts of measured ratios, nineteen twentieths of it, which take
/// the YAML parser ten times as long as parse_ratios(). Empty lines stand in their place.
struct Abridged {
  std::string file;
  std::map<int, std::string>
      texts;  ///< blocks of text by the line of their key, as a YAML parser reads them
};

/// Takes out what is written as `orrery calibrate` writes it; other spellings stay.
Abridged abridge(const std::string& file) {
  constexpr std::string_view kKey = "    measured_ratios: |";
  constexpr std::string_view kEmpty = "    measured_ratios: ''";
  constexpr std::string_view kIndent = "      ";
  static_assert(kIndent.size() + 1 == kRatioColumn);
  Abridged abridged;
  std::string* text = nullptr;
  int number = 1;
  for (std::string_view rest = file; !rest.empty(); ++number) {
    const std::string_view line = take_until('\n', rest);
    if (text != nullptr && line.starts_with(kIndent)) {
      text->append(line.substr(kIndent.size())).append("\n");
      abridged.file += '\n';
      continue;
    }
    const bool key = line == kKey;
    text = key ? &abridged.texts[number] : nullptr;
    abridged.file.append(key ? kEmpty : line).append("\n");
  }
  return abridged;
}

/// Turns the text of a fit into its ratios.
/// @param node where the fit is written
void take_ratios(const config::Node& node, Abridged& abridged, KernelFit& fit) {
  const config::Node* key = node.find("measured_ratios");
  if (key == nullptr) return;
  config::Location first = key->where();
  const auto text = abridged.texts.find(first.line);
  if (text != abridged.texts.end()) fit.measured_ratios = std::move(text->second);
  ++first.line;  // a text block begins below its key
  first.column = kRatioColumn;
  fit.ratios = {std::move(fit.measured_ratios), std::move(first), fit.precision};
  fit.measured_ratios.clear();
}

/// A fit in the text of a file, and what can be told of it without parsing it.
struct FitText {
  int line = 1;  ///< number of its first line
  std::string_view text;
  std::string precision;
  std::vector<std::string> groups;
};

/// A file whose fits stand apart.
struct Sliced {
  std::string head;  ///< text with an empty list of fits; empty lines stand in their place
  std::vector<FitText> fits;
};

/// What the first lines of a fit and the names of its parameters tell.
/// @return whether they are as `orrery calibrate` writes them
bool read_subject(FitText& fit) {
  constexpr std::string_view kPrecision = "    precision: ", kParameters = "    parameters:",
                             kName = "      ";
  std::string_view rest = fit.text;
  take_until('\n', rest);
  const std::string_view precision = take_until('\n', rest);
  if (!precision.starts_with(kPrecision)) return false;
  fit.precision = precision.substr(kPrecision.size());
  while (!rest.empty() && take_until('\n', rest) != kParameters) {
  }
  while (rest.starts_with(kName)) {
    std::string_view name = take_until('\n', rest).substr(kName.size());
    name = name.substr(0, name.find('.'));
    if (fit.groups.empty() || fit.groups.back() != name) fit.groups.emplace_back(name);
  }
  return !fit.groups.empty();
}

std::optional<Precision> precision_named(std::string_view text) {
  for (const auto& [precision, name] : config::EnumNames<Precision>::values)
    if (text == name) return precision;
  return std::nullopt;
}

/// Cuts a file as `orrery calibrate` writes it; nothing for other spellings.
std::optional<Sliced> slice(const std::string& file) {
  constexpr std::string_view kFits = "fits:", kFit = "  - table: ", kInside = "    ";
  Sliced sliced;
  bool inside = false;
  int number = 1;
  std::string_view of_fit;  // the file from where its last fit begins
  for (std::string_view rest = file; !rest.empty(); ++number) {
    const std::string_view from = rest;
    const std::string_view line = take_until('\n', rest);
    if (!inside) {
      inside = line == kFits;
      sliced.head.append(inside ? "fits: []" : line).append("\n");
      continue;
    }
    const bool first = line.starts_with(kFit);
    if (!first && (sliced.fits.empty() || !line.starts_with(kInside))) return std::nullopt;
    if (first) {
      sliced.fits.push_back({number, from, {}, {}});
      of_fit = from;
    }
    sliced.fits.back().text = of_fit.substr(0, of_fit.size() - rest.size());
  }
  for (FitText& fit : sliced.fits)
    if (!read_subject(fit)) return std::nullopt;
  if (sliced.fits.empty()) return std::nullopt;
  return sliced;
}

/// Parses a fit that stands apart, at the place where it was written.
KernelFit read_fit(const FitText& fit, const std::string& path, const config::Library& library) {
  config::Diagnostics diagnostics;
  const std::string lines_before(static_cast<std::size_t>(fit.line - 1), '\n');
  Abridged abridged = abridge(lines_before + std::string(fit.text));
  const config::Node list = config::parse_yaml(abridged.file, path, diagnostics);
  diagnostics.throw_if_errors();
  const config::Node& node = list.items().at(0);
  KernelFit read = config::read<KernelFit>(node, diagnostics, library);
  diagnostics.throw_if_errors();
  take_ratios(node, abridged, read);
  return read;
}

/// A file whose fits are read when they are asked for; nothing where they do not stand apart.
std::optional<Calibration> load_sliced(const std::shared_ptr<const std::string>& file,
                                       const std::string& path, const config::Library& library) {
  const std::optional<Sliced> sliced = slice(*file);
  if (!sliced) return std::nullopt;
  config::Diagnostics diagnostics;
  const config::Node node = config::load_text(sliced->head, path, diagnostics, library);
  diagnostics.throw_if_errors();
  Calibration calibration = config::read<Calibration>(node, diagnostics, library);
  diagnostics.throw_if_errors();
  for (const FitText& fit : sliced->fits) {
    const auto precision = precision_named(fit.precision);
    if (!precision) return std::nullopt;
    calibration.fits.add({*precision, fit.groups},
                         [file, fit, path, library] { return read_fit(fit, path, library); });
  }
  return calibration;
}

Calibration load_whole(const config::FileText& file, const std::string& path,
                       const config::Library& library) {
  config::Diagnostics diagnostics;
  Abridged abridged = abridge(file.text);
  const config::Node node = file.fault.empty()
                                ? config::load_text(abridged.file, path, diagnostics, library)
                                : config::load_file(path, diagnostics, library);
  diagnostics.throw_if_errors();
  Calibration calibration = config::read<Calibration>(node, diagnostics, library);
  diagnostics.throw_if_errors();
  for (std::size_t i = 0; i < calibration.written_fits.size(); ++i) {
    KernelFit& fit = calibration.written_fits[i];
    const config::Node* written = node.at_path("fits." + std::to_string(i));
    if (written != nullptr) take_ratios(*written, abridged, fit);
    fit.ratios.all();
    calibration.fits.push_back(std::move(fit));
  }
  calibration.written_fits.clear();
  return calibration;
}

/// Reads the device of a calibration from the library.
void read_device(Calibration& calibration, const config::Library& library,
                 config::Diagnostics& diagnostics) {
  if (calibration.accelerator.empty()) return;
  const std::string path = library.locate("accelerators", calibration.accelerator, "");
  if (!std::filesystem::exists(path)) return;
  const config::Record& record = AcceleratorConfig::schema().record();
  const config::Node node = config::load_file(path, diagnostics, library, "accelerators");
  diagnostics.throw_if_errors();
  calibration.device_configuration = config::complete(node, record, diagnostics, library);
  AcceleratorConfig device;
  config::fill(&device, calibration.device_configuration, record, diagnostics);
  diagnostics.throw_if_errors();
  calibration.device = at_fitted_rates(std::move(device), calibration.rates);
}

}  // namespace

Calibration load_calibration(const std::string& path, const config::Library& library,
                             FitsRead fits) {
  config::FileText file = config::input_files().read(path);
  std::optional<Calibration> calibration;
  if (fits == FitsRead::kWhenAsked && file.fault.empty())
    calibration = load_sliced(std::make_shared<const std::string>(file.text), path, library);
  if (!calibration) calibration = load_whole(file, path, library);
  config::Diagnostics diagnostics;
  read_device(*calibration, library, diagnostics);
  return *std::move(calibration);
}

}  // namespace orrery
