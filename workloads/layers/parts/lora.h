// SPDX-License-Identifier: Apache-2.0
// Low-rank adapters (Hu et al. 2021, arXiv 2106.09685) as engines serve many of them at a time: for
// all adapters of a batch one kernel that shrinks inputs to their rank and one that expands them
// again (Chen et al. 2023, Punica, arXiv 2310.18547; vLLM's lora_shrink and lora_expand).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/config/declared.h"
#include "sim/units/units.h"

namespace orrery {

struct LayerConfig;
struct RankWork;
struct Linear;
struct LlmConfig;
struct ParallelConfig;
class StepList;

/// Matrices that adapters change: vLLM's names of its packed modules, and those of latent attention
/// in Hugging Face checkpoints (DeepSeek-V3, modeling_deepseek.py), which PEFT matches.
enum class LoraModule : std::uint8_t {
  kQkvProj,
  kOProj,
  kGateUpProj,
  kDownProj,
  kQProj,    ///< queries, from the hidden state; part of kQkvProj where attention is grouped
  kQAProj,   ///< latents of queries
  kQBProj,   ///< queries, from their latents
  kKvAProj,  ///< latents of keys and values, with the rotary key
  kKvBProj,  ///< keys and values, from their latents
  // Further parts of kQkvProj, and those of kGateUpProj.
  kKProj,
  kVProj,
  kGateProj,
  kUpProj,
};
inline constexpr std::size_t kLoraModules = 13;
const char* to_string(LoraModule module);

/// Keys of vLLM's LoRAConfig (vllm/config/lora.py, 0.11), with its defaults.
struct LoraConfig {
  std::int64_t max_loras = 1;
  std::int64_t max_lora_rank = 16;
  std::vector<LoraModule> target_modules = {LoraModule::kQkvProj, LoraModule::kOProj,
                                            LoraModule::kGateUpProj, LoraModule::kDownProj};
  static const config::Schema<LoraConfig>& schema();
};

/// How the frozen matrices of layers are stored that adapters are trained beside. What products
/// read is widened by a kernel before each (bitsandbytes autograd/_functions.py, MatMul4Bit:
/// dequantize_4bit, then a linear layer).
enum class FrozenFormat : std::uint8_t {
  kAsTrained,  ///< the format of training
  kInt8,
  kNf4,        ///< 4 bits, an fp32 scale for 64 values (arXiv 2305.14314, section 3)
  kNf4Double,  ///< scales in 8 bits, an fp32 one for 256 of them
  /// 4 bits, a 16-bit scale and a 4-bit zero for 128 values (AutoGPTQ
  /// nn_modules/qlinear/qlinear_cuda_old.py). Operators widen, so that PyTorch keeps what they give
  /// for the gradient of the product's input.
  kGptq,
};
/// Bytes of an element, with its share of scales, where training has `trained`.
double frozen_bytes(FrozenFormat format, double trained);

/// Adapters in a step of a layer.
struct LoraWork {
  std::int64_t adapters = 0;  ///< different ones among the tokens, each of which has one; 0: none
  std::int64_t rank = 0;
  std::array<bool, kLoraModules> changes{};  ///< whether each LoraModule is changed
  /// Training: the one adapter of each of these matrices has gradients, all else is frozen.
  bool trains = false;
  bool trains_embedding = false;  ///< training: a copy of the embedding is trained whole
  bool trains_head = false;       ///< training: and one of the head
  bool drops = false;             ///< training: each drops parts of a copy of its input
  FrozenFormat frozen = FrozenFormat::kAsTrained;  ///< training: of matrices of layers

  bool changes_module(LoraModule module) const { return changes[static_cast<std::size_t>(module)]; }
};

/// @param adapters different ones among the tokens of the step
LoraWork lora_work(const std::optional<LoraConfig>& lora, std::int64_t adapters);

/// One adapter on a rank: A has in x rank elements, B rank x out.
struct Adapter {
  std::string name;
  std::int64_t in = 0, out = 0;
};

/// Training: adapters of a matrix. A matrix that a packed name means has one; else each of its
/// parts that are targeted has one, with an A of its own.
std::vector<Adapter> adapters_of(const RankWork& work, const Linear& linear);

/// The packed matrix that has this one in it; none for others, and for packed ones.
std::optional<LoraModule> packed_in(LoraModule part);

/// Whether adapters change a matrix.
bool is_adapted(const RankWork& work, const Linear& linear);

/// The two products of a matrix with its adapters, which add to its output before ranks add theirs
/// up; nothing for a matrix that they leave as it is. Of column-parallel matrices each rank has A
/// whole and its columns of B, of row-parallel ones its rows of A and B whole, so that no further
/// collective is needed (vllm/lora/layers, fully_sharded_loras off). Adapters are in 16 bits, what
/// lies between the products in fp32.
/// @param rows tokens that this rank multiplies with the matrix, in training
void adapter_forward(StepList& steps, const RankWork& work, const Linear& linear,
                     std::int64_t rows);

/// Training: the gradient of a matrix's input through its adapter is added to the one through the
/// matrix, and behind it come those of the adapter's own two matrices.
/// @param rows rows of the output's gradient, which is the value of step `gradient`
void adapter_backward(StepList& steps, const RankWork& work, const Linear& linear,
                      std::int64_t rows, std::size_t gradient);

/// Training: elements between the two matrices of all adapters of a layer, on a rank.
double adapter_columns(const LlmConfig& model, const LayerConfig& layer, const RankWork& work);

/// All of that in a layer, alone.
StepList adapters_forward(const LlmConfig& model, const LayerConfig& layer, const RankWork& work);

/// What one adapter of the largest rank takes on a rank in one layer.
Bytes layer_adapter_bytes(const LlmConfig& model, const LayerConfig& layer, const RankWork& work);

/// @throws config::KeyError for models whose adapters are not known, and for matrices that the
/// model does not have
void require_adapters(const LlmConfig& model, const std::vector<LoraModule>& modules);
/// @throws config::KeyError for models and plans whose adapters are not known, and for more
/// adapters than there are slots, or tokens
void require_adapters(const LlmConfig& model, const LoraConfig& lora, std::int64_t adapters,
                      std::int64_t tokens);

template <>
struct config::EnumNames<FrozenFormat> {
  static constexpr std::pair<FrozenFormat, const char*> values[] = {
      {FrozenFormat::kAsTrained, "as_trained"},
      {FrozenFormat::kInt8, "int8"},
      {FrozenFormat::kNf4, "nf4"},
      {FrozenFormat::kNf4Double, "nf4_double"},
      {FrozenFormat::kGptq, "gptq"}};
};

template <>
struct config::EnumNames<LoraModule> {
  static constexpr std::pair<LoraModule, const char*> values[] = {
      {LoraModule::kQkvProj, "qkv_proj"},
      {LoraModule::kOProj, "o_proj"},
      {LoraModule::kGateUpProj, "gate_up_proj"},
      {LoraModule::kDownProj, "down_proj"},
      {LoraModule::kQProj, "q_proj"},
      {LoraModule::kQAProj, "q_a_proj"},
      {LoraModule::kQBProj, "q_b_proj"},
      {LoraModule::kKvAProj, "kv_a_proj_with_mqa"},
      {LoraModule::kKvBProj, "kv_b_proj"},
      {LoraModule::kKProj, "k_proj"},
      {LoraModule::kVProj, "v_proj"},
      {LoraModule::kGateProj, "gate_proj"},
      {LoraModule::kUpProj, "up_proj"}};
};

}  // namespace orrery
