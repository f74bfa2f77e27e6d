// SPDX-License-Identifier: Apache-2.0
// An operator in one file, whose kernels are of a class of their own.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sim/config/load.h"
#include "sim/graph/kernel_classes.h"
#include "workloads/base/real.h"
#include "workloads/operators/operator.h"

namespace orrery::added_operator_test {
namespace {

const KernelClass kSort = added_kernel_class("test_sort");

struct Sort final : OperatorConfig {
  Sort() { kind = "sort_of_a_test"; }

  std::vector<Kernel> kernels(Precision precision) const override {
    Kernel kernel;
    kernel.name = "sort";
    kernel.kind = kSort;
    kernel.precision = precision;
    kernel.m = keys;
    kernel.read = kernel.written = Bytes(4 * real(keys));
    return {kernel};
  }

  std::int64_t keys = 0;
  static const config::Schema<Sort>& schema() {
    static const config::Schema<Sort> schema =
        operator_schema<Sort>("sort_of_a_test", "keys in order")
            .required("keys", &Sort::keys, "keys of 32 bits",
                      config::between(1, operator_limits::kRows));
    return schema;
  }
};

const RegisterOperator<Sort> registered_sort("sort_of_a_test", "keys in order");

struct Holder {
  config::OneOf<OperatorConfig> op;
  static const config::Schema<Holder>& schema() {
    static const auto schema =
        config::Schema<Holder>("holder", "of an operator").required("op", &Holder::op, "which");
    return schema;
  }
};

/// @throws config::ConfigError
std::vector<Kernel> kernels(const std::string& keys) {
  config::Diagnostics diagnostics;
  const config::Node node = config::parse_yaml("op: {" + keys + "}\n", "test.yaml", diagnostics);
  const auto holder = config::read<Holder>(node, diagnostics, config::default_library());
  diagnostics.throw_if_errors();
  return holder.op->kernels(Precision::kBf16);
}

TEST(AddedOperator, IsReadByItsKindAndChecksItsKeys) {
  const std::vector<Kernel> all = kernels("kind: sort_of_a_test, keys: 100");
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all.front().read, Bytes(400));
  EXPECT_THROW(kernels("kind: sort_of_a_test, keys: 0"), config::ConfigError);
}

TEST(AddedOperator, HasKernelsOfAClassOfItsOwn) {
  const Kernel kernel = kernels("kind: sort_of_a_test, keys: 100").front();
  EXPECT_STREQ(to_string(kernel.kind), "test_sort");
  EXPECT_EQ(kernel_class_named("test_sort"), kernel.kind);
}

}  // namespace
}  // namespace orrery::added_operator_test
