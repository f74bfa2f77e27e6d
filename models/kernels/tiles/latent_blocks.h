// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace orrery {

/// Kernels of latent attention of new tokens on Blackwell (TensorRT-LLM, trtllm-gen).
enum class LatentKernel {
  kFewHeads,  ///< 8 or 16 heads a block, products transposed, 256 tokens a step
  kKept,      ///< up to 64 heads a block, 128 tokens a step
  kPaired,    ///< up to 128 heads in two blocks that share operands, 128 tokens a step
};

/// How the parts of a context come together again.
enum class LatentReduction {
  kNone,
  kCluster,   ///< a cluster of blocks, through its shared memory
  kMemory,    ///< the block that ends last adds them
  kSeparate,  ///< a kernel of its own
};

/// What a kernel is divided into.
struct LatentBlocks {
  LatentKernel kernel = LatentKernel::kFewHeads;
  LatentReduction reduction = LatentReduction::kNone;
  double tile = 8;         ///< heads that a block computes, needed or not
  double head_blocks = 1;  ///< blocks (of kPaired: pairs) for the heads of a sequence
  double parts = 1;        ///< parts of a context
  double values = 1;       ///< blocks that share the 512 columns of the values
  double step = 256;       ///< tokens that a block takes at a time
  double blocks = 1;       ///< blocks in all
  double rounds = 1;       ///< rounds of all units
};

/// Which kernel runs and how it is divided, after the rules by which TensorRT-LLM chooses
/// (NVIDIA/TensorRT-LLM, cpp/tensorrt_llm/kernels/trtllmGenKernels/fmha/fmhaKernels.h): blocks of
/// few heads up to 32 heads, and beyond where that leaves a block at most 1,024 tokens and all
/// blocks fit at once; a context is split over idle units, into parts of two steps at least; values
/// are split over units that are idle still. Up to 16 parts are put together in a cluster. Clusters
/// of more than 4 blocks do not fill all units, as they lie in one processing cluster: the split of
/// values, made after that check, makes them run twice (found from the times of the B200's table).
/// @param heads of a sequence, times its new tokens
LatentBlocks latent_blocks(double sequences, double heads, double context, double units);

}  // namespace orrery
