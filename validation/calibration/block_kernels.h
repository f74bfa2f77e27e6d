// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "sim/graph/kernel.h"
#include "sim/serving/kernel_rules.h"
#include "validation/importers/operator_table.h"

namespace orrery {

/// The kernels that an engine chooses on a device, where a row's shape leaves that open.
struct RowSoftware {
  KernelRules kernels;
  bool mx_products = false;                     ///< see WorkFormats::mx_products
  Precision index_precision = Precision::kFp8;  ///< see WorkFormats::index_precision
};

/// Whether rows of a kind are whole blocks of a model: the mixer of a layer on one tensor parallel
/// rank, from the normed input to the output that the ranks add up, as a step of inference has it.
bool is_block(OperatorTableKind kind);

/// Why the block of a row cannot be built, such as a model that the library does not have; empty if
/// it can. So for rows that are one kernel of a block.
std::string block_fault(const OperatorRow& row);

/// The kernel of sparse attention that a row is.
std::vector<Kernel> sparse_part(const OperatorRow& row);

/// The kernels of a block, one after the other, without its collectives.
/// @param precision precision of its projections
std::vector<Kernel> block_kernels(OperatorTableKind kind, const OperatorRow& row,
                                  Precision precision, const RowSoftware& software);

}  // namespace orrery
