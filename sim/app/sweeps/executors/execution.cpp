// SPDX-License-Identifier: Apache-2.0
#include "sim/app/sweeps/executors/execution.h"

#include "sim/app/sweeps/executors/task_executor.h"
#include "sim/config/diagnostics.h"
#include "sim/config/library.h"
#include "sim/config/override.h"

namespace orrery {
namespace {

struct LocalExecution final : ExecutionConfig {
  std::unique_ptr<TaskExecutor> make() const override { return nullptr; }
  static const config::Schema<LocalExecution>& schema() {
    static const auto schema =
        execution_schema<LocalExecution>("local", "in worker processes of this machine");
    return schema;
  }
};

const config::Registered<ExecutionConfig>::Add<LocalExecution> added_local(
    "local", "worker processes of this machine");

/// What `key=value` of the command line is laid over: a map of that one key.
struct HasExecution {
  config::OneOf<ExecutionConfig> execution;
  static const config::Schema<HasExecution>& schema() {
    static const auto schema =
        config::Schema<HasExecution>("sweep", "what a command line may set")
            .required("execution", &HasExecution::execution, "where points run");
    return schema;
  }
};

}  // namespace

config::OneOf<ExecutionConfig> execution_of(const config::Node* written,
                                            const std::string& executor,
                                            const std::vector<std::string>& over) {
  const config::Origin origin{config::Origin::Kind::kOverride,
                              std::make_shared<const std::string>("--executor"), 0, 0};
  config::Node execution = written != nullptr ? *written : config::Node::map(origin);
  const std::string written_one = ExecutionConfig::choices().name_in(execution);
  if (!executor.empty() && written_one != executor) execution = config::Node::map(origin);
  if (execution.find("executor") == nullptr) {
    const std::string& name = executor.empty() ? written_one : executor;
    execution.set("executor", config::Node::scalar(name, origin), origin);
  }
  config::Node root = config::Node::map(origin);
  root.set("execution", std::move(execution), origin);
  config::Diagnostics diagnostics;
  const config::Library& library = config::default_library();
  for (const std::string& text : over)
    config::apply_override(root, HasExecution::schema().record(), "execution." + text, diagnostics,
                           library);
  diagnostics.throw_if_errors();
  HasExecution read = config::read<HasExecution>(root, diagnostics, library);
  diagnostics.throw_if_errors();
  return std::move(read.execution);
}

}  // namespace orrery
