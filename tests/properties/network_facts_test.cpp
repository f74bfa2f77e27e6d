// SPDX-License-Identifier: Apache-2.0
// Every fact of a system, its fabrics, protocols and collectives moves some result; and the keys
// that may move none.
#include <unistd.h>

#include <cstdio>
#include <fstream>

#include "models/topologies/torus.h"
#include "sim/machine/energy_rule.h"
#include "tests/properties/schema_facts.h"

namespace orrery::facts::network_facts_test {
namespace {

/// "{experiment: collective, system: S, collective: {C}MORE}"
std::string collective(const std::string& system, const std::string& what,
                       const std::string& more = "") {
  return "{experiment: collective, system: " + system + ", collective: {" + what + "}" + more + "}";
}

const std::string kReduce = "kind: all_reduce, bytes: 64 MiB";
const std::string kTorus = "kind: all_reduce, bytes: 64 MiB, algorithm: torus";
const std::vector<std::string> kCube = {"system.scale_up.torus=[4, 4, 4]",
                                        "system.accelerators=64"};

/// Rings of 4 across fours behind switches.
std::string dimensions(const std::string& reduce) {
  return "{experiment: collective, system: {extends: tpu_v4_pod, accelerators: 16, "
         "accelerators_per_node: 16, scale_up: {kind: dimensions, dimensions: {axes: "
         "[{shape: ring, size: 4, bandwidth: 50 GB/s, latency: 500 ns, sum_rate: 100 GB/s}, "
         "{shape: switch, size: 4, bandwidth: 20 GB/s, latency: 1 us}], chunks: 4, start: 10 ns, "
         "all_reduce: hierarchical}}}, collective: {algorithm: dimensions, " +
         reduce + "}}";
}

TEST(Facts, OfScaleUpFabricsMoveResults) {
  const std::string s = "system.scale_up.";
  const std::vector<Probe> probes = {
      {{s}, collective("dgx_h100", kReduce)},
      {{s}, collective("dgx_2", kReduce), {s + "hop_latency=100 ns"}},
      {{s}, collective("dgx_1", kReduce)},
      {{s}, collective("cm384", "kind: all_reduce, bytes: 64 MB, ranks: 64")},
      {{s}, collective("cm384", "kind: all_reduce, bytes: 8 KB, ranks: 64")},
      {{s + "open_axes"},
       collective("tpu_v5p_pod", kReduce),
       {kCube[0], kCube[1], s + "open_axes=[0]"}},
      {{s + "dimensions."}, dimensions(kReduce)},
  };
  const std::string mesh = collective("dgx_1", kReduce);
  const std::vector<Change> changes = {
      {s + "kind",
       collective("mi300x_platform", kReduce),
       {s + "kind=torus", s + "torus=[2, 2, 2]"}},
      {s + "torus",
       "{experiment: collective, system: {extends: tpu_v5p_pod, accelerators: 64, "
       "scale_up: {torus: [4, 4, 4]}}, collective: {" +
           kReduce + "}}",
       {s + "torus=[2, 4, 8]"}},
      {s + "links_per_switch",
       collective("dgx_h100", kReduce, ", faults: [{link: \"*nvswitch0*\", capacity: 0}]"),
       {s + "links_per_switch=[1, 4, 4, 9]"}},
      {s + "planes",
       collective("cm384", "kind: all_gather, bytes: 64 MB, ranks: 64"),
       {s + "planes=14", "system.accelerator.scale_up.links=28"}},
      {s + "dimensions.axes.shape", dimensions(kReduce), {s + "dimensions.axes.1.shape=ring"}},
      {s + "dimensions.axes.size",
       dimensions(kReduce),
       {s + "dimensions.axes.0.size=2", s + "dimensions.axes.1.size=8"}},
      {s + "dimensions.axes.algorithm",
       dimensions(kReduce),
       {s + "dimensions.axes.1.algorithm=halving_doubling"}},
      {s + "dimensions.all_reduce",
       dimensions(kReduce),
       {s + "dimensions.all_reduce=each_dimension"}},
      {s + "wires.from", mesh, {s + "wires.15.from=accelerator5"}},
      {s + "wires.to", mesh, {s + "wires.15.to=accelerator4"}},
      {s + "calibration", collective("dgx_h100", kReduce), {s + "calibration=dgx_h200"}},
  };
  expect_that_all_move(s, probes, changes);
}

TEST(Facts, OfPcieBoxesMoveResults) {
  const std::string p = "system.scale_up.pcie.";
  const std::string reduce = "kind: all_reduce, bytes: 64 MiB";
  const std::vector<Probe> probes = {
      {{p}, collective("l40s_8", reduce + ", ranks: 4")},
      {{p + "socket_link"}, collective("g5_48xlarge", reduce)},
      {{p + "uplink_lanes"}, collective("l40s_8", reduce), {p + "uplink_lanes=4"}},
      {{p + "switch_lanes"},
       collective("rtx_pro_6000_8", reduce),
       {p + "peers=pxb", p + "switch_lanes=4"}},
      {{p + "bridge_efficiency"}, collective("h100_nvl_8", reduce + ", ranks: 2")},
  };
  const std::vector<Change> changes = {
      {p + "generation", collective("l40s_8", reduce), {p + "generation=3"}},
      {p + "link_layer", collective("l40s_8", reduce + ", ranks: 4"), {p + "link_layer=0.5"}},
      {p + "packages_per_switch",
       collective("l40s_8", reduce + ", ranks: 4"),
       {p + "packages_per_switch=1", p + "uplink_lanes=8"}},
      {p + "sockets", collective("l40s_8", reduce), {p + "sockets=1"}},
      {p + "peers", collective("rtx_4090_8", reduce), {p + "peers=sys"}},
      {p + "acs",
       collective("rtx_pro_6000_8", "kind: all_to_all, bytes: 64 MiB"),
       {p + "acs=true", p + "uplink_lanes=8"}},
      {p + "bridge", collective("h100_nvl_8", reduce + ", ranks: 2"), {p + "bridge=0"}},
  };
  expect_that_all_move(p, probes, changes);
}

TEST(Facts, OfProtocolsMoveResults) {
  const std::string p = "system.scale_up.protocols.";
  const auto priors = [](const std::string& what, const std::string& more = "") {
    return collective("dgx_h100", what, ", calibration: none" + more);
  };
  const std::string ring = "kind: all_reduce, algorithm: ring, bytes: ";
  const auto pairs = [](const std::string& bytes) {
    return collective("mi300x_platform", "kind: all_reduce, bytes: " + bytes);
  };
  const std::string small_model =
      "model: {dimensions: {layers: 2, hidden: 4096, heads: 32, vocabulary: 8192}}";
  const std::string step = "{experiment: training, system: dgx_h100, " + small_model + ", ";
  const std::vector<Probe> probes = {
      {{p}, priors("kind: all_reduce, bytes: 8 KiB")},
      {{p}, priors("kind: all_reduce, bytes: 64 MiB")},
      {{p + "nvls"}, priors("kind: all_reduce, bytes: 64 MiB, algorithm: nvls")},
      {{p}, priors("kind: all_gather, bytes: 64 MiB, algorithm: ring, protocol: simple")},
      {{p + "ll128"}, priors(ring + "1 MiB, protocol: ll128")},
      {{p + "byte_sums"}, priors(ring + "64 MiB, protocol: simple, precision: int8")},
      {{p + "one_shot"}, priors("kind: all_reduce, bytes: 1 MiB, algorithm: one_shot")},
      {{p + "p2p"}, priors("kind: all_to_all, bytes: 64 MiB")},
      {{p + "p2p_ll"}, priors("kind: all_to_all, bytes: 8 MiB")},
      {{p + "net_ll"}, priors("kind: all_reduce, bytes: 8 KiB", ", nodes: 2")},
      {{p + "net_ll", p + "ll128"},
       priors("kind: all_reduce, bytes: 64 MiB", ", nodes: 2"),
       {p + "in_switch_ranks=0"}},
      {{p + "net_latency"},
       priors("kind: all_reduce, bytes: 8 KiB", ", nodes: 2"),
       {"system.scale_out.latency=15 us"}},
      {{p + "net_post"}, priors("kind: all_gather, bytes: 8 KiB", ", nodes: 2")},
      {{p + "nominal_ll_pair"}, priors("kind: all_reduce, bytes: 2 MiB", ", nodes: 2")},
      {{p + "nominal_ll_systems"}, priors("kind: all_reduce, bytes: 512 KiB", ", nodes: 4")},
      {{p + "net_simple"}, priors("kind: all_to_all, bytes: 1 MiB", ", nodes: 2")},
      {{p + "nominal_collnet"},
       priors("kind: all_reduce, bytes: 1 MiB", ", nodes: 4"),
       {"system.scale_out.reduction=automatic"}},
      // Blocks that collectives hold while kernels run.
      {{p + "in_switch_channels", p + "net_peer_channels"},
       step + "nodes: 2, parallel: {tp: 8, pp: 2}, batch: {global: 4, sequence: 2048}}"},
      {{p + "one_shot_blocks"},
       "{experiment: training, system: {extends: mi300x_platform, scale_up: {protocols: "
       "nccl_hopper}}, " +
           small_model + ", parallel: {tp: 2, dp: 4}, batch: {global: 4, sequence: 2048}}"},
  };
  const std::vector<Change> changes = {
      {p + "ll", priors("kind: all_reduce, bytes: 8 KiB"), {p + "ll=false"}},
      {p + "pat",
       collective("{extends: dgx_h100, accelerators: 1, accelerators_per_node: 1}",
                  "kind: all_gather, bytes: 1 MiB", ", nodes: 32"),
       {p + "pat=false"}},
      {p + "nominal_net_latency",
       priors("kind: all_reduce, bytes: 512 MiB", ", nodes: 8"),
       {p + "nominal_net_latency=500 us"}},
      {p + "nominal_nvls_tree_pair",
       priors("kind: all_reduce, bytes: 2 GiB", ", nodes: 2"),
       {p + "nominal_nvls_tree_pair=5 GB/s"}},
      {p + "nominal_nvls_tree_systems",
       priors("kind: all_reduce, bytes: 4 GiB", ", nodes: 4"),
       {p + "nominal_nvls_tree_systems=200 GB/s"}},
      {p + "all_pairs_ranks", pairs("8 KiB"), {p + "all_pairs_ranks=4"}},
      {p + "all_pairs_ll", pairs("8 KiB"), {p + "all_pairs_ll=1 KiB"}},
      {p + "all_pairs_simple", pairs("8 MiB"), {p + "all_pairs_simple=1 MiB"}},
      {p + "nominal_links",
       collective("rtx_4090_8", "kind: all_reduce, bytes: 512 KiB"),
       {p + "nominal_links=nvlink"}},
  };
  expect_that_all_move(p, probes, changes);
}

TEST(Facts, OfSystemsAndTheirNetworksMoveResults) {
  const std::string o = "system.scale_out.", e = "system.expert_exchange.";
  const std::string tokens = ", tokens: 128, hidden: 7168, experts: 256, top_k: 8";
  const std::string exchange = "kind: all_to_all, bytes: 64 MiB";
  const std::vector<Probe> probes = {
      {{"system.system", "system.accelerators", "system.accelerators_per_node",
        "system.host.links"},
       collective("dgx_h100", kReduce)},
      {{o}, collective("dgx_h100", kReduce, ", nodes: 2")},
      {{o}, collective("dgx_2", kReduce, ", nodes: 2")},
      {{o}, collective("dgx_h100", "kind: all_to_all, bytes: 8 KiB", ", nodes: 64")},
      {{o},
       collective("dgx_a100", "kind: all_reduce, bytes: 64 MiB, algorithm: sharp", ", nodes: 32"),
       {o + "reduction_bandwidth=10 GB/s"}},
      {{o + "flows"}, collective("dgx_h100", exchange, ", nodes: 64"), {o + "routing=ecmp"}},
      {{o + "oversubscription"},
       collective("dgx_h100", exchange, ", nodes: 64"),
       {o + "oversubscription=[2]"}},
      {{o + "leaf_groups_per_pod"},
       collective("dgx_h100", exchange, ", nodes: 128"),
       {o + "nodes_per_leaf_group=16", o + "leaf_groups_per_pod=2", o + "oversubscription=[1, 4]"}},
      {{o + "planes"},
       collective("dgx_h100", exchange, ", nodes: 64"),
       {o + "kind=multi_plane", o + "planes=8", o + "routing=ecmp"}},
      {{e}, collective("dgx_h100", "kind: dispatch" + tokens, ", nodes: 2")},
      {{e}, collective("dgx_h100", "kind: combine, mode: low_latency" + tokens, ", nodes: 2")},
      {{e},
       collective("gb200_nvl72", "kind: combine, tokens: 1, hidden: 64, experts: 288, top_k: 8")},
      {{e + "units"},
       "{experiment: inference, system: dgx_h100, nodes: 2, model: deepseek_v2_lite, phase: "
       "decode, "
       "kv_length: 1024, parallel: {dp: 16, ep: 16}, batch: {micro: 2}}"},
      {{"system.host.packages_per_switch", "system.host.memory"},
       collective("dgx_h100", "kind: send_receive, bytes: 200 GB, from: all, to: host")},
      {{"system.host.memory_bandwidth"},
       "{experiment: training, system: dgx_h100, model: {dimensions: {layers: 8, hidden: 1024, "
       "heads: 8, vocabulary: 8192}}, batch: {global: 2, sequence: 512}, optimizer_offload: 1}"},
      {{"system.host.network"},
       collective("cm384", "kind: send_receive, bytes: 1 GB, from: storage, to: 0")},
      // Where no host_power is known.
      {{"system.all_in_power"},
       "{experiment: inference, system: a100_pcie_8, model: llama_3_1_8b, phase: decode, "
       "kv_length: 512, batch: {micro: 1}}"},
      {{"system.host_power"},
       "{experiment: inference, system: dgx_h100, model: llama_3_1_8b, phase: decode, kv_length: "
       "512, "
       "batch: {micro: 1}}"},
  };
  const std::vector<Change> changes = {
      {o + "kind", collective("dgx_h100", exchange, ", nodes: 64"), {o + "kind=clos"}},
      {o + "switch_ports",
       collective("dgx_h100", exchange, ", nodes: 128"),
       {o + "switch_ports=[64, 16, 64]"}},
  };
  expect_that_all_move("system.", probes, changes);
}

TEST(Facts, OfCollectivesMoveResults) {
  const std::string parts = testing::TempDir() + std::to_string(::getpid()) + "_facts_parts.csv";
  std::ofstream(parts) << "0,1000\n2000,0\n";
  const std::string tokens = "tokens: 128, hidden: 7168, experts: 256, top_k: 8";
  const std::string message =
      collective("dgx_h100", "kind: send_receive, bytes: 1 GB, from: 0, to: 1", ", nodes: 2");
  const std::vector<Probe> probes = {
      {{"collective."}, collective("dgx_h100", kReduce)},
      {{"collective."}, collective("dgx_h100", "kind: all_to_all, bytes: 1 MiB")},
      {{"collective."},
       collective("dgx_h100", "kind: dispatch, expert_groups: 4, top_groups: 2, " + tokens,
                  ", nodes: 4")},
      {{"collective.matrix"},
       collective("dgx_h100", "kind: all_to_all, matrix: [[0, 1 MB], [2 MB, 0]]")},
  };
  const std::vector<Change> changes = {
      {"collective.algorithm", collective("dgx_h100", kReduce), {"collective.algorithm=ring"}},
      {"collective.protocol",
       collective("dgx_h100", kReduce + ", algorithm: ring"),
       {"collective.protocol=ll"}},
      {"collective.from", message, {"collective.from=8"}},
      {"collective.to", message, {"collective.to=9"}},
      {"collective.matrix_file",
       collective("dgx_h100", "kind: all_to_all, matrix: [[0, 1 MB], [2 MB, 0]]"),
       {"collective.matrix=[]", "collective.matrix_file=" + parts}},
  };
  expect_that_all_move("collective.", probes, changes);
  static_cast<void>(std::remove(parts.c_str()));
}

std::set<std::string> listed_facts() {
  std::set<std::string> all;
  for (const auto& [key, facts] : listed()) all.insert(facts.begin(), facts.end());
  return all;
}

TEST(ListedFacts, AreOfEighteenKeysAtMost) {
  EXPECT_LE(listed().size(), 18U);
  std::size_t cited = 0;
  for (const auto& [fact, type] : all_facts()) cited += is_citation(fact) ? 1 : 0;
  for (const auto& [key, facts] : listed())
    for (const std::string& fact : facts) {
      EXPECT_TRUE(all_facts().contains(fact)) << fact << " is no fact";
      EXPECT_TRUE(fact == key || fact.ends_with("." + key)) << fact;
    }
  const std::size_t apart = listed_facts().size();
  std::cout << all_facts().size() << " facts: " << all_facts().size() - apart - cited
            << " demanded to move a result, " << apart << " listed under " << listed().size()
            << " keys, " << cited << " citations\n";
}

/// The listed facts that a probe has and that change nothing whatever they are.
std::set<std::string> that_change_nothing(const std::string& text,
                                          const std::vector<std::string>& set = {}) {
  return answering(Trials::Answer::kSame, {{""}, text, set}, listed_facts());
}

const std::string kStep =
    "{experiment: training, system: dgx_h100, model: llama_3_1_8b, parallel: {tp: 8}, batch: "
    "{global: 1, sequence: 512}}";

// Why: no schema has names to choose from for them, and no model asks for them.
TEST(ListedFacts, TextsAreForReadersSoThatAnyTextWillDo) {
  std::set<std::string> found =
      that_change_nothing(kStep, {"name=x", "system.remarks=[x]", "model.model=x"});
  for (const std::string& fact : that_change_nothing(
           "{experiment: layers, system: dgx_a100, layer_model: digits_1989}", {"name=x"}))
    found.insert(fact);
  for (const auto& [key, facts] : listed())
    for (const std::string& fact : facts) {
      if (all_facts().at(fact)->kind != TypeKind::kText || part_of(fact) == "serving.") continue;
      EXPECT_TRUE(found.contains(fact)) << fact;
    }
}

TEST(ListedFacts, KnownErrorsAreOfTheRunsThatTheyConcern) {
  const auto with = [](const std::string& error) {
    return result_of(kStep, {"system.accelerator.known_errors=[{" + error + ", source: y}]"});
  };
  const std::string without = result_of(kStep, {}), found = with("experiment: training, error: x");
  EXPECT_NE(found, without);
  EXPECT_NE(with("experiment: training, error: z"), found);
  EXPECT_EQ(with("experiment: training, error: x, precision: bf16"), found);
  EXPECT_EQ(with("experiment: training, error: x, precision: fp8"), without);
  EXPECT_EQ(with("experiment: serving, error: x"), without);
  EXPECT_NE(with("experiment: training, error: x, slower: 2"), found);
}

// Why: an experiment runs `nodes` of a system, however many of them somebody has.
TEST(ListedFacts, MachinesThatWereBuiltAreForReaders) {
  const std::string m = "system.installation.";
  const std::string text =
      "{experiment: collective, system: frontier, nodes: 2, collective: {kind: all_reduce, bytes: "
      "1 MiB}}";
  const std::string with[] = {m + "name=x",
                              m + "systems=7",
                              m + "processors=7 W",
                              m + "power=7 W",
                              m + "cost=7",
                              m + "fp64_peak.unit_flops=7",
                              m + "fp64_peak.clock=7 MHz",
                              m + "fp64_peak.processors=7 TFLOP/s",
                              m + "fp64_peak.published=7 TFLOP/s"};
  for (const std::string& change : with)
    EXPECT_EQ(result_of(text, {change}), result_of(text, {})) << change;
}

// Why: a vendor's peak that holds for data which compress well; multiply-adds are a part of
// energy.matrix, for the comparison with DRAM; bandwidths are those of all links together, so that
// their number only says how many cables they are.
TEST(ListedFacts, PublishedFiguresChangeTablesOnly) {
  const std::string rubin =
      "{experiment: inference, system: vr_nvl72, model: llama_3_1_8b, precision: nvfp4, phase: "
      "prefill, batch: {micro: 1, sequence: 4096}}";
  EXPECT_TRUE(that_change_nothing(rubin).contains("system.accelerator.compute.matrix_inference"));
  const std::set<std::string> found = that_change_nothing(kStep);
  for (const char* fact :
       {"system.accelerator.energy.multiply_add", "system.host.processors",
        "system.accelerator.scale_out.links", "system.accelerator.host_link.links"})
    EXPECT_TRUE(found.contains(fact)) << fact;
  const auto word = [&](const std::vector<std::string>& set) {
    return word_cost(load(kStep, set).as<MachineExperiment>().system.accelerator)->multiply_adds;
  };
  EXPECT_NEAR(word({"system.accelerator.energy.multiply_add.bf16=0.172 pJ/FLOP"}) / word({}), 2,
              1e-9);
}

// Why: copper and optical links of a torus have the same rate, so that the cubes only say how many
// switches join them.
TEST(ListedFacts, CubesOfATorusCountItsSwitches) {
  const std::string torus = collective("tpu_v5p_pod", kReduce);
  EXPECT_TRUE(that_change_nothing(torus, kCube).contains("system.scale_up.cube"));
  const auto switches = [&](const std::string& cube) {
    return torus_optics(load(torus, {kCube[0], kCube[1], "system.scale_up.cube=" + cube})
                            .as<MachineExperiment>()
                            .system.scale_up)
        .switches;
  };
  EXPECT_NE(switches("4"), switches("2"));
}

// Why: it says up to where measured tables are of the one-shot kernels; an experiment names them.
TEST(ListedFacts, ALimitOfTablesLeavesANamedAlgorithmAlone) {
  const std::string one_shot =
      collective("dgx_h100", "kind: all_reduce, bytes: 1 MiB, algorithm: one_shot");
  EXPECT_TRUE(that_change_nothing(one_shot).contains("system.scale_up.protocols.one_shot_limit"));
}

}  // namespace
}  // namespace orrery::facts::network_facts_test
