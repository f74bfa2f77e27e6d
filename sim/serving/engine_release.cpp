// SPDX-License-Identifier: Apache-2.0
#include "sim/serving/engine_release.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <mutex>

#include "sim/config/defaults.h"
#include "sim/config/leaf.h"

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
         (methods.empty() ||
          std::find(methods.begin(), methods.end(), site.speculation) != methods.end()) &&
         is_as_asked(recurrent, site.recurrent) && is_as_asked(experts, site.experts);
}

std::string RuleCase::text() const {
  std::string all;
  const auto add = [&all](const std::string& condition) {
    all += (all.empty() ? "" : ", ") + condition;
  };
  const auto flag = [&add](const std::optional<bool>& asked, const std::string& what) {
    if (asked) add((*asked ? "" : "no ") + what);
  };
  constexpr double kGiB = 1024.0 * 1024 * 1024;
  if (memory) add("memory >= " + std::to_string(static_cast<int>(memory->base() / kGiB)) + " GiB");
  if (!device.empty()) add("device " + config::joined(device));
  if (!not_device.empty()) add("device not " + config::joined(not_device));
  if (!architecture.empty()) add(config::joined(architecture));
  if (below_tp) add("tp < " + std::to_string(*below_tp));
  if (from_tp) add("tp >= " + std::to_string(*from_tp));
  flag(pipeline, "pipeline parallel");
  flag(data_parallel, "data parallel");
  flag(connector, "KV connector");
  if (!speculation.empty()) add("speculation by " + config::joined(speculation));
  flag(recurrent, "recurrent layers");
  flag(experts, "experts");
  return all;
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
          .required("version", &R::version, "first version that has these defaults")
          .required("rules", &R::rules, "defaults by keys of the engine")
          .check(
              "expected a version such as 0.11",
              [](const R& r) { return EngineVersion::of(r.version).has_value(); }, "version")
          .check(
              "no engine has this name; `orrery describe schedulers` lists them",
              [](const R& r) {
                return config::Registered<SchedulerConfig>::items().count(r.engine) > 0;
              },
              "engine");
  return schema;
}

namespace {

/// The version in "vllm_0_11_1". @return std::nullopt for files of something else
std::optional<EngineVersion> version_in(const std::string& name, const std::string& engine) {
  if (!name.starts_with(engine + "_")) return std::nullopt;
  std::string digits = name.substr(engine.size() + 1);
  std::replace(digits.begin(), digits.end(), '_', '.');
  return EngineVersion::of(digits);
}

}  // namespace

std::map<EngineVersion, std::string> engine_releases(const std::string& engine) {
  std::map<EngineVersion, std::string> all;
  for (const std::string& name : config::default_library().names("software"))
    if (const auto version = version_in(name, engine)) all.emplace(*version, name);
  return all;
}

bool is_engine_release(const std::string& name) {
  const auto& engines = config::Registered<SchedulerConfig>::items();
  return std::any_of(engines.begin(), engines.end(), [&](const auto& engine) {
    return version_in(name, engine.first).has_value();
  });
}

EngineRelease load_engine_release(const std::string& name) {
  const config::Library& library = config::default_library();
  return config::load<EngineRelease>(library.locate("software", name, ""), library, "software");
}

namespace {

using Cases = std::map<std::string, std::vector<RuleCase>>;

/// What `read` gives for a name, which is read once in a process.
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

/// Whether a value came from a release, the last time that this was loaded.
bool is_of_release(const config::Node& node) {
  const config::Origin& written = node.origin();
  if (written.kind != config::Origin::Kind::kFile) return false;
  const auto folder = std::filesystem::path(*written.file).parent_path();
  return folder == config::default_library().root() / "software";
}

bool is_default(const config::Node& node) {
  return node.origin().kind == config::Origin::Kind::kDefault;
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

config::Node* at_path(config::Node& node, const std::string& path) {
  const std::size_t dot = path.find('.');
  config::Node* next = node.find(path.substr(0, dot));
  return next == nullptr || dot == std::string::npos ? next : at_path(*next, path.substr(dot + 1));
}

/// Replaces a value that nobody wrote, or that was written as `auto`. Of a map, all keys that the
/// rule has.
void set_open(config::Node& target, const config::Node& value) {
  if (!is_default(target) && target.text() != "auto") return;
  if (!value.is_map()) {
    target = value;
    return;
  }
  for (const config::Node::Entry& entry : value.entries())
    target.set(entry.key, entry.value, entry.key_origin);
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
  if (is_default(written)) return;  // engine_defaults says which version is used
  const EngineVersion& oldest = releases.begin()->first;
  const EngineVersion& newest = releases.rbegin()->first;
  const bool older = version < oldest;
  const bool newer = version > EngineVersion{newest.major, newest.minor, 1 << 20};
  if (!older && !newer) return;
  const EngineVersion& nearest = older ? oldest : newest;
  const std::string message = "defaults of " + engine + " " + version.text() +
                              " are not known: those of " + nearest.text() + " are used";
  for (const config::Diagnostic& said : diagnostics.all())
    if (said.message == message) return;
  diagnostics.warning(written.where(), written.length(), message,
                      {"`orrery describe software " + engine + "` lists the versions"});
}

/// The version of the release that has a value. @return std::nullopt for values of others
std::optional<EngineVersion> release_with(const config::Node* value, const std::string& engine) {
  if (value == nullptr || !is_of_release(*value)) return std::nullopt;
  return version_in(std::filesystem::path(*value->origin().file).stem().string(), engine);
}

/// What follow_release() returns.
std::string followed_text(const std::string& engine, const std::string& version,
                          const std::string& release, const config::Node& node) {
  std::string text =
      engine + " " + version + ": defaults of " + version_in(release, engine)->text();
  if (const auto times = release_with(node.at_path("host.request"), engine))
    text += ", host times of " + times->text();
  return text;
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
      if (config::Node* target = at_path(node, key)) {
        set_open(*target, one.value);
        config::fill(record.make().get(), node, record, diagnostics);
      } else {
        diagnostics.error(one.value.where(), one.value.length(),
                          "no key of " + release.engine + " is called '" + key + "'");
      }
    }
  }
  diagnostics.throw_if_errors();
}

std::string follow_release(config::OneOf<SchedulerConfig>& engine, const EngineSite& site,
                           config::Node& node, config::Diagnostics& diagnostics) {
  const config::Node* written = node.find("version");
  if (written == nullptr || !engine.object) return {};
  const auto version = EngineVersion::of(written->text());
  const auto& releases = read_once(engine.name, engine_releases);
  if (!version || releases.empty()) return {};
  warn_of_version(releases, *version, engine.name, *written, diagnostics);
  const config::Record& record = *SchedulerConfig::choices().record_of(node);
  forget_release(node, record, record.make().get());
  const std::string& release = release_of(releases, *version);
  for (const auto& [key, cases] : read_once(release, cases_of)) {
    config::Node* target = at_path(node, key);
    if (target == nullptr) throw std::logic_error("no key of " + engine.name + " is called " + key);
    const auto first = std::find_if(cases.begin(), cases.end(),
                                    [&](const RuleCase& one) { return one.holds(site); });
    if (first != cases.end()) set_open(*target, first->value);
  }
  config::OneOf<SchedulerConfig> followed;
  void* object = config::type_of<config::OneOf<SchedulerConfig>>().choose(&followed, engine.name);
  config::fill(object, node, record, diagnostics);
  engine = followed;
  return followed_text(engine.name, written->text(), release, node);
}

}  // namespace orrery
