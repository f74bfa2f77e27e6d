// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <mutex>
#include <set>
#include <stdexcept>

#include "sim/config/leaf.h"
#include "sim/config/library.h"
#include "sim/config/load.h"
#include "sim/serving/engine_release.h"

namespace orrery {
namespace {

using Cases = std::map<std::string, std::vector<RuleCase>>;

/// The result of `read` for a name, which a process reads once.
template <class T>
const T& read_once(const std::string& name, T (*read)(const std::string&)) {
  static std::mutex mutex;
  static std::map<std::string, T> all;
  const std::lock_guard lock(mutex);
  const auto known = all.find(name);
  return known != all.end() ? known->second : all.emplace(name, read(name)).first->second;
}

/// The cases of all rules of a release.
Cases cases_of(const std::string& release) {
  Cases cases;
  for (const auto& [key, rule] : load_engine_release(release).rules) cases[key] = rule.cases();
  return cases;
}

/// Files of releases that users wrote, of which values were taken in this process.
class OwnFiles {
 public:
  static OwnFiles& all() {
    static OwnFiles files;
    return files;
  }
  void add(const std::string& file) {
    const std::lock_guard lock(mutex_);
    files_.insert(file);
  }
  bool has(const std::string& file) {
    const std::lock_guard lock(mutex_);
    return files_.contains(file);
  }

 private:
  std::mutex mutex_;
  std::set<std::string> files_;
};

/// Whether a value came from a release, the last time that this was loaded.
bool is_of_release(const config::Node& node) {
  const config::Origin& written = node.origin();
  if (written.kind != config::Origin::Kind::kFile) return false;
  const auto folder = std::filesystem::path(*written.file).parent_path();
  return folder == config::default_library().root() / "software" ||
         OwnFiles::all().has(*written.file);
}

/// Puts defaults back in the place of values of another release.
void forget_release(config::Node& node, const config::Record& record, void* defaults) {
  for (const config::Field& field : record.fields()) {
    config::Node* value = node.find(field.key);
    if (value == nullptr) continue;
    if (is_of_release(*value)) {
      *value = config::default_node(field, defaults);
    } else if (field.type->kind == config::TypeKind::kRecord && value->is_map()) {
      forget_release(*value, field.type->record(), field.address(defaults));
    }
  }
}

/// The newest release that is not newer than a version, or the oldest one.
/// @param releases not empty
const std::string& release_of(const std::map<EngineVersion, std::string>& releases,
                              const EngineVersion& version) {
  const auto newer = releases.upper_bound(version);
  return newer == releases.begin() ? newer->second : std::prev(newer)->second;
}

/// Says that no release is known of a version: it is older, or newer, than all that are.
void warn_of_version(const std::map<EngineVersion, std::string>& releases,
                     const EngineVersion& version, const std::string& engine,
                     const config::Node& written, config::Diagnostics& diagnostics) {
  if (written.origin().kind == config::Origin::Kind::kDefault)
    return;  // engine_defaults says which version is used
  const EngineVersion& oldest = releases.begin()->first;
  const EngineVersion& newest = releases.rbegin()->first;
  const bool older = version < oldest;
  const bool newer = version > EngineVersion{newest.major, newest.minor, 1 << 20};
  if (!older && !newer) return;
  const EngineVersion& nearest = older ? oldest : newest;
  const std::string message = fmt::format("defaults of {} {} are not known: those of {} are used",
                                          engine, version.text(), nearest.text());
  for (const config::Diagnostic& said : diagnostics.all())
    if (said.message == message) return;
  diagnostics.warning(written.where(), written.length(), message,
                      {"`orrery describe software " + engine + "` lists the versions"});
}

/// The version of the release that has a value. @return std::nullopt for values of others
std::optional<EngineVersion> release_with(const config::Node* value, const std::string& engine) {
  if (value == nullptr || !is_of_release(*value)) return std::nullopt;
  return release_version(std::filesystem::path(*value->origin().file).stem().string(), engine);
}

/// The text that follow_release() returns.
std::string followed_text(const std::string& engine, const std::string& version,
                          const std::string& defaults, const config::Node& node) {
  const auto times = release_with(node.at_path("host.request"), engine);
  return fmt::format("{} {}: defaults of {}{}", engine, version, defaults,
                     times ? ", host times of " + times->text() : "");
}

/// The rules of a release that a user wrote, whose mistakes go to `diagnostics`.
Cases own_cases(const std::string& file, const std::string& engine, const config::Node& written,
                config::Diagnostics& diagnostics) {
  if (!std::filesystem::exists(file) && config::Library::is_path(written.text())) {
    diagnostics.error(written.where(), written.length(), "no such file '" + written.text() + "'",
                      config::nearest_file(written.text(), file), {"looked for " + file});
    return {};
  }
  if (!std::filesystem::exists(file)) {
    diagnostics.error(written.where(), written.length(),
                      fmt::format("there is no version '{}' of {}: expected one such as 0.11, or a "
                                  "file of your own, here {}",
                                  written.text(), engine, file),
                      {}, {"`orrery describe software " + engine + "` lists the versions"});
    return {};
  }
  const auto release = config::load<EngineRelease>(file, config::default_library(), "software");
  if (release.engine != engine) {
    diagnostics.error(written.where(), written.length(),
                      file + " is of " + release.engine + ", not of " + engine);
    return {};
  }
  require_rules(release);
  OwnFiles::all().add(file);
  Cases cases;
  for (const auto& [key, rule] : release.rules) cases[key] = rule.cases();
  return cases;
}

/// Lays the first case of each rule that holds over the keys that nobody wrote.
void lay_over(const Cases& rules, const EngineSite& site, const std::string& engine,
              config::Node& node) {
  for (const auto& [key, cases] : rules) {
    const auto first = std::find_if(cases.begin(), cases.end(),
                                    [&](const RuleCase& one) { return one.holds(site); });
    if (first != cases.end() && !set_open(node, key, first->value))
      throw std::logic_error(fmt::format("no key of {} is called {}", engine, key));
  }
}

/// Rules that an engine follows, with the versions to print. Engines without versions have none.
struct Followed {
  Cases own;  ///< those of a user's file
  const Cases* rules = nullptr;
  std::string version;   ///< version of the engine, such as "0.22"
  std::string defaults;  ///< version of the release that has its defaults, such as "0.21"
};

/// @return std::nullopt where there are no rules
std::optional<Followed> rules_of(const std::string& engine, const config::Node* written,
                                 config::Diagnostics& diagnostics) {
  const auto& releases = read_once(engine, engine_releases);
  Followed followed;
  if (written == nullptr || written->text().empty()) {
    if (releases.empty()) return std::nullopt;
    followed.rules = &read_once(releases.rbegin()->second, cases_of);
    return followed;
  }
  followed.version = written->text();
  const config::Origin& origin = written->origin();
  const std::string from = origin.kind == config::Origin::Kind::kFile ? *origin.file : "";
  const std::string own = own_release(engine, followed.version, from);
  const auto version = EngineVersion::of(followed.version);
  if (!own.empty() && (!version || std::filesystem::exists(own))) {
    followed.own = own_cases(own, engine, *written, diagnostics);
    followed.defaults = std::filesystem::path(own).stem().string();
    return followed;
  }
  if (!version) return std::nullopt;
  if (releases.empty() || releases.rbegin()->first == EngineVersion{}) {
    diagnostics.error(written->where(), written->length(),
                      "no versions of " + engine + " are known: expected a file of your own");
    return std::nullopt;
  }
  warn_of_version(releases, *version, engine, *written, diagnostics);
  const std::string& release = release_of(releases, *version);
  followed.rules = &read_once(release, cases_of);
  followed.defaults = release_version(release, engine)->text();
  return followed;
}

}  // namespace

std::string follow_release(config::OneOf<SchedulerConfig>& engine, const EngineSite& site,
                           config::Node& node, config::Diagnostics& diagnostics) {
  if (!engine.object) return {};
  const auto followed = rules_of(engine.name, node.find("version"), diagnostics);
  if (!followed) return {};
  const config::Record& record = *SchedulerConfig::choices().record_of(node);
  forget_release(node, record, record.make().get());
  EngineSite of_engine = site;
  if (const config::Node* backend = node.find("backend")) of_engine.backend = backend->text();
  lay_over(followed->rules != nullptr ? *followed->rules : followed->own, of_engine, engine.name,
           node);
  // Rows of a rule's list may leave keys out.
  node = config::complete(node, record, diagnostics, config::default_library());
  config::OneOf<SchedulerConfig> filled;
  void* object = config::type_of<config::OneOf<SchedulerConfig>>().choose(&filled, engine.name);
  config::fill(object, node, record, diagnostics);
  engine = filled;
  if (followed->version.empty()) return {};
  return followed_text(engine.name, followed->version, followed->defaults, node);
}

}  // namespace orrery
