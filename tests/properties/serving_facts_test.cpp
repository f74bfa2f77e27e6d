// SPDX-License-Identifier: Apache-2.0
// Every key of serving moves a result somewhere.
#include <list>

#include "tests/properties/schema_facts.h"

namespace orrery::facts::serving_facts_test {
namespace {

/// A small model behind an engine.
std::string serving(const std::string& workload, const std::string& engine,
                    const std::string& more = "") {
  return "{experiment: serving, model: qwen2_5_3b, serving: {workload: {" + workload +
         "}, fleet: [{system: dgx_h100, engine: {" + engine + "}" + more + "}]}}";
}

constexpr const char* kFew = "rate: 200 /s, requests: 24, input: 400, output: 12";

/// Prompts that begin alike, two seconds apart.
std::string alike() {
  std::string text;
  for (int i = 0; i < 4; ++i)
    text += "{\"timestamp\": " + std::to_string(2000 * i) +
            ", \"input_length\": 1100, \"output_length\": 4, \"hash_ids\": [1, 2, " +
            std::to_string(9 + i) + "]}\n";
  return text;
}

/// A model with recurrent layers, whose states are kept every 700 tokens.
std::string hybrid(const std::string& trace, const std::string& engine) {
  return "{experiment: serving, model: falcon_h1_7b, serving: {workload: {trace: " + trace +
         "}, fleet: [{system: dgx_h100, engine: {" + engine + ": 700}}]}}";
}

/// Eight experts on four ranks.
std::string uneven(const std::string& routing) {
  return "{experiment: serving, model: mixtral_8x7b, serving: {workload: {rate: 200 /s, requests: "
         "6, input: 400, output: 4}, fleet: [{system: dgx_h100, parallel: {dp: 4, ep: 4}, "
         "expert_routing: {" +
         routing + "}, engine: {kind: vllm}}]}}";
}

/// So many decodes that two batches take turns.
std::string turns() {
  return "{experiment: serving, model: mixtral_8x7b, serving: {workload: {concurrency: 256, "
         "requests: 256, input: 32, output: 4}, fleet: [{system: dgx_h100, parallel: {dp: 4, ep: "
         "4}, engine: {kind: vllm}}]}}";
}

TEST(Facts, OfServingMoveResults) {
  const TextFile trace("facts_trace.jsonl", alike());
  const TextFile other("facts_other.jsonl", alike() + alike());
  const TextFile lengths("facts_lengths.txt", "100\n700\n");
  const TextFile acceptance("facts_acceptance.yaml",
                            "a: {on: {1: 1.9, 2: 2.7}}\nb: {off: {1: 1.2, 2: 1.3}}\n");
  const std::string rest = "1\n1\n1\n1\n1\n1\n1\n";
  const TextFile even("facts_even.csv", "load\n1\n" + rest);
  const TextFile first("facts_first.csv", "load\n9\n" + rest);
  const std::string kept = "trace: " + trace.path();
  const std::string engine = "serving.fleet.engine.";
  const std::string prefixes =
      "rate: 20 /s, requests: 12, input: 100, output: 4, shared_prefixes: {groups: 3, tokens: 640}";
  const std::string speculating =
      serving(kFew, "kind: vllm",
              ", speculative: {method: ngram, num_speculative_tokens: 2, acceptance_length: 2}");
  const std::vector<Probe> probes = {
      {{"serving.images", "serving.image"},
       "{experiment: serving, model: qwen3_vl_8b, serving: {workload: {rate: 200 /s, requests: 6, "
       "input: 64, output: 4}, images: 1, image: {height: 512, width: 512}, fleet: [{system: "
       "dgx_h100, engine: {kind: vllm}}]}}"},
      {{engine + "vllm.max", engine + "vllm.block_size", engine + "vllm.num_gpu_blocks",
        engine + "vllm.enable_chunked_prefill", engine + "vllm.long", engine + "vllm.host",
        engine + "vllm.async_scheduling", "serving.workload.poisson.rate",
        "serving.workload.poisson.requests", "serving.workload.poisson.input.fixed",
        "serving.workload.poisson.output.fixed"},
       serving(kFew,
               "kind: vllm, max_num_seqs: 4, max_num_batched_tokens: 256, num_gpu_blocks: "
               "200, host: {iteration: 1 ms}")},
      {{engine + "vllm.gpu", "serving.fleet.replicas", "serving.fleet.precision",
        "serving.fleet.kv_precision", "serving.slo", "serving.workload.poisson.seed",
        "serving.workload.poisson.input.uniform", "serving.workload.poisson.output.lognormal"},
       "{experiment: serving, model: qwen2_5_3b, serving: {slo: {ttft: 10 ms, tpot: 10 ms, e2el: "
       "100 ms, ttft_p99: 20 ms, tpot_p99: 20 ms, e2el_p99: 200 ms}, workload: {rate: 50 /s, "
       "requests: 12, input: {uniform: [100, 400]}, output: {lognormal: {mean: 20, p90: 44}}}, "
       "fleet: [{system: dgx_h100, engine: {kind: vllm, host: {}}}]}}"},
      {{"serving.workload.poisson.input.lognormal"},
       serving("rate: 50 /s, requests: 12, input: {lognormal: {median: 200, p90: 500}}, output: 4",
               "kind: vllm")},
      {{"serving.workload.poisson.output.uniform"},
       serving("rate: 50 /s, requests: 12, output: {uniform: [10, 40]}", "kind: vllm")},
      {{"serving.fleet.speculative.num", "serving.fleet.speculative.acceptance_length"},
       speculating},
      {{engine + "vllm.scheduler_reserve_full_isl", engine + "vllm.watermark"},
       serving("concurrency: 4, requests: 8, input: 1000, output: 40",
               "kind: vllm, num_gpu_blocks: 150, max_num_batched_tokens: 256, "
               "scheduler_reserve_full_isl: true, watermark: 0.1")},
      {{engine + "vllm.reserve_whole_windows"},
       "{experiment: serving, model: gemma_3_1b, serving: {workload: {concurrency: 4, requests: 8, "
       "input: 2000, output: 40}, fleet: [{system: dgx_h100, engine: {kind: vllm, num_gpu_blocks: "
       "900, max_num_batched_tokens: 256, version: \"0.19\"}}]}}"},
      {{engine + "vllm.cudagraph_limit"}, serving(kFew, "kind: vllm, host: {launch: 20 us}")},
      {{engine + "vllm.cudagraph_sizes"},
       serving(kFew, "kind: vllm, cudagraph_sizes: [{to: 64, step: 8}, {step: 64}]")},
      {{engine + "sglang.cuda_graph_sizes", engine + "sglang.prefill_graph_sizes"},
       serving("concurrency: 24, requests: 48, input: 400, output: {uniform: [4, 40]}",
               "kind: sglang, cuda_graph_sizes: [{to: 9, step: 3}, {step: 8}], "
               "prefill_graph_sizes: [{to: 500, step: 16}, {step: 512}]")},
      {{engine + "sglang.admission."},
       serving("rate: 200 /s, requests: 40, input: 50, output: {uniform: [50, 300]}",
               "kind: sglang, max_total_tokens: 1500, admission: {init_new_token_ratio: 0.3, "
               "min_new_token_ratio_factor: 0.1, new_token_ratio_decay_steps: 200, "
               "retract_decode_steps: 20, clip_max_new_tokens_estimation: 200}")},
      {{engine + "sglang.admission."},
       serving("rate: 2000 /s, requests: 40, input: 40, output: 4, shared_prefixes: {groups: 3, "
               "tokens: 64}",
               "kind: sglang, schedule_policy: lpm, max_running_requests: 4, chunked_prefill_size: "
               "200, admission: {init_new_token_ratio: 0.7, lpm_queue_limit: 20, "
               "in_batch_prefix_caching_threshold: 64}")},
      {{engine + "vllm.memory"},
       serving(kFew, "kind: vllm, version: \"0.21\"", ", parallel: {tp: 2}")},
      {{engine + "sglang.memory"}, serving(kFew, "kind: sglang", ", parallel: {tp: 2}")},
      {{engine + "tensorrt_llm.memory"},
       serving(kFew, "kind: tensorrt_llm", ", parallel: {tp: 2}")},
      {{engine + "vllm.prefix_caching", "serving.workload.trace."}, serving(kept, "kind: vllm")},
      {{engine + "vllm.mamba_block_size"},
       hybrid(trace.path(), "kind: vllm, prefix_caching: true, mamba_block_size")},
      {{engine + "sglang.mamba_track_interval"},
       hybrid(trace.path(), "kind: sglang, mamba_track_interval")},
      {{engine + "tensorrt_llm.mamba_state_cache_interval"},
       hybrid(trace.path(), "kind: tensorrt_llm, mamba_state_cache_interval")},
      {{engine + "sglang.max", engine + "sglang.chunked", engine + "sglang.page_size",
        engine + "sglang.enable_mixed_chunk", engine + "sglang.disable_overlap_schedule"},
       serving(kFew,
               "kind: sglang, host: {iteration: 1 ms}, max_running_requests: 6, "
               "chunked_prefill_size: 800, "
               "max_prefill_tokens: 900, max_total_tokens: 2000")},
      {{engine + "sglang.schedule"},
       serving("rate: 200 /s, requests: 24, input: 200, output: 200",
               "kind: sglang, max_total_tokens: 1000")},
      {{engine + "sglang.mem", engine + "sglang.disable_radix_cache"},
       serving(kept, "kind: sglang")},
      {{engine + "tensorrt_llm.max", engine + "tensorrt_llm.tokens",
        engine + "tensorrt_llm.enable_chunked_prefill", engine + "tensorrt_llm.disable"},
       serving("rate: 20000 /s, requests: 24, input: 400, output: 12",
               "kind: tensorrt_llm, max_batch_size: 4, max_num_tokens: 900, max_tokens: 4000, "
               "host: {iteration: 1 ms}")},
      {{engine + "tensorrt_llm.cuda_graph_config."},
       serving(kFew,
               "kind: tensorrt_llm, cuda_graph_config: {enable_padding: true, batch_sizes: "
               "[8, 64, 512]}")},
      {{engine + "tensorrt_llm.batch"},
       serving("rate: 400 /s, requests: 12, input: 100, output: 200",
               "kind: tensorrt_llm, max_num_tokens: 1000, batch_wait_timeout_iters: 4, "
               "batch_wait_max_tokens_ratio: 0.3")},
      {{engine + "tensorrt_llm.attention_dp_config."},
       "{experiment: serving, model: mixtral_8x7b, serving: {workload: {rate: 30 /s, requests: 24, "
       "input: 100, output: 200}, fleet: [{system: dgx_h100, parallel: {dp: 4, ep: 4}, engine: "
       "{kind: "
       "tensorrt_llm, attention_dp_config: {enable_balance: true, timeout_iters: 40, "
       "batching_wait_iters: 2}}}]}}"},
      {{engine + "tensorrt_llm.capacity"},
       serving("rate: 200 /s, requests: 24, input: 400, output: 40",
               "kind: tensorrt_llm, max_tokens: 1280")},
      {{engine + "tensorrt_llm.free", engine + "tensorrt_llm.enable_block_reuse"},
       serving(kept, "kind: tensorrt_llm")},
      {{engine + "orca."}, serving(kFew, "kind: orca, max_num_seqs: 4")},
      {{engine + "static."}, serving(kFew, "kind: static, max_num_seqs: 4")},
      {{engine + "llama_cpp."}, serving(kFew, "kind: llama_cpp, max_num_seqs: 4")},
      {{engine + "tt_transformers."},
       serving(kFew,
               "kind: tt_transformers, max_num_seqs: 4, decode_sizes: [{to: 3, step: 3}, {to: 64, "
               "step: 32}], prefill_sizes: [{to: 390, step: 130}, {to: 900, step: 450}]")},
      {{engine + "sarathi."}, serving(kFew, "kind: sarathi, max_num_seqs: 4")},
      {{"serving.workload.gamma."},
       serving("arrival: gamma, burstiness: 0.5, rate: 50 /s, requests: 12, output: 4",
               "kind: vllm")},
      {{"serving.workload.weibull."},
       serving("arrival: weibull, shape: 2, rate: 50 /s, requests: 12, output: 4", "kind: vllm")},
      {{"serving.fleet.kv_tiers."},
       serving("arrival: sessions, rate: 5 /s, sessions: 6, turns: 4, input: 300, think_time: 2 s, "
               "output: 20",
               "kind: vllm, num_gpu_blocks: 130",
               ", kv_tiers: [{kind: host, capacity: 30 MB, bandwidth: 1 GB/s, latency: 50 ms}]")},
      {{"serving.fleet.autoscale."},
       serving("rate: 100 /s, requests: 400, input: 400, output: 30",
               "kind: vllm, max_num_seqs: 4, host: {}",
               ", replicas: 4, autoscale: {min: 1, requests: 4, interval: 0.2 s, start: 0.5 s, "
               "cool_down: 0.4 s, ramp: 0.6 s}")},
      {{"serving.workload.sessions."},
       serving("arrival: sessions, rate: 5 /s, sessions: 4, turns: 3, system_prompt: 64, "
               "think_time: 0.1 s, max_context: 700, output: 20",
               "kind: vllm")},
      {{"serving.fleet.expert_routing.zipf", "serving.fleet.expert_routing.seed"},
       uneven("zipf: 0.6")},
      {{"serving.fleet.expert_routing.balancedness"},
       uneven("balancedness: 0.9"),
       {"serving.fleet.0.expert_routing.balancedness=0.5"}},
      {{"serving.workload.poisson.adapters.", "serving.fleet.lora.max"},
       serving("rate: 100 /s, requests: 24, input: 400, output: 12, adapters: {count: 6, "
               "popularity: zipf}",
               "kind: vllm", ", lora: {max_loras: 3}")},
      {{"serving.workload.poisson.shared_prefixes."}, serving(prefixes, "kind: vllm")},
      {{"serving.workload.gamma.shared_prefixes."},
       serving("arrival: gamma, " + prefixes, "kind: vllm")},
      {{"serving.workload.weibull.shared_prefixes."},
       serving("arrival: weibull, " + prefixes, "kind: vllm")},
      {{"serving.workload.closed_loop."},
       serving("concurrency: 4, requests: 12, output: 4", "kind: vllm")},
  };
  const std::string plain = serving(kFew, "kind: vllm, max_num_seqs: 4");
  const std::string many = serving(kFew, "kind: vllm", ", replicas: 3");
  const std::string apart =
      "{experiment: serving, model: qwen2_5_3b, serving: {workload: {rate: 200 /s, requests: 24, "
      "input: 400, output: {uniform: [2, 40]}}, fleet: [{system: dgx_h100, role: prefill, engine: "
      "{kind: vllm}}, {system: dgx_h100, role: decode, replicas: 3, engine: {kind: vllm}}]}}";
  const std::string urgent =
      serving("rate: 300 /s, requests: 40, urgent: 0.5, input: 400, output: 12",
              "kind: vllm, max_num_seqs: 2, scheduling_policy: priority");
  const std::string loads = uneven("loads: [9, 7, 1, 1, 1, 1, 1, 1]");
  const std::string group = "serving.fleet.", routing = group + "expert_routing.";
  const std::string one = "serving.fleet.0.", set = one + "expert_routing.";
  std::vector<Change> changes = {
      {group + "algorithms",
       serving(kFew, "kind: vllm", ", parallel: {tp: 2}"),
       {one + "algorithms=[tree]"}},
      {group + "two_batch_overlap", turns(), {one + "two_batch_overlap=true"}},
      {routing + "loads", loads, {set + "loads=[1, 1, 1, 1, 9, 1, 1, 1]"}},
      {routing + "loads_file",
       uneven("loads_file: " + even.path()),
       {set + "loads_file=" + first.path()}},
      {routing + "balancing", loads, {set + "balancing=eplb"}},
      {routing + "redundant_experts", loads, {set + "balancing=eplb", set + "redundant_experts=4"}},
      {engine + "kind", plain, {"serving.fleet.0.engine.kind=orca"}},
      {engine + "llama_cpp.backend",
       "{experiment: serving, model: {hf: " ORRERY_SOURCE_DIR
       "/validation/published/models/llama_2_7b_q4.json}, serving: {workload: {rate: 20 /s, "
       "requests: 6, "
       "input: 100, output: 4}, fleet: [{system: dgx_h100, precision: fp16, engine: {kind: "
       "llama_cpp}}]}}",
       {"serving.fleet.0.engine.backend=metal"}},
      {engine + "vllm.version",
       serving(kFew, "kind: vllm, host: {iteration: 1 ms}"),
       {"serving.fleet.0.engine.version=0.14.1"}},
      {engine + "sglang.version",
       serving("concurrency: 40, requests: 40, output: 4", "kind: sglang"),
       {"serving.fleet.0.engine.version=0.4.8"}},
      {engine + "sglang.schedule_policy",
       serving("rate: 200 /s, requests: 24, output: {uniform: [2, 40]}",
               "kind: sglang, max_running_requests: 4"),
       {"serving.fleet.0.engine.schedule_policy=lof"}},
      {engine + "sglang.scheduler_recv_interval",
       serving("rate: 200 /s, requests: 24, output: {uniform: [2, 40]}", "kind: sglang"),
       {"serving.fleet.0.engine.scheduler_recv_interval=20"}},
      {engine + "tensorrt_llm.version",
       serving(kFew, "kind: tensorrt_llm"),
       {"serving.fleet.0.engine.version=1.0"}},
      {"serving.workload.arrival",
       plain,
       {"serving.workload.arrival=gamma", "serving.workload.burstiness=0.3"}},
      {"serving.workload.trace.trace",
       serving(kept, "kind: vllm"),
       {"serving.workload.trace=" + other.path()}},
      {"serving.workload.trace.format",
       serving(kept, "kind: vllm"),
       {"serving.workload.format=azure"}},
      {"serving.workload.poisson.input.empirical",
       plain,
       {"serving.workload.input={empirical: " + lengths.path() + "}"}},
      {"serving.workload.poisson.output.empirical",
       plain,
       {"serving.workload.output={empirical: " + lengths.path() + "}"}},
      {"serving.workload.poisson.input.lognormal.mean",
       plain,
       {"serving.workload.input={lognormal: {mean: 300, p90: 500}}"}},
      {"serving.workload.poisson.output.lognormal.median",
       plain,
       {"serving.workload.output={lognormal: {median: 30, p90: 50}}"}},
      {"serving.fleet.nodes",
       serving(kFew, "kind: vllm", ", parallel: {tp: 8}"),
       {"serving.fleet.0.nodes=2", "serving.fleet.0.parallel.tp=16"}},
      {"serving.fleet.role", apart, {"serving.fleet.0.role=both", "serving.fleet.1.role=both"}},
      {"serving.fleet.speculative.method",
       speculating,
       {"serving.fleet.0.speculative={method: draft_model, model: qwen2_5_3b, "
        "num_speculative_tokens: 2, acceptance_length: 2}"}},
      {"serving.fleet.speculative.acceptance_rates",
       speculating,
       {"serving.fleet.0.speculative={method: ngram, num_speculative_tokens: 2, acceptance_rates: "
        "[0.3, 0.3]}"}},
      {"serving.fleet.speculative.acceptance_table",
       speculating,
       {"serving.fleet.0.speculative={method: ngram, num_speculative_tokens: 2, "
        "acceptance_table: " +
        acceptance.path() + "}"}},
      {"serving.fleet.speculative.acceptance_of",
       serving(kFew, "kind: vllm",
               ", speculative: {method: ngram, num_speculative_tokens: 2, acceptance_table: " +
                   acceptance.path() + "}"),
       {"serving.fleet.0.speculative.acceptance_of=b/off"}},
      {"serving.kv_transfer.over", apart, {"serving.kv_transfer.over=scale_up"}},
      {"serving.kv_transfer.start", apart, {"serving.kv_transfer.start=50 ms"}},
      {engine + "vllm.disable_hybrid_kv_cache_manager",
       "{experiment: serving, model: gemma_3_1b, serving: {workload: {concurrency: 2, requests: 2, "
       "input: 64, output: 4}, fleet: [{system: dgx_h100, engine: {kind: vllm}}]}}",
       {"serving.fleet.0.engine.disable_hybrid_kv_cache_manager=true"}},
      {"serving.kv_transfer.router", apart, {"serving.kv_transfer.router=round_robin"}},
      {"serving.workload.poisson.urgent", urgent, {"serving.workload.urgent=0.2"}},
      {"serving.workload.gamma.urgent",
       urgent,
       {"serving.workload.arrival=gamma", "serving.workload.burstiness=1"}},
      {"serving.workload.weibull.urgent",
       urgent,
       {"serving.workload.arrival=weibull", "serving.workload.shape=1"}},
      {engine + "vllm.scheduling_policy",
       urgent,
       {"serving.fleet.0.engine.scheduling_policy=fcfs"}},
      {engine + "vllm.enforce_eager",
       serving("concurrency: 9, requests: 9, output: 9", "kind: vllm"),
       {"serving.fleet.0.engine.enforce_eager=true"}},
      {engine + "vllm.max_cudagraph_capture_size",
       serving("concurrency: 9, requests: 9, output: 9", "kind: vllm"),
       {"serving.fleet.0.engine.max_cudagraph_capture_size=8"}},
      {engine + "sglang.cuda_graph_max_bs",
       serving("concurrency: 9, requests: 9, output: 9", "kind: sglang"),
       {"serving.fleet.0.engine.cuda_graph_max_bs=8"}},
      {"serving.fleet.kv_tiers.kind",
       serving("arrival: sessions, rate: 5 /s, sessions: 6, turns: 4, input: 300, think_time: 2 s, "
               "output: 20",
               "kind: vllm, num_gpu_blocks: 130",
               ", kv_tiers: [{kind: host, capacity: 9 GB, latency: 50 ms}]"),
       {"serving.fleet.0.kv_tiers.0.latency=200 ms", "serving.fleet.0.kv_tiers.0.kind=pooled"}},
      {"serving.fleet.lora.target_modules",
       serving("concurrency: 4, requests: 4, output: 4, adapters: 2", "kind: vllm",
               ", lora: {max_loras: 2}"),
       {"serving.fleet.0.lora.target_modules=[o_proj]"}},
      {"serving.record", plain, {"serving.record=requests"}},
      {"serving.prices", plain, {"serving.prices=rental_3yr"}},
      {"serving.carbon_intensity", plain, {"serving.carbon_intensity=400 gCO2/kWh"}},
      {"serving.fleet.unused", plain, {"serving.fleet.0.unused=absent"}},
      {"serving.fleet.usd_per_hour", plain, {"serving.fleet.0.usd_per_hour=9"}},
      {"serving.router", many, {"serving.router=random"}},
      {"serving.report_interval",
       serving("rate: 200 /s, requests: 40, input: 400, output: {uniform: [2, 60]}", "kind: vllm",
               ", replicas: 3"),
       {"serving.report_interval=1 s"}},
  };
  for (const std::string kind : {"vllm", "sglang", "tensorrt_llm", "orca", "static", "sarathi",
                                 "llama_cpp", "tt_transformers"})
    changes.push_back({engine + kind + ".kernel_calibrations",
                       serving(kFew, "kind: " + kind),
                       {"serving.fleet.0.engine.kernel_calibrations=[vllm_0_24]"}});
  std::list<TextFile> versions;
  for (const std::string kind : {"orca", "static", "sarathi", "llama_cpp", "tt_transformers"}) {
    versions.emplace_back("facts_" + kind + ".yaml", "engine: " + kind +
                                                         "\nrules: {max_num_seqs: {value: 2, "
                                                         "source: a test}}\n");
    changes.push_back({engine + kind + ".version",
                       serving(kFew, "kind: " + kind),
                       {"serving.fleet.0.engine.version=" + versions.back().path()}});
  }
  expect_that_all_move("serving.", probes, changes);
}

TEST(ListedFacts, NamesOfGroupsAreForReaders) {
  const Probe named{{""}, serving(kFew, "kind: vllm", ", name: x")};
  EXPECT_TRUE(answering(Trials::Answer::kSame, named, {"serving.fleet.name"})
                  .contains("serving.fleet.name"));
}

}  // namespace
}  // namespace orrery::facts::serving_facts_test
