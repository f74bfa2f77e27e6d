// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "workloads/models/vision_tower.h"

namespace orrery {

/// Multi-head attention with grouped keys and values (GQA; MHA when kv_heads == heads), or
/// DeepSeek's multi-head latent attention (MLA).
enum class AttentionKind : std::uint8_t { kGrouped, kLatent };

/// What chooses the earlier tokens that a token attends to: narrow heads of their own score all of
/// them (DeepSeek-V3.2's lightning indexer), or blocks of them (MiniMax-M3).
struct IndexerConfig {
  std::int64_t heads = 0;     ///< heads of its queries; 0: there is none
  std::int64_t head_dim = 0;  ///< columns of each, and of the one key that they share
  std::int64_t top_k = 0;     ///< tokens, or compressed entries, that a token attends to at most
  std::int64_t block = 1;     ///< tokens that are chosen together
  bool operator==(const IndexerConfig&) const = default;
};

/// Attention of DeepSeek-V4: the latest keys as they are, and entries that stand for several keys.
struct CompressionConfig {
  std::int64_t window = 0;         ///< latest tokens whose keys are seen as they are
  std::int64_t sparse_ratio = 0;   ///< tokens of an entry of which an indexer chooses
  std::int64_t dense_ratio = 0;    ///< tokens of an entry where all are seen
  std::int64_t output_groups = 0;  ///< groups of heads with a low-rank output matrix each
  std::int64_t output_rank = 0;    ///< columns that each group's matrix gives
  bool operator==(const CompressionConfig&) const = default;
};

struct AttentionConfig {
  AttentionKind kind = AttentionKind::kGrouped;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  bool qkv_bias = false;
  bool output_bias = false;
  bool qk_norm = false;            ///< an RMS norm of head_dim on queries and on keys
  bool qk_norm_all_heads = false;  ///< qk_norm spans all heads (OLMo 2, MiniMax-M2)
  bool norm_scales = true;         ///< weights of these norms; Llama 4 has none
  bool value_norm = false;         ///< a norm of head_dim without weights on values (Gemma 4)
  bool sinks = false;              ///< one learned logit per head (gpt-oss)
  bool head_gate = false;          ///< outputs of a head times the sigmoid of a product (Step 3.5)
  /// Values are what keys are before their norm and rotation, so that a layer has no matrix of
  /// values (Gemma 4); the cache has both.
  bool values_of_keys = false;
  /// Columns of a head that positions rotate; none: all. 0: positions are left out (NoPE).
  std::optional<std::int64_t> rotary_dim = std::nullopt;
  bool output_gate = false;  ///< what heads give is multiplied by a sigmoid of projections
  // Latent attention; q_lora_rank 0: queries are projected directly.
  std::int64_t q_lora_rank = 0;
  std::int64_t kv_lora_rank = 0;
  std::int64_t qk_nope_head_dim = 0;
  std::int64_t qk_rope_head_dim = 0;
  std::int64_t v_head_dim = 0;  ///< grouped attention: 0 where it is head_dim
  bool rotates = true;          ///< latent attention: its rotary columns are rotated
  CompressionConfig compression;
  IndexerConfig indexer;  ///< indexer of layers of MixerKind::kSparse and the like

  /// Columns of a head of values in grouped attention.
  std::int64_t value_dim() const { return v_head_dim > 0 ? v_head_dim : head_dim; }
  bool operator==(const AttentionConfig&) const = default;
  /// Elements that one token adds to the KV cache of one layer.
  std::int64_t kv_elements_per_token() const;
};

/// A Mamba-1 mixer (Gu and Dao 2023, arXiv 2312.00752), whose heads are channels of one element
/// with steps of their own, or a Mamba-2 mixer (Dao and Gu 2024, arXiv 2405.21060): heads of a
/// recurrence whose inputs and outputs go through vectors of `state` elements that the heads of a
/// group share.
struct MambaConfig {
  std::int64_t heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t state = 0;   ///< elements of the state of each element of a head
  std::int64_t groups = 1;  ///< groups of heads that share their B and C
  std::int64_t conv_kernel = 4;
  std::int64_t chunk = 128;  ///< tokens that prefill and training work on by products
  bool conv_bias = true;
  bool projection_bias = false;
  /// Mamba-2: outputs are normed by groups, else multiplied by their gate alone; Mamba-1: norms of
  /// steps, B and C have weights.
  bool norm = true;
  std::int64_t step_rank = 0;    ///< Mamba-1: columns between the two matrices of steps
  bool selection_norms = false;  ///< Mamba-1: steps, B and C are normed

  std::int64_t inner() const { return heads * head_dim; }
  /// Channels of the causal convolution: x, B and C.
  std::int64_t conv_channels() const { return inner() + 2 * groups * state; }
  /// Columns of the input projection: z, x, B, C and dt.
  std::int64_t projected() const { return inner() + conv_channels() + heads; }
};

/// A gated delta network (Yang et al. 2024, arXiv 2412.06464): each value head has a state of
/// key_dim x value_dim that decays and that each token corrects by the delta rule; several value
/// heads may share queries and keys. Kimi delta attention (arXiv 2510.26692) has decays by column
/// of keys.
struct DeltaNetConfig {
  std::int64_t key_heads = 0;    ///< heads of queries, and of keys
  std::int64_t value_heads = 0;  ///< heads of values, states, decays, steps and gates
  std::int64_t key_dim = 0;      ///< columns of a query or key
  std::int64_t value_dim = 0;
  std::int64_t conv_kernel = 4;
  bool column_decays = false;   ///< Kimi: a decay for each column of a head's keys
  std::int64_t decay_rank = 0;  ///< Kimi: columns between the two matrices of decays
  std::int64_t gate_rank = 0;   ///< Kimi: columns between those of gates; 0: one matrix

  std::int64_t keys() const { return key_heads * key_dim; }
  std::int64_t values() const { return value_heads * value_dim; }
  /// Channels of the causal convolution: queries, keys and values.
  std::int64_t conv_channels() const { return 2 * keys() + values(); }
  /// Columns that give steps and decays.
  std::int64_t gates() const { return 2 * value_heads; }
  /// Elements of the states of all heads of a layer.
  std::int64_t states() const { return value_heads * key_dim * value_dim; }
};

/// Time and channel mixing of RWKV-5 and 6 (arXiv 2404.05892) and 7 (2503.14456): each head has a
/// state of head_dim x head_dim that decays by column and to which each token adds its key and
/// value; 7 corrects it by the delta rule. Inputs of matrices are mixtures of a token and the one
/// before it.
struct RwkvConfig {
  int version = 0;  ///< 5, 6 or 7
  std::int64_t heads = 0;
  std::int64_t head_dim = 64;
  std::int64_t channels = 0;    ///< width of channel mixing
  std::int64_t mix_rank = 0;    ///< 6: columns between the two matrices of each mixture
  std::int64_t decay_rank = 0;  ///< 6 and 7: columns between those of decays
  std::int64_t rate_rank = 0;   ///< 7: of learning rates in context
  std::int64_t value_rank = 0;  ///< 7: of what values take from those of the first layer
  std::int64_t gate_rank = 0;   ///< 7: of gates

  std::int64_t width() const { return heads * head_dim; }
  /// Elements of the states of all heads of a layer.
  std::int64_t states() const { return width() * head_dim; }
};

/// Zamba2's blocks of attention and MLP (arXiv 2411.15242): layers use few of them in turn, each
/// with adapters and an output matrix of its own; they read the residual stream beside the
/// embeddings.
struct SharedBlockConfig {
  std::int64_t blocks = 0;          ///< blocks with weights of their own
  std::int64_t adapter_rank = 0;    ///< columns between the two matrices of an adapter
  bool attention_adapters = false;  ///< queries, keys and values have adapters as the MLP has
};

struct MlpConfig {
  std::int64_t intermediate = 0;
  bool gated = true;  ///< SwiGLU/GeGLU: three matrices instead of two
  bool bias = false;
};

struct MoeConfig {
  std::int64_t experts = 0;    ///< routed experts
  std::int64_t redundant = 0;  ///< replicas of experts that ranks hold besides
  std::int64_t experts_per_token = 0;
  /// Node-limited routing: those of a token are in `top_groups` of `groups` groups; 0: no limit.
  std::int64_t groups = 0;
  std::int64_t top_groups = 0;
  std::int64_t intermediate = 0;
  std::int64_t latent = 0;  ///< width that tokens have on their way through experts; 0: the model's
  std::int64_t shared_experts = 0;
  std::int64_t shared_intermediate = 0;  ///< width of all shared experts together
  bool router_bias = false;  ///< one per expert (DeepSeek-V3's e_score_correction_bias, gpt-oss)
  bool expert_bias = false;  ///< gpt-oss: biases in the expert matrices
  bool latent_norm = false;  ///< sums of experts in the latent width are normed
  bool clamped = false;      ///< gpt-oss: inputs of the experts' function are limited
  bool shared_gate = false;  ///< qwen2-moe: a gate of width 1 on the shared expert
  std::int64_t norms = 0;    ///< Gemma 4: norms of the model's width beside experts, weights alone
};

/// How a checkpoint stores the matrices of a part of a layer.
enum class StoredFormat : std::uint8_t {
  kPrecision,   ///< format of the products, whichever the run has
  kSixteenBit,  ///< left out where the others are quantised
  kFourBit,     ///< 4-bit weights that products widen
  kMxFourBit,  ///< mxfp4 weights: tensor cores with block scales multiply fp8 by them, others widen
  kEightBit,   ///< 8-bit weights that products widen
  kEightFloat,   ///< fp8 operands, where products of other parts have narrower ones
  kWideFourBit,  ///< 4-bit weights that products widen beside others with operands of 8 bits
};

/// How a layer mixes its tokens: the name by which a file adds a Mixer (layers/parts/mixer.h).
struct MixerKind {
  std::string_view name = "attention";

  bool operator==(const MixerKind&) const = default;

  static const MixerKind kAttention;  ///< attention of the model's kind (AttentionConfig)
  static const MixerKind kMamba1;
  static const MixerKind kMamba2;
  static const MixerKind kDeltaNet;
  static const MixerKind kKimiDelta;     ///< gated delta network with decays by column
  static const MixerKind kSparse;        ///< latent attention to tokens that an indexer chooses
  static const MixerKind kSharedSparse;  ///< latent attention to the tokens of the layer before
  static const MixerKind kBlockSparse;   ///< grouped attention to blocks that an indexer chooses
  static const MixerKind kWindowedKey;   ///< one key for all heads, of a window
  static const MixerKind kCompressed;    ///< such a window, and all entries of dense_ratio tokens
  static const MixerKind kCompressedSparse;  ///< such a window, and chosen entries of sparse_ratio
  static const MixerKind kMambaAttention;    ///< sum of kMamba2 and kAttention (Falcon-H1)
  static const MixerKind kTimeMix;           ///< RWKV's recurrence
  static const MixerKind kChannelMix;        ///< RWKV's MLP, which looks one token back
  static const MixerKind kSharedBlock;  ///< Zamba2's attention and MLP, whose weights layers share
  static const MixerKind kNone;         ///< the layer is an MLP, or experts, alone
};

inline constexpr MixerKind MixerKind::kAttention{"attention"};
inline constexpr MixerKind MixerKind::kMamba1{"Mamba-1"};
inline constexpr MixerKind MixerKind::kMamba2{"Mamba"};
inline constexpr MixerKind MixerKind::kDeltaNet{"gated delta networks"};
inline constexpr MixerKind MixerKind::kKimiDelta{"Kimi delta attention"};
inline constexpr MixerKind MixerKind::kSparse{"sparse attention"};
inline constexpr MixerKind MixerKind::kSharedSparse{"sparse attention by shared selections"};
inline constexpr MixerKind MixerKind::kBlockSparse{"block-sparse attention"};
inline constexpr MixerKind MixerKind::kWindowedKey{"attention to one windowed key"};
inline constexpr MixerKind MixerKind::kCompressed{"compressed attention"};
inline constexpr MixerKind MixerKind::kCompressedSparse{"compressed sparse attention"};
inline constexpr MixerKind MixerKind::kMambaAttention{"Mamba beside attention"};
inline constexpr MixerKind MixerKind::kTimeMix{"time mixing of RWKV"};
inline constexpr MixerKind MixerKind::kChannelMix{"channel mixing of RWKV"};
inline constexpr MixerKind MixerKind::kSharedBlock{"blocks that layers share"};
inline constexpr MixerKind MixerKind::kNone{"no mixer"};

/// Which tokens the attention of a layer sees.
enum class LayerKind : std::uint8_t {
  kDecoder,  ///< itself and those before it
  kEncoder,  ///< all of its sequence
  kCross,    ///< itself and those before it, then all of the encoder's output
};

struct LayerConfig {
  bool moe = false;
  bool hashed = false;  ///< experts are chosen by the number of the token, without biases
  LayerKind kind = LayerKind::kDecoder;
  bool shares_weights = false;   ///< weights of its shared block are those of an earlier layer
  bool position_biases = false;  ///< has the table that all layers of its kind add to scores
  MixerKind mixer = MixerKind::kAttention;
  bool first = false;  ///< RWKV: norms what the embedding gives, and has values of its own (7)
  bool feeds = true;   ///< has an MLP or experts
  StoredFormat attention = StoredFormat::kPrecision;  ///< format of what mixes tokens
  StoredFormat feed = StoredFormat::kPrecision;    ///< format of the MLP, or of the routed experts
  StoredFormat shared = StoredFormat::kPrecision;  ///< format of shared experts
  std::int64_t sources = 0;   ///< attention residuals: outputs that each half's input is made of
  bool begins_block = false;  ///< attention residuals: the first to read one of its sources
  std::int64_t window = 0;    ///< sliding attention window in tokens; 0: all
  /// Attention sees tokens of its own chunk of so many alone (Llama 4); 0: chunks are none.
  std::int64_t chunk = 0;
  /// Attention of the layer: 0 is LlmConfig::attention, i is LlmConfig::variants[i - 1].
  std::size_t variant = 0;
  std::int64_t intermediate = 0;  ///< width of its MLP where layers differ; 0: that of the model

  /// Most tokens of a sequence that its attention sees, and its cache keeps; 0: all.
  std::int64_t most_kept() const { return window > 0 ? window : chunk; }
  bool operator==(const LayerConfig&) const = default;
};

/// A transformer, decoder alone or encoder (the first layers) and decoder, from a Hugging Face
/// configuration or from dimensions.
struct LlmConfig {
  std::string name;
  std::string family;  ///< Hugging Face `model_type`
  std::int64_t hidden = 0;
  std::int64_t vocabulary = 0;
  std::int64_t positions = 0;  ///< learned position embeddings; 0: rotary or relative ones
  /// Rows of embeddings besides those of tokens and positions: kinds of segments, and positions
  /// that no token has (BERT, RoBERTa).
  std::int64_t segments = 0;
  bool pooler = false;  ///< an encoder's square matrix on the first token of each sequence (BERT)
  /// Buckets of distances, each with a learned bias of scores a head (T5); 0: none
  std::int64_t relative_positions = 0;
  bool tied_embeddings = false;
  bool norm_bias = false;   ///< LayerNorm instead of RMSNorm
  int norms_per_layer = 2;  ///< 4 for gemma2
  /// Attention and MLP read one norm, and one residual adds what both give (GPT-J; PaLM, arXiv
  /// 2204.02311; MegaScale, arXiv 2402.15627): training knows it, with one norm a layer.
  bool parallel_block = false;
  bool final_norm = true;
  bool head_bias = false;  ///< a bias for each entry of the vocabulary (GPT-J, Phi)
  StoredFormat head = StoredFormat::kSixteenBit;  ///< format of the head, tied or not
  double scale_bits = 0;  ///< bits of scales and zero points for each weight that products widen
  /// Hyper-connections (arXiv 2409.19606, 2512.24880): residual streams that each half of a layer
  /// mixes into its input, and its output into them; weights are balanced by so many steps.
  std::int64_t residual_streams = 1;
  std::int64_t sinkhorn_steps = 0;
  /// Attention residuals (Kimi K3): each half of a layer reads a mixture of what blocks of so many
  /// layers have given; 0: the residual stream alone.
  std::int64_t residual_block = 0;
  AttentionConfig attention;
  std::vector<AttentionConfig> variants;  ///< attention of layers where it is another
  MambaConfig mamba;
  DeltaNetConfig delta_net;
  RwkvConfig rwkv;
  SharedBlockConfig shared_block;
  MlpConfig mlp;
  MoeConfig moe;
  std::vector<LayerConfig> layers;
  /// Multi-token-prediction modules; not part of count_parameters() nor of a step.
  std::int64_t mtp_layers = 0;
  std::optional<LayerConfig> module;  ///< layer of such a module; none: like the last
  std::optional<VisionTower> vision;  ///< what sees the images of prompts
  std::vector<std::string> warnings;  ///< what was assumed or left out, for the user to read
  std::string asks_precision;  ///< a warning that holds where nobody says a precision; empty: none

  std::int64_t layer_count() const { return static_cast<std::int64_t>(layers.size()); }
  const LayerConfig& layer(std::int64_t i) const { return layers[static_cast<std::size_t>(i)]; }
  LayerConfig& layer(std::int64_t i) { return layers[static_cast<std::size_t>(i)]; }
  bool has_moe() const { return moe.experts > 0; }
  bool has(MixerKind mixer) const;  ///< some layer has that mixer
  bool has_mlp() const;             ///< some layer has an MLP without experts
  const AttentionConfig& attention_of(const LayerConfig& layer) const {
    return layer.variant == 0 ? attention : variants.at(layer.variant - 1);
  }
  MlpConfig mlp_of(const LayerConfig& layer) const {
    MlpConfig own = mlp;
    if (layer.intermediate > 0) own.intermediate = layer.intermediate;
    return own;
  }
  /// What LayerConfig::variant is for a layer of that attention, which is added where it is new.
  std::size_t variant_of(const AttentionConfig& other);
  /// Columns of tokens in front of experts and behind them.
  std::int64_t expert_columns() const { return moe.latent > 0 ? moe.latent : hidden; }
  const LayerConfig& module_layer() const { return module ? *module : layers.back(); }
  /// Norms of a layer: half of norms_per_layer for each half that it has; those of a shared block
  /// belong to its mixer.
  std::int64_t norms_of(const LayerConfig& layer) const {
    if (layer.mixer == MixerKind::kSharedBlock) return 0;
    const bool whole = layer.mixer != MixerKind::kNone && layer.feeds;
    return whole ? norms_per_layer : norms_per_layer / 2;
  }
  bool is_rotary() const { return positions == 0 && relative_positions == 0; }
  /// Layers of the encoder, which come first; 0: a decoder alone.
  std::int64_t encoder_layers() const;
  bool has_encoder() const { return encoder_layers() > 0; }
};

/// Exact parameter counts.
///
/// MTP modules are left out, as in the published totals: DeepSeek-V3 is "671B" by its paper, while
/// the Hugging Face hub shows 685B because the checkpoint also holds the MTP module and that
/// module's copies of the embedding and the head.
struct ParameterCount {
  std::int64_t embedding = 0;  ///< token and position embeddings
  std::int64_t head = 0;       ///< output projection; 0 when tied
  std::int64_t attention_per_layer = 0;
  std::int64_t mamba_per_layer = 0;
  std::int64_t mlp_per_dense_layer = 0;
  std::int64_t moe_per_layer = 0;         ///< router, routed and shared experts
  std::int64_t active_moe_per_layer = 0;  ///< used by one token
  std::int64_t norms_per_layer = 0;
  std::int64_t final_norm = 0;  ///< norms behind decoder and encoder
  std::int64_t vision = 0;      ///< vision tower, projectors included
  std::int64_t total = 0;
  std::int64_t active = 0;  ///< used by one token of text, embedding table included
  /// Elements of the matrices that one token is multiplied with: layers and head (tied or not),
  /// neither the embedding lookup nor norms and biases.
  std::int64_t active_matrices = 0;
};
ParameterCount count_parameters(const LlmConfig& model);

/// What a half of a layer has for its residuals: a query and a norm of an attention residual, or
/// the weights, biases and scales of hyper-connections; and what is in front of the final norm.
std::int64_t mixture_parameters(const LlmConfig& model);
std::int64_t streams_head_parameters(const LlmConfig& model);

}  // namespace orrery
