// SPDX-License-Identifier: Apache-2.0
#include "sim/serving/engine_release.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "sim/config/leaf.h"
#include "sim/config/output.h"
#include "sim/units/comma_separated.h"
#include "sim/units/spelling.h"

namespace orrery {
namespace {

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

bool contains_any(const std::string& text, const std::vector<std::string>& parts) {
  const std::string in = lower(text);
  return std::any_of(parts.begin(), parts.end(), [&](const std::string& part) {
    return in.find(lower(part)) != std::string::npos;
  });
}

/// Whether a kind of model is as a condition asks; it is looked at only where there is one.
bool is_as_asked(const std::optional<bool>& asked, const std::function<bool()>& is) {
  return !asked || *asked == (is && is());
}

}  // namespace

bool RuleCase::holds(const EngineSite& site) const {
  const auto& methods = speculation;
  return (!memory || site.memory >= *memory) &&
         (device.empty() || contains_any(site.device, device)) &&
         !contains_any(site.device, not_device) &&
         (architecture.empty() || contains_any(site.architecture, architecture)) &&
         (!below_tp || site.tp < *below_tp) && (!from_tp || site.tp >= *from_tp) &&
         (!pipeline || *pipeline == (site.pp > 1)) &&
         (!data_parallel || *data_parallel == (site.dp > 1)) &&
         (!connector || *connector == site.connector) &&
         (backend.empty() ||
          std::find(backend.begin(), backend.end(), site.backend) != backend.end()) &&
         (methods.empty() ||
          std::find(methods.begin(), methods.end(), site.speculation) != methods.end()) &&
         is_as_asked(recurrent, site.recurrent) && is_as_asked(experts, site.experts);
}

std::string RuleCase::text() const {
  std::vector<std::string> all;
  const auto add = [&all](std::string condition) { all.push_back(std::move(condition)); };
  const auto flag = [&add](const std::optional<bool>& asked, const std::string& what) {
    if (asked) add((*asked ? "" : "no ") + what);
  };
  constexpr double kGiB = 1024.0 * 1024 * 1024;
  if (memory) add("memory >= " + std::to_string(static_cast<int>(memory->base() / kGiB)) + " GiB");
  if (!device.empty()) add("device " + comma_joined(device));
  if (!not_device.empty()) add("device not " + comma_joined(not_device));
  if (!architecture.empty()) add(comma_joined(architecture));
  if (below_tp) add("tp < " + std::to_string(*below_tp));
  if (from_tp) add("tp >= " + std::to_string(*from_tp));
  flag(pipeline, "pipeline parallel");
  flag(data_parallel, "data parallel");
  flag(connector, "KV connector");
  if (!backend.empty()) add("backend " + comma_joined(backend));
  if (!speculation.empty()) add("speculation by " + comma_joined(speculation));
  flag(recurrent, "recurrent layers");
  flag(experts, "experts");
  return comma_joined(all);
}

const config::Schema<RuleCase>& RuleCase::schema() {
  using C = RuleCase;
  static const auto schema =
      config::Schema<C>("case", "a value of a default, where all of its conditions hold")
          .optional("memory", &C::memory, "device memory at least", config::positive())
          .optional("device", &C::device, "parts of names of devices, of which one is in its name")
          .optional("not_device", &C::not_device,
                    "parts of names of devices, of which none is in its name")
          .optional("architecture", &C::architecture,
                    "parts of architectures, of which one is in its own")
          .optional("below_tp", &C::below_tp, "tensor parallel ranks, fewer than this")
          .optional("from_tp", &C::from_tp, "tensor parallel ranks at least")
          .optional("pipeline", &C::pipeline, "whether there are several pipeline stages")
          .optional("data_parallel", &C::data_parallel,
                    "whether there are several data parallel ranks")
          .optional("speculation", &C::speculation, "methods of speculative decoding")
          .optional("connector", &C::connector,
                    "whether caches go to other instances or to other memory")
          .optional("backend", &C::backend, "values of the engine's key `backend`")
          .optional("recurrent", &C::recurrent, "whether some layers have a recurrent state")
          .optional("experts", &C::experts, "whether the model has experts")
          .required("value", &C::value, "value of the key");
  return schema;
}

std::vector<RuleCase> EngineRule::cases() const {
  if (!value.is_sequence()) {
    RuleCase only;
    only.value = value;
    return {only};
  }
  config::Diagnostics diagnostics;
  std::vector<RuleCase> all;
  for (const config::Node& item : value.items())
    all.push_back(config::read<RuleCase>(item, diagnostics, config::default_library()));
  diagnostics.throw_if_errors();
  return all;
}

const config::Schema<EngineRule>& EngineRule::schema() {
  using R = EngineRule;
  static const auto schema =
      config::Schema<R>("rule", "a default of an engine")
          .required("value", &R::value,
                    "the value, or a list of cases, of which the first that holds applies")
          .required("source", &R::source, "pull request and file that it was read in");
  return schema;
}

const config::Schema<EngineRelease>& EngineRelease::schema() {
  using R = EngineRelease;
  static const auto schema =
      config::Schema<R>("engine_release", "defaults of a serving engine from a version on")
          .named("software", &R::id)
          .optional("name", &R::name, "name and version, for tables")
          .required("engine", &R::engine, "kind of engine, of `orrery describe schedulers`")
          .optional("version", &R::version,
                    "first version that has these defaults, or a name of your own such as "
                    "0.19-mine; engines without versions leave it out")
          .required("rules", &R::rules, "defaults by keys of the engine")
          .check(
              "expected a version such as 0.11",
              [](const R& r) { return r.version.empty() || is_engine_version(r.version); },
              "version")
          .check(
              "no engine has this name; `orrery describe schedulers` lists them",
              [](const R& r) {
                return config::Registered<SchedulerConfig>::items().count(r.engine) > 0;
              },
              "engine");
  return schema;
}

std::optional<EngineVersion> release_version(const std::string& name, const std::string& engine) {
  if (name == engine) return EngineVersion{};
  if (!name.starts_with(engine + "_")) return std::nullopt;
  std::string digits = name.substr(engine.size() + 1);
  std::replace(digits.begin(), digits.end(), '_', '.');
  return EngineVersion::of(digits);
}

std::map<EngineVersion, std::string> engine_releases(const std::string& engine) {
  std::map<EngineVersion, std::string> all;
  for (const std::string& name : config::default_library().names("software"))
    if (const auto version = release_version(name, engine)) all.emplace(*version, name);
  return all;
}

bool is_engine_release(const std::string& name) {
  const auto& engines = config::Registered<SchedulerConfig>::items();
  return std::any_of(engines.begin(), engines.end(), [&](const auto& engine) {
    return name == engine.first || name.starts_with(engine.first + "_");
  });
}

EngineRelease load_engine_release(const std::string& name) {
  const config::Library& library = config::default_library();
  return config::load<EngineRelease>(library.locate("software", name, ""), library, "software");
}

std::string own_release(const std::string& engine, const std::string& version,
                        const std::string& from_file) {
  const config::Library& library = config::default_library();
  if (config::Library::is_path(version)) return library.locate("software", version, from_file);
  if (EngineVersion::of(version) && version.find('-') == std::string::npos) return {};
  std::string name = engine + "_" + version;
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c == '.' || c == '-'; }, '_');
  return library.locate("software", name, "");
}

namespace {

config::Node* at_path(config::Node& node, const std::string& path) {
  const std::size_t dot = path.find('.');
  config::Node* next = node.find(path.substr(0, dot));
  return next == nullptr || dot == std::string::npos ? next : at_path(*next, path.substr(dot + 1));
}

/// Replaces a value that nobody wrote, or that was written as `auto`. Of a map, all keys that the
/// rule has.
void set_open(config::Node& target, const config::Node& value) {
  const bool open = target.origin().kind == config::Origin::Kind::kDefault;
  if (!open && target.text() != "auto") return;
  if (!value.is_map()) {
    target = value;
    return;
  }
  for (const config::Node::Entry& entry : value.entries())
    target.set(entry.key, entry.value, entry.key_origin);
}

}  // namespace

bool set_open(config::Node& engine, const std::string& key, const config::Node& value) {
  config::Node* target = at_path(engine, key);
  if (target != nullptr) set_open(*target, value);
  return target != nullptr;
}

namespace {

/// The keys of an engine as rules name them.
std::vector<std::string> keys_of(const config::Record& record) {
  std::vector<std::string> keys;
  for (const config::KeyHelp& key : config::describe_keys(record)) keys.push_back(key.path);
  return keys;
}

}  // namespace

void require_rules(const EngineRelease& release) {
  config::Diagnostics diagnostics;
  config::Node engine = config::Node::map({});
  engine.set("kind", config::Node::scalar(release.engine, {}), {});
  const config::Record& record = *SchedulerConfig::choices().record_of(engine);
  const config::Node defaults =
      config::complete(engine, record, diagnostics, config::default_library());
  for (const auto& [key, rule] : release.rules) {
    for (const RuleCase& one : rule.cases()) {
      config::Node node = defaults;
      if (set_open(node, key, one.value)) {
        config::fill(record.make().get(),
                     config::complete(node, record, diagnostics, config::default_library()), record,
                     diagnostics);
      } else {
        diagnostics.error(one.value.where(), one.value.length(),
                          "no key of " + release.engine + " is called '" + key + "'",
                          nearest_name(key, keys_of(record)));
      }
    }
  }
  diagnostics.throw_if_errors();
}

}  // namespace orrery
