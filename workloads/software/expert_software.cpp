// SPDX-License-Identifier: Apache-2.0
#include "workloads/software/expert_software.h"

#include "sim/config/schema.h"

namespace orrery {

const config::Schema<ExpertSoftware>& ExpertSoftware::schema() {
  using E = ExpertSoftware;
  using config::between;
  static const auto schema =
      config::Schema<E>("experts", "how the software of a training run does mixtures of experts")
          .optional("dispatcher", &E::dispatcher,
                    "exchange: rows are made, then each token goes once to a rank; alltoall: all "
                    "copies go, and are sorted by experts before and behind; flex: each token "
                    "goes once to a rank, which makes the rows")
          .optional("dispatch_format", &E::dispatch_format,
                    "format in which tokens go to experts: that of products, or 16 bits")
          .optional("gate_weights", &E::gate_weights,
                    "what multiplies by the weights of gates: the sum of results, or the function "
                    "of the experts")
          .optional("launches", &E::launches,
                    "launches of products of experts and their casts: one for all, or one an "
                    "expert")
          .optional("functions", &E::functions,
                    "kernels between the products of experts: functions that write narrow "
                    "operands, functions and casts, or none, for products do it all")
          .optional("weight_gradients", &E::weight_gradients,
                    "products of the experts' weight gradients run behind the exchange in issue "
                    "order, beside it, or with the other products")
          .optional("shared_experts", &E::shared_experts,
                    "shared experts run beside the dispatch, or before it")
          .optional("batch_overlap", &E::batch_overlap,
                    "forward passes of a micro-batch run beside backward passes of another, so "
                    "that exchanges of the one run beside kernels of the other, where there are "
                    "any (ep > 1): schedules 1f1b with pp 1, interleaved (1F1B all-to-all overlap "
                    "of Megatron-Core)")
          .optional("router_kernels", &E::router_kernels,
                    "kernels of a forward pass behind the product of the router, which score, "
                    "choose and count; half as many backwards",
                    between(1, 1000))
          .optional("row_multiple", &E::row_multiple,
                    "number to a multiple of which the rows of each expert are filled up",
                    between(1, 1024))
          .optional("filling_apart", &E::filling_apart,
                    "kernels of their own copy rows into filled ones and back, where products are "
                    "narrow")
          .optional("biases_apart", &E::biases_apart,
                    "kernels of their own add biases behind the products of experts, and limit the "
                    "inputs of their function")
          .optional("stash", &E::stash,
                    "what backward passes of experts need is copied from buffers of fixed size, "
                    "and back")
          .optional("host_waits", &E::host_waits,
                    "the host reads how many rows experts have before it goes on")
          .optional("unmodelled", &E::unmodelled,
                    "standard deviation of the logarithm of step time over that of the graph that "
                    "models with experts have beside software.unmodelled",
                    between(0, 1))
          .alias("moe_token_dispatcher_type", "dispatcher")
          .alias("overlap_moe_expert_parallel_comm", "batch_overlap");
  return schema;
}

}  // namespace orrery
