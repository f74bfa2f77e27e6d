// SPDX-License-Identifier: Apache-2.0
// Every fact of an accelerator, an operator, a model and a plan moves some result. What was in no
// model once: compute.special, core.max_warps, the memory of hosts.
#include "tests/properties/schema_facts.h"

namespace orrery::facts::facts_test {
namespace {

/// "{experiment: operator, system: S, operator: {O}MORE}"
std::string op(const std::string& system, const std::string& what, const std::string& more = "") {
  return "{experiment: operator, system: " + system + ", operator: {" + what + "}" + more + "}";
}

const std::string kGemm = "kind: gemm, m: 8192, n: 8192, k: 8192";
const std::string kSmallModel =
    "model: {dimensions: {layers: 8, hidden: 1024, heads: 8, vocabulary: 8192}}";

/// A training step of a small model.
std::string training(const std::string& system, const std::string& more) {
  return "{experiment: training, system: " + system + ", " + kSmallModel + ", " + more + "}";
}

/// A decode step of a small model.
std::string decode(const std::string& more) {
  return "{experiment: inference, system: dgx_h100, " + kSmallModel +
         ", phase: decode, kv_length: 1024, " + more + "}";
}

/// A decode of two batches of experts in turn.
constexpr const char* kTwoBatches =
    "{experiment: inference, system: dgx_h100, nodes: 2, model: qwen3_235b_a22b, phase: decode, "
    "kv_length: 512, batch: {micro: 64}, parallel: {tp: 1, dp: 16, ep: 16}, precision: fp8, "
    "two_batch_overlap: true, engine: {kind: vllm}}";

/// A decode with weights in four bits and a kernel for each operation.
constexpr const char* kNarrow =
    "{experiment: inference, system: dgx_h100, model: {hf: " ORRERY_SOURCE_DIR
    "/validation/published/models/llama_2_7b_q4.json}, phase: decode, kv_length: 100, batch: "
    "{micro: 1}, "
    "precision: fp16, engine: {kind: vllm, kernels: {operators_apart: on}}}";

/// Adapters of attention beside frozen weights, by operators that keep what they read.
std::string adapted(const std::string& lora) {
  return "{experiment: training, system: dgx_h100, model: llama_2_7b, parallel: {dp: 1}, batch: "
         "{global: 1, sequence: 512}, lora: {rank: 8, target_modules: [qkv_proj]" +
         lora + "}, software: {saved_tensors: operators}}";
}

/// An all-reduce of eight ranks by kernels of vLLM.
std::string all_reduce(int kib, const std::string& keys = "own: 8 MiB") {
  return "{experiment: collective, system: dgx_h100, collective: {kind: all_reduce, bytes: " +
         std::to_string(kib) + " KiB}, engine: {kind: vllm, version: \"0.8\", all_reduce: {" +
         keys + "}}}";
}
constexpr const char* kSymmetric = "symmetric: 32 MiB";

const std::string kA = "system.accelerator.";

/// Experiments that each move facts of an accelerator.
std::vector<Probe> accelerator_probes() {
  const std::string& a = kA;
  return {
      {{a + "compute", a + "memory", a + "cache", a + "energy", a + "power", a + "accelerator",
        a + "kernel.uncertainty", a + "core"},
       op("dgx_h100", kGemm)},
      {{a + "kernel", a + "memory"}, op("dgx_h100", kGemm, ", calibration: none")},
      {{a + "compute.arrays"},
       op("groq_node", "kind: gemm, m: 64, n: 640, k: 640", ", precision: int8")},
      {{a + "memory.exchange"}, op("ipu_pod16", "kind: gemm, m: 640, n: 640, k: 640")},
      {{a + "compute.arrays.per_unit"},
       op("hailo_8", "kind: gemm, m: 64, n: 640, k: 640", ", precision: int8")},
      {{a + "power.idle"},  // of those that no rank uses
       "{experiment: inference, system: dgx_h100, model: llama_3_1_8b, phase: decode, kv_length: "
       "512, batch: {micro: 1}}"},
      {{a + "power.response"}, op("dgx_h100", kGemm), {a + "power.state=steady"}},
      {{a + "compute.full_accumulation"},
       training("dgx_h100", "precision: fp8, batch: {global: 1, sequence: 2048}")},
      {{a + "power.spread"},
       "{experiment: training, system: dgx_h100, model: {dimensions: {layers: 2, hidden: 12288, "
       "heads: 96, vocabulary: 8192}}, precision: fp8, parallel: {dp: 8}, batch: {global: 32, "
       "micro: 4, sequence: 2048}}"},
      {{a + "compute.vector", a + "compute.special", a + "energy.vector"},
       op("dgx_h100", "kind: attention_prefill, query: 4096, heads: 32, head_dim: 128")},
      {{a + "kernel"},
       op("dgx_h100", "kind: softmax, rows: 4096, width: 8192", ", calibration: none")},
      {{a + "kernel.uncertainty"},
       op("dgx_h100",
          "kind: moe, tokens: 64, hidden: 4096, expert_ffn: 2048, top_k: 2, experts: 8")},
      {{a + "core.shared_bandwidth"},
       op("dgx_h100",
          "kind: attention_decode, batch: 16, kv_length: 4096, heads: 32, kv_heads: 8")},
      {{a + "compute.structured_sparsity", a + "core.matrix_tile"},
       op("dgx_h100", kGemm + ", sparsity: \"2:4\"")},
      {{a + "core.max_blocks", a + "core.max_warps"},
       op("dgx_h100", kGemm + ", tile: [64, 64]"),
       {a + "core.async_copy=false"}},
      {{a + "core.accumulators", a + "core.shared_memory", a + "core.async_copy", a + "cache"},
       op("dgx_b200", kGemm, ", precision: fp8, fidelity: tile")},
      {{a + "core.registers", a + "cache"},
       op("dgx_a100", kGemm, ", fidelity: tile"),
       {a + "cache.far_bandwidth=3 TB/s"}},
      {{a + "copy_engines", a + "host_link"},
       op("dgx_h100", "kind: copy_device_to_device, bytes: 1 GiB, copies: 4")},
      {{a + "host_link"}, op("dgx_h100", "kind: copy_host_to_device, bytes: 1 GiB")},
      {{a + "partition", a + "power.limit"}, op("h100_1g", kGemm), {a + "power.limit=400 W"}},
      {{a + "memory.capacity"},
       "{experiment: inference, system: dgx_h100, model: llama_3_1_8b, phase: decode, kv_length: "
       "8192, batch: {micro: 52}}"},
      {{a + "launch"}, decode("batch: {micro: 2}"), {a + "launch.mode=stream"}},
      {{a + "energy.scale_up", a + "energy.scale_out", a + "scale_out.bandwidth"},
       training("dgx_h100", "nodes: 2, parallel: {dp: 16}, batch: {global: 16, sequence: 512}")},
      {{a + "die_to_die", a + "scale_up"},
       "{experiment: collective, system: cm384, collective: {kind: all_reduce, bytes: 64 MB, "
       "ranks: "
       "16}}"},
      {{a + "scale_up"},
       "{experiment: collective, system: tpu_v5p_pod, collective: {kind: all_reduce, bytes: 64 "
       "MiB}}",
       {"system.scale_up.torus=[4, 4, 4]", "system.accelerators=64"}},
  };
}

TEST(Facts, OfAcceleratorsMoveResults) {
  const std::string& a = kA;
  const std::string clusters = op("dgx_h100", kGemm + ", cluster: 8");
  const std::string dies =
      "{experiment: collective, system: cm384, collective: {kind: all_reduce, bytes: 64 MB}}";
  const std::vector<Change> changes = {
      {a + "core.groups.sizes",
       clusters,
       {a + "core.groups.sizes=[18, 18, 16, 16, 16, 16, 16, 16]"}},
      {a + "core.matrix_tile.issue", op("dgx_h100", kGemm), {a + "core.matrix_tile.issue=warp"}},
      {a + "core.max_cluster", clusters, {a + "core.max_cluster=4"}},
      {a + "compute.arrays.mapping",
       "{experiment: layers, system: hailo_8, layer_model: mobilenet_v2, precision: int8}",
       {a + "compute.arrays.mapping=temporal"}},
      {a + "memory.flash",
       "{experiment: layers, system: stm32f746, layer_model: digits_1989, precision: int8}",
       {a + "memory.flash=8 kB"}},
      {a + "calibration", op("dgx_h100", kGemm), {a + "calibration=h200_sxm"}},
      {a + "launch.dependent",
       decode("batch: {micro: 2}, engine: {kind: vllm, kernels: {pdl: on}}"),
       {"system.accelerator.launch.dependent=0.2 us"}},
      {a + "copy_engines.directions",
       op("dgx_h100", "kind: copy_device_to_device, bytes: 1 GiB, copies: 4"),
       {a + "copy_engines.directions=1"}},
      {a + "dies", dies, {a + "dies=1", a + "die_to_die=0 B/s", a + "scale_up.links=7"}},
  };
  expect_that_all_move(a, accelerator_probes(), changes);
}

TEST(Facts, OfOperatorsMoveResults) {
  std::vector<Probe> probes;
  for (const char* what :
       {"kind: activation, rows: 4096, width: 8192",
        "kind: attention_decode, batch: 16, kv_length: 4096, heads: 32, kv_heads: 8, head_dim: 128",
        "kind: attention_decode, kv_lengths: [512, 4096], heads: 8",
        "kind: attention_prefill, batch: 2, query: 4096, heads: 32, kv_heads: 8, head_dim: 128",
        "kind: attention_prefill, query: 512, heads: 8, fused: false, dropout: true",
        "kind: copy_device_to_device, bytes: 1 GiB, copies: 4",
        "kind: causal_convolution, query: 4096, channels: 8192",
        "kind: cross_entropy, tokens: 4096, vocabulary: 8192",
        "kind: delta_rule, query: 4096, heads: 32, key_heads: 16",
        "kind: delta_update, batch: 64, heads: 32, key_heads: 16",
        "kind: embedding, tokens: 4096, hidden: 8192",
        "kind: gemm, m: 4096, n: 4096, k: 4096, sparsity: \"2:4\", tile: [128, 128], cluster: 2",
        "kind: gemm, m: 16, n: 4096, k: 4096",
        "kind: grouped_gemm, experts: 8, rows: 4096, n: 8192, k: 2048",
        "kind: index_scores, query: 4096, kv_length: 8192, top_k: 2048",
        "kind: layer_norm, rows: 4096, width: 8192",
        "kind: mamba_scan, query: 4096, heads: 64, groups: 8",
        "kind: mamba_update, batch: 64, heads: 64, groups: 8",
        "kind: mla_decode, batch: 16, kv_length: 4096, heads: 128",
        "kind: mla_decode, kv_lengths: [512, 4096], heads: 128",
        "kind: mla_prefill, batch: 1, query: 4096, heads: 128",
        "kind: mlp, tokens: 4096, hidden: 8192, intermediate: 8192",
        "kind: moe, tokens: 1024, hidden: 4096, expert_ffn: 2048, top_k: 2, experts: 8",
        "kind: optimizer, parameters: 1000000000",
        "kind: rms_norm, rows: 4096, width: 8192",
        "kind: rotary, tokens: 4096, heads: 32",
        "kind: softmax, rows: 4096, width: 8192",
        "kind: sparse_attention, query: 4096, kv_length: 8192, heads: 128"})
    probes.push_back({{"operator."}, op("dgx_h100", what)});
  probes.push_back(
      {{"operator."}, op("dgx_h100", "kind: gemm, m: 4096, n: 4096, k: 4096", ", precision: fp8")});
  probes.push_back({{"operator."},
                    op("dgx_h100", "kind: quantize, rows: 4096, width: 8192", ", precision: fp8")});
  // Engines slower than the link.
  for (const char* way : {"copy_host_to_device", "copy_device_to_host"})
    probes.push_back({{"operator."},
                      op("dgx_h100", std::string("kind: ") + way + ", bytes: 1 GiB, copies: 4"),
                      {"system.accelerator.copy_engines.bandwidth=10 GB/s"}});
  expect_that_all_move("operator.", probes,
                       {{"operator.kind",
                         op("dgx_h100", "kind: rms_norm, rows: 4096, width: 8192"),
                         {"operator.kind=layer_norm"}}});
}

/// A step of experts on eight ranks, for whose kernels the host takes its time.
std::string experts_of(const std::string& model, const std::string& switches) {
  return "{experiment: training, system: dgx_h100, model: " + model +
         ", precision: fp8, parallel: {dp: 8, ep: 8}, batch: {global: 8, sequence: 256}, software: "
         "{fp8_scaling: current, kernel_issue: 20 us, launch_issue: 10 us, experts: {functions: "
         "apart, launches: per_expert, router_kernels: 8, row_multiple: 16, "
         "host_waits: true, " +
         switches + "}}}";
}

std::vector<Change> noise_changes() {
  const std::string two = "parallel: {dp: 2}, batch: {global: 2, sequence: 512}";
  const std::string plain = training("dgx_h100", two);
  const std::string noisy = training("dgx_h100", two + ", noise: {kernels: 0.02}");
  const std::string slow = training("dgx_h100", two + ", noise: {stragglers: {slowdown: 1.3}}");
  const std::string one =
      training("dgx_h100", two + ", noise: {stragglers: {ranks: [1], slowdown: 1.3}}");
  return {{"fold", plain, {"fold=off"}},
          {"steps", noisy, {"steps=5"}},
          {"noise.kernels", plain, {"noise.kernels=0.02"}},
          {"noise.ranks", plain, {"noise.ranks=0.02"}},
          {"noise.seed", noisy, {"noise.seed=2"}},
          {"noise.stragglers.fraction", slow, {"noise.stragglers.fraction=1"}},
          {"noise.stragglers.ranks", slow, {"noise.stragglers.ranks=[1]"}},
          {"noise.stragglers.slowdown", one, {"noise.stragglers.slowdown=1.5"}}};
}

/// Training steps that each move switches of their software.
std::vector<Probe> software_probes() {
  return {
      {{"software"},
       training("dgx_a100",
                "flash_attention: false, precision: fp16, parallel: {tp: 2, pp: 2, zero: 0}, "
                "batch: {global: 8, micro: 4, sequence: 1024}, software: {extends: "
                "megatron_lm_2022, call_delays: [{bytes: 4 MiB, time: 10 us}, {bytes: 16 MiB, "
                "time: 60 us}]}")},
      {{"software"},
       training("dgx_h100",
                "precision: fp8, parallel: {tp: 2, sp: true}, batch: {global: 2, sequence: 2048}, "
                "software: {tp_overlap: user_buffers}")},
      {{"software"},
       training("dgx_h100",
                "dropout: true, parallel: {dp: 4}, batch: {global: 8, sequence: 1024}, software: "
                "{gradient_reduction_overlap: true, bucket_parameters: 30e6, main_gradients: fp32, "
                "gradient_accumulation: apart}")},
      {{"software"},
       training("dgx_b200",
                "precision: nvfp4, parallel: {dp: 2}, batch: {global: 2, sequence: 1024}")},
      {{"software.cp_comm_type"},
       training("dgx_h100", "parallel: {cp: 4}, batch: {global: 4, sequence: 2048}")},
      {{"software"},
       training("dgx_h100",
                "precision: fp8, recompute: full, parallel: {dp: 4, zero: 3}, batch: {global: 8, "
                "sequence: 1024}")},
      {{"software"},
       training("dgx_h100", "recompute: selective, batch: {global: 1, sequence: 1024}")},
      {{"software"}, experts_of("gpt_oss_20b", "filling_apart: true, biases_apart: true")},
      {{"software", "expert_capacity"},
       experts_of("deepseek_v2_lite", "dispatcher: alltoall, stash: true")},
      {{"software.experts.batch_overlap"},
       "{experiment: training, system: dgx_h100, model: deepseek_v2_lite, parallel: {dp: 8, ep: "
       "8}, batch: {global: 16, sequence: 256}}"},
      {{"expert_routing"},
       "{experiment: training, system: dgx_h100, model: deepseek_v2_lite, parallel: {dp: 8, ep: "
       "8}, "
       "batch: {global: 8, sequence: 256}, expert_routing: {zipf: 0.6}}"},
  };
}

/// A prompt through experts that ranks share.
std::string uneven_experts(const std::string& routing) {
  return "{experiment: inference, system: dgx_h100, model: mixtral_8x7b, phase: prefill, parallel: "
         "{dp: 4, ep: 4}, batch: {micro: 2, sequence: 512}, expert_routing: " +
         (routing.front() == '{' ? routing : "{" + routing + "}") + "}";
}

/// Changes of pipelines: schedules, written passes, layers of slices, numbering of ranks.
std::vector<Change> pipeline_changes(const TextFile& passes) {
  const std::string batch = ", batch: {global: 8, sequence: 512}";
  const std::string two = training("dgx_h100", "parallel: {pp: 2}" + batch);
  const std::string three = training("dgx_h100", "parallel: {pp: 3}" + batch);
  const std::string single =
      training("dgx_h100", "parallel: {pp: 2}, batch: {global: 2, sequence: 512}");
  const std::string folded = training(
      "dgx_h100",
      "parallel: {pp: 2, vpp: 2}, batch: {global: 1, sequence: 512}, schedule: {passes: [F0.0 F0.1 "
      "B0.1 B0.0, F0.0 F0.1 B0.1 B0.0]}");
  return {
      {"schedule.name",
       training("dgx_h100", "parallel: {pp: 4}" + batch),
       {"schedule=interleaved", "parallel.vpp=2"}},
      {"schedule.passes", single, {"schedule.passes=[F0 B0 F1 B1, F0 B0 F1 B1]"}},
      {"schedule.file", single, {"schedule.file=" + passes.path()}},
      {"schedule.chunks", folded, {"schedule.chunks=folded"}},
      {"mtp", two, {"mtp=1"}},
      {"parallel.layout.slices", two, {"parallel.layout=Et*3|t*5L"}},
      {"parallel.layout.first", two, {"parallel.layout.first=5"}},
      {"parallel.layout.last", two, {"parallel.layout.last=3"}},
      {"parallel.layout.embedding", three, {"parallel.layout.embedding=true"}},
      {"parallel.layout.head",
       training("dgx_h100", "parallel: {pp: 3, layout: {embedding: true}}" + batch),
       {"parallel.layout.embedding=false", "parallel.layout.head=true"}},
      {"parallel.order",
       training("dgx_h100",
                "nodes: 2, parallel: {pp: 2, dp: 8}, batch: {global: 16, sequence: 512}"),
       {"parallel.order=tp-cp-ep-pp-dp"}},
  };
}

TEST(Facts, OfModelsPlansAndStepsMoveResults) {
  const TextFile table("orrery_facts_measured.csv",
                       "system,precision,m,n,k,latency_us,source\n"
                       "h100_sxm,bf16,512,512,512,7,a test\n");
  const std::string small_gemm = "kind: gemm, m: 512, n: 512, k: 512";
  const std::string hf = ORRERY_SOURCE_DIR "/configs/models/hf/";
  const std::string rest = "1\n1\n1\n1\n1\n1\n1\n";
  const TextFile even("orrery_facts_even_loads.csv", "load\n1\n" + rest);
  const TextFile uneven("orrery_facts_uneven_loads.csv", "load\n9\n" + rest);
  const std::string loads = uneven_experts("loads: [9, 7, 1, 1, 1, 1, 1, 1]");
  const TextFile passes("orrery_facts_passes.txt", "F0 B0 F1 B1\n# the last stage\nF0 B0 F1 B1\n");
  std::vector<Probe> probes = {
      {{"fidelity", "contention.units", "contention.memory", "precision", "seed"},
       op("dgx_h100", "kind: gemm, m: 4096, n: 4096, k: 4096")},
      {{"model", "batch", "contention.transfers", "dropout", "flash_attention", "recompute"},
       training("dgx_h100", "parallel: {tp: 2, dp: 2}, batch: {global: 4, sequence: 512}")},
      {{"parallel"},
       training("dgx_h100", "parallel: {tp: 2, dp: 2}, batch: {global: 4, sequence: 512}")},
      {{"parallel.dp_shard"},
       training("dgx_h100",
                "parallel: {dp: 4, zero: 3, dp_shard: 2}, batch: {global: 4, sequence: 512}")},
      {{"parallel.sp"},
       training("dgx_h100", "parallel: {tp: 2}, batch: {global: 4, sequence: 512}")},
      {{"parallel.vpp"},
       training("dgx_h100",
                "parallel: {pp: 2, vpp: 2}, schedule: interleaved, batch: {global: 8, "
                "sequence: 512}")},
      {{"phase", "kv_precision", "kv_length"}, decode("batch: {micro: 2, sequence: 512}")},
      {{"mixed"},
       "{experiment: inference, system: dgx_h100, model: llama_3_1_8b, phase: mixed, mixed: "
       "{chunks: [{tokens: 512, context: 512, count: 2}], decodes: [{context: 4096, count: 8}]}}"},
      {{"images", "image"},
       "{experiment: inference, system: dgx_h100, model: qwen3_vl_8b, phase: prefill, images: 2, "
       "image: {height: 512, width: 512}, batch: {micro: 1, sequence: 64}}"},
      {{"adapters", "lora.max"},
       decode("batch: {micro: 8, sequence: 512}, lora: {max_loras: 4}, adapters: 2")},
      {{"memory_reserve"},
       "{experiment: inference, system: dgx_h100, model: llama_3_1_8b, phase: decode, kv_length: "
       "8192, batch: {micro: 52}}"},
      {{"activation_precision", "layers_only"},
       "{experiment: training, system: dgx_h100, model: llama_3_1_8b, layers_only: 2, precision: "
       "fp8, activation_precision: bf16, "
       "parallel: {tp: 2}, batch: {global: 1, sequence: 4096}}"},
      {{"parallel.cp"}, decode("parallel: {cp: 2}, batch: {micro: 2}")},
      {{"parallel.ep", "parallel.etp"},
       "{experiment: inference, system: dgx_h100, model: qwen3_30b_a3b, phase: decode, kv_length: "
       "512, "
       "parallel: {tp: 2, dp: 4, ep: 4}, batch: {micro: 2}}"},
      {{"expert_routing.zipf", "expert_routing.seed"}, uneven_experts("zipf: 0.6")},
      {{"nodes", "record"},
       "{experiment: collective, system: dgx_h100, collective: {kind: all_reduce, bytes: 1 MiB}}"},
      {{"faults"},
       "{experiment: collective, system: gb200_nvl72, collective: {kind: all_gather, bytes: 64 "
       "GiB}, "
       "faults: [{link: \"*nvswitch7*\", at: 40 ms, capacity: 0.5}]}"},
  };
  for (Probe& probe : software_probes()) probes.push_back(std::move(probe));
  std::vector<Change> changes = {
      {"experiment",
       "{experiment: training, system: dgx_h100, model: llama_3_1_8b, parallel: {tp: 8}, batch: "
       "{micro: 1, sequence: 512}}",
       {"experiment=inference", "phase=prefill"}},
      {"calibration", op("dgx_h100", small_gemm), {"calibration=none"}},
      {"parallel.dcp",
       "{experiment: inference, system: dgx_h100, model: deepseek_v2_lite, phase: decode, "
       "kv_length: 1024, parallel: {tp: 4}, batch: {micro: 2}}",
       {"parallel.dcp=4"}},
      {"activation_offload",
       training("dgx_h100", "batch: {global: 2, sequence: 512}"),
       {"activation_offload=2"}},
      {"optimizer", training("dgx_h100", "batch: {global: 2, sequence: 512}"), {"optimizer=muon"}},
      {"muon.num_ns_steps",
       training("dgx_h100", "optimizer: muon, batch: {global: 2, sequence: 512}"),
       {"muon.num_ns_steps=10"}},
      {"muon.tp_mode",
       training("dgx_h100",
                "optimizer: muon, parallel: {tp: 2}, batch: {global: 2, sequence: 512}"),
       {"muon.tp_mode=duplicated"}},
      {"optimizer_states.gradients",
       training("dgx_h100", "batch: {global: 2, sequence: 512}"),
       {"optimizer_states.gradients=fp32"}},
      {"optimizer_states.momentum",
       training("dgx_h100", "batch: {global: 2, sequence: 512}"),
       {"optimizer_states.momentum=int8"}},
      {"optimizer_states.variance",
       training("dgx_h100", "batch: {global: 2, sequence: 512}"),
       {"optimizer_states.variance=fp8"}},
      {"optimizer_states.placement",
       training("dgx_h100", "batch: {global: 2, sequence: 512}, memory_reserve: 0.9"),
       {"optimizer_states.placement=paged"}},
      {"optimizer_states.master",
       training("dgx_h100", "batch: {global: 2, sequence: 512}"),
       {"optimizer_states.master=none"}},
      {"optimizer_offload.fraction",
       training("dgx_h100", "batch: {global: 2, sequence: 512}"),
       {"optimizer_offload.fraction=0.5"}},
      {"optimizer_offload.overlap",
       training("dgx_h100", "optimizer_offload: {fraction: 1}, batch: {global: 2, sequence: 512}"),
       {"optimizer_offload.overlap=true"}},
      {"sparsity", training("dgx_h100", "batch: {global: 2, sequence: 512}"), {"sparsity=2:4"}},
      {"batch.encoder_sequence",
       "{experiment: training, system: dgx_a100, model: {dimensions: {layers: 8, encoder_layers: "
       "4, "
       "hidden: 1024, heads: 8, vocabulary: 8192}}, batch: {global: 2, sequence: 512}}",
       {"batch.encoder_sequence=256"}},
      {"model.dimensions.encoder_layers",
       training("dgx_h100", "batch: {global: 2, sequence: 512}"),
       {"model.dimensions.encoder_layers=4"}},
      {"gradient_clipping",
       training("dgx_h100", "batch: {global: 2, sequence: 512}"),
       {"gradient_clipping=false"}},
      {"optimizer_in_backward",
       training("dgx_h100",
                "batch: {global: 1, sequence: 512}, software: pytorch, gradient_clipping: false"),
       {"optimizer_in_backward=true"}},
      {"lora.rank",
       training("dgx_h100", "batch: {global: 2, sequence: 512}, lora: {rank: 32}"),
       {"lora.rank=64"}},
      {"lora.base",
       training("dgx_h100", "batch: {global: 2, sequence: 512}, lora: {rank: 32}"),
       {"lora.base=nf4"}},
      {"lora.dropout",
       training("dgx_h100", "batch: {global: 2, sequence: 512}, lora: {rank: 32}"),
       {"lora.dropout=0.1"}},
      {"lora.modules_to_save",
       training("dgx_h100", "batch: {global: 2, sequence: 512}, lora: {rank: 32}"),
       {"lora.modules_to_save=[lm_head]"}},
      {"packed.mean", training("dgx_h100", "batch: {global: 2, sequence: 512}"), {"packed=128"}},
      {"packed.deviation",
       training("dgx_h100", "batch: {global: 2, sequence: 512}, packed: {mean: 64}"),
       {"packed.deviation=64"}},
      {"recompute.method",
       training("dgx_h100", "batch: {global: 2, sequence: 512}, recompute: {granularity: full}"),
       {"recompute.method=block"}},
      {"recompute.modules",
       training("dgx_h100",
                "batch: {global: 2, sequence: 512}, recompute: {granularity: selective}"),
       {"recompute.modules=[mlp]"}},
      {"recompute.num_layers",
       training("dgx_h100", "batch: {global: 2, sequence: 512}, recompute: {granularity: full}"),
       {"recompute.num_layers=2"}},
      {"parallel.cp_a2a",
       training("dgx_h100", "parallel: {cp: 4}, batch: {global: 4, sequence: 2048}"),
       {"parallel.cp_a2a=2", "software.cp_comm_type=a2a+p2p"}},
      {"lora.target_modules",
       decode("batch: {micro: 8, sequence: 512}, lora: {max_loras: 4}"),
       {"lora.target_modules=[o_proj]"}},
      {"algorithms", decode("batch: {micro: 8}, parallel: {tp: 8}"), {"algorithms=[tree]"}},
      {"measured", op("dgx_h100", small_gemm), {"measured=[" + table.path() + "]"}},
      {"model.hf",
       "{experiment: inference, system: dgx_h100, model: {hf: " + hf +
           "gpt2.json}, phase: decode, kv_length: 512, batch: {micro: 1}}",
       {"model.hf=" + hf + "gemma_3_1b.json"}},
      {"model.language_only",
       "{experiment: inference, system: dgx_h100, model: qwen3_vl_8b, phase: decode, kv_length: "
       "512, batch: {micro: 1}}",
       {"model.language_only=true"}},
      {"expert_routing.loads", loads, {"expert_routing.loads=[1, 1, 1, 1, 9, 1, 1, 1]"}},
      {"expert_routing.loads_file",
       uneven_experts("{loads_file: " + even.path() + "}"),
       {"expert_routing.loads_file=" + uneven.path()}},
      {"expert_routing.balancing", loads, {"expert_routing.balancing=eplb"}},
      {"expert_routing.redundant_experts",
       loads,
       {"expert_routing.balancing=eplb", "expert_routing.redundant_experts=4"}},
      {"two_batch_overlap", uneven_experts("zipf: 1"), {"two_batch_overlap=true"}},
      {"software.wide_norms", adapted(""), {"software.wide_norms=false"}},
      {"software.keeps_packed_heads", adapted(""), {"software.keeps_packed_heads=true"}},
      {"software.pads_adapters", adapted(""), {"software.pads_adapters=true"}},
      {"software.keeps_frozen_inputs",
       adapted(", base: nf4"),
       {"software.keeps_frozen_inputs=true"}},
      {"engine.vllm.kernels.router",
       uneven_experts("zipf: 1"),
       {"engine={kind: vllm, kernels: {router: off}}"}},
      {"engine.vllm.kernels.allreduce_norm",
       decode("parallel: {tp: 2}, batch: {micro: 2}, engine: {kind: vllm}"),
       {"engine.kernels.allreduce_norm=on"}},
      {"engine.vllm.kernels.quant_fusion",
       decode("batch: {micro: 2}, precision: fp8, engine: {kind: vllm}"),
       {"engine.kernels.quant_fusion=on"}},
      {"engine.vllm.kernels.block_quant_fusion",
       decode("batch: {micro: 2}, precision: fp8_block, engine: {kind: vllm, kernels: "
              "{quant_fusion: on}}"),
       {"engine.kernels.block_quant_fusion=on"}},
      {"engine.vllm.kernels.masks_short_prompts",
       "{experiment: inference, system: dgx_h200, model: deepseek_v3_2, phase: prefill, precision: "
       "fp8_block, batch: {micro: 1, sequence: 3000}, parallel: {tp: 8, etp: 8}, engine: {kind: "
       "vllm}}",
       {"engine.kernels.masks_short_prompts=on"}},
      {"engine.vllm.kernels.choices_as_contexts",
       "{experiment: inference, system: dgx_h200, model: deepseek_v3_2, phase: decode, kv_length: "
       "100, precision: fp8_block, batch: {micro: 2}, parallel: {tp: 8, etp: 8}, engine: {kind: "
       "vllm}}",
       {"engine.kernels.choices_as_contexts=on"}},
      {"engine.vllm.kernels.fused_delta_rule",
       "{experiment: inference, system: dgx_h200, model: qwen3_next_80b_a3b, phase: prefill, "
       "batch: "
       "{micro: 1, sequence: 3000}, parallel: {tp: 2, etp: 2}, engine: {kind: vllm}}",
       {"engine.kernels.fused_delta_rule=on"}},
      {"engine.vllm.kernels.experts",
       "{experiment: inference, system: dgx_h100, model: gpt_oss_20b, phase: decode, kv_length: "
       "100, batch: {micro: 2}, engine: {kind: vllm}}",
       {"engine.kernels.experts=marlin"}},
      {"engine.vllm.kernels.shares_as_routed",
       "{experiment: inference, system: dgx_h200, model: deepseek_r1, phase: decode, kv_length: "
       "100, batch: {micro: 2}, precision: fp8_block, parallel: {tp: 8, etp: 8}, engine: {kind: "
       "vllm}}",
       {"engine.kernels.shares_as_routed=on"}},
      {"engine.vllm.kernels.decodes_by_stages",
       kTwoBatches,
       {"engine.kernels.decodes_by_stages=on"}},
      {"engine.vllm.kernels.operators_apart",
       decode("batch: {micro: 2}, engine: {kind: vllm}"),
       {"engine.kernels.operators_apart=on"}},
      {"engine.vllm.kernels.quantises_widened", kNarrow, {"engine.kernels.quantises_widened=on"}},
      {"engine.vllm.kernels.decodes_by_head",
       "{experiment: inference, system: dgx_h100, model: llama_3_1_8b, phase: decode, kv_length: "
       "1024, batch: {micro: 64}, engine: {kind: vllm}}",
       {"engine.kernels.decodes_by_head=on"}},
      {"engine.vllm.all_reduce.fused",
       decode("parallel: {tp: 2}, batch: {micro: 2}, engine: {kind: vllm, kernels: "
              "{allreduce_norm: on}}"),
       {"engine.all_reduce.fused=0 B"}},
      {"engine.vllm.all_reduce.own", all_reduce(64), {"engine.all_reduce.own=0 B"}},
      {"engine.vllm.all_reduce.one_shot", all_reduce(64), {"engine.all_reduce.one_shot=1 KiB"}},
      {"engine.vllm.all_reduce.barrier", all_reduce(64), {"engine.all_reduce.barrier=9 us"}},
      {"engine.vllm.all_reduce.fence", all_reduce(512), {"engine.all_reduce.fence=9 us"}},
      {"engine.vllm.all_reduce.symmetric",
       all_reduce(16384, kSymmetric),
       {"engine.all_reduce.symmetric=1 MiB"}},
      {"engine.vllm.all_reduce.multicast",
       all_reduce(16384, kSymmetric),
       {"engine.all_reduce.multicast=true"}},
      {"engine.vllm.all_reduce.copies",
       all_reduce(16384, kSymmetric),
       {"engine.all_reduce.copies=99 us"}},
      {"engine.vllm.kernels.pdl",
       decode("batch: {micro: 2}, engine: {kind: vllm}"),
       {"engine.kernels.pdl=on"}},
      {"expert_routing.balancedness",
       uneven_experts("balancedness: 0.9"),
       {"expert_routing.balancedness=0.8"}},
      {"faults.link",
       "{experiment: collective, system: gb200_nvl72, collective: {kind: all_gather, bytes: 64 "
       "GiB}, "
       "faults: [{link: \"*nvswitch7*\", capacity: 0.5}]}",
       {"faults.0.link=system0/node0/accelerator3->nvswitches"}},
  };
  const std::string images = "{experiment: layers, system: dgx_a100, layer_model: resnet_50}";
  const std::string trained =
      "{experiment: layers, system: dgx_a100, layer_model: digits_1989, phase: training}";
  changes.push_back({"batch", images, {"batch=4"}});
  changes.push_back({"fused", images, {"fused=false"}});
  changes.push_back({"dp", trained, {"dp=8"}});
  changes.push_back({"prices", decode("batch: {micro: 2}"), {"prices=neocloud"}});
  changes.push_back(
      {"carbon_intensity", decode("batch: {micro: 2}"), {"carbon_intensity=400 gCO2/kWh"}});
  changes.push_back({"unused", decode("batch: {micro: 2}"), {"unused=absent"}});
  for (Change& change : noise_changes()) changes.push_back(std::move(change));
  for (Change& change : pipeline_changes(passes)) changes.push_back(std::move(change));
  expect_that_all_move("", probes, changes);
}

}  // namespace
}  // namespace orrery::facts::facts_test
